"""Quantiles of a window, read exactly from its counted values; one, or a list of several.

``percentile_approx`` is a sketch in Spark, of which the answer depends on the order of rows as soon
as there are more values than its accuracy. Here it is exact: within any accuracy that is asked for,
and equal to Spark's wherever Spark's sketch still holds every value.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from panes.aggregates.aggregate import Argument, Holistic, Multiset
from panes.aggregates.multiset import holistic, take
from panes.aggregates.ranks import Rule
from panes.arrays import order_keys
from panes.errors import ColumnTypeError, QueryError

Fractions = float | tuple[float, ...]


def interpolated(argument: Argument, where: int | None, fractions: Fractions) -> Holistic:
    """``median(x)``, ``percentile(x, p)``: between neighbours; double, or a duration for those."""
    kind = argument.type
    is_duration = pa.types.is_duration(kind)
    numeric = pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind)
    if not (numeric or is_duration):
        raise ColumnTypeError(
            f"median and quantile interpolate between numbers, got {kind}",
            hint="quantile_disc(x, p) gives a value that occurred, for any type with an order",
        )
    result = kind if is_duration else pa.float64()

    def one(window: Multiset, fraction: float) -> pa.Array:
        below, above, between = window.ranks_at(fraction, "between")
        known = window.values.view(pa.int64()) if is_duration else window.values
        values = known.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        if not len(values):
            return pa.nulls(len(below), result)
        low, high = values[below], values[above]
        with np.errstate(all="ignore"):  # in Spark's order, which has the same last digit
            inside = np.where(below == above, low, low + (high - low) * between)
        found = pa.array(inside, mask=below < 0)
        return found.cast(pa.int64(), safe=False).cast(result) if is_duration else found

    return _each(argument, where, fractions, one, result)


def occurring(
    argument: Argument,
    where: int | None,
    fractions: Fractions,
    *,
    rule: Rule = "occurring",
    as_double: bool = False,
) -> Holistic:
    """``quantile_disc(x, p)``, ``percentile_approx(x, p)``: a value that occurred."""
    kind = argument.type
    order_keys.require_orderable(kind, what="a quantile")
    is_number = pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind)
    if as_double and not (is_number or pa.types.is_duration(kind)):
        raise ColumnTypeError(
            f"percentile_disc needs numbers, got {kind}",
            hint="quantile_disc(x, p) gives a value that occurred, for any type with an order",
        )
    result = pa.float64() if as_double and is_number else kind

    def one(window: Multiset, fraction: float) -> pa.Array:
        below, _, _ = window.ranks_at(fraction, rule)
        return take(window.values, below).cast(result, safe=False)

    return _each(argument, where, fractions, one, result)


def _each(
    argument: Argument,
    where: int | None,
    fractions: Fractions,
    one: Callable[[Multiset, float], pa.Array],
    result: pa.DataType,
) -> Holistic:
    """One quantile of each window, or a list of several; NULL if it holds no value."""
    several = fractions if isinstance(fractions, tuple) else (fractions,)
    for fraction in several:
        if isinstance(fraction, bool | str) or not 0 <= fraction <= 1:
            raise QueryError(f"a quantile lies between 0 and 1, got {fraction}")
    if not several:
        raise QueryError("a list of quantiles needs at least one")
    if not isinstance(fractions, tuple):
        return holistic((argument,), where, lambda w: one(w, several[0]), result)
    lists = pa.list_(result)

    def lower(window: Multiset) -> pa.Array:
        columns = [one(window, fraction) for fraction in several]
        count, width = len(columns[0]), len(columns)
        is_null = columns[0].is_null()
        across = np.arange(count * width).reshape(width, count).T.ravel()
        values = pa.concat_arrays(columns).take(pa.array(across))
        begins = pa.array(np.arange(count + 1) * width, pa.int32())
        return pa.ListArray.from_arrays(begins, values, mask=is_null).cast(lists)

    return holistic((argument,), where, lower, lists)
