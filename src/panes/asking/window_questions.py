"""Questions about a live window, each answered from what its index holds.

Values are in ascending order, NaN last. NULL is no value: no question finds it, and only
`sorted_rows` gives rows without a value, first. Ranges of values include both ends, as BETWEEN
does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from panes.arrays import order_keys
from panes.arrays.compiled import compiled
from panes.arrays.slots import distinct
from panes.errors import ColumnTypeError, OptionError
from panes.index.domain import Keys
from panes.index.g_index import GIndex
from panes.index.keys import GREATEST, LEAST, NumberedKeys, ValueKeys
from panes.index.live_window import LiveWindow

Counts = NDArray[np.int64]


def values(window: LiveWindow) -> pa.Table:
    """All values and their counts, ascending."""
    keys, counts = window.present()
    return _table(window.keys, keys, counts)


def top(window: LiveWindow, k: int) -> pa.Table:
    """The k most frequent values, the most frequent first; of equally frequent ones the smaller."""
    if not isinstance(k, int) or isinstance(k, bool) or k < 0:
        raise OptionError(f"top needs a number of values, got {k!r}")
    keys, counts = window.present()
    if 0 < k < len(counts):
        least = np.partition(counts, len(counts) - k)[len(counts) - k]
        likely = np.flatnonzero(counts >= least)
        best = likely[np.argsort(-counts[likely], kind="stable")][:k]
    else:
        best = np.argsort(-counts, kind="stable")[:k]
    return _table(window.keys, keys[best], counts[best])


def look_up(window: LiveWindow, asked: pa.Array) -> pa.Array:
    """How many rows have each of these values."""
    keys, is_known = window.keys.find(asked)
    counts = window.counts(keys)
    return pa.array(counts if is_known.all() else np.where(is_known, counts, 0))


def rows_of(window: LiveWindow, asked: pa.Array) -> pa.Table:
    """The rows that have one of these values, in the order of the axis."""
    keys, is_known = window.keys.find(asked)
    return window.take(window.rows_of(distinct(keys[is_known])))


def between(window: LiveWindow, low: object, high: object) -> pa.Table:
    """The rows whose value is in a range, in the order of the axis."""
    if low is None or high is None:  # nothing is known to lie between NULL and anything
        return window.schema.empty_table()
    return window.take(window.rows_of(_within(window, low, high)[0]))


def sorted_rows(window: LiveWindow, *, limit: int | None, descending: bool) -> pa.Table:
    """All rows in the order of their values, NULL first; descending, NULL last."""
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 0):
        raise OptionError(f"limit is a number of rows, got {limit!r}")
    nulls = window.null_rows()
    keys, counts = window.present()
    if descending:
        keys, counts = keys[::-1], counts[::-1]
    wanted = len(window) if limit is None else limit
    still = wanted if descending else max(wanted - len(nulls), 0)
    enough = int(np.searchsorted(np.cumsum(counts), still)) + 1
    found = window.sorted_rows(keys[:enough], still)
    parts = [found, nulls] if descending else [nulls, found]
    return window.take(np.concatenate(parts)[:wanted])


def histogram(window: LiveWindow, edges: Sequence[object]) -> pa.Table:
    """How many rows have a value in each ``[low, high)`` between neighbouring edges."""
    if not isinstance(edges, Sequence | np.ndarray) or len(edges) < 2:
        raise OptionError("a histogram needs at least two edges", hint="w.histogram([0, 10, 100])")
    before = [_smaller(window, edge) for edge in edges]
    if any(b < a for a, b in pairwise(before)):
        raise OptionError(f"the edges of a histogram ascend, got {list(edges)!r}")
    found = [window.keys.convert(edge) for edge in edges]
    for edge, bound in zip(edges, found, strict=True):
        if bound is None and not _is_infinite(edge):
            raise OptionError(
                f"`{window.keys.column}` is {window.keys.type}, which has no edge at {edge!r}"
            )
    bounds = pa.array(found, window.keys.type)
    counts = pa.array(np.diff(before), pa.int64())
    return pa.table({"low": bounds[:-1], "high": bounds[1:], "count": counts})


def rank(window: LiveWindow, value: object) -> int:
    """How many rows have a smaller value."""
    return _smaller(window, value)


def quantiles(window: LiveWindow, shares: Sequence[float]) -> pa.Table:
    """For each share the smallest value that so much of the rows do not exceed."""
    if not isinstance(shares, Sequence | np.ndarray) or isinstance(shares, str):
        raise OptionError(
            f"quantiles takes several shares, got {shares!r}", hint="w.quantiles([0.5])"
        )
    keys, counts = window.present()
    reached, places = np.cumsum(counts), []
    for share in shares:
        if not isinstance(share, int | float) or not 0 <= share <= 1:
            raise OptionError(f"a quantile lies between 0 and 1, got {share!r}")
        rows = Fraction(repr(float(share))) * (int(reached[-1]) if len(reached) else 0)
        places.append(max(-(-rows.numerator // rows.denominator), 1))
    if len(keys):
        found = window.keys.decode(keys[np.searchsorted(reached, places)])
    else:
        found = pa.nulls(len(places), window.keys.type)
    return pa.table({"quantile": pa.array([float(s) for s in shares]), "value": found})


def nearest(window: LiveWindow, asked: pa.Array) -> pa.Array:
    """The value nearest to each of these, the smaller of two; NULL if there is none."""
    data_type = window.keys.type
    if isinstance(window.keys, NumberedKeys) or pa.types.is_boolean(data_type):
        raise ColumnTypeError(
            f"`{window.keys.column}` is {data_type}, whose values have no distance",
            hint="w.between(low, high) and w.rank(value) need only an order",
        )
    keys, _ = window.present()
    sought, is_valid = window.keys.find(asked)
    if pa.types.is_floating(data_type) and len(keys) and keys[-1] == _nan_key():
        is_valid = is_valid.copy()
        keys = keys if len(keys) == 1 else keys[:-1]
    if not len(keys):
        return pa.nulls(len(asked), data_type)
    place = np.searchsorted(keys, sought)
    below, above = keys[np.maximum(place - 1, 0)], keys[np.minimum(place, len(keys) - 1)]
    is_above = _distance(window, above, sought) < _distance(window, sought, below)
    chosen = np.where(is_above | (place == 0) | (above == sought), above, below)
    found = window.keys.decode(chosen)
    return found if is_valid.all() else pa.array(found.to_numpy(False), data_type, mask=~is_valid)


def nearest_one(window: LiveWindow, value: object) -> Any:
    """The same for a value that the column's type cannot hold, as 1.5 among whole numbers."""
    least, _ = window.keys.range(value, None)
    keys, _ = window.present()
    first = int(np.searchsorted(keys, min(max(least, LEAST), GREATEST)))
    above = keys[first : first + 1] if least <= GREATEST else keys[:0]
    below = keys[: first if len(above) else len(keys)][-1:]
    candidates = window.keys.decode(np.concatenate([below, above])).to_pylist()
    if len(candidates) < 2:
        return candidates[0] if candidates else None
    low, high = candidates
    value = value.item() if isinstance(value, np.generic) else value
    assert isinstance(value, int | float | Decimal)
    sought = Fraction(value)
    return high if Fraction(high) - sought < sought - Fraction(low) else low


