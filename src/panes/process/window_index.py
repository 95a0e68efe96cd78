"""A window one can look into: rows come, basic windows are sealed, and questions are asked.

The window is the last `size` before `end`, in whole basic windows. A row is seen once its basic
window is sealed (`panes.process.index_arrivals`), and every answer is one for the whole window.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow.types import is_decimal, is_integer

from panes.arrays.columns import column_of
from panes.asking import window_questions as ask
from panes.axis import ARRIVAL, Duration, axis_over, parse_instant
from panes.errors import (
    InputError,
    OptionError,
    StateError,
    UnknownColumnError,
)
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
from panes.windows.limit import MOST_ANSWERS

Instant = str | int | dt.datetime | dt.date
_SEVERAL = (list, tuple, np.ndarray, pa.Array, pa.ChunkedArray)
"""What holds several values; everything else is one."""


class WindowIndex:
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

    # Questions

    @in_turn
    def count(self, value: Any) -> Any:
        """How many rows have a value; of an array or list of values, an array of counts."""
        if isinstance(value, _SEVERAL):
            return ask.look_up(self._window, self._many(value))
        key = None if value is None else self._window.keys.find_one(value)
        return 0 if key is None else self._window.count_one(key)

    @in_turn
    def rows(self, value: Any) -> pa.Table:
        """The rows that have a value, or one of several, in the order of the axis."""
        if isinstance(value, _SEVERAL):
            return ask.rows_of(self._window, self._many(value))
        key = None if value is None else self._window.keys.find_one(value)
        if key is None:
            return self._window.schema.empty_table()
        return self._window.table_of_one(key)

    @in_turn
    def between(self, low: Any, high: Any) -> pa.Table:
        """The rows whose value is at least `low` and at most `high`, in the order of the axis."""
        return ask.between(self._window, low, high)

    @in_turn
    def sorted(self, *, limit: int | None = None, descending: bool = False) -> pa.Table:
        """All rows by value, those without one first; with `limit`, only the first of them.

        Rows with the same value are in the order of the axis.
        """
        return ask.sorted_rows(self._window, limit=limit, descending=descending)

    @in_turn
    def values(self) -> pa.Table:
        """All values and how many rows have each: ``value``, ``count``, ascending."""
        return ask.values(self._window)

    @in_turn
    def top(self, k: int) -> pa.Table:
        """The k most frequent values: ``value``, ``count``, the most frequent first."""
        return ask.top(self._window, k)

    @in_turn
    def histogram(self, edges: Sequence[Any]) -> pa.Table:
        """How many rows are in ``[low, high)`` between neighbouring edges."""
        return ask.histogram(self._window, edges)

    @in_turn
    def groups(self) -> pa.Table:
        """The groups of an index of kind ``"group"``: ``low``, ``high``, ``count``."""
        return ask.groups(self._window)

    @in_turn
    def quantiles(self, shares: Sequence[float]) -> pa.Table:
        """For each share, the smallest value that so much of the rows do not exceed."""
        return ask.quantiles(self._window, shares)

    @in_turn
    def rank(self, value: Any) -> int:
        """How many rows have a smaller value."""
        return ask.rank(self._window, value)

    @in_turn
    def nearest(self, value: Any) -> Any:
        """The value nearest to a value, the smaller of two; of several, an array. None: no rows."""
        if isinstance(value, _SEVERAL):
            return self._nearest(value)
        return self._nearest([value])[0].as_py()

    def _nearest(self, value: Any) -> pa.Array:
        asked = self._many(value)
        found = ask.nearest(self._window, asked)
        data_type = self._window.keys.type
        if not asked.null_count or not (is_integer(data_type) or is_decimal(data_type)):
            return found
        pairs = zip(pa.array(value) if isinstance(value, np.ndarray) else value, found, strict=True)
        near = [(v.as_py() if isinstance(v, pa.Scalar) else v, f.as_py()) for v, f in pairs]
        return pa.array(
            [
                ask.nearest_one(self._window, v) if f is None and v is not None else f
                for v, f in near
            ],
            data_type,
        )

    def intersection(self, other: WindowIndex, *, ranges: bool = False) -> pa.Table:
        """The values that both windows have, ascending: ``value``.

        With `ranges`, of two indexes of kind ``"group"``: ranges in which both have rows.
        """
        with _both(self, other):
            if ranges:
                return ask.shared_ranges(self._window, other._window, in_both=True)
            return ask.intersection(self._window, other._window)

    def difference(self, other: WindowIndex, *, ranges: bool = False) -> pa.Table:
        """The values that only this window has, ascending: ``value``.

        With `ranges`, of two indexes of kind ``"group"``: ranges in which only this one has rows.
        """
        with _both(self, other):
            if ranges:
                return ask.shared_ranges(self._window, other._window, in_both=False)
            return ask.difference(self._window, other._window)

    @in_turn
    def semi_join(self, table: object, *, on: str | None = None, anti: bool = False) -> pa.Table:
        """The rows of a table whose value the window has, or with `anti` has not.

        `on` is the table's column; without it, the one that is called as the indexed one. A row
        without a value is in neither.
        """
        rows, column = to_table(table, STREAM), on or self._window.keys.column
        if column not in rows.column_names:
            raise UnknownColumnError(column, stream="table", columns=rows.column_names)
        asked = self._many(column_of(rows, column))
        return rows.filter(pa.array(ask.semi_join(self._window, asked, anti=anti)))

    def _many(self, value: Any) -> pa.Array:
        """Several values as an array of the column's type; NULL where it has no such value."""
        if isinstance(value, pa.ChunkedArray):
            value = value.combine_chunks()
        if isinstance(value, np.ndarray):
            value = pa.array(value)
        if isinstance(value, pa.Array):
            if value.type == self._window.keys.type:
                return value
            value = value.to_pylist()
        converted = [self._window.keys.convert(v) for v in value]
        values = [None if scalar is None else scalar.as_py() for scalar in converted]
        return pa.array(values, self._window.keys.type)


@contextmanager
def _both(one: WindowIndex, other: object) -> Iterator[None]:
    """The turn of two windows, always taken in the same order, so that no two threads wait."""
    if not isinstance(other, WindowIndex):
        raise InputError(f"two window indexes are compared, got {type(other).__name__}")
    first, second = sorted((one, other), key=id)
    with first._turn.taken(), second._turn.taken():
        yield
