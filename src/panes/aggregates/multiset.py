"""Holistic aggregates, read exactly from the counted values of a window.

The value becomes one more grouping column when rows are filled into panes, with a count: panes
compress repeated values, and every holistic aggregate of one argument shares one multiset.
Values are read in ascending order (NaN last), so arrival order reaches no answer; NULLs are
not values.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from panes.aggregates.aggregate import Argument, Bounded, Holistic, Multiset, Rows, Selection
from panes.arrays.nested_keys import require_orderable, restored
from panes.errors import ColumnTypeError


def mode(argument: Argument, where: int | None, *, greatest: bool = False) -> Holistic:
    """``mode(x)``: the most frequent value; of several the smallest, or the greatest."""

    def lower(window: Multiset) -> pa.Array:
        begin, chosen, counts = window.select("share" if greatest else "top", 0 if greatest else 1)
        found = np.full(len(begin) - 1, -1, dtype=np.int64)
        is_some = np.diff(begin) > 0
        if greatest:
            most = np.repeat(counts[begin[:-1][is_some]], np.diff(begin)[is_some])
            ties = np.add.reduceat(counts == most, begin[:-1][is_some]) if is_some.any() else 0
            found[is_some] = chosen[begin[:-1][is_some] + ties - 1]
        else:
            found[is_some] = chosen
        return restored(take(window.values, found), argument.type)

    return holistic((argument,), where, lower, argument.type)


def count_distinct(arguments: tuple[Argument, ...], where: int | None) -> Holistic:
    """``count(DISTINCT x, ...)``: different values, or tuples of values without a NULL."""

    def lower(window: Multiset) -> pa.Array:
        return pa.array(window.distinct())

    return holistic(arguments, where, lower, pa.int64())


def frequent(
    argument: Argument, where: int | None, how: Literal["top", "share"], limit: float
) -> Holistic:
    """``top_k(x, k)`` and ``heavy_hitters(x, share)``: values by falling count, then by value."""
    result = pa.list_(pa.struct([("item", argument.type), ("count", pa.int64())]))

    def lower(window: Multiset) -> pa.Array:
        begin, chosen, counts = window.select(how, limit)
        values = restored(take(window.values, chosen), argument.type)
        items = pa.StructArray.from_arrays(
            [values, pa.array(counts)], fields=list(result.value_type)
        )
        return pa.ListArray.from_arrays(pa.array(begin, pa.int32()), items).cast(result)

    return holistic((argument,), where, lower, result)


def histogram(argument: Argument, where: int | None) -> Holistic:
    """``histogram(x)``: a map from each value to how often it occurred; NULL if it has none."""
    if pa.types.is_null(argument.type):
        raise ColumnTypeError("histogram needs values of a type, and NULL alone has none")
    result = pa.map_(argument.type, pa.int64())

    def lower(window: Multiset) -> pa.Array:
        begin, chosen, counts = window.select("all", 0)
        offsets = pa.array(begin, pa.int32(), mask=np.append(np.diff(begin) == 0, False))
        values = restored(take(window.values, chosen), argument.type)
        return pa.MapArray.from_arrays(offsets, values, pa.array(counts)).cast(result)

    return holistic((argument,), where, lower, result)


def over_distinct(
    argument: Argument, where: int | None, build: Callable[[Argument], Bounded]
) -> Holistic:
    """Any bounded aggregate over the different values of its argument (``sum(DISTINCT x)``)."""
    inner = build(Argument(0, argument.type))
    own = argument.type

    def lower(window: Multiset) -> pa.Array:
        begin, chosen, _ = window.select("all", 0)
        answer_of = np.repeat(np.arange(len(begin) - 1), np.diff(begin))
        values = restored(take(window.values, chosen), own)
        rows = Rows(np.zeros(len(chosen), dtype=np.int64), (values,))
        return inner.lower([p.lift(rows, answer_of, len(begin) - 1) for p in inner.pieces])

    return holistic((argument,), where, lower, inner.type)


def from_values(
    argument: Argument,
    where: int | None,
    function: Callable[[pa.Array], object],
    result: pa.DataType,
) -> Holistic:
    """A user's function of all values of a window, given in ascending order."""

    def lower(window: Multiset) -> pa.Array:
        begin, chosen = all_values(window, distinct=False)
        values = restored(take(window.values, chosen), argument.type)
        windows = [values[a:b] for a, b in pairwise(begin.tolist())]
        return pa.array([function(v) for v in windows], type=result)

    return holistic((argument,), where, lower, result)


def all_values(window: Multiset, *, distinct: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each window's values begin, and their indexes, ascending; repeated or not."""
    begin, chosen, counts = window.select("all", 0)
    if distinct:
        return begin, chosen
    return np.append(0, np.cumsum(counts))[begin], np.repeat(chosen, counts)


def holistic(
    arguments: tuple[Argument, ...],
    where: int | None,
    lower: Callable[[Multiset], pa.Array],
    result: pa.DataType,
) -> Holistic:
    for argument in arguments:
        require_orderable(argument.type, what="an aggregate over all values")
    selection = Selection(tuple(a.column for a in arguments), where)
    return Holistic(arguments, selection, lower, result)


def take(values: pa.Array, indexes: NDArray[np.int64]) -> pa.Array:
    """Values by index, NULL for negative ones."""
    return pc.take(values, pa.array(indexes, mask=indexes < 0))
