"""OrderedSharing: the minimum or maximum over many window sizes, from one shared structure.

Windows that end together are nested, so their answers are ordered as their sizes are, and one
answer often serves many of them. (*Aggregate Sharing in Stream Databases* 6)

A balanced tree of windows whose answers are known is put right lazily. A row updates one node; a
lookup that finds no valid answer goes through the rows of its window once, for itself and all
smaller registered windows. `panes.stores.nested.nested_windows.StaircaseSharing` gives the same
answers from the rows instead of the windows, and that is what registers share.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lab.papers.window_tree import WindowTree
from panes.arrays.compiled import compiled
from panes.errors import OptionError
from panes.stores.nested.nested_windows import NestedWindows
from panes.stores.nested.tail import Tail


@dataclass(frozen=True, slots=True)
class SharedAnswer:
    """A node of the tree: the answer of a window and of all smaller ones that hold its row.

    It is valid while the window holds the row `at` which it comes from.
    """

    size: int
    answer: object
    at: int


class OrderedSharing(NestedWindows):
    """Min or max over the last N rows or ticks, for any N up to `max_size`.

    >>> highest = OrderedSharing("max", max_size=8, sizes=[2, 4, 6, 8])
    >>> highest.add_rows(np.array([50, 20, 30, 15, 5]))
    >>> highest.ask_each([8, 4, 2, 1]).to_pylist()
    [50, 30, 15, 5]
    >>> highest.add_rows(np.array([30]))
    >>> highest.shared()
    [SharedAnswer(size=4, answer=30, at=5), SharedAnswer(size=8, answer=50, at=0)]

    Parameters
    ----------
    aggregate
        What is asked for.
    max_size
        The largest window that will be asked for; older rows are evicted.
    sizes
        The registered windows, which are put right together. Any other may be asked for as well.
    """

    def __init__(
        self, aggregate: Literal["min", "max"], *, max_size: int, sizes: Iterable[int] = ()
    ) -> None:
        super().__init__(aggregate, max_size=max_size)
        self._sizes = np.unique(np.array(list(sizes), dtype=np.int64))
        self._reach.starts(self._sizes)
        self._rows = Tail()
        self._tree = WindowTree()
        self.recalculations = 0

    @property
    def sizes(self) -> tuple[int, ...]:
        """The registered windows, by ascending size."""
        return tuple(self._sizes.tolist())

    def register(self, size: int) -> None:
        """From now on, put this window right whenever a larger one is."""
        self._reach.starts(np.array([size]))
        index = np.searchsorted(self._sizes, size)
        if size not in self._sizes[index : index + 1]:
            self._sizes = np.insert(self._sizes, index, size)

    def remove(self, size: int) -> None:
        """Stop doing so. A valid answer stays in the tree, for the smaller windows it serves."""
        index = np.searchsorted(self._sizes, size)
        if size not in self._sizes[index : index + 1]:
            raise OptionError(f"no window of size {size} is registered")
        self._sizes = np.delete(self._sizes, index)

    def shared(self) -> list[SharedAnswer]:
        """The nodes of the tree, valid or not, by ascending size."""
        windows = self._tree.windows()
        answers = self._values(windows[:, 1].copy(), np.zeros(len(windows), dtype=np.bool_))
        columns = windows[:, 0].tolist(), answers.to_pylist(), windows[:, 2].tolist()
        return [SharedAnswer(*node) for node in zip(*columns, strict=True)]

    def _insert(self, at: NDArray[np.int64], keys: NDArray[np.int64]) -> None:
        self._rows.append(at, keys)
        self._tree.insert(at, keys)

    def _lookup(self, starts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Largest windows first: one that is put right puts right all behind it."""
        order = np.argsort(starts, kind="stable")
        sizes = self.end - starts[order]
        keys, found = np.zeros(len(sizes), dtype=np.int64), np.zeros(len(sizes), dtype=np.bool_)
        answers, done = np.zeros(len(sizes), dtype=np.int64), 0
        while (done := self._tree.lookup(sizes, self.end, answers, done)) < len(sizes):
            if not self._recalculate(int(sizes[done])):
                break  # it holds no row, so smaller ones hold none
        keys[order], found[order[:done]] = answers, True
        return keys, found

    def _recalculate(self, size: int) -> bool:
        """Answer a window and all smaller registered ones from their rows; says if it has any."""
        first = np.searchsorted(self._rows.at, self.end - size)
        at, keys = self._rows.at[first:], self._rows.keys[first:]
        if not len(at):
            return False
        smaller = self._sizes[: np.searchsorted(self._sizes, size)]
        sizes = np.append(smaller, size)
        rows = np.empty(len(sizes), dtype=np.int64)
        count = _nested_greatest(at, keys, self.end, sizes, rows)
        best = rows[:count]
        self._tree.replace_up_to(size, sizes[:count], keys[best], at[best])
        self.recalculations += 1
        return True

    def _evict_before(self, at: int) -> None:
        self._rows.evict_before(at)


@compiled
def _nested_greatest(at, keys, end, sizes, rows):  # type: ignore[no-untyped-def]
    """The row with the greatest key of each window, from the smallest window to the largest.

    Windows with the same answer become one, the largest of them; so `sizes` is overwritten from
    the front. Of equal keys the newest row is taken, which stays the longest. Returns how many
    windows remain.
    """
    count, best, i = 0, -1, at.shape[0] - 1
    for w in range(sizes.shape[0]):
        while i >= 0 and at[i] >= end - sizes[w]:
            if best < 0 or keys[i] > keys[best]:
                best = i
            i -= 1
        if best < 0:
            continue
        if count == 0 or rows[count - 1] != best:
            count += 1
        sizes[count - 1] = sizes[w]
        rows[count - 1] = best
    return count