@cache
def _nan_key() -> int:
    """The key of NaN, which comes behind those of all numbers."""
    return int(order_keys.encode(pa.array([float("nan")]))[0])


def _distance(window: LiveWindow, high: Keys, low: Keys) -> NDArray[Any]:
    """How far values are apart; keys of anything but floats are numbers on one scale."""
    if not pa.types.is_floating(window.keys.type):
        return high.view(np.uint64) - low.view(np.uint64)
    with np.errstate(invalid="ignore"):
        far = window.keys.decode(high).to_numpy() - window.keys.decode(low).to_numpy()
    return np.where(np.isnan(far), np.inf, far)


def _is_infinite(edge: object) -> bool:
    return isinstance(edge, float | Decimal) and math.isinf(edge)


def _within(window: LiveWindow, low: object, high: object) -> tuple[Keys, Counts]:
    """The values in a range, ascending, and their counts."""
    least, greatest = window.keys.range(low, high)
    keys, counts = window.present()
    if least > GREATEST or greatest < LEAST:
        return keys[:0], counts[:0]
    ranks, least, greatest = window.keys.rank(keys), max(least, LEAST), min(greatest, GREATEST)
    inside = slice(np.searchsorted(ranks, least), np.searchsorted(ranks, greatest, side="right"))
    return keys[inside], counts[inside]


