"""Holistic aggregates, read exactly from the counted values of a window.

The value becomes one more grouping column when rows are filled into panes, with a count: panes
compress repeated values, and every holistic aggregate of one argument shares one multiset.
Values are read in ascending order (NaN last), so arrival order reaches no answer; NULLs are
not values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from panes.aggregates.aggregate import Argument, Bounded, Holistic, Multiset, Rows, Selection
from panes.arrays import order_keys
from panes.errors import ColumnTypeError, QueryError


def quantile(
    argument: Argument, where: int | None, fraction: float, *, interpolate: bool
) -> Holistic:
    """``quantile(x, p)``: between neighbours as Spark's percentile, or a value that occurred."""
    if not 0 <= fraction <= 1:
        raise QueryError(f"a quantile lies between 0 and 1, got {fraction}")
    order_keys.require_orderable(argument.type, what="a quantile")
    numeric = pa.types.is_floating(argument.type) or pa.types.is_integer(argument.type)
    if interpolate and not (numeric or pa.types.is_decimal(argument.type)):
        raise ColumnTypeError(
            f"median and quantile interpolate between numbers, got {argument.type}",
            hint="quantile_disc(x, p) gives a value that occurred, for any type with an order",
        )

    def interpolated(window: Multiset) -> pa.Array:
        below, above, between = window.ranks_at(fraction, occurring=False)
        values = window.values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        if not len(values):
            return pa.nulls(len(below), pa.float64())
        low, high = values[below], values[above]
        with np.errstate(invalid="ignore"):
            inside = low * (1 - between) + high * between
        return pa.array(np.where(below == above, low, inside), mask=below < 0)

    def occurring(window: Multiset) -> pa.Array:
        below, _, _ = window.ranks_at(fraction, occurring=True)
        return _take(window.values, below)

    lower = interpolated if interpolate else occurring
    result = pa.float64() if interpolate else argument.type
    return _holistic((argument,), where, lower, result)


def mode(argument: Argument, where: int | None) -> Holistic:
    """``mode(x)``: the most frequent value, the smallest of them if several are."""

    def lower(window: Multiset) -> pa.Array:
        begin, chosen, _ = window.select("top", 1)
        found = np.full(len(begin) - 1, -1, dtype=np.int64)
        found[np.diff(begin) > 0] = chosen
        return _take(window.values, found)

    return _holistic((argument,), where, lower, argument.type)


def count_distinct(arguments: tuple[Argument, ...], where: int | None) -> Holistic:
    """``count(DISTINCT x, ...)``: different values, or tuples of values without a NULL."""

    def lower(window: Multiset) -> pa.Array:
        return pa.array(window.distinct())

    return _holistic(arguments, where, lower, pa.int64())


def frequent(
    argument: Argument, where: int | None, how: Literal["top", "share"], limit: float
) -> Holistic:
    """``top_k(x, k)`` and ``heavy_hitters(x, share)``: values by falling count, then by value."""
    result = pa.list_(pa.struct([("item", argument.type), ("count", pa.int64())]))

    def lower(window: Multiset) -> pa.Array:
        begin, chosen, counts = window.select(how, limit)
        items = pa.StructArray.from_arrays(
            [_take(window.values, chosen), pa.array(counts)], fields=list(result.value_type)
        )
        return pa.ListArray.from_arrays(pa.array(begin, pa.int32()), items).cast(result)

    return _holistic((argument,), where, lower, result)


def histogram(argument: Argument, where: int | None) -> Holistic:
    """``histogram(x)``: a map from each value to how often it occurred; NULL if it has none."""
    result = pa.map_(argument.type, pa.int64())

    def lower(window: Multiset) -> pa.Array:
        begin, chosen, counts = window.select("all", 0)
        offsets = pa.array(begin, pa.int32(), mask=np.append(np.diff(begin) == 0, False))
        return pa.MapArray.from_arrays(
            offsets, _take(window.values, chosen), pa.array(counts)
        ).cast(result)

    return _holistic((argument,), where, lower, result)


def collect(argument: Argument, where: int | None, *, distinct: bool) -> Holistic:
    """``collect_list(x)`` and ``collect_set(x)``: the values in ascending order."""
    result = pa.list_(argument.type)

    def lower(window: Multiset) -> pa.Array:
        begin, chosen, counts = window.select("all", 0)
        if not distinct:
            chosen = np.repeat(chosen, counts)
            begin = np.append(0, np.cumsum(counts))[begin]
        values = _take(window.values, chosen)
        return pa.ListArray.from_arrays(pa.array(begin, pa.int32()), values).cast(result)

    return _holistic((argument,), where, lower, result)


def over_distinct(
    argument: Argument, where: int | None, build: Callable[[Argument], Bounded]
) -> Holistic:
    """Any bounded aggregate over the different values of its argument (``sum(DISTINCT x)``)."""
    inner = build(Argument(0, argument.type))

    def lower(window: Multiset) -> pa.Array:
        begin, chosen, _ = window.select("all", 0)
        answer_of = np.repeat(np.arange(len(begin) - 1), np.diff(begin))
        rows = Rows(np.zeros(len(chosen), dtype=np.int64), (_take(window.values, chosen),))
        return inner.lower([p.lift(rows, answer_of, len(begin) - 1) for p in inner.pieces])

    return _holistic((argument,), where, lower, inner.type)


def from_values(
    argument: Argument,
    where: int | None,
    function: Callable[[pa.Array], object],
    result: pa.DataType,
) -> Holistic:
    """A user's function of all values of a window, given in ascending order."""
    collected = collect(argument, where, distinct=False)

    def lower(window: Multiset) -> pa.Array:
        return pa.array([function(v.values) for v in collected.lower(window)], type=result)

    return _holistic((argument,), where, lower, result)


def _holistic(
    arguments: tuple[Argument, ...],
    where: int | None,
    lower: Callable[[Multiset], pa.Array],
    result: pa.DataType,
) -> Holistic:
    for argument in arguments:
        order_keys.require_orderable(argument.type, what="an aggregate over all values")
    selection = Selection(tuple(a.column for a in arguments), where)
    return Holistic(arguments, selection, lower, result)


def _take(values: pa.Array, indexes: np.ndarray) -> pa.Array:
    """Values by index, NULL for negative ones."""
    return pc.take(values, pa.array(indexes, mask=indexes < 0))
