"""``histogram_numeric(x, n)``: at most n bars that lie where the values lie.

The streaming histogram of Ben-Haim and Tom-Tov (2010), which Spark has from Hive: every value is a
bar, and as long as there are more than n bars, the two nearest ones become one at their centre of
mass. Spark takes values as they come, so beyond n different values its bars depend on the order of
rows. Here values are taken in ascending order. Up to n different values the bars are exact, and
the same.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from panes.aggregates.aggregate import Argument, Holistic, Multiset
from panes.aggregates.multiset import holistic
from panes.arrays.compiled import compiled
from panes.errors import ColumnTypeError, QueryError

_MOST_BARS = 2**31 - 1


def histogram_numeric(argument: Argument, where: int | None, bars: float) -> Holistic:
    """A list of (x, y): where a bar lies, in the type of x, and how many values are in it."""
    kind = argument.type
    if not (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_date32(kind)
        or pa.types.is_timestamp(kind)
        or pa.types.is_duration(kind)
    ):
        raise ColumnTypeError(f"histogram_numeric needs numbers or times, got {kind}")
    if bars != int(bars) or not 2 <= bars <= _MOST_BARS:
        raise QueryError(
            f"histogram_numeric(x, n) needs a whole number of 2 to {_MOST_BARS:,} bars, got {bars}"
        )
    result = pa.list_(pa.struct([("x", kind), ("y", pa.float64())]))

    def lower(window: Multiset) -> pa.Array:
        begin, chosen, counts = window.select("all", 0)
        values = _doubles(window.values)
        places, weights = np.empty(len(chosen)), np.empty(len(chosen))
        ends = np.zeros(len(begin), dtype=np.int64)
        _bars(int(bars), begin, values[chosen], counts, places, weights, ends)
        used = int(ends[-1])
        at = _typed(pa.array(places[:used]), kind)
        items = pa.StructArray.from_arrays(
            [at, pa.array(weights[:used])], fields=list(result.value_type)
        )
        is_null = np.append(np.diff(ends) == 0, False)
        return pa.ListArray.from_arrays(pa.array(ends, pa.int32(), mask=is_null), items)

    return holistic((argument,), where, lower, result)


def _doubles(values: pa.Array) -> np.ndarray:
    if pa.types.is_temporal(values.type):
        values = values.view(pa.int32() if values.type.bit_width == 32 else pa.int64())
    return values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def _typed(places: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_temporal(kind):
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        return places.cast(width, safe=False).cast(kind)
    return places.cast(kind, safe=False)


@compiled
def _bars(most, begin, values, counts, places, weights, ends):  # type: ignore[no-untyped-def]
    """The bars of each window, written one after the other; `ends` says where each one ends."""
    used = 0
    for k in range(begin.shape[0] - 1):
        first = used
        for i in range(begin[k], begin[k + 1]):
            places[used] = values[i]
            weights[used] = counts[i]
            used += 1
            if used - first > most:
                near = first
                for j in range(first + 1, used - 1):
                    if places[j + 1] - places[j] < places[near + 1] - places[near]:
                        near = j
                both = weights[near] + weights[near + 1]
                centre = places[near] * weights[near] + places[near + 1] * weights[near + 1]
                places[near] = centre / both
                weights[near] = both
                for j in range(near + 1, used - 1):
                    places[j] = places[j + 1]
                    weights[j] = weights[j + 1]
                used -= 1
        ends[k + 1] = used
