"""Questions about a live window, each answered from what its index holds.

Values are in ascending order, NaN last. NULL is no value: no question finds it, and only `sorted`
gives rows without a value, first. Ranges of values include both ends, as BETWEEN does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow.types import is_decimal, is_integer

from panes.arrays.columns import column_of
from panes.arrays.compiled import compiled
from panes.arrays.slots import distinct
from panes.errors import ColumnTypeError, InputError, OptionError, UnknownColumnError
from panes.frames import to_table
from panes.index.domain import Keys
from panes.index.g_index import GIndex
from panes.index.keys import GREATEST, LEAST, NumberedKeys, ValueKeys
from panes.index.live_window import LiveWindow
from panes.index.nearest import nearest, nearest_one
from panes.process.in_turn import Turn
from panes.process.index_arrivals import STREAM
from panes.process.step import in_turn

Counts = NDArray[np.int64]
_SEVERAL = (list, tuple, np.ndarray, pa.Array, pa.ChunkedArray)
"""What holds several values; everything else is one."""


class WindowQuestions:
    """What a window index can be asked, each question in its turn."""

    _window: LiveWindow
    _turn: Turn

    @in_turn
    def count(self, value: Any) -> Any:
        """How many rows have a value; of an array or list of values, an array of counts."""
        if isinstance(value, _SEVERAL):
            return look_up(self._window, self._many(value))
        key = None if value is None else self._window.keys.find_one(value)
        return 0 if key is None else self._window.index.count_one(key)

    @in_turn
    def rows(self, value: Any) -> pa.Table:
        """The rows that have a value, or one of several, in the order of the axis."""
        window = self._window
        if isinstance(value, _SEVERAL):
            keys, is_known = window.keys.find(self._many(value))
            return window.rows.take(window.rows_of(distinct(keys[is_known])))
        key = None if value is None else window.keys.find_one(value)
        return window.schema.empty_table() if key is None else window.table_of_one(key)

    @in_turn
    def between(self, low: Any, high: Any) -> pa.Table:
        """The rows whose value is at least `low` and at most `high`, in the order of the axis."""
        window = self._window
        if low is None or high is None:  # nothing is known to lie between NULL and anything
            return window.schema.empty_table()
        return window.rows.take(window.rows_of(_within(window, low, high)))

    @in_turn
    def sorted(self, *, limit: int | None = None, descending: bool = False) -> pa.Table:
        """All rows by value, those without one first; with `limit`, only the first of them.

        Rows with the same value are in the order of the axis. Descending, those without one last.
        """
        if limit is not None and not _is_count(limit):
            raise OptionError(f"limit is a number of rows, got {limit!r}")
        window = self._window
        nulls = window.null_rows()
        keys, counts = window.present()
        if descending:
            keys, counts = keys[::-1], counts[::-1]
        wanted = len(window) if limit is None else limit
        still = wanted if descending else max(wanted - len(nulls), 0)
        enough = int(np.searchsorted(np.cumsum(counts), still)) + 1
        found = window.sorted_rows(keys[:enough], still)
        parts = [found, nulls] if descending else [nulls, found]
        return window.rows.take(np.concatenate(parts)[:wanted])

    @in_turn
    def values(self) -> pa.Table:
        """All values and how many rows have each: ``value``, ``count``, ascending."""
        return _counted(self._window.keys, *self._window.present())

    @in_turn
    def top(self, k: int) -> pa.Table:
        """The k most frequent values: ``value``, ``count``, the most frequent first.

        Of equally frequent ones the smaller.
        """
        if not _is_count(k):
            raise OptionError(f"top needs a number of values, got {k!r}")
        keys, counts = self._window.present()
        if 0 < k < len(counts):
            least = np.partition(counts, len(counts) - k)[len(counts) - k]
            likely = np.flatnonzero(counts >= least)
            best = likely[np.argsort(-counts[likely], kind="stable")][:k]
        else:
            best = np.argsort(-counts, kind="stable")[:k]
        return _counted(self._window.keys, keys[best], counts[best])

    @in_turn
    def histogram(self, edges: Sequence[Any]) -> pa.Table:
        """How many rows are in ``[low, high)`` between neighbouring edges."""
        window = self._window
        if not isinstance(edges, Sequence | np.ndarray) or len(edges) < 2:
            raise OptionError(
                "a histogram needs at least two edges", hint="w.histogram([0, 10, 100])"
            )
        before = [_smaller(window, edge) for edge in edges]
        if any(b < a for a, b in pairwise(before)):
            raise OptionError(f"the edges of a histogram ascend, got {list(edges)!r}")
        found = [window.keys.convert(edge) for edge in edges]
        for edge, bound in zip(edges, found, strict=True):
            if bound is None and not _is_infinite(edge):
                raise OptionError(
                    f"`{window.keys.column}` is {window.keys.type}, which has no edge at {edge!r}"
                )
        bounds = pa.array(found, window.keys.type)
        counts = pa.array(np.diff(before), pa.int64())
        return pa.table({"low": bounds[:-1], "high": bounds[1:], "count": counts})

    @in_turn
    def groups(self) -> pa.Table:
        """The groups of an index of kind ``"group"``: ``low``, ``high``, ``count``."""
        low, high, counts = _groups(self._window)
        return _ranges(self._window.keys, low, high).append_column("count", pa.array(counts))

    @in_turn
    def quantiles(self, shares: Sequence[float]) -> pa.Table:
        """For each share, the smallest value that so much of the rows do not exceed."""
        window = self._window
        if not isinstance(shares, Sequence | np.ndarray) or isinstance(shares, str):
            raise OptionError(
                f"quantiles takes several shares, got {shares!r}", hint="w.quantiles([0.5])"
            )
        keys, counts = window.present()
        reached, places = np.cumsum(counts), []
        for share in shares:
            if not isinstance(share, int | float) or not 0 <= share <= 1:
                raise OptionError(f"a quantile lies between 0 and 1, got {share!r}")
            rows = Fraction(repr(float(share))) * (int(reached[-1]) if len(reached) else 0)
            places.append(max(-(-rows.numerator // rows.denominator), 1))
        if len(keys):
            found = window.keys.decode(keys[np.searchsorted(reached, places)])
        else:
            found = pa.nulls(len(places), window.keys.type)
        return pa.table({"quantile": pa.array([float(s) for s in shares]), "value": found})

    @in_turn
    def rank(self, value: Any) -> int:
        """How many rows have a smaller value."""
        return _smaller(self._window, value)

    @in_turn
    def nearest(self, value: Any) -> Any:
        """The value nearest to a value, the smaller of two; of several, an array. None: no rows."""
        if isinstance(value, _SEVERAL):
            return self._nearest(value)
        return self._nearest([value])[0].as_py()

    def _nearest(self, value: Any) -> pa.Array:
        asked = self._many(value)
        found = nearest(self._window, asked)
        data_type = self._window.keys.type
        if not asked.null_count or not (is_integer(data_type) or is_decimal(data_type)):
            return found
        pairs = zip(pa.array(value) if isinstance(value, np.ndarray) else value, found, strict=True)
        near = [(v.as_py() if isinstance(v, pa.Scalar) else v, f.as_py()) for v, f in pairs]
        return pa.array(
            [nearest_one(self._window, v) if f is None and v is not None else f for v, f in near],
            data_type,
        )

    def intersection(self, other: WindowQuestions, *, ranges: bool = False) -> pa.Table:
        """The values that both windows have, ascending: ``value``.

        With `ranges`, of two indexes of kind ``"group"``: ranges in which both have rows.
        """
        return _compared(self, other, in_both=True, ranges=ranges)

    def difference(self, other: WindowQuestions, *, ranges: bool = False) -> pa.Table:
        """The values that only this window has, ascending: ``value``.

        With `ranges`, of two indexes of kind ``"group"``: ranges in which only this one has rows.
        """
        return _compared(self, other, in_both=False, ranges=ranges)

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
        keys, is_known = self._window.keys.find(asked)
        found = (self._window.index.counts(keys) > 0) & is_known
        if anti:
            found = ~found & asked.is_valid().to_numpy(zero_copy_only=False)
        return rows.filter(pa.array(found))

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


def look_up(window: LiveWindow, asked: pa.Array) -> pa.Array:
    """How many rows have each of some values."""
    keys, is_known = window.keys.find(asked)
    counts = window.index.counts(keys)
    return pa.array(counts if is_known.all() else np.where(is_known, counts, 0))


def _is_infinite(edge: object) -> bool:
    return isinstance(edge, float | Decimal) and math.isinf(edge)


def _within(window: LiveWindow, low: object, high: object) -> Keys:
    """The keys of the values in a range, ascending by value."""
    least, greatest = window.keys.range(low, high)
    keys, _ = window.present()
    if least > GREATEST or greatest < LEAST:
        return keys[:0]
    ranks, least, greatest = window.keys.rank(keys), max(least, LEAST), min(greatest, GREATEST)
    return keys[np.searchsorted(ranks, least) : np.searchsorted(ranks, greatest, side="right")]


def _smaller(window: LiveWindow, value: object) -> int:
    """How many rows have a value smaller than a value."""
    if value is None:
        raise OptionError("NULL is no value, so nothing is smaller or greater")
    least, _ = window.keys.range(value, None)
    keys, counts = window.present()
    if least > GREATEST:
        return int(counts.sum())
    return int(counts[: np.searchsorted(window.keys.rank(keys), max(least, LEAST))].sum())


# Two windows


@contextmanager
def _both(one: WindowQuestions, other: object) -> Iterator[None]:
    """The turn of two windows, always taken in the same order, so that no two threads wait."""
    if not isinstance(other, WindowQuestions):
        raise InputError(f"two window indexes are compared, got {type(other).__name__}")
    first, second = sorted((one, other), key=id)
    with first._turn.taken(), second._turn.taken():
        yield


def _compared(
    one: WindowQuestions, another: WindowQuestions, *, in_both: bool, ranges: bool
) -> pa.Table:
    with _both(one, another):
        window, other = one._window, another._window
        if window.keys.type != other.keys.type:
            raise ColumnTypeError(
                f"values of `{window.keys.column}` ({window.keys.type}) are not comparable with "
                f"those of `{other.keys.column}` ({other.keys.type})",
                hint="cast one of the columns before rows are added",
            )
        shared = _shared_ranges if ranges else _shared_values
        return shared(window, other, in_both=in_both)


def _shared_values(window: LiveWindow, other: LiveWindow, *, in_both: bool) -> pa.Table:
    """The values of the first window that both have, or only that one."""
    keys, _ = window.present()
    if isinstance(window.keys, NumberedKeys):
        is_shared = look_up(other, window.keys.decode(keys)).to_numpy() > 0
    else:
        is_shared = np.empty(len(keys), dtype=np.bool_)
        _mark_shared(keys, other.present()[0], is_shared)
    return pa.table({"value": window.keys.decode(keys[is_shared == in_both])})


def _shared_ranges(window: LiveWindow, other: LiveWindow, *, in_both: bool) -> pa.Table:
    """Ranges of values in which both windows have rows, or only the first one has.

    Both are inclusive; a range that is open to a side has NULL there. A range of both windows may
    hold different values of each.
    """
    (low, high, here), (other_low, other_high, there) = _groups(window), _groups(other)
    lows = np.union1d(low, other_low)
    highs = np.union1d(high, other_high)
    has_here = here[np.searchsorted(low, lows, side="right") - 1] > 0
    has_there = there[np.searchsorted(other_low, lows, side="right") - 1] > 0
    chosen = has_here & (has_there == in_both)
    return _ranges(window.keys, lows[chosen], highs[chosen])


def _groups(window: LiveWindow) -> tuple[Keys, Keys, Counts]:
    if isinstance(window.keys, NumberedKeys):
        raise ColumnTypeError(
            f"`{window.keys.column}` is {window.keys.type}, which is grouped as it comes",
            hint="ranges of values need a column of numbers or times",
        )
    if not window.is_made:
        return np.array([LEAST]), np.array([GREATEST]), np.array([0])
    if not isinstance(window.index, GIndex):
        raise OptionError(
            "only an index of groups of values knows their ranges",
            hint='panes.window_index(..., kind="group")',
        )
    return window.index.groups()


def _ranges(keys: ValueKeys, low: Keys, high: Keys) -> pa.Table:
    """Ranges of keys as values, NULL where they are open."""
    bounds = {}
    for name, bound, is_open in (("low", low, low == LEAST), ("high", high, high == GREATEST)):
        decoded = keys.decode(np.where(is_open, 0, bound))
        bounds[name] = pc.if_else(pa.array(~is_open), decoded, pa.scalar(None, keys.type))
    return pa.table(bounds)


def _counted(keys: ValueKeys, chosen: Keys, counts: Counts) -> pa.Table:
    return pa.table({"value": keys.decode(chosen), "count": pa.array(counts, pa.int64())})


def _is_count(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number >= 0


@compiled
def _mark_shared(keys, others, is_shared):  # type: ignore[no-untyped-def]
    j = 0
    for i in range(keys.shape[0]):
        while j < others.shape[0] and others[j] < keys[i]:
            j += 1
        is_shared[i] = j < others.shape[0] and others[j] == keys[i]
