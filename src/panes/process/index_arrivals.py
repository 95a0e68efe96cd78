"""What comes into a window index: each row goes to its basic window, or is set aside.

A row goes into the basic window of its position, whatever the order in which rows come. One whose
basic window is sealed already is late, and one without a valid position is rejected: neither is
ever seen, and both are stored with the reason.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.arrays.columns import column_of
from panes.arrays.ordering import is_sorted, stable_order
from panes.axis import Axis, Duration, parse_duration
from panes.errors import LimitError, OptionError
from panes.frames import has_text, to_table
from panes.index.live_window import LiveWindow, RowPiece
from panes.index.row_ring import MOST_ROWS
from panes.nodes.set_aside import RowPile, no_position, with_reason

STREAM = "window"
"""What the rows of a window index are called in errors."""


class IndexArrivals:
    """The way of rows into a live window, whose basic windows are `basic` ticks of an axis long.

    On the axis of arrival, rows count as they come, and basic windows are sealed as they fill up.
    """

    def __init__(self, window: LiveWindow, axis: Axis, basic: int) -> None:
        self._window, self._axis, self._basic = window, axis, basic
        self._on = window.schema.get_field_index(window.keys.column)
        self._has_text = has_text(window.schema)
        self._arrived = 0
        self.late, self.rejected = RowPile(), RowPile()

    def add(self, batch: object) -> None:
        """Take in rows, in any order."""
        table = self._read(batch)
        if len(self._window) + self._window.waiting + len(table) > MOST_ROWS:
            raise LimitError(f"a window index holds at most {MOST_ROWS:,} rows")
        if self._axis.column is None:
            self._place(table, np.arange(self._arrived, self._arrived + len(table)))
            self._arrived += len(table)
            self._window.seal_before(self._arrived // self._basic)
            return
        at, missing = self._axis.ticks(column_of(table, self._axis.column))
        if missing is not None:
            apart = table.filter(pa.array(missing))
            self.rejected.add([with_reason(apart, [no_position(self._axis.column)] * len(apart))])
            table, at = table.filter(pa.array(~missing)), at[~missing]
        self._place(table, at)

    def _read(self, batch: object) -> pa.Table:
        """A batch as a table of just the window's columns."""
        schema = self._window.schema
        if isinstance(batch, pa.Table) and not self._has_text and batch.schema.equals(schema):
            return batch  # nothing to convert and nothing to check
        return to_table(batch, STREAM, schema)

    def _place(self, table: pa.Table, at: NDArray[np.int64]) -> None:
        """Give each row to its basic window, late rows to those that are set aside."""
        if not len(table):
            return
        in_order = is_sorted(at)
        least, greatest = (at[0], at[-1]) if in_order else (at.min(), at.max())
        first, last = int(least) // self._basic, int(greatest) // self._basic
        open_from = self._window.open_from
        if open_from is not None and first < open_from:
            is_late = at < open_from * self._basic
            self._set_aside(table.filter(pa.array(is_late)), open_from)
            self._place(table.filter(pa.array(~is_late)), at[~is_late])
            return
        if first != last and not in_order:
            order = stable_order(at // self._basic)
            table, at = table.take(pa.array(order)), at[order]
        self._hand_over(table, at, (first, last), in_order)

    def _set_aside(self, late: pa.Table, open_from: int) -> None:
        behind = f"behind progress {self._axis.format(open_from * self._basic)}"
        self.late.add([with_reason(late, [f"{behind}; its basic window is sealed"] * len(late))])

    def _hand_over(
        self, table: pa.Table, at: NDArray[np.int64], span: tuple[int, int], in_order: bool
    ) -> None:
        """Rows that stand basic window by basic window, piece by piece."""
        arrays = [column_of(table, name) for name in self._window.schema.names]
        keys, is_null = self._window.encoded(arrays[self._on])
        numbers, begins = _pieces(at, self._basic, *span)
        for number, begin, end in zip(numbers, begins, [*begins[1:], len(at)], strict=True):
            whole = end - begin == len(at)
            piece = RowPiece(
                arrays if whole else [a.slice(begin, end - begin) for a in arrays],
                keys[begin:end],
                None if is_null is None else is_null[begin:end],
                at=(int(at[begin]), int(at[end - 1])) if in_order else None,
            )
            self._window.add(number, piece)


def lengths(size: Duration, basic: Duration, axis: Axis) -> tuple[int, int]:
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


def _pieces(
    at: NDArray[np.int64], basic: int, first: int, last: int
) -> tuple[list[int], list[int]]:
    """The basic windows of rows that stand basic window by basic window, and where each begins."""
    if first == last:
        return [first], [0]
    numbers = at // basic
    begins = np.flatnonzero(np.concatenate([[True], numbers[1:] != numbers[:-1]]))
    return numbers[begins].tolist(), begins.tolist()
