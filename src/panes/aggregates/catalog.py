"""Every aggregate by name: what a call must look like and which definition it means."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from panes.aggregates import (
    arithmetic,
    bits,
    extremes,
    hll_sketches,
    lists,
    moments,
    multiset,
    numeric_histogram,
    quantiles,
    sketches,
    theta_sketches,
    tuple_sketches,
    vectors,
)
from panes.aggregates.aggregate import Aggregate, Argument, Bounded, Selection
from panes.aggregates.count_min import SketchShape
from panes.aggregates.custom import UserAggregate
from panes.aggregates.lanes import Op
from panes.aggregates.ranks import Rule
from panes.aggregates.tuple_summaries import Folding, Kind
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


@dataclass(frozen=True, slots=True)
class Entry:
    """A name's definition: how many columns and constants it takes, and how it is built.

    `columns` and `parameters` are how many columns and then constants it takes, `optional` how
    many constants more; ``columns == -1`` takes any number. `ordered` says what
    ``WITHIN GROUP (ORDER BY ...)`` does: nothing is allowed there, it must be there and names the
    column, or it may be there.
    """

    build: Callable[[Call], Aggregate]
    columns: int = 1
    parameters: int = 0
    over_distinct: Callable[[Call], Aggregate] | None = None
    optional: int = 0
    ordered: Literal["never", "always", "maybe"] = "never"

    @property
    def shape(self) -> str:
        """The arguments between the parentheses, for messages."""
        names = ["x", "y"][: max(self.columns, 0)] + ["p"] * self.parameters
        return ", ".join(names) + f"[{', q' * self.optional}]" * bool(self.optional)


def _selection(call: Call) -> Selection:
    return Selection(tuple(a.column for a in call.arguments), call.where)


def _one(build: Callable[..., Aggregate], **options: Any) -> Callable[[Call], Aggregate]:
    """A definition over one column and the call's constants."""
    return lambda c: build(c.arguments[0], c.where, *_numbers(c), **options)


def _two(build: Callable[..., Aggregate], **options: Any) -> Callable[[Call], Aggregate]:
    return lambda c: build(c.arguments[0], c.arguments[1], c.where, **options)


def _distinct(build: Callable[[Argument], Bounded]) -> Callable[[Call], Aggregate]:
    return lambda c: multiset.over_distinct(c.arguments[0], c.where, build)


def _arithmetic(build: Callable[[Argument, Selection], Bounded]) -> Entry:
    return Entry(
        lambda c: build(c.arguments[0], _selection(c)),
        over_distinct=_distinct(lambda argument: build(argument, Selection((0,)))),
    )


def _spread(*, sample: bool, root: bool) -> Entry:
    build = partial(moments.variance, where=None, sample=sample, root=root)
    return Entry(_one(moments.variance, sample=sample, root=root), over_distinct=_distinct(build))


def _extreme(side: extremes.Side) -> Entry:
    build = _one(extremes.least_or_greatest, side=side)
    return Entry(build, over_distinct=build)


def _truth(side: extremes.Side) -> Entry:
    build = _one(extremes.truth, side=side)
    return Entry(build, over_distinct=build)


def _bitwise(op: bits.BitOp) -> Entry:
    build = _one(bits.bitwise, op=op)
    of_one = partial(bits.bitwise, where=None, op=op)
    return Entry(build, over_distinct=_distinct(of_one) if op is Op.BITS_XOR else build)


def _by_time(side: extremes.Side) -> Entry:
    return Entry(lambda c: extremes.by_time(c.arguments[0], c.where, side, skip_nulls=c.skip_nulls))


WEIGHTED = "a median by weights is a function of your own: docs/cookbook/weighted_median.md"

