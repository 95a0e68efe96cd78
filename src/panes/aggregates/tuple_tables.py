"""In which order the entries of a tuple sketch stand in Spark's bytes: as they lie in a hash table.

Spark aggregates twice, in each partition and then over them, and each time fills a table. So the
order of entries depends on the order of rows. Here it is the one that Spark gives in one partition
whose rows, or sketches of one key each, come in ascending order of their hashes.

A table that grows has room for twice the sketch's size. Once it is full to fifteen sixteenths, it
keeps the least hashes alone, and takes no hash from the next one on. So what lies in it after that
no longer depends on those that follow: so many of the least hashes (`most_held`) say all about it.
"""

from __future__ import annotations

import numpy as np

from panes.aggregates.exact_sums import Index
from panes.aggregates.theta import ALL, Hashed
from panes.arrays.compiled import compiled

_LG_LEAST = 5
_LG_GROWTH = 3
_LG_LEAST_COMMON = 4


def most_held(lg: int) -> int:
    """The number of least hashes that a sketch of this size must know to know the order."""
    return _fullest(2 << lg) + 1


def order_of_values(hashes: Hashed, lg: int) -> Index:
    """The ascending hashes that are in a sketch of values, in the order of its bytes."""
    size = 1 << lg
    lain = _lain(_lain(hashes, lg), lg)
    return _places(hashes, lain[lain < hashes[size]] if len(hashes) > size else lain)


def order_of_union(hashes: Hashed, lg: int) -> Index:
    """The same for a union: it leaves out what is too much each time."""
    size = 1 << lg
    lain = _lain(hashes, lg)
    return _places(hashes, _lain(lain[lain < hashes[size]] if len(hashes) > size else lain, lg))


def order_of_intersection(hashes: Hashed) -> Index:
    """The same for an intersection, whose table is as large as its hashes need."""
    lg = max(_LG_LEAST_COMMON, (-(-4 * len(hashes) // 3) - 1).bit_length())
    return _places(hashes, _placed(_placed(hashes, lg), lg))


def _places(hashes: Hashed, some: Hashed) -> Index:
    return np.searchsorted(hashes, some).astype(np.int64)


def _lain(hashes: Hashed, lg: int) -> Hashed:
    """Hashes as they lie in a growing table into which they came in this order."""
    lg_most = lg + 1
    lg_table = _LG_LEAST + max(0, lg_most - _LG_LEAST) % _LG_GROWTH
    lain, begin, bound = np.empty(0, np.uint64), 0, np.uint64(ALL)
    while True:
        is_whole = lg_table > lg
        room = _fullest(1 << lg_table) if is_whole else 1 << lg_table >> 1
        table = np.zeros(1 << lg_table, np.uint64)
        _place(table, lg_table, lain)
        begin, count = _place_until(table, lg_table, hashes, begin, bound, room + 1, len(lain))
        lain = table[table > 0]
        if count <= room:
            return lain
        if is_whole:
            bound = np.partition(lain, 1 << lg)[1 << lg]
            lain = lain[lain < bound]
        else:
            lg_table += _LG_GROWTH


def _placed(hashes: Hashed, lg_table: int) -> Hashed:
    table = np.zeros(1 << lg_table, np.uint64)
    _place(table, lg_table, hashes)
    return table[table > 0]


def _fullest(table: int) -> int:
    return 15 * table >> 4


@compiled
def _place(table, lg_table, hashes):  # type: ignore[no-untyped-def]
    for one in hashes:
        _put(table, lg_table, one)


@compiled
def _place_until(table, lg_table, hashes, begin, bound, most, count):  # type: ignore[no-untyped-def]
    """Place hashes until there are so many; where it stopped, and how many there are."""
    while begin < hashes.shape[0] and count < most:
        if hashes[begin] < bound:
            _put(table, lg_table, hashes[begin])
            count += 1
        begin += 1
    return begin, count


@compiled
def _put(table, lg_table, one):  # type: ignore[no-untyped-def]
    mask = table.shape[0] - 1
    at = np.int64(one) & mask
    step = 2 * ((np.int64(one) >> lg_table) & 127) + 1
    while table[at] != 0:
        at = (at + step) & mask
    table[at] = one
