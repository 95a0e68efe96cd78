"""A window one can look into: rows come, basic windows are sealed, and questions are asked.

The window is the last `size` before `end`, in whole basic windows. A row is seen once its basic
window is sealed (`panes.process.index_arrivals`), and every answer is one for the whole window.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.axis import ARRIVAL, Duration, axis_over, parse_instant
from panes.errors import OptionError, StateError, UnknownColumnError
from panes.frames import to_table
from panes.html import facts_line
from panes.index.g_index import GROUPS
from panes.index.keys import value_keys
from panes.index.kinds import Structure
from panes.index.live_window import LiveWindow
from panes.planning.choose_index import (
    IndexChoice,
    choose_index,
    explain_index,
    require_kind,
    require_questions,
)
from panes.process.in_turn import Turn
from panes.process.index_arrivals import STREAM, IndexArrivals, lengths
from panes.process.step import in_turn, uninterrupted
from panes.process.window_questions import WindowQuestions
from panes.windows.limit import MOST_ANSWERS

Instant = str | int | dt.datetime | dt.date


class WindowIndex(WindowQuestions):
    """The rows of a live window, found by the values of one column. See `panes.window_index`.

    Threads take turns.
    """

    def __init__(
        self,
        schema: pa.Schema,
        *,
        at: str | None,
        size: Duration,
        basic: Duration,
        on: str,
        kind: str | None = None,
        groups: int = GROUPS,
        questions: Mapping[str, float] | None = None,
        values: int | None = None,
    ) -> None:
        plain = to_table(schema.remove_metadata().empty_table(), STREAM).schema
        for column in (on, *(() if at is None else (at,))):
            if column not in plain.names:
                raise UnknownColumnError(column, stream=STREAM, columns=plain.names)
        self._axis = ARRIVAL if at is None else axis_over(at, plain.field(at).type, stream=STREAM)
        self._basic, self._length = lengths(size, basic, self._axis)
        self._on = on
        self._kind, self._groups = require_kind(kind), groups
        self._questions, self._values = require_questions(questions), values
        self._choice: IndexChoice | None = None
        self._turn = Turn(MOST_ANSWERS)
        self._window = LiveWindow(
            plain,
            value_keys(on, plain.field(on).type),
            length=self._length,
            at=None if at is None else plain.get_field_index(at),
            choose=self._choose,
        )
        self._arrivals = IndexArrivals(self._window, self._axis, self._basic)

    def _choose(self, first_keys: NDArray[np.int64]) -> Structure:
        self._choice = choose_index(
            first_keys,
            windows=self._length,
            kind=self._kind,
            groups=self._groups,
            questions=self._questions,
            values=self._values,
        )
        return self._choice.structure

    def __repr__(self) -> str:
        kind = "no index yet" if self._choice is None else self._choice.structure.kind
        return facts_line("WindowIndex", f"on {self._on}", kind, f"{len(self._window):,} rows")

    # What comes and goes

    @uninterrupted
    def add(self, batch: object) -> None:
        """Take in rows, in any order. They are seen once their basic window is sealed.

        Without `at`, rows count as they come, and basic windows are sealed as they fill up.
        """
        self._arrivals.add(batch)

    @uninterrupted
    def advance(self, to: Instant) -> None:
        """Seal the basic windows that end at or before a position; the window slides there.

        Going back changes nothing.
        """
        self._window.seal_before(self._number_of(to))

    def _number_of(self, to: Instant) -> int:
        """The number of the basic window that a position is in."""
        if self._axis.column is None:
            raise StateError(
                "a window of rows advances by itself, when a basic window is full",
                hint="name a column that orders the rows: at=...",
            )
        if self._axis.kind == "integer" and (not isinstance(to, int) or isinstance(to, bool)):
            raise OptionError(f"`{self._axis.column}` counts in whole numbers, got {to!r}")
        return parse_instant(to) // self._basic

    def slides(self, to: Instant, *, every: int = 1) -> Iterator[Any]:
        """Advance in steps, and give the window's end after each: for questions that stand.

        Each basic window that ends at or before a position is a step. Whoever is behind asks more
        rarely: with `every`, only every so many basic windows are one, and what is left in the end.
        The first step is the first basic window that holds a row.

        >>> import panes, pyarrow as pa
        >>> w = panes.window_index(pa.schema([("at", pa.int64()), ("x", pa.int64())]),
        ...                        at="at", size=20, basic=10, on="x")
        >>> w.add(pa.table({"at": [3, 14, 17, 31], "x": [7, 8, 8, 9]}))
        >>> [(end, len(w.values())) for end in w.slides(40)]
        [(10, 1), (20, 2), (30, 1), (40, 1)]
        """
        if not isinstance(every, int) or isinstance(every, bool) or every < 1:
            raise OptionError(f"every is a number of basic windows, got {every!r}")
        last = self._number_of(to)
        return self._steps(last, every)

    def _steps(self, last: int, every: int) -> Iterator[Any]:
        while (end := self._slid(last, every)) is not None:
            yield end

    @uninterrupted
    def _slid(self, last: int, every: int) -> Any:
        """The window's end after one more step; None if there is none left."""
        first = self._window.next_to_seal
        if first is None or first >= last:
            self._window.seal_before(last)
            return None
        self._window.seal_before(min(first + every, last))
        return self._label(0)

    # What the window is

    @property
    @in_turn
    def start(self) -> Any:
        """Where the window starts; None as long as nothing is sealed."""
        return self._label(-self._length)

    @property
    @in_turn
    def end(self) -> Any:
        """Where the window ends: the moment that all answers are for. None: nothing is sealed."""
        return self._label(0)

    def _label(self, offset: int) -> Any:
        open_from = self._window.open_from
        if open_from is None:
            return None
        return self._axis.label(np.array([(open_from + offset) * self._basic]))[0].as_py()

    @in_turn
    def __len__(self) -> int:
        """How many rows the window has, those without a value included."""
        return len(self._window)

    @property
    @in_turn
    def late(self) -> pa.Table:
        """Late rows, with the reason; the first million are stored."""
        return self._arrivals.late.rows([self._window.schema])

    @property
    @in_turn
    def rejected(self) -> pa.Table:
        """Rows without a valid position, with the reason; the first million are stored."""
        return self._arrivals.rejected.rows([self._window.schema])

    @property
    @in_turn
    def state(self) -> dict[str, int]:
        """How much is stored: rows in the window, waiting rows, basic windows, bytes; and apart."""
        return {
            "rows": len(self._window),
            "waiting_rows": self._window.waiting,
            "basic_windows": len(self._window.windows),
            "bytes": self._window.nbytes,
            "late_rows": self._arrivals.late.count,
            "rejected_rows": self._arrivals.rejected.count,
        }

    @in_turn
    def explain(self) -> str:
        """Which index it is and why, with the costs that were compared."""
        if self._choice is None:
            return "index      chosen when the first basic window with rows is sealed\n"
        return explain_index(self._choice)
