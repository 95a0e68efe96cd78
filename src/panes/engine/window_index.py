"""A window one can look into: rows come, basic windows are sealed, and questions are asked.

The window is the last `size` before `end`, in whole basic windows. A row goes into the basic window
of its position, whatever the order in which rows come, and is seen once that is sealed. A row of a
basic window that is sealed already is late: it is set aside and never seen.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from threading import RLock
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow.types import is_decimal, is_integer

from panes.admit.set_aside import RowPile, no_position, with_reason
from panes.arrays.columns import column_of
from panes.arrays.radix import is_sorted, stable_order
from panes.asking import window_questions as ask
from panes.axis import ARRIVAL, Axis, Duration, axis_over, parse_duration, parse_instant
from panes.engine.in_turn import in_turn
from panes.errors import (
    InputError,
    LimitError,
    OptionError,
    StateError,
    UnknownColumnError,
)
from panes.frames import to_table
from panes.index.g_index import GROUPS
from panes.index.keys import value_keys
from panes.index.kinds import Structure
from panes.index.live_window import LiveWindow, Piece
from panes.index.row_ring import MOST_ROWS
from panes.planning.choose_index import (
    IndexChoice,
    choose_index,
    explain_index,
    require_kind,
    require_questions,
)

Instant = str | int | dt.datetime | dt.date
_SEVERAL = (list, tuple, np.ndarray, pa.Array, pa.ChunkedArray)
"""What holds several values; everything else is one."""
_STREAM = "window"
"""What the rows of a window index are called in errors."""


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
        plain = to_table(_empty(schema), _STREAM).schema
        for column in (on, *(() if at is None else (at,))):
            if not isinstance(column, str):
                raise OptionError(f"at and on are names of columns, got {column!r}")
            if column not in plain.names:
                raise UnknownColumnError(column, stream=_STREAM, columns=plain.names)
        self._axis = ARRIVAL if at is None else axis_over(at, plain.field(at).type, stream=_STREAM)
        self._basic, self._length = _lengths(size, basic, self._axis)
        self._kind, self._groups = require_kind(kind), _require_groups(groups)
        self._questions, self._values = require_questions(questions), values
        self._choice: IndexChoice | None = None
        self._on = plain.get_field_index(on)
        self._turn: AbstractContextManager[object] = RLock()
        self._window = LiveWindow(
            plain,
            value_keys(on, plain.field(on).type),
            length=self._length,
            at=None if at is None else plain.get_field_index(at),
            choose=self._choose,
        )
        self._arrived = 0
        self._late, self._rejected = RowPile(), RowPile()

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

    # What comes and goes

    @in_turn
    def add(self, batch: object) -> None:
        """Take in rows, in any order. They are seen once their basic window is sealed.

        Without `at`, rows count as they come, and basic windows are sealed as they fill up.
        """
        table = to_table(batch, _STREAM, self._window.schema)
        if len(self._window) + self._window.waiting + len(table) > MOST_ROWS:
            raise LimitError(f"a window index holds at most {MOST_ROWS:,} rows")
        if self._axis.column is None:
            at = np.arange(self._arrived, self._arrived + len(table))
            self._place(table, at)
            self._arrived += len(table)
            self._window.seal_before(self._arrived // self._basic)
            return
        at, missing = self._axis.ticks(column_of(table, self._axis.column))
        if missing is not None:
            apart = table.filter(pa.array(missing))
            self._rejected.add([with_reason(apart, [no_position(self._axis.column)] * len(apart))])
            table, at = table.filter(pa.array(~missing)), at[~missing]
        self._place(table, at)

    def _place(self, table: pa.Table, at: NDArray[np.int64]) -> None:
        """Give each row to its basic window, late rows to those that are set aside."""
        if not len(table):
            return
        first, last = int(at.min()) // self._basic, int(at.max()) // self._basic
        open_from = self._window.open_from
        if open_from is not None and first < open_from:
            is_late = at < open_from * self._basic
            reason = f"behind progress {self._axis.format(open_from * self._basic)}"
            apart = table.filter(pa.array(is_late))
            reasons = [f"{reason}; its basic window is sealed"] * len(apart)
            self._late.add([with_reason(apart, reasons)])
            self._place(table.filter(pa.array(~is_late)), at[~is_late])
            return
        in_order = is_sorted(at)
        if first != last and not in_order:
            order = stable_order(at // self._basic)
            table, at = table.take(pa.array(order)), at[order]
        arrays = [column_of(table, name) for name in table.column_names]
        keys, is_null = self._keys(arrays[self._on])
        numbers, begins = _pieces(at, self._basic, first, last)
        for number, begin, end in zip(numbers, begins, [*begins[1:], len(at)], strict=True):
            whole = end - begin == len(at)
            piece = Piece(
                arrays if whole else [a.slice(begin, end - begin) for a in arrays],
                keys[begin:end],
                None if is_null is None else is_null[begin:end],
                at=(int(at[begin]), int(at[end - 1])) if in_order else None,
            )
            self._window.add(number, piece)

    def _keys(self, array: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None]:
        is_null = None
        if array.null_count:
            is_null = array.is_null().to_numpy(zero_copy_only=False)
        return self._window.keys.encode(array), is_null

    @in_turn
    def advance(self, to: Instant) -> None:
        """Seal the basic windows that end at or before a position; the window slides there.

        Going back changes nothing.
        """
        if self._axis.column is None:
            raise StateError(
                "a window of rows advances by itself, when a basic window is full",
                hint="name a column that orders the rows: at=...",
            )
        if self._axis.kind == "integer" and (not isinstance(to, int) or isinstance(to, bool)):
            raise OptionError(f"`{self._axis.column}` counts in whole numbers, got {to!r}")
        self._window.seal_before(parse_instant(to) // self._basic)

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
        return self._late.rows([self._window.schema])

    @property
    @in_turn
    def rejected(self) -> pa.Table:
        """Rows without a valid position, with the reason; the first million are stored."""
        return self._rejected.rows([self._window.schema])

    @property
    @in_turn
    def state(self) -> dict[str, int]:
        """How much is stored: rows in the window, waiting rows, basic windows, bytes; and apart."""
        return {
            "rows": len(self._window),
            "waiting_rows": self._window.waiting,
            "basic_windows": len(self._window.windows),
            "bytes": self._window.nbytes,
            "late_rows": self._late.count,
            "rejected_rows": self._rejected.count,
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
        return self._window.take(self._window.rows_of_one(key))

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
        rows, column = to_table(table, _STREAM), on or self._window.keys.column
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
    with first._turn, second._turn:
        yield


def _empty(schema: object) -> pa.Table:
    if not isinstance(schema, pa.Schema):
        raise InputError(
            f"the columns of a window index are a pyarrow schema, got {type(schema).__name__}",
            hint='pa.schema([("ts", pa.timestamp("us", "UTC")), ("price", pa.float64())])',
        )
    return schema.remove_metadata().empty_table()


def _lengths(size: Duration, basic: Duration, axis: Axis) -> tuple[int, int]:
    """A basic window in ticks, and how many of them a window has."""
    window, part = parse_duration(size, option="size"), parse_duration(basic, option="basic")
    if axis.kind != "time" and not (isinstance(size, int) and isinstance(basic, int)):
        what = "rows" if axis.column is None else f"`{axis.column}` in whole numbers"
        raise OptionError(f"size and basic count {what}, got {size!r} and {basic!r}")
    if part <= 0:
        raise OptionError(f"a basic window needs a positive length, got {basic!r}")
    if window <= 0 or window % part:
        raise OptionError(
            f"a window is a whole number of basic windows, got size={size!r} and basic={basic!r}",
            hint='size="1 hour", basic="1 minute"',
        )
    return part, window // part


def _require_groups(groups: int) -> int:
    if not isinstance(groups, int) or isinstance(groups, bool) or groups < 1:
        raise OptionError(f"groups is how many groups of values there are, got {groups!r}")
    return groups


def _pieces(
    at: NDArray[np.int64], basic: int, first: int, last: int
) -> tuple[list[int], list[int]]:
    """The basic windows of rows that stand basic window by basic window, and where each begins."""
    if first == last:
        return [first], [0]
    numbers = at // basic
    begins = np.flatnonzero(np.concatenate([[True], numbers[1:] != numbers[:-1]]))
    return numbers[begins].tolist(), begins.tolist()
