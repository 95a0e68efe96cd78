"""An aggregate as a query calls it, and what its constants mean: those that need more than a line.

`panes.aggregates.catalog` has a line for every name, and says which of these a call is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from panes.aggregates import extremes, hll_sketches, lists, multiset, quantiles, sketches, vectors
from panes.aggregates.aggregate import Aggregate, Argument, Selection
from panes.aggregates.count_min import SketchShape
from panes.aggregates.lanes import Op
from panes.aggregates.ranks import Rule
from panes.arrays import order_keys
from panes.errors import ColumnTypeError, QueryError

Parameter: TypeAlias = float | str | bool | tuple[float, ...] | None
"""A constant of a call: a number, a text, a condition, or an array of numbers."""


@dataclass(frozen=True, slots=True)
class Call:
    """An aggregate as a query asks for it, with its columns known."""

    name: str
    arguments: tuple[Argument, ...]
    parameters: tuple[Parameter, ...] = ()
    where: int | None = None
    distinct: bool = False
    skip_nulls: bool = False

    @property
    def selection(self) -> Selection:
        """The rows it looks at."""
        return Selection(tuple(a.column for a in self.arguments), self.where)


WEIGHTED = "a median by weights is a function of your own: docs/cookbook/weighted_median.md"
_MOST_VALUES = 1 << 31
_TOP = 5
_MOST_TRACKED = 1_000_000


def share(call: Call) -> float:
    """The share of the rows that a value needs at least."""
    share = number(call, 0)
    if not 0 < share <= 1:
        raise QueryError(f"heavy_hitters(x, share) needs a share between 0 and 1, got {share}")
    return share


def whole(call: Call, index: int = 0) -> int:
    """A constant that is a positive whole number."""
    k = number(call, index)
    if not 1 <= k < _MOST_VALUES or k != int(k):
        raise QueryError(
            f"{call.name}(x, k) needs a positive whole number below {_MOST_VALUES:,}, got {k:.12g}"
        )
    return int(k)


def numbers(call: Call) -> list[float]:
    """All constants of a call, as numbers."""
    return [number(call, index) for index in range(len(call.parameters))]


def number(call: Call, index: int) -> float:
    """A constant that is a number."""
    return _require_number(call, call.parameters[index])


def _require_number(call: Call, value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf:
        return value
    raise QueryError(f"{call.name} needs a number as its constant, got {value!r}")


def fractions(call: Call) -> quantiles.Fractions:
    """The fraction of a quantile, or several."""
    value = call.parameters[0]
    if isinstance(value, tuple):
        return tuple(_require_number(call, one) for one in value)
    return number(call, 0)


def percentile(call: Call) -> Aggregate:
    """``percentile(x, p, 1)``."""
    if call.parameters[1:] not in ((), (1,)):
        raise QueryError(
            f"{call.name}(x, p, frequency) takes no frequency but 1",
            hint=WEIGHTED,
        )
    return quantiles.interpolated(call.arguments[0], call.where, fractions(call))


def percentile_cont(call: Call) -> Aggregate:
    """``percentile_cont(p) WITHIN GROUP (ORDER BY x)``."""
    fraction, descending = number(call, 0), call.parameters[-1] is True
    meant = 1 - fraction if descending else fraction
    return quantiles.interpolated(call.arguments[0], call.where, meant)


def percentile_disc(call: Call) -> Aggregate:
    """``percentile_disc(p) WITHIN GROUP (ORDER BY x)``."""
    rule: Rule = "descending" if call.parameters[-1] is True else "occurring"
    argument = call.arguments[0]
    return quantiles.occurring(argument, call.where, number(call, 0), rule=rule, as_double=True)


def percentile_approx(call: Call) -> Aggregate:
    """``percentile_approx(x, p, accuracy)``: exact, whatever the accuracy."""
    if len(call.parameters) > 1:
        whole(call, 1)
    kind = call.arguments[0].type
    if pa.types.is_boolean(kind) or not (order_keys.has_key(kind) or pa.types.is_decimal(kind)):
        raise ColumnTypeError(f"{call.name} needs numbers or times, got {kind}")
    return quantiles.occurring(call.arguments[0], call.where, fractions(call), rule="binary")


def mode(call: Call) -> Aggregate:
    """``mode(x)``, of several the smallest unless it is ordered otherwise."""
    return multiset.mode(call.arguments[0], call.where, greatest=call.parameters == (True,))


def by_other(call: Call, side: extremes.Side) -> Aggregate:
    """``min_by(x, y)`` and ``max_by(x, y)``, of one row or of k."""
    value, by = call.arguments
    if not call.parameters:
        return extremes.by_other(value, by, call.where, side)
    greatest = side is Op.GREATEST
    return lists.first_by(value, by, call.where, whole(call), greatest=greatest)


def joined(call: Call, *, distinct: bool) -> Aggregate:
    """``listagg(x, separator)``."""
    value, *by = call.arguments
    separator, descending = (*call.parameters, None, None)[:2]
    if not (separator is None or isinstance(separator, str)):
        raise QueryError(f"{call.name} needs text between the values, got {separator!r}")
    if distinct and by:
        raise QueryError(f"{call.name}(DISTINCT x) is ordered by x alone")
    return lists.joined(
        value,
        by[0] if by else None,
        call.where,
        separator,
        descending=descending is True,
        distinct=distinct,
    )


def count_min(call: Call) -> Aggregate:
    """``count_min_sketch(x, eps, confidence, seed)``."""
    seed = number(call, 2)
    if seed != int(seed):
        raise QueryError(f"count_min_sketch needs a whole number as its seed, got {seed}")
    shape = SketchShape.of(number(call, 0), number(call, 1), int(seed))
    return vectors.count_min_sketch(call.arguments[0], call.where, shape)


def hll_union(call: Call) -> Aggregate:
    """``hll_union_agg(sketch, allowDifferentLgConfigK)``."""
    any_size = call.parameters[0] if call.parameters else False
    if not isinstance(any_size, bool):
        raise QueryError(
            f"{call.name}(sketch, allowDifferentLgConfigK) needs true or false, got {any_size!r}"
        )
    return hll_sketches.hll_union(call.arguments[0], call.where, any_size=any_size)


def approx_top_k(call: Call) -> Aggregate:
    """``approx_top_k(x, k, tracked)``."""
    k = whole(call) if call.parameters else _TOP
    tracked = whole(call, 1) if len(call.parameters) > 1 else sketches.TRACKED_ITEMS
    if tracked < k or tracked > _MOST_TRACKED:
        raise QueryError(
            f"approx_top_k tracks at least k and at most 1,000,000 items, got {tracked}"
        )
    return sketches.approx_top_k(call.arguments[0], call.where, k, tracked)
