"""Spark's further aggregates the obvious way, each a function of the rows of one window.

As in `panes.reference.folds`, nothing is shared with `panes.aggregates`.
"""

from __future__ import annotations

import datetime as dt
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
    n, square, moment = len(values), _double(second), _double(sum(d**power for d in away))
    if math.isinf(square):
        return math.nan
    if power == 3:
        return math.sqrt(n) * moment / math.sqrt(square * square * square)
    return n * moment / (square * square) - 3 if square * square else math.nan


def _double(exact: Any) -> float:
    """The nearest double; infinite where there is none."""
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def regression(rows: Sequence[Row], what: str) -> Any:
    pairs = without_nulls(rows)
    ys, xs = [p[0] for p in pairs], [p[1] for p in pairs]
    if not pairs:
        return None
    if what in ("avgx", "avgy"):
        return avg([(0, (v,)) for v in (xs if what == "avgx" else ys)])
    mean_x, mean_y = (total([float(v) for v in side]) / len(pairs) for side in (xs, ys))
    x2, y2, both = products(xs, xs), products(ys, ys), products(xs, ys)
    plain = {"sxx": x2, "syy": y2, "sxy": both}
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
    if not ranked:
        return None
    glue: Any = separator or ""
    if isinstance(ranked[0][0], bytes):
        glue = glue.encode()
    return glue.join(v[0] for v in ranked)


def collect_union(rows: Sequence[Row]) -> Any:
    found = {order(item): item for v in values_of(rows) for item in v}
    return [found[o] for o in sorted(found)]


def histogram_numeric(rows: Sequence[Row], bars: float) -> Any:
    found: list[list[float]] = []
    for value, n in sorted(tally(rows), key=lambda item: order(item[0])):
        found.append([_place(value), float(n)])
        if len(found) > bars:
            gaps = [b[0] - a[0] for a, b in pairwise(found)]
            near = gaps.index(min(gaps))
            (x, n1), (y, n2) = found[near : near + 2]
            found[near : near + 2] = [[(x * n1 + y * n2) / (n1 + n2), n1 + n2]]
    if not found:
        return None
    like = values_of(rows)[0]
    return [{"x": _placed(x, like), "y": n} for x, n in found]


_TICK = dt.timedelta(microseconds=1)


def _place(value: Any) -> float:
    """Where a value lies: dates in days since 1970, times and durations in microseconds."""
    if isinstance(value, dt.datetime):
        return float((value - dt.datetime(1970, 1, 1, tzinfo=value.tzinfo)) // _TICK)
    if isinstance(value, dt.date):
        return float((value - dt.date(1970, 1, 1)).days)
    return float(value // _TICK if isinstance(value, dt.timedelta) else value)


def _placed(at: float, like: Any) -> Any:
    """What lies there, of the type of another value."""
    if isinstance(like, dt.datetime):
        return dt.datetime(1970, 1, 1, tzinfo=like.tzinfo) + int(at) * _TICK
    if isinstance(like, dt.date):
        return dt.date(1970, 1, 1) + dt.timedelta(days=int(at))
    if isinstance(like, dt.timedelta):
        return int(at) * _TICK
    return int(at) if isinstance(like, int) else at


def count_min(rows: Sequence[Row], eps: float, confidence: float, seed: int) -> bytes:
    """Spark's sketch of whole numbers, texts or bytes, counter by counter."""
    width, depth = math.ceil(2 / eps), math.ceil(-math.log(1 - confidence) / math.log(2))
    state = (int(seed) ^ 0x5DEECE66D) & ((1 << 48) - 1)
    factors: list[int] = []
    while len(factors) < depth:
        state = (state * 0x5DEECE66D + 0xB) & ((1 << 48) - 1)
        factors += [state >> 17] if state >> 17 < (1 << 31) - 1 else []
    table, values = [[0] * width for _ in factors], values_of(rows)
    for value in values:
        for at, (row, factor) in enumerate(zip(table, factors, strict=True)):
            if isinstance(value, int):
                mixed = _signed(factor * value, 64)
                row[((mixed + (mixed >> 32)) & ((1 << 31) - 1)) % width] += 1
            else:
                data = value.encode() if isinstance(value, str) else value
                first = _murmur(data, 0)
                row[abs(_signed(first + at * _murmur(data, first), 32)) % width] += 1
    written = b"".join(n.to_bytes(8, "big") for n in [*factors, *(n for r in table for n in r)])
    head = (1).to_bytes(4, "big") + len(values).to_bytes(8, "big")
    return head + depth.to_bytes(4, "big") + width.to_bytes(4, "big") + written


def _signed(value: int, bits: int) -> int:
    return (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


def _murmur(data: bytes, seed: int) -> int:
    """Spark's Murmur3: whole words of four bytes, then each byte left over as a word."""
    whole, low = len(data) // 4 * 4, (1 << 32) - 1
    words = [int.from_bytes(data[i : i + 4], "little") for i in range(0, whole, 4)]
    h = seed & low
    for word in words + [_signed(byte, 8) & low for byte in data[whole:]]:
        k = word * 0xCC9E2D51 & low
        h ^= (k << 15 | k >> 17) * 0x1B873593 & low
        h = (h << 13 | h >> 19) * 5 + 0xE6546B64 & low
    h ^= len(data)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        h = (h ^ h >> shift) * factor & low
    return _signed(h, 32)


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
