"""Every aggregate by name: what a call must look like and which definition it means."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from panes.aggregates import (
    arithmetic,
    bits,
    calls,
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
from panes.aggregates.calls import Call
from panes.aggregates.custom import UserAggregate
from panes.aggregates.lanes import Op
from panes.aggregates.tuple_summaries import Folding, Kind
from panes.errors import QueryError


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


def _one(build: Callable[..., Aggregate], **options: Any) -> Callable[[Call], Aggregate]:
    """A definition over one column and the call's constants."""
    return lambda c: build(c.arguments[0], c.where, *calls.numbers(c), **options)


def _two(build: Callable[..., Aggregate], **options: Any) -> Entry:
    return Entry(lambda c: build(*c.arguments, c.where, **options), columns=2)


def _either(build: Callable[..., Aggregate], **options: Any) -> Entry:
    """A definition that is the same over the different values alone."""
    return Entry(_one(build, **options), over_distinct=_one(build, **options))


def _distinct(build: Callable[[Argument], Bounded]) -> Callable[[Call], Aggregate]:
    return lambda c: multiset.over_distinct(c.arguments[0], c.where, build)


def _arithmetic(build: Callable[[Argument, Selection], Bounded]) -> Entry:
    return Entry(
        lambda c: build(c.arguments[0], c.selection),
        over_distinct=_distinct(lambda argument: build(argument, Selection((0,)))),
    )


def _spread(*, sample: bool, root: bool) -> Entry:
    build = partial(moments.variance, where=None, sample=sample, root=root)
    return Entry(_one(moments.variance, sample=sample, root=root), over_distinct=_distinct(build))


def _by_time(side: extremes.Side) -> Entry:
    return Entry(lambda c: extremes.by_time(c.arguments[0], c.where, side, skip_nulls=c.skip_nulls))


def _by_other(side: extremes.Side) -> Entry:
    return Entry(lambda c: calls.by_other(c, side), columns=2, optional=1)


def _quantile(build: Callable[..., Aggregate]) -> Entry:
    return Entry(lambda c: build(c.arguments[0], c.where, calls.fractions(c)), parameters=1)


def _frequent(how: Literal["top", "share"], limit: Callable[[Call], float]) -> Entry:
    return Entry(lambda c: multiset.frequent(c.arguments[0], c.where, how, limit(c)), parameters=1)


def _sized(build: Callable[..., Aggregate], *, values: bool) -> Entry:
    """A sketch whose one constant, if it is there, is the logarithm of its size."""

    def sized(call: Call) -> Aggregate:
        return build(call.arguments[0], call.where, *(calls.whole(call) for _ in call.parameters))

    return Entry(sized, optional=1, over_distinct=sized if values else None)


def _tuples(
    build: Callable[..., Aggregate], kind: Kind, *, columns: int = 1, sized: bool = True
) -> Entry:
    """A tuple sketch, whose constants are the logarithm of its size, if any, and its mode."""

    def made(call: Call) -> Aggregate:
        size = [calls.whole(call)] if sized and call.parameters else []
        [mode] = call.parameters[sized:] or ("sum",)
        folding = Folding(kind, tuple_sketches.mode_named(mode, call.name))
        return build(*call.arguments, call.where, folding, *size)

    return Entry(made, columns, optional=1 + sized)