_COUNT = Entry(
    lambda c: arithmetic.count(_selection(c)),
    columns=-1,
    over_distinct=lambda c: multiset.count_distinct(c.arguments, c.where),
)
_QUANTILE = Entry(
    lambda c: quantiles.interpolated(c.arguments[0], c.where, _fractions(c)), parameters=1
)
_QUANTILE_DISC = Entry(
    lambda c: quantiles.occurring(c.arguments[0], c.where, _fractions(c)), parameters=1
)
_MEDIAN = Entry(_one(quantiles.interpolated, fractions=0.5))
_PERCENTILE = Entry(lambda c: _percentile(c), parameters=1, optional=1)
_PERCENTILE_CONT = Entry(lambda c: _percentile_cont(c), parameters=1, optional=1, ordered="always")
_PERCENTILE_DISC = Entry(lambda c: _percentile_disc(c), parameters=1, optional=1, ordered="always")
_PERCENTILE_APPROX = Entry(lambda c: _percentile_approx(c), parameters=1, optional=1)
_COLLECT = Entry(
    _one(lists.collect, distinct=False), over_distinct=_one(lists.collect, distinct=True)
)
_LISTAGG = Entry(
    lambda c: _joined(c, distinct=False),
    columns=-1,
    optional=2,
    over_distinct=lambda c: _joined(c, distinct=True),
    ordered="maybe",
)
_FIRST, _LAST = _by_time(Op.LEAST), _by_time(Op.GREATEST)
_MIN_BY = Entry(lambda c: _by_other(c, Op.LEAST), columns=2, optional=1)
_MAX_BY = Entry(lambda c: _by_other(c, Op.GREATEST), columns=2, optional=1)
_AND, _OR = _truth(Op.LEAST), _truth(Op.GREATEST)
_VAR_SAMP = _spread(sample=True, root=False)
_STD_SAMP = _spread(sample=True, root=True)
_AVG = _arithmetic(arithmetic.avg)
_TRY_SUM = Entry(lambda c: arithmetic.sum_(c.arguments[0], _selection(c), tries=True))
_TRY_AVG = Entry(lambda c: arithmetic.avg(c.arguments[0], _selection(c), tries=True))
_WEIGHTED = Entry(_two(arithmetic.weighted_mean), columns=2)


def _sized(build: Callable[..., Aggregate], *, values: bool) -> Entry:
    """A sketch whose one constant, if it is there, is the logarithm of its size."""

    def sized(call: Call) -> Aggregate:
        return build(call.arguments[0], call.where, *(_whole(call) for _ in call.parameters))

    return Entry(sized, optional=1, over_distinct=sized if values else None)


def _tuples(
    build: Callable[..., Aggregate], kind: Kind, *, columns: int = 1, sized: bool = True
) -> Entry:
    """A tuple sketch, whose constants are the logarithm of its size, if any, and its mode."""

    def made(call: Call) -> Aggregate:
        size = [_whole(call)] if sized and call.parameters else []
        [mode] = call.parameters[sized:] or ("sum",)
        folding = Folding(kind, tuple_sketches.mode_named(mode, call.name))
        return build(*call.arguments, call.where, folding, *size)

    return Entry(made, columns, optional=1 + sized)


_MOST_VALUES = 1 << 31
_TOP = 5
_MOST_TRACKED = 1_000_000

