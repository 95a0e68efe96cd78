"""Every aggregate the obvious way: a function of the rows of one window.

Nothing here is shared with `panes.aggregates`. A fold gets the rows that FILTER lets through, as
pairs of a time and a tuple of arguments, and the call's constants. NaN sorts after every number,
NULL before every value, also inside of structs (dicts) and lists.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction
from typing import Any

Row = tuple[int, tuple[Any, ...]]
Fold = Callable[..., Any]


def order(value: Any) -> Any:
    """A sort key: NULL first, then values, NaN last."""
    if value is None:
        return (0, 0, 0)
    if isinstance(value, float) and math.isnan(value):
        return (2, 0, 0)
    if isinstance(value, dict):
        return (1, tuple(order(v) for v in value.values()), 0)
    if isinstance(value, list):
        return (1, tuple(order(v) for v in value), 0)
    return (1, value, 0)


def without_nulls(rows: Sequence[Row]) -> list[tuple[Any, ...]]:
    return [values for _, values in rows if None not in values]


def values_of(rows: Sequence[Row]) -> list[Any]:
    """The first argument where no argument is NULL; -0.0 is 0.0."""
    return [v[0] + 0.0 if isinstance(v[0], float) else v[0] for v in without_nulls(rows)]


def total(values: Sequence[Any]) -> Any:
    """An exact sum; floats are rounded once."""
    if any(isinstance(v, float) for v in values):
        try:
            return math.fsum(values)
        except (OverflowError, ValueError):
            return sum(values)
    with localcontext(prec=100):
        return sum(values)


def sum_(rows: Sequence[Row]) -> Any:
    values = values_of(rows)
    return total(values) if values else None


def avg(rows: Sequence[Row]) -> Any:
    values = values_of(rows)
    if not values:
        return None
    if isinstance(values[0], Decimal):
        scale = min(38, -int(values[0].as_tuple().exponent) + 4)
        with localcontext(prec=100):
            return (total(values) / len(values)).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)
    return total(values) / len(values)


def weighted_mean(rows: Sequence[Row]) -> Any:
    pairs = without_nulls(rows)
    mass = total([float(w) for _, w in pairs])
    return total([float(x) * float(w) for x, w in pairs]) / mass if mass else None


def deviations(values: Sequence[Any]) -> list[Any]:
    """Distances from the mean; exact where the values are finite."""
    numbers = [float(v) for v in values]
    if not all(math.isfinite(n) for n in numbers):
        return [math.nan] * len(numbers)
    exact = [Fraction(n) for n in numbers]
    mean = sum(exact) / len(exact)
    return [e - mean for e in exact]


def products(xs: Sequence[Any], ys: Sequence[Any]) -> float:
    exact = sum(a * b for a, b in zip(deviations(xs), deviations(ys), strict=True))
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def variance(rows: Sequence[Row], *, sample: bool) -> Any:
    values = values_of(rows)
    if len(values) <= sample:
        return None
    return products(values, values) / (len(values) - sample)


def stddev(rows: Sequence[Row], *, sample: bool) -> Any:
    spread = variance(rows, sample=sample)
    return None if spread is None else math.sqrt(spread)


def covariance(rows: Sequence[Row], *, sample: bool) -> Any:
    pairs = without_nulls(rows)
    if len(pairs) <= sample:
        return None
    return products([p[0] for p in pairs], [p[1] for p in pairs]) / (len(pairs) - sample)


def corr(rows: Sequence[Row]) -> Any:
    pairs = without_nulls(rows)
    xs, ys = [p[0] for p in pairs], [p[1] for p in pairs]
    if len(pairs) < 2:
        return None
    x2, y2 = products(xs, xs), products(ys, ys)
    return None if x2 == 0 or y2 == 0 else products(xs, ys) / (math.sqrt(x2) * math.sqrt(y2))


def extreme(rows: Sequence[Row], *, sign: int) -> Any:
    ranked = sorted(values_of(rows), key=order)
    return ranked[0 if sign < 0 else -1] if ranked else None


def by_time(rows: Sequence[Row], *, sign: int, skip_nulls: bool = False) -> Any:
    """The value at the least (greatest) time; of several, the least (greatest), NULL last."""
    counted = [(at, v[0]) for at, v in rows if not (skip_nulls and v[0] is None)]
    return _winner(counted, sign)


def by_other(rows: Sequence[Row], *, sign: int) -> Any:
    counted = [(order(by), value) for _, (value, by) in rows if by is not None]
    return _winner(counted, sign)


def _winner(candidates: Sequence[tuple[Any, Any]], sign: int) -> Any:
    if not candidates:
        return None
    pick = min if sign < 0 else max
    best = pick(place for place, _ in candidates)
    tied = [v for place, v in candidates if place == best and v is not None]
    return pick(tied, key=order) if tied else None


def quantile(rows: Sequence[Row], fraction: Any = 0.5, *_: Any) -> Any:
    ranked = sorted(values_of(rows), key=order)
    if not ranked:
        return None
    if isinstance(fraction, tuple):
        return [quantile(rows, f) for f in fraction]
    exact = fraction * (len(ranked) - 1)
    low, high = float(ranked[math.floor(exact)]), float(ranked[math.ceil(exact)])
    return low if low == high else low + (high - low) * (exact - math.floor(exact))


def quantile_disc(rows: Sequence[Row], fraction: float) -> Any:
    ranked = sorted(values_of(rows), key=order)
    exact = Fraction(str(fraction)) * len(ranked)
    return ranked[max(math.ceil(exact) - 1, 0)] if ranked else None


def tally(rows: Sequence[Row]) -> list[tuple[Any, int]]:
    """Values and counts, most frequent first, then by value; all NaN are one value."""
    nan = math.nan
    values = [nan if isinstance(v, float) and math.isnan(v) else v for v in values_of(rows)]
    meant = {order(v): v for v in values}
    counted = Counter(order(v) for v in values)
    return [(meant[o], n) for o, n in sorted(counted.items(), key=lambda i: (-i[1], i[0]))]


def top(rows: Sequence[Row], k: float) -> Any:
    return [{"item": v, "count": n} for v, n in tally(rows)[: int(k)]]


def approx_top(rows: Sequence[Row], k: float = 5, *_: Any) -> Any:
    """As `top`, with NULL as an item behind those that are as frequent."""
    counted: list[tuple[Any, int]] = list(tally(rows))
    if missing := sum(v[0] is None for _, v in rows):
        counted = sorted([*counted, (None, missing)], key=lambda item: -item[1])
    return [{"item": v, "count": n} for v, n in counted[: int(k)]]


def heavy_hitters(rows: Sequence[Row], share: float) -> Any:
    counted = tally(rows)
    whole = sum(n for _, n in counted)
    least = Fraction(str(share)) * whole
    return [{"item": v, "count": n} for v, n in counted if n >= least]


def mode(rows: Sequence[Row], greatest: bool = False) -> Any:
    counted = tally(rows)
    if not counted:
        return None
    tied = [v for v, n in counted if n == counted[0][1]]
    return tied[-1 if greatest else 0]


def histogram(rows: Sequence[Row]) -> Any:
    return sorted(tally(rows), key=lambda item: order(item[0])) or None


def count_distinct(rows: Sequence[Row]) -> int:
    return len(distinct(rows))


def distinct(rows: Sequence[Row]) -> list[Row]:
    """One row per different tuple of arguments without a NULL."""
    seen: dict[Any, Row] = {}
    for at, values in rows:
        if None not in values:
            plain = tuple(v + 0.0 if isinstance(v, float) else v for v in values)
            seen.setdefault(tuple(order(v) for v in plain), (at, plain))
    return list(seen.values())


def first_by(rows: Sequence[Row], k: int, sign: int) -> Any:
    present = [v for _, v in rows if v[1] is not None]
    ranked = sorted(present, key=lambda v: (order(v[1]), order(v[0])), reverse=sign > 0)
    return [v[0] for v in ranked[: int(k)]] or None


def _signed(fold: Fold, sign: int) -> Fold:
    return lambda rows, **options: fold(rows, sign=sign, **options)


_QUANTILE: dict[str, Fold] = dict.fromkeys(
    ("quantile", "quantile_cont", "percentile", "approx_quantile"), quantile
)
_VARIANCE: dict[str, Fold] = {
    "var_pop": lambda rows: variance(rows, sample=False),
    "stddev_pop": lambda rows: stddev(rows, sample=False),
    **dict.fromkeys(("var_samp", "variance"), lambda rows: variance(rows, sample=True)),
    **dict.fromkeys(("stddev_samp", "stddev", "std"), lambda rows: stddev(rows, sample=True)),
}

FOLDS: dict[str, Fold] = {
    "count": lambda rows: len(without_nulls(rows)),
    "sum": sum_,
    **dict.fromkeys(("avg", "mean"), avg),
    "min": _signed(extreme, -1),
    "max": _signed(extreme, +1),
    **_VARIANCE,
    "covar_pop": lambda rows: covariance(rows, sample=False),
    "covar_samp": lambda rows: covariance(rows, sample=True),
    "corr": corr,
    **dict.fromkeys(("weighted_mean", "weighted_avg", "center_of_mass"), weighted_mean),
    **dict.fromkeys(("first", "first_value"), _signed(by_time, -1)),
    **dict.fromkeys(("last", "last_value"), _signed(by_time, +1)),
    "min_by": lambda rows, k=None: by_other(rows, sign=-1) if k is None else first_by(rows, k, -1),
    "max_by": lambda rows, k=None: by_other(rows, sign=+1) if k is None else first_by(rows, k, +1),
    **dict.fromkeys(("bool_and", "every"), _signed(extreme, -1)),
    **dict.fromkeys(("bool_or", "some"), _signed(extreme, +1)),
    "any": _signed(extreme, +1),
    "any_value": _signed(by_time, -1),
    "median": quantile,
    **_QUANTILE,
    "quantile_disc": quantile_disc,
    "mode": mode,
    "heavy_hitters": heavy_hitters,
    "top_k": top,
    "approx_top_k": approx_top,
    "histogram": histogram,
    **dict.fromkeys(
        ("collect", "collect_list", "array_agg"), lambda rows: sorted(values_of(rows), key=order)
    ),
    "collect_set": lambda rows: sorted(values_of(distinct(rows)), key=order),
    "approx_count_distinct": lambda rows, *_: count_distinct(rows),
}
