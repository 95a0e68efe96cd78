"""Questions for rows that a register was told of, and the rows that are kept for all of them.

Rows are kept as long as the longest window needs them, and not at all without such a question.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.asking.refusals import not_that_long, rows_gone
from panes.asking.row_tail import RowTail
from panes.asking.row_window import RowWindow, ask_row_window
from panes.axis import BEGINNING, Axis
from panes.errors import FailedQueryWarning, QueryError, warn
from panes.language.expressions import quoted
from panes.language.row_question import RowQuestion
from panes.planning.choose_index import describe


class RowQuestions:
    """The prepared questions for rows of a register, by their text."""

    def __init__(self, stream: str) -> None:
        self.stream = stream
        self.asked: dict[str, RowQuestion] = {}
        self.failed: dict[str, str] = {}
        self._window: RowWindow | None = None

    def __len__(self) -> int:
        return len(self.asked)

    @property
    def window(self) -> RowWindow | None:
        """The rows that are kept."""
        return self._window

    @property
    def rows(self) -> int:
        """How many rows are kept."""
        return 0 if self._window is None else len(self._window)

    @property
    def nbytes(self) -> int:
        """Bytes of the rows that are kept."""
        return 0 if self._window is None else self._window.nbytes

    def explain(self) -> Iterator[str]:
        """Which columns have an index, and which: one line for each that is looked up."""
        for name, index in () if self._window is None else self._window.indexes.items():
            chosen = "no index" if index.choice is None else describe(index.choice.structure)
            times = "once" if index.asked == 1 else f"{index.asked:,} times"
            yield f"rows by {name}: {chosen}; looked up {times}"

    def require_preparable(self, asked: RowQuestion) -> None:
        """Refuse what no rows are kept for."""
        if asked.stream.lower() != self.stream.lower():
            raise QueryError(f"only rows of `{self.stream}` can be asked for")
        if asked.window.measure == "rows":
            raise QueryError(
                "the last rows as they came are kept by the register itself",
                hint=f"panes.register(..., keep_rows={asked.size})",
            )

    def prepare(self, text: str, asked: RowQuestion, tail: RowTail | None, newest: int) -> None:
        """Keep from now on the rows that answer a question; those of a tail are known already."""
        self.asked[text] = asked
        self.failed.pop(text, None)
        size = max(question.size for question in self.asked.values())
        if self._window is None:
            self._window = RowWindow(size, newest)
        else:
            self._window.grow(size, newest)
        if tail is not None and tail.known_from < self._window.known_from:
            self._window = RowWindow.of(tail, size, newest)

    def forget(self, text: str, newest: int) -> None:
        """Forget a question, and the rows that only it needs."""
        if self.failed.pop(text, None) is not None:
            return
        del self.asked[text]
        if not self.asked:
            self._window = None
        elif self._window is not None:
            self._window.grow(max(q.size for q in self.asked.values()), newest)

    def set_aside(self, failing: Mapping[str, Exception]) -> None:
        """These questions cannot be answered: they are listed as failed, and that is told."""
        for text, reason in failing.items():
            self.forget(text, BEGINNING)
            self.failed[text] = str(reason)
            words = f"`{text}` failed and is set aside; the others go on. {reason}"
            warn(words, FailedQueryWarning)

    def push(self, at: NDArray[np.int64], rows: pa.Table, newest: int) -> None:
        """Rows that were admitted."""
        if self._window is not None:
            self._window.push(at, rows, newest)

    def ask(
        self, asked: RowQuestion, tail: RowTail | None, schema: pa.Schema, axis: Axis, newest: int
    ) -> pa.Table:
        """The rows that a question asks for, if all of them are kept, or are in a tail."""
        window, start = self._window, newest + 1 - asked.size
        if window is None or asked.size > window.size:
            if tail is None:
                raise not_that_long()
            if newest != BEGINNING and start < tail.known_from:
                raise rows_gone(axis, start, tail.known_from)
            window = RowWindow.of(tail, asked.size, newest)
        return ask_row_window(asked, window, schema, axis, newest)


def ordering_of(asked: RowQuestion) -> str:
    """A query over the column that orders the rows of a question."""
    return ordering_by(asked.stream, asked.window.column, asked.window.measure)


def ordering_by(stream: str, column: str | None, measure: str | None) -> str:
    """A query over the column that orders the rows of a stream."""
    size = "1 second" if measure == "time" else "1"
    return f"SELECT count(*) FROM {quoted(stream)} [TUMBLING {size} WATTR {quoted(column or '')}]"