_LINES: dict[str, Entry] = {
    "count": Entry(
        lambda c: arithmetic.count(c.selection),
        columns=-1,
        over_distinct=lambda c: multiset.count_distinct(c.arguments, c.where),
    ),
    "count_if": Entry(lambda c: arithmetic.count(Selection((), c.arguments[0].column))),
    "sum": _arithmetic(arithmetic.sum_),
    "avg mean": _arithmetic(arithmetic.avg),
    "min": _either(extremes.least_or_greatest, side=Op.LEAST),
    "max": _either(extremes.least_or_greatest, side=Op.GREATEST),
    "var_pop": _spread(sample=False, root=False),
    "var_samp variance": _spread(sample=True, root=False),
    "stddev_pop": _spread(sample=False, root=True),
    "stddev_samp stddev std": _spread(sample=True, root=True),
    "covar_pop": _two(moments.covariance, sample=False),
    "covar_samp": _two(moments.covariance, sample=True),
    "corr": _two(moments.correlation),
    "skewness": Entry(_one(moments.skewness)),
    "kurtosis": Entry(_one(moments.kurtosis)),
    "regr_count": Entry(lambda c: arithmetic.count(c.selection), columns=2),
    **{
        f"regr_{what}": _two(moments.regression, what=what)
        for what in ("sxx", "syy", "sxy", "slope", "intercept", "r2")
    },
    "regr_avgx": Entry(lambda c: arithmetic.avg(c.arguments[1], c.selection), columns=2),
    "regr_avgy": Entry(lambda c: arithmetic.avg(c.arguments[0], c.selection), columns=2),
    "try_sum": Entry(lambda c: arithmetic.sum_(c.arguments[0], c.selection, tries=True)),
    "try_avg": Entry(lambda c: arithmetic.avg(c.arguments[0], c.selection, tries=True)),
    "bit_and": _either(bits.bitwise, op=Op.BITS_AND),
    "bit_or": _either(bits.bitwise, op=Op.BITS_OR),
    "bit_xor": Entry(
        _one(bits.bitwise, op=Op.BITS_XOR),
        over_distinct=_distinct(partial(bits.bitwise, where=None, op=Op.BITS_XOR)),
    ),
    "weighted_mean weighted_avg center_of_mass": _two(arithmetic.weighted_mean),
    "first first_value": _by_time(Op.LEAST),
    "last last_value": _by_time(Op.GREATEST),
    "any_value": _by_time(Op.LEAST),
    "min_by": _by_other(Op.LEAST),
    "max_by": _by_other(Op.GREATEST),
    "bool_and every": _either(extremes.truth, side=Op.LEAST),
    "bool_or some any": _either(extremes.truth, side=Op.GREATEST),
    "median": Entry(_one(quantiles.interpolated, fractions=0.5)),
    "quantile quantile_cont": _quantile(quantiles.interpolated),
    "percentile": Entry(calls.percentile, parameters=1, optional=1),
    "percentile_cont": Entry(calls.percentile_cont, parameters=1, optional=1, ordered="always"),
    "percentile_disc": Entry(calls.percentile_disc, parameters=1, optional=1, ordered="always"),
    "percentile_approx approx_percentile": Entry(calls.percentile_approx, parameters=1, optional=1),
    "quantile_disc": _quantile(quantiles.occurring),
    "mode": Entry(calls.mode, optional=1, ordered="maybe"),
    "heavy_hitters": _frequent("share", calls.share),
    "top_k": _frequent("top", calls.whole),
    "histogram": Entry(_one(multiset.histogram)),
    "collect collect_list array_agg": Entry(
        _one(lists.collect, distinct=False), over_distinct=_one(lists.collect, distinct=True)
    ),
    "collect_set": Entry(_one(lists.collect, distinct=True)),
    "collect_union": Entry(_one(lists.collect_union)),
    "listagg string_agg": Entry(
        partial(calls.joined, distinct=False),
        columns=-1,
        optional=2,
        over_distinct=partial(calls.joined, distinct=True),
        ordered="maybe",
    ),
    "histogram_numeric": Entry(_one(numeric_histogram.histogram_numeric), parameters=1),
    "count_min_sketch": Entry(calls.count_min, parameters=3),
    "hll_sketch_agg": _sized(hll_sketches.hll_sketch, values=True),
    "hll_union_agg": Entry(calls.hll_union, optional=1),
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
    "approx_top_k": Entry(calls.approx_top_k, optional=2),
}
CATALOG: Mapping[str, Entry] = {
    name: entry for names, entry in _LINES.items() for name in names.split()
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