def _smaller(window: LiveWindow, value: object) -> int:
    """How many rows have a value smaller than a value."""
    if value is None:
        raise OptionError("NULL is no value, so nothing is smaller or greater")
    least, _ = window.keys.range(value, None)
    keys, counts = window.present()
    if least > GREATEST:
        return int(counts.sum())
    return int(counts[: np.searchsorted(window.keys.rank(keys), max(least, LEAST))].sum())


# Two windows


def intersection(window: LiveWindow, other: LiveWindow) -> pa.Table:
    """The values that both windows have, ascending."""
    return _compared(window, other, in_both=True)


def difference(window: LiveWindow, other: LiveWindow) -> pa.Table:
    """The values that only the first window has, ascending."""
    return _compared(window, other, in_both=False)


def _compared(window: LiveWindow, other: LiveWindow, *, in_both: bool) -> pa.Table:
    _require_same_type(window, other)
    keys, _ = window.present()
    if isinstance(window.keys, NumberedKeys):
        is_shared = look_up(other, window.keys.decode(keys)).to_numpy() > 0
    else:
        is_shared = np.empty(len(keys), dtype=np.bool_)
        _mark_shared(keys, other.present()[0], is_shared)
    return pa.table({"value": window.keys.decode(keys[is_shared == in_both])})


def shared_ranges(window: LiveWindow, other: LiveWindow, *, in_both: bool) -> pa.Table:
    """Ranges of values in which both windows have rows, or only the first one has.

    Both are inclusive; a range that is open to a side has NULL there. A range of both windows may
    hold different values of each.
    """
    _require_same_type(window, other)
    (low, high, here), (other_low, other_high, there) = _groups(window), _groups(other)
    lows = np.union1d(low, other_low)
    highs = np.union1d(high, other_high)
    has_here = here[np.searchsorted(low, lows, side="right") - 1] > 0
    has_there = there[np.searchsorted(other_low, lows, side="right") - 1] > 0
    chosen = has_here & (has_there == in_both)
    return _ranges(window.keys, lows[chosen], highs[chosen])


def groups(window: LiveWindow) -> pa.Table:
    """The groups of values, their ranges, and how many rows each has."""
    low, high, counts = _groups(window)
    return _ranges(window.keys, low, high).append_column("count", pa.array(counts))


def semi_join(window: LiveWindow, asked: pa.Array, *, anti: bool) -> NDArray[np.bool_]:
    """Which of these values the window has; `anti`: which it has not. NULL is neither."""
    keys, is_known = window.keys.find(asked)
    found = (window.counts(keys) > 0) & is_known
    return ~found & asked.is_valid().to_numpy(zero_copy_only=False) if anti else found


def _groups(window: LiveWindow) -> tuple[Keys, Keys, Counts]:
    if isinstance(window.keys, NumberedKeys):
        raise ColumnTypeError(
            f"`{window.keys.column}` is {window.keys.type}, which is grouped as it comes",
            hint="ranges of values need a column of numbers or times",
        )
    if window.is_empty:
        return np.array([LEAST]), np.array([GREATEST]), np.array([0])
    if not isinstance(window.index, GIndex):
        raise OptionError(
            "only an index of groups of values knows their ranges",
            hint='panes.window_index(..., kind="group")',
        )
    return window.index.groups()


def _ranges(keys: ValueKeys, low: Keys, high: Keys) -> pa.Table:
    """Ranges of keys as values, NULL where they are open."""
    bounds = {}
    for name, bound, is_open in (("low", low, low == LEAST), ("high", high, high == GREATEST)):
        decoded = keys.decode(np.where(is_open, 0, bound))
        bounds[name] = pc.if_else(pa.array(~is_open), decoded, pa.scalar(None, keys.type))
    return pa.table(bounds)


def _require_same_type(window: LiveWindow, other: LiveWindow) -> None:
    if window.keys.type != other.keys.type:
        raise ColumnTypeError(
            f"values of `{window.keys.column}` ({window.keys.type}) are not comparable with those "
            f"of `{other.keys.column}` ({other.keys.type})",
            hint="cast one of the columns before rows are added",
        )


def _table(keys: ValueKeys, chosen: Keys, counts: Counts) -> pa.Table:
    return pa.table({"value": keys.decode(chosen), "count": pa.array(counts, pa.int64())})


@compiled
def _mark_shared(keys, others, is_shared):  # type: ignore[no-untyped-def]
    j = 0
    for i in range(keys.shape[0]):
        while j < others.shape[0] and others[j] < keys[i]:
            j += 1
        is_shared[i] = j < others.shape[0] and others[j] == keys[i]