CATALOG: Mapping[str, Entry] = {
    "count": _COUNT,
    "count_if": Entry(lambda c: arithmetic.count(Selection((), c.arguments[0].column))),
    "sum": _arithmetic(arithmetic.sum_),
    "avg": _AVG,
    "mean": _AVG,
    "min": _extreme(Op.LEAST),
    "max": _extreme(Op.GREATEST),
    "var_pop": _spread(sample=False, root=False),
    "var_samp": _VAR_SAMP,
    "variance": _VAR_SAMP,
    "stddev_pop": _spread(sample=False, root=True),
    "stddev_samp": _STD_SAMP,
    "stddev": _STD_SAMP,
    "std": _STD_SAMP,
    "covar_pop": Entry(_two(moments.covariance, sample=False), columns=2),
    "covar_samp": Entry(_two(moments.covariance, sample=True), columns=2),
    "corr": Entry(_two(moments.correlation), columns=2),
    "skewness": Entry(_one(moments.skewness)),
    "kurtosis": Entry(_one(moments.kurtosis)),
    "regr_count": Entry(lambda c: arithmetic.count(_selection(c)), columns=2),
    **{
        f"regr_{what}": Entry(_two(moments.regression, what=what), columns=2)
        for what in ("sxx", "syy", "sxy", "slope", "intercept", "r2")
    },
    "regr_avgx": Entry(lambda c: arithmetic.avg(c.arguments[1], _selection(c)), columns=2),
    "regr_avgy": Entry(lambda c: arithmetic.avg(c.arguments[0], _selection(c)), columns=2),
    "try_sum": _TRY_SUM,
    "try_avg": _TRY_AVG,
    "bit_and": _bitwise(Op.BITS_AND),
    "bit_or": _bitwise(Op.BITS_OR),
    "bit_xor": _bitwise(Op.BITS_XOR),
    "weighted_mean": _WEIGHTED,
    "weighted_avg": _WEIGHTED,
    "center_of_mass": _WEIGHTED,
    "first": _FIRST,
    "first_value": _FIRST,
    "last": _LAST,
    "last_value": _LAST,
    "any_value": _FIRST,
    "min_by": _MIN_BY,
    "max_by": _MAX_BY,
    "bool_and": _AND,
    "every": _AND,
    "bool_or": _OR,
    "some": _OR,
    "any": _OR,
    "median": _MEDIAN,
    "quantile": _QUANTILE,
    "quantile_cont": _QUANTILE,
    "percentile": _PERCENTILE,
    "percentile_cont": _PERCENTILE_CONT,
    "percentile_disc": _PERCENTILE_DISC,
    "percentile_approx": _PERCENTILE_APPROX,
    "approx_percentile": _PERCENTILE_APPROX,
    "quantile_disc": _QUANTILE_DISC,
    "mode": Entry(lambda c: _mode(c), optional=1, ordered="maybe"),
    "heavy_hitters": Entry(
        lambda c: multiset.frequent(c.arguments[0], c.where, "share", _share(c)), parameters=1
    ),
    "top_k": Entry(
        lambda c: multiset.frequent(c.arguments[0], c.where, "top", _whole(c)), parameters=1
    ),
    "histogram": Entry(_one(multiset.histogram)),
    "collect": _COLLECT,
    "collect_list": _COLLECT,
    "array_agg": _COLLECT,
    "collect_set": Entry(_one(lists.collect, distinct=True)),
    "collect_union": Entry(_one(lists.collect_union)),
    "listagg": _LISTAGG,
    "string_agg": _LISTAGG,
    "histogram_numeric": Entry(_one(numeric_histogram.histogram_numeric), parameters=1),
    "count_min_sketch": Entry(lambda c: _count_min(c), parameters=3),
    "hll_sketch_agg": _sized(hll_sketches.hll_sketch, values=True),
    "hll_union_agg": Entry(lambda c: _hll_union(c), optional=1),
    "theta_sketch_agg": _sized(theta_sketches.theta_sketch, values=True),
    "theta_union_agg": _sized(theta_sketches.theta_union, values=False),
    "theta_intersection_agg": Entry(_one(theta_sketches.theta_intersection)),
    "tuple_sketch_agg_double": _tuples(tuple_sketches.tuple_sketch, "double", columns=2),
    "tuple_sketch_agg_integer": _tuples(tuple_sketches.tuple_sketch, "integer", columns=2),
    "tuple_union_agg_double": _tuples(tuple_sketches.tuple_union, "double"),
    "tuple_union_agg_integer": _tuples(tuple_sketches.tuple_union, "integer"),
    "tuple_intersection_agg_double": _tuples(
        tuple_sketches.tuple_intersection, "double", sized=False
    ),
    "tuple_intersection_agg_integer": _tuples(
        tuple_sketches.tuple_intersection, "integer", sized=False
    ),
    "bitmap_construct_agg": Entry(_one(vectors.bitmap, fold="set")),
    "bitmap_or_agg": Entry(_one(vectors.bitmap, fold="or")),
    "bitmap_and_agg": Entry(_one(vectors.bitmap, fold="and")),
    "approx_count_distinct": Entry(_one(sketches.approx_count_distinct), optional=1),
    "approx_quantile": Entry(_one(sketches.approx_quantile), parameters=1),
    "approx_top_k": Entry(lambda c: _approx_top_k(c), optional=2),
}


def is_aggregate(name: str, user: Iterable[UserAggregate] = ()) -> bool:
    """True if a function of this name aggregates."""
    return name.lower() in CATALOG or any(u.name.lower() == name.lower() for u in user)


def columns_of(name: str, given: int) -> int:
    """The number of a call's arguments that are columns; those behind them are constants."""
    entry = CATALOG.get(name.lower())
    if entry is None or (entry.columns < 0 and not entry.optional):
        return given
    return min(given, 1 if entry.columns < 0 else entry.columns)


def is_ordered(name: str) -> Literal["never", "always", "maybe"]:
    """True if a call of this name has ``WITHIN GROUP (ORDER BY ...)`` behind it."""
    entry = CATALOG.get(name.lower())
    return "never" if entry is None else entry.ordered


def build(call: Call, user: Iterable[UserAggregate] = ()) -> Aggregate:
    """The definition a call means. A user's own aggregate wins over ours of the same name."""
    for own in user:
        if own.name.lower() == call.name.lower():
            _require_arity(call, own)
            _refuse_distinct(call)
            return own.build(call.arguments, call.where)
    entry = CATALOG[call.name.lower()]
    fits = entry.columns in (-1, len(call.arguments)) and (
        0 <= len(call.parameters) - entry.parameters <= entry.optional
    )
    _require(fits, call, f"{call.name}({entry.shape})")
    if not call.distinct:
        return entry.build(call)
    if entry.over_distinct is None or not call.arguments:
        _refuse_distinct(call)
    assert entry.over_distinct is not None
    return entry.over_distinct(call)


def _require(fits: bool, call: Call, wanted: str) -> None:
    if not fits:
        given = len(call.arguments) + len(call.parameters)
        raise QueryError(f"{call.name} takes {wanted}, got {given} arguments")


