"""Spark's further aggregates the obvious way, each a function of the rows of one window.

As in `panes.reference.folds`, nothing is shared with `panes.aggregates`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from typing import Any

from panes.reference.folds import (
    Fold,
    Row,
    avg,
    deviations,
    order,
    products,
    quantile,
    sum_,
    tally,
    total,
    values_of,
    without_nulls,
)


def higher_moment(rows: Sequence[Row], power: int) -> Any:
    """The mean of a power of the deviations, divided by the same power of the deviation."""
    values = values_of(rows)
    if not values:
        return None
    away = deviations(values)
    if any(isinstance(d, float) for d in away):
        return math.nan
    second = sum(d**2 for d in away)
    if second == 0:
        return None
    n = len(values)
    if power == 3:
        return math.sqrt(n) * float(sum(d**3 for d in away)) / math.sqrt(float(second) ** 3)
    return float(n * sum(d**4 for d in away) / second**2) - 3


def regression(rows: Sequence[Row], what: str) -> Any:
    pairs = without_nulls(rows)
    ys, xs = [p[0] for p in pairs], [p[1] for p in pairs]
    if not pairs:
        return None
    mean_x, mean_y = (total([float(v) for v in side]) / len(pairs) for side in (xs, ys))
    x2, y2, both = products(xs, xs), products(ys, ys), products(xs, ys)
    plain = {"avgx": mean_x, "avgy": mean_y, "sxx": x2, "syy": y2, "sxy": both}
    if what in plain:
        return plain[what]
    if x2 == 0:
        return None
    if what == "r2":
        return 1.0 if y2 == 0 else both * both / (x2 * y2)
    return both / x2 if what == "slope" else mean_y - both / x2 * mean_x


def bitwise(rows: Sequence[Row], fold: Fold) -> Any:
    values = values_of(rows)
    return reduce(fold, values) if values else None


def approx_percentile(rows: Sequence[Row], fraction: Any, *_: Any) -> Any:
    ranked = sorted(values_of(rows), key=order)
    if not ranked:
        return None
    if isinstance(fraction, tuple):
        return [approx_percentile(rows, f) for f in fraction]
    return ranked[max(math.ceil(fraction * len(ranked)) - 1, 0)]


def percentile_disc(rows: Sequence[Row], fraction: float, falls: bool = False) -> Any:
    ranked = sorted(values_of(rows), key=order, reverse=falls)
    exact = Fraction(str(fraction)) * len(ranked)
    return float(ranked[max(math.ceil(exact) - 1, 0)]) if ranked else None


def listagg(rows: Sequence[Row], separator: str | None = None, falls: bool = False) -> Any:
    """Texts by what orders them: the second argument, if there is one."""
    present = [v for _, v in rows if v[0] is not None]
    ranked = sorted(present, key=lambda v: [order(part) for part in v[::-1]], reverse=falls)
    return (separator or "").join(v[0] for v in ranked) if ranked else None


def collect_union(rows: Sequence[Row]) -> Any:
    found = {order(item): item for v in values_of(rows) for item in v}
    return [found[o] for o in sorted(found)]


def histogram_numeric(rows: Sequence[Row], bars: float) -> Any:
    found: list[list[float]] = []
    for value, n in sorted(tally(rows), key=lambda item: order(item[0])):
        found.append([float(value), float(n)])
        if len(found) > bars:
            gaps = [b[0] - a[0] for a, b in pairwise(found)]
            near = gaps.index(min(gaps))
            (x, n1), (y, n2) = found[near : near + 2]
            found[near : near + 2] = [[(x * n1 + y * n2) / (n1 + n2), n1 + n2]]
    if not found:
        return None
    whole = isinstance(values_of(rows)[0], int)
    return [{"x": int(x) if whole else x, "y": n} for x, n in found]


def count_min(rows: Sequence[Row], eps: float, confidence: float, seed: int) -> bytes:
    """Spark's sketch of whole numbers, counter by counter."""
    width, depth = math.ceil(2 / eps), math.ceil(-math.log(1 - confidence) / math.log(2))
    state = (int(seed) ^ 0x5DEECE66D) & ((1 << 48) - 1)
    factors: list[int] = []
    while len(factors) < depth:
        state = (state * 0x5DEECE66D + 0xB) & ((1 << 48) - 1)
        factors += [state >> 17] if state >> 17 < (1 << 31) - 1 else []
    table, values = [[0] * width for _ in factors], values_of(rows)
    for value in values:
        for row, factor in zip(table, factors, strict=True):
            mixed = (factor * value + (1 << 63)) % (1 << 64) - (1 << 63)
            row[((mixed + (mixed >> 32)) & ((1 << 31) - 1)) % width] += 1
    written = b"".join(n.to_bytes(8, "big") for n in [*factors, *(n for r in table for n in r)])
    head = (1).to_bytes(4, "big") + len(values).to_bytes(8, "big")
    return head + depth.to_bytes(4, "big") + width.to_bytes(4, "big") + written


def bitmap(rows: Sequence[Row], fold: Fold | None) -> bytes:
    """The bits at all positions; or all bitmaps as whole numbers, the first byte lowest."""
    values = values_of(rows)
    if fold is None:
        bits = reduce(operator.or_, (1 << v for v in values), 0)
    else:
        whole = [int.from_bytes(v[:4096], "little") for v in values]
        none = (1 << 32_768) - 1 if fold is operator.and_ else 0
        bits = reduce(fold, whole, none)
    return bits.to_bytes(4096, "little")


def _tried(fold: Fold, limit: int) -> Fold:
    """As a fold, NULL where whole numbers leave 64 bits or decimals 38 digits."""

    def tried(rows: Sequence[Row]) -> Any:
        value = fold(rows)
        return None if isinstance(value, int) and not -limit <= value < limit else value

    return tried


_REGRESSIONS = ("avgx", "avgy", "sxx", "syy", "sxy", "slope", "intercept", "r2")
SPARK_FOLDS: dict[str, Fold] = {
    "skewness": lambda rows: higher_moment(rows, 3),
    "kurtosis": lambda rows: higher_moment(rows, 4),
    "regr_count": lambda rows: len(without_nulls(rows)),
    **{f"regr_{w}": (lambda rows, w=w: regression(rows, w)) for w in _REGRESSIONS},
    "try_sum": _tried(sum_, 1 << 63),
    "try_avg": avg,
    "bit_and": lambda rows: bitwise(rows, operator.and_),
    "bit_or": lambda rows: bitwise(rows, operator.or_),
    "bit_xor": lambda rows: bitwise(rows, operator.xor),
    **dict.fromkeys(("percentile_approx", "approx_percentile"), approx_percentile),
    "percentile_cont": lambda rows, p, falls: quantile(rows, 1 - p if falls else p),
    "percentile_disc": percentile_disc,
    **dict.fromkeys(("listagg", "string_agg"), listagg),
    "collect_union": collect_union,
    "histogram_numeric": histogram_numeric,
    "count_min_sketch": count_min,
    "bitmap_construct_agg": lambda rows: bitmap(rows, None),
    "bitmap_or_agg": lambda rows: bitmap(rows, operator.or_),
    "bitmap_and_agg": lambda rows: bitmap(rows, operator.and_),
}
