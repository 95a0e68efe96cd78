"""One balanced tree of windows, ordered by answer and by size at the same time.

A larger window can only have a greater answer, so one order serves both searches: by answer when
a row comes, by size when a window is looked up (*Aggregate Sharing* 6.2, 6.3.1). A node is a
window's size, its answer and the position of the row that is the answer. The answer is *valid*
for any window up to that size which still holds that row.

Invariant: from left to right sizes and answers ascend; every answer is greater than all rows
behind its own; heights of siblings differ by one at most.

The report keeps the balance with red and black nodes. Here trees are split and joined (Blelloch,
Ferizovic, Sun 2016, with AVL heights), because what the algorithm does is remove *all smaller
windows*: one split, ``O(log windows)``, however many they are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from panes.arrays.compiled import compiled

_LEFT, _RIGHT, _HEIGHT, _SIZE, _ANSWER, _AT = range(6)
_FIRST_ROOM = 16


class WindowTree:
    """Answers of some window sizes, shared by all the others. Node 0 stands for no node."""

    def __init__(self) -> None:
        self._nodes = np.zeros((_FIRST_ROOM, 6), dtype=np.int64)
        self._used = 1
        self._root = 0

    def insert(self, at: NDArray[np.int64], answers: NDArray[np.int64]) -> None:
        """Take in rows, one after the other (report 6.3.2.1)."""
        self._root = _insert_each(self._nodes, self._root, at, answers)

    def lookup(
        self, sizes: NDArray[np.int64], end: int, answers: NDArray[np.int64], begin: int
    ) -> int:
        """Fill in answers from `begin` on, up to the first window without a valid one.

        Returns where that is; the number of sizes if there is none (report 6.3.2.2, step 1).
        """
        return _lookup_each(self._nodes, self._root, sizes, end, answers, begin)

    def replace_up_to(
        self,
        size: int,
        sizes: NDArray[np.int64],
        answers: NDArray[np.int64],
        at: NDArray[np.int64],
    ) -> None:
        """Put windows, by ascending size, in the place of all up to a size (6.3.2.2, step 2)."""
        self._make_room(len(sizes))
        begin = self._used
        fresh = self._nodes[begin : begin + len(sizes)]
        fresh[:, _SIZE], fresh[:, _ANSWER], fresh[:, _AT] = sizes, answers, at
        self._used += len(sizes)
        self._root = _replace(self._nodes, self._root, size, begin, self._used)

    def windows(self) -> NDArray[np.int64]:
        """One row for each node, in order: size, answer, position of the answer."""
        return self._in_order()[:, _SIZE:]

    def height(self) -> int:
        """The longest way from the root to a leaf."""
        return int(self._nodes[self._root, _HEIGHT])

    def lean(self) -> int:
        """The greatest difference between the heights of siblings."""
        nodes, heights = self._in_order(), self._nodes[:, _HEIGHT]
        differences = heights[nodes[:, _LEFT]] - heights[nodes[:, _RIGHT]]
        return int(np.abs(differences).max(initial=0))

    def _in_order(self) -> NDArray[np.int64]:
        order = np.empty(self._used, dtype=np.int64)
        count = _in_order(self._nodes, self._root, order, 0)
        return self._nodes[order[:count]]

    def _make_room(self, count: int) -> None:
        """Forget removed nodes, which are only overwritten when room runs out."""
        if self._used + count <= len(self._nodes):
            return
        windows = self.windows()
        self._nodes = np.zeros((2 * (1 + len(windows) + count), 6), dtype=np.int64)
        self._used = 1 + len(windows)
        self._nodes[1 : self._used, _SIZE:] = windows
        self._root = _balanced(self._nodes, 1, self._used)


@compiled
def _insert_each(nodes, root, at, answers):  # type: ignore[no-untyped-def]
    """Each row becomes the answer of the largest valid window that it is the answer of.

    All smaller windows go, since that answer is theirs too. So do invalid windows whose answer
    the row reaches, which would stand in the wrong order now: the report's step 2d.
    """
    for i in range(at.shape[0]):
        if root == 0:
            return root
        reached, root = _split(nodes, root, _ANSWER, answers[i])
        while reached != 0:
            reached, largest = _pop_last(nodes, reached)
            if nodes[largest, _AT] > at[i] - nodes[largest, _SIZE]:
                nodes[largest, _ANSWER] = answers[i]
                nodes[largest, _AT] = at[i]
                root = _join(nodes, np.int64(0), largest, root)
                break
    return root


@compiled
def _lookup_each(nodes, root, sizes, end, answers, begin):  # type: ignore[no-untyped-def]
    for i in range(begin, sizes.shape[0]):
        here, nearest = root, np.int64(0)
        while here != 0:
            if nodes[here, _SIZE] >= sizes[i]:
                nearest, here = here, nodes[here, _LEFT]
            else:
                here = nodes[here, _RIGHT]
        if nearest == 0 or nodes[nearest, _AT] < end - sizes[i]:
            return i
        answers[i] = nodes[nearest, _ANSWER]
    return sizes.shape[0]


@compiled
def _replace(nodes, root, size, begin, end):  # type: ignore[no-untyped-def]
    larger = _split(nodes, root, _SIZE, size)[1]
    if begin == end:
        return larger
    return _join(nodes, _balanced(nodes, begin, end - 1), end - 1, larger)


@compiled
def _in_order(nodes, here, order, count):  # type: ignore[no-untyped-def]
    if here == 0:
        return count
    count = _in_order(nodes, nodes[here, _LEFT], order, count)
    order[count] = here
    return _in_order(nodes, nodes[here, _RIGHT], order, count + 1)


@compiled
def _linked(nodes, left, middle, right):  # type: ignore[no-untyped-def]
    nodes[middle, _LEFT] = left
    nodes[middle, _RIGHT] = right
    nodes[middle, _HEIGHT] = 1 + max(nodes[left, _HEIGHT], nodes[right, _HEIGHT])
    return middle


@compiled
def _balanced(nodes, begin, end):  # type: ignore[no-untyped-def]
    """A tree of the nodes ``[begin, end)``, which are in order."""
    if begin >= end:
        return np.int64(0)
    middle = np.int64((begin + end) // 2)
    left = _balanced(nodes, begin, middle)
    return _linked(nodes, left, middle, _balanced(nodes, middle + 1, end))


@compiled
def _rebalanced(nodes, here):  # type: ignore[no-untyped-def]
    """A node whose children's heights differ by two at most, turned so that it is by one."""
    left, right = nodes[here, _LEFT], nodes[here, _RIGHT]
    lean = nodes[left, _HEIGHT] - nodes[right, _HEIGHT]
    if lean > 1:
        outer, inner = nodes[left, _LEFT], nodes[left, _RIGHT]
        if nodes[outer, _HEIGHT] >= nodes[inner, _HEIGHT]:
            return _linked(nodes, outer, left, _linked(nodes, inner, here, right))
        low, high = nodes[inner, _LEFT], nodes[inner, _RIGHT]
        top = _linked(nodes, outer, left, low)
        return _linked(nodes, top, inner, _linked(nodes, high, here, right))
    if lean < -1:
        inner, outer = nodes[right, _LEFT], nodes[right, _RIGHT]
        if nodes[outer, _HEIGHT] >= nodes[inner, _HEIGHT]:
            return _linked(nodes, _linked(nodes, left, here, inner), right, outer)
        low, high = nodes[inner, _LEFT], nodes[inner, _RIGHT]
        top = _linked(nodes, left, here, low)
        return _linked(nodes, top, inner, _linked(nodes, high, right, outer))
    return _linked(nodes, left, here, right)


