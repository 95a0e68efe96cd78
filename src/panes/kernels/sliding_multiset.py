"""The counted values of every window, kept up while the window slides.

Counts are integers, so a pane that leaves is subtracted exactly: the pseudo-differential trick of
*No Pane, No Gain* 3.3.2. Panes enter and leave once per group whatever the overlap; a rank is
found by descending a Fenwick tree (Fenwick 1994), so a median costs ``O(log values)`` per answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.aggregates.ranks import Rule
from panes.arrays.compiled import compiled

_CHOICES = {"all": 0, "top": 1, "share": 2}
_SHARE = 2
_BETWEEN, _OCCURRING, _DESCENDING, _BINARY = range(4)
_RULES: dict[Rule, int] = {
    "between": _BETWEEN,
    "occurring": _OCCURRING,
    "descending": _DESCENDING,
    "binary": _BINARY,
}
# A share is written in decimals: 0.07 of 100 rows is 7 and not 7.000000000000001.
_DECIMAL = 1 - 1e-12


@dataclass(frozen=True, slots=True)
class SlidingMultiset:
    """Windows over rows of ``(value, count)``, sorted by group and position.

    Answer k holds the rows ``[first[k], last[k])``; inside a group both only grow. `offsets[g]`
    is where group g's answers begin. `rank` is each row's index into `values`, which are
    sorted and distinct.
    """

    values: pa.Array
    groups: NDArray[np.int64]
    rank: NDArray[np.int64]
    count: NDArray[np.int64]
    offsets: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]

    def distinct(self) -> NDArray[np.int64]:
        """The number of different values in each window."""
        result = np.zeros(len(self.first), dtype=np.int64)
        _distinct(*self._slide(), result)
        return result

    def ranks_at(
        self, fraction: float, rule: Rule
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """The values around a fraction of each sorted window, and how far between them."""
        below, above = (np.full(len(self.first), -1, dtype=np.int64) for _ in range(2))
        between = np.zeros(len(self.first), dtype=np.float64)
        local, names = self._local()
        which = _RULES[rule]
        _ranks_at(fraction, which, *self._slide(local), *names, below, above, between)
        return below, above, between

    def select(
        self, how: Literal["all", "top", "share"], limit: float
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Chosen values of each window: where its choice begins, value indexes, counts.

        ``all`` of them in ascending order; the ``top`` so many, or those with at least a
        ``share`` of the window's rows, by falling count and then by value.
        """
        begin = np.zeros(len(self.first) + 1, dtype=np.int64)
        local, names = self._local()
        chosen, counts = _select(_CHOICES[how], limit, *self._slide(local), *names, begin)
        return begin, chosen, counts

    def _slide(self, local: NDArray[np.int64] | None = None) -> tuple[NDArray[np.int64], ...]:
        keys = self._local()[0] if local is None else local
        return self.groups, keys, self.count, self.offsets, self.first, self.last

    def _local(self) -> tuple[NDArray[np.int64], tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Value numbers that are dense inside each group, and what they stand for."""
        group = np.repeat(np.arange(len(self.groups) - 1), np.diff(self.groups))
        width = len(self.values) + 1
        pairs, dense = np.unique(group * width + self.rank, return_inverse=True)
        begin = np.searchsorted(pairs, np.arange(len(self.groups)) * width)
        return dense - begin[group], (begin, pairs % width)


@compiled
def _distinct(groups, local, count, offsets, first, last, result):  # type: ignore[no-untyped-def]
    for g in range(groups.shape[0] - 1):
        inside = np.zeros(groups[g + 1] - groups[g] + 1, dtype=np.int64)
        left, right, different = groups[g], groups[g], 0
        for k in range(offsets[g], offsets[g + 1]):
            while right < last[k]:
                different += inside[local[right]] == 0
                inside[local[right]] += count[right]
                right += 1
            while left < first[k]:
                inside[local[left]] -= count[left]
                different -= inside[local[left]] == 0
                left += 1
            result[k] = different


@compiled(inline="always")
def _tree_add(tree, i, amount):  # type: ignore[no-untyped-def]
    i += 1
    while i < tree.shape[0]:
        tree[i] += amount
        i += i & -i


@compiled(inline="always")
def _tree_find(tree, top, nth):  # type: ignore[no-untyped-def]
    """The smallest value whose count, with all below it, exceeds `nth`."""
    at, step = 0, top
    while step > 0:
        if at + step < tree.shape[0] and tree[at + step] <= nth:
            at += step
            nth -= tree[at]
        step >>= 1
    return at


@compiled
def _ranks_at(  # type: ignore[no-untyped-def]
    fraction,
    rule,
    groups,
    local,
    count,
    offsets,
    first,
    last,
    begin,
    names,
    below,
    above,
    between,
):
    for g in range(groups.shape[0] - 1):
        width = begin[g + 1] - begin[g]
        top = 1
        while top * 2 <= width:
            top *= 2
        tree = np.zeros(width + 1, dtype=np.int64)
        left, right, total = groups[g], groups[g], 0
        for k in range(offsets[g], offsets[g + 1]):
            while right < last[k]:
                _tree_add(tree, local[right], count[right])
                total += count[right]
                right += 1
            while left < first[k]:
                _tree_add(tree, local[left], -count[left])
                total -= count[left]
                left += 1
            if total > 0:
                exact = fraction * (total - 1)
                if rule != _BETWEEN:
                    share = fraction * total
                    if rule != _BINARY:
                        share = share * _DECIMAL
                    exact = max(np.ceil(share) - 1, 0.0)
                    if rule == _DESCENDING:
                        exact = total - 1 - exact
                low = int(np.floor(exact))
                high = int(np.ceil(exact))
                below[k] = names[begin[g] + _tree_find(tree, top, low)]
                above[k] = names[begin[g] + _tree_find(tree, top, high)]
                between[k] = exact - low


@compiled
def _select(how, limit, groups, local, count, offsets, first, last, begin, names, out):  # type: ignore[no-untyped-def]
    chosen = np.empty(1024, dtype=np.int64)
    counts = np.empty(1024, dtype=np.int64)
    used = 0
    for g in range(groups.shape[0] - 1):
        width = begin[g + 1] - begin[g]
        inside = np.zeros(width, dtype=np.int64)
        left, right, total = groups[g], groups[g], 0
        for k in range(offsets[g], offsets[g + 1]):
            while right < last[k]:
                inside[local[right]] += count[right]
                total += count[right]
                right += 1
            while left < first[k]:
                inside[local[left]] -= count[left]
                total -= count[left]
                left += 1
            if used + width > chosen.shape[0]:
                room = max(2 * chosen.shape[0], used + width)
                chosen, old = np.empty(room, dtype=np.int64), chosen
                chosen[:used] = old[:used]
                counts, old = np.empty(room, dtype=np.int64), counts
                counts[:used] = old[:used]
            start = used
            for v in range(width):
                if inside[v] > 0 and (how != _SHARE or inside[v] >= limit * total * _DECIMAL):
                    chosen[used] = v
                    counts[used] = inside[v]
                    used += 1
            if how != 0:
                order = np.argsort(-counts[start:used], kind="mergesort")
                given = len(order) if how == _SHARE else min(len(order), int(limit))
                picked, tally = chosen[start:used][order], counts[start:used][order]
                used = start + given
                chosen[start:used] = picked[:given]
                counts[start:used] = tally[:given]
            for i in range(start, used):
                chosen[i] = names[begin[g] + chosen[i]]
            out[k + 1] = used
    return chosen[:used].copy(), counts[:used].copy()
