"""Every aggregate by name: what a call must look like and which definition it means."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from panes.aggregates import arithmetic, extremes, moments, multiset, sketches
from panes.aggregates.aggregate import Aggregate, Argument, Bounded, Selection
from panes.aggregates.custom import UserAggregate
from panes.algebra.lanes import Op
from panes.errors import QueryError


@dataclass(frozen=True, slots=True)
class Call:
    """An aggregate as a query asks for it, with its columns known."""

    name: str
    arguments: tuple[Argument, ...]
    parameters: tuple[float, ...] = ()
    where: int | None = None
    distinct: bool = False
    skip_nulls: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """A name's definition: how many columns and constants it takes, and how it is built.

    `columns` and `parameters` are how many columns and then constants it takes;
    ``columns == -1`` takes any number.
    """

    build: Callable[[Call], Aggregate]
    columns: int = 1
    parameters: int = 0
    over_distinct: Callable[[Call], Aggregate] | None = None

    @property
    def shape(self) -> str:
        """What the parentheses hold, for messages."""
        names = ["x", "y"][: max(self.columns, 0)] + ["p"] * self.parameters
        return ", ".join(names)


def _selection(call: Call) -> Selection:
    return Selection(tuple(a.column for a in call.arguments), call.where)


def _one(build: Callable[..., Aggregate], **options: Any) -> Callable[[Call], Aggregate]:
    """A definition over one column and the call's constants."""
    return lambda c: build(c.arguments[0], c.where, *c.parameters, **options)


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


def _by_time(side: extremes.Side) -> Entry:
    return Entry(lambda c: extremes.by_time(c.arguments[0], c.where, side, skip_nulls=c.skip_nulls))


_COUNT = Entry(
    lambda c: arithmetic.count(_selection(c)),
    columns=-1,
    over_distinct=lambda c: multiset.count_distinct(c.arguments, c.where),
)
_QUANTILE = Entry(_one(multiset.quantile, interpolate=True), parameters=1)
_QUANTILE_DISC = Entry(_one(multiset.quantile, interpolate=False), parameters=1)
_MEDIAN = Entry(_one(multiset.quantile, fraction=0.5, interpolate=True))
_COLLECT = Entry(
    _one(multiset.collect, distinct=False), over_distinct=_one(multiset.collect, distinct=True)
)
_APPROX_QUANTILE = Entry(_one(sketches.approx_quantile), parameters=1)
_FIRST, _LAST = _by_time(Op.LEAST), _by_time(Op.GREATEST)
_MIN_BY = Entry(_two(extremes.by_other, side=Op.LEAST), columns=2)
_MAX_BY = Entry(_two(extremes.by_other, side=Op.GREATEST), columns=2)
_AND, _OR = _truth(Op.LEAST), _truth(Op.GREATEST)
_VAR_SAMP = _spread(sample=True, root=False)
_STD_SAMP = _spread(sample=True, root=True)
_AVG = _arithmetic(arithmetic.avg)
_WEIGHTED = Entry(_two(arithmetic.weighted_mean), columns=2)

_MOST_VALUES = 1 << 31

CATALOG: Mapping[str, Entry] = {
    "count": _COUNT,
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
    "weighted_mean": _WEIGHTED,
    "weighted_avg": _WEIGHTED,
    "center_of_mass": _WEIGHTED,
    "first": _FIRST,
    "first_value": _FIRST,
    "last": _LAST,
    "last_value": _LAST,
    "min_by": _MIN_BY,
    "max_by": _MAX_BY,
    "bool_and": _AND,
    "every": _AND,
    "bool_or": _OR,
    "some": _OR,
    "median": _MEDIAN,
    "quantile": _QUANTILE,
    "quantile_cont": _QUANTILE,
    "percentile": _QUANTILE,
    "quantile_disc": _QUANTILE_DISC,
    "mode": Entry(_one(multiset.mode)),
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
    "collect_set": Entry(_one(multiset.collect, distinct=True)),
    "approx_count_distinct": Entry(_one(sketches.approx_count_distinct)),
    "approx_quantile": _APPROX_QUANTILE,
    "approx_percentile": _APPROX_QUANTILE,
    "approx_top_k": Entry(
        lambda c: sketches.approx_top_k(c.arguments[0], c.where, _whole(c)), parameters=1
    ),
}


def is_aggregate(name: str, user: Iterable[UserAggregate] = ()) -> bool:
    """Whether a function of this name aggregates."""
    return name.lower() in CATALOG or any(u.name.lower() == name.lower() for u in user)


def constants_of(name: str) -> int:
    """How many of a call's last arguments are constants (the p of ``quantile(x, p)``)."""
    entry = CATALOG.get(name.lower())
    return entry.parameters if entry else 0


def build(call: Call, user: Iterable[UserAggregate] = ()) -> Aggregate:
    """The definition a call means. A user's own aggregate wins over ours of the same name."""
    for own in user:
        if own.name.lower() == call.name.lower():
            _require(len(call.arguments) == own.arity, call, f"{own.arity} columns")
            _refuse_distinct(call)
            return own.build(call.arguments, call.where)
    entry = CATALOG[call.name.lower()]
    fits = entry.columns in (-1, len(call.arguments)) and entry.parameters == len(call.parameters)
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


def _refuse_distinct(call: Call) -> None:
    if call.distinct:
        raise QueryError(f"{call.name}(DISTINCT ...) has no meaning")


def _share(call: Call) -> float:
    share = call.parameters[0]
    if not 0 < share <= 1:
        raise QueryError(f"heavy_hitters(x, share) needs a share between 0 and 1, got {share}")
    return share


def _whole(call: Call) -> int:
    k = call.parameters[0]
    if not 1 <= k < _MOST_VALUES or k != int(k):
        raise QueryError(
            f"{call.name}(x, k) needs a positive whole number below {_MOST_VALUES:,}, got {k:.12g}"
        )
    return int(k)