@compiled
def _join(nodes, left, middle, right):  # type: ignore[no-untyped-def]
    """One tree of all nodes of two and one between them."""
    if abs(nodes[left, _HEIGHT] - nodes[right, _HEIGHT]) <= 1:
        return _linked(nodes, left, middle, right)
    if nodes[left, _HEIGHT] > nodes[right, _HEIGHT]:
        nodes[left, _RIGHT] = _join(nodes, nodes[left, _RIGHT], middle, right)
        return _rebalanced(nodes, left)
    nodes[right, _LEFT] = _join(nodes, left, middle, nodes[right, _LEFT])
    return _rebalanced(nodes, right)


@compiled
def _split(nodes, here, by, key):  # type: ignore[no-untyped-def]
    """The tree of all nodes with at most this key, and the tree of the others."""
    if here == 0:
        return np.int64(0), np.int64(0)
    left, right = nodes[here, _LEFT], nodes[here, _RIGHT]
    if nodes[here, by] <= key:
        below, above = _split(nodes, right, by, key)
        return _join(nodes, left, here, below), above
    below, above = _split(nodes, left, by, key)
    return below, _join(nodes, above, here, right)


@compiled
def _pop_last(nodes, here):  # type: ignore[no-untyped-def]
    """A tree without its last node, and that node."""
    if nodes[here, _RIGHT] == 0:
        return nodes[here, _LEFT], here
    rest, last = _pop_last(nodes, nodes[here, _RIGHT])
    nodes[here, _RIGHT] = rest
    return _rebalanced(nodes, here), last
