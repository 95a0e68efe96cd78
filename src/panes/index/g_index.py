"""G-INDEX: counts of groups of values, over basic windows of the form GROUP (paper, 4.3).

| arrival | slide | memory |
|---|---|---|
| g (paper), log g here | g | g |

g groups. There is no domain storage. When the window slides, the counts of the newest basic window
and those of the oldest make one delta, which is merged into the index. Groups alone answer in which
ranges of values there are rows. Exact questions use them to read only the basic windows that have
rows in the value's group.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from panes.index.basic_windows import BasicWindow, BasicWindows, Summary
from panes.index.domain import Keys
from panes.index.form_group import GroupForm, group_edges
from panes.index.index import Index, KeyedRows, Nulls
from panes.index.keys import GREATEST, LEAST
from panes.index.row_ring import RowRing, Rows
from panes.index.scan import Scan, runs_of

GROUPS = 50
"""The groups of an index that was not told how many."""


class GIndex(KeyedRows):
    """Counts of groups, and rows with their keys."""

    def __init__(
        self, rows: RowRing, windows: BasicWindows, first_keys: Keys, groups: int = GROUPS
    ) -> None:
        Index.__init__(self, rows, windows)
        self.form = GroupForm(group_edges(first_keys, groups))
        self._counts: NDArray[np.int64] = np.zeros(len(self.form.edges) + 1, dtype=np.int64)
        self._delta: NDArray[np.int64] = np.zeros_like(self._counts)

    @property
    def nbytes(self) -> int:
        return self._counts.nbytes + self._delta.nbytes + self.form.edges.nbytes

    def add(self, first: int, keys: Keys, is_null: Nulls) -> None:
        self.rows.set_keys(first, keys, is_null)
        self.form.add(keys if is_null is None else keys[~is_null])

    def seal(self) -> Summary | None:
        counts = self.form.seal()
        self._delta += counts
        return Summary(np.zeros(0, dtype=np.int32), counts)

    def evict(self, window: BasicWindow) -> None:
        assert window.summary is not None
        self._delta -= window.summary.counts

    def groups(self) -> tuple[Keys, Keys, NDArray[np.int64]]:
        """The least and the greatest key of each group, and how many rows it has."""
        low = np.concatenate([[LEAST], self.form.edges])
        return low, np.concatenate([self.form.edges - 1, [GREATEST]]), self._merged()

    def _merged(self) -> NDArray[np.int64]:
        """The counts of the groups, with the delta merged in."""
        if self._delta.any():
            self._counts += self._delta
            self._delta[:] = 0
        return self._counts

    def count_one(self, key: int) -> int:
        group = self.form.group_of(key)
        if not self._merged()[group]:
            return 0
        return sum(self._count_in(key, w.begin, w.end) for w in self._holding(group))

    def _holding(self, group: int) -> list[BasicWindow]:
        """The basic windows that have rows in a group."""
        return [w for w in self.windows if w.summary is not None and w.summary.counts[group]]

    def rows_with(self, key: int) -> Rows:
        group = self.form.group_of(key)
        if not self._merged()[group]:
            return np.zeros(0, dtype=np.int64)
        found = [self._matching(key, w.begin, w.end) for w in self._holding(group)]
        return np.concatenate(found)

    def counts(self, keys: Keys) -> NDArray[np.int64]:
        return Scan.counts(self, keys)  # type: ignore[arg-type]

    def present(self) -> tuple[Keys, NDArray[np.int64]]:
        return runs_of(self.keys_of(self.rows.begin, self.rows.sealed))

    def rekey(self, number_of: NDArray[np.int64]) -> None:
        super().rekey(number_of)
        # Edges between keys that are gone move to the next one that is left.
        left = np.flatnonzero(number_of >= 0)
        self.form.edges = np.searchsorted(left, self.form.edges).astype(np.int64)