def _require_arity(call: Call, own: UserAggregate) -> None:
    if len(call.arguments) != own.columns:
        name, wanted = call.name, "1 column" if own.columns == 1 else f"{own.columns} columns"
        raise QueryError(
            f"{name} takes {wanted}, got {len(call.arguments)} arguments",
            hint=f"{name}(struct(a, b)) is one column; a CustomAggregate takes as many columns as "
            "its lift has parameters",
        )


def _refuse_distinct(call: Call) -> None:
    if call.distinct:
        raise QueryError(f"{call.name}(DISTINCT ...) has no meaning")


def _share(call: Call) -> float:
    share = _number(call, 0)
    if not 0 < share <= 1:
        raise QueryError(f"heavy_hitters(x, share) needs a share between 0 and 1, got {share}")
    return share


def _whole(call: Call, index: int = 0) -> int:
    k = _number(call, index)
    if not 1 <= k < _MOST_VALUES or k != int(k):
        raise QueryError(
            f"{call.name}(x, k) needs a positive whole number below {_MOST_VALUES:,}, got {k:.12g}"
        )
    return int(k)


def _numbers(call: Call) -> list[float]:
    return [_number(call, index) for index in range(len(call.parameters))]


def _number(call: Call, index: int) -> float:
    return _require_number(call, call.parameters[index])


def _require_number(call: Call, value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf:
        return value
    raise QueryError(f"{call.name} needs a number as its constant, got {value!r}")


def _fractions(call: Call) -> quantiles.Fractions:
    value = call.parameters[0]
    if isinstance(value, tuple):
        return tuple(_require_number(call, one) for one in value)
    return _number(call, 0)


def _percentile(call: Call) -> Aggregate:
    if call.parameters[1:] not in ((), (1,)):
        raise QueryError(
            f"{call.name}(x, p, frequency) takes no frequency but 1",
            hint=WEIGHTED,
        )
    return quantiles.interpolated(call.arguments[0], call.where, _fractions(call))


def _percentile_cont(call: Call) -> Aggregate:
    fraction, descending = _number(call, 0), call.parameters[-1] is True
    meant = 1 - fraction if descending else fraction
    return quantiles.interpolated(call.arguments[0], call.where, meant)


def _percentile_disc(call: Call) -> Aggregate:
    rule: Rule = "descending" if call.parameters[-1] is True else "occurring"
    argument = call.arguments[0]
    return quantiles.occurring(argument, call.where, _number(call, 0), rule=rule, as_double=True)


def _percentile_approx(call: Call) -> Aggregate:
    if len(call.parameters) > 1:
        _whole(call, 1)
    kind = call.arguments[0].type
    if pa.types.is_boolean(kind) or not (order_keys.has_key(kind) or pa.types.is_decimal(kind)):
        raise ColumnTypeError(f"{call.name} needs numbers or times, got {kind}")
    return quantiles.occurring(call.arguments[0], call.where, _fractions(call), rule="binary")


def _mode(call: Call) -> Aggregate:
    return multiset.mode(call.arguments[0], call.where, greatest=call.parameters == (True,))


def _by_other(call: Call, side: extremes.Side) -> Aggregate:
    value, by = call.arguments
    if not call.parameters:
        return extremes.by_other(value, by, call.where, side)
    greatest = side is Op.GREATEST
    return lists.first_by(value, by, call.where, _whole(call), greatest=greatest)


def _joined(call: Call, *, distinct: bool) -> Aggregate:
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


def _count_min(call: Call) -> Aggregate:
    seed = _number(call, 2)
    if seed != int(seed):
        raise QueryError(f"count_min_sketch needs a whole number as its seed, got {seed}")
    shape = SketchShape.of(_number(call, 0), _number(call, 1), int(seed))
    return vectors.count_min_sketch(call.arguments[0], call.where, shape)


def _hll_union(call: Call) -> Aggregate:
    any_size = call.parameters[0] if call.parameters else False
    if not isinstance(any_size, bool):
        raise QueryError(
            f"{call.name}(sketch, allowDifferentLgConfigK) needs true or false, got {any_size!r}"
        )
    return hll_sketches.hll_union(call.arguments[0], call.where, any_size=any_size)


def _approx_top_k(call: Call) -> Aggregate:
    k = _whole(call) if call.parameters else _TOP
    tracked = _whole(call, 1) if len(call.parameters) > 1 else sketches.TRACKED_ITEMS
    if tracked < k or tracked > _MOST_TRACKED:
        raise QueryError(
            f"approx_top_k tracks at least k and at most 1,000,000 items, got {tracked}"
        )
    return sketches.approx_top_k(call.arguments[0], call.where, k, tracked)
