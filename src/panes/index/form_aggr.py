"""AGGR: a basic window is a sorted list of its values and their counts (paper, 2.2).

| arrival | seal | evict | memory |
|---|---|---|---|
| d (paper), 1 here | d searches in the index | d | d |

d values in a basic window. The paper keeps the list sorted row by row; here the values are sorted
once, when the basic window is sealed. Rows keep their keys, so that they can still be asked for.
"""

from __future__ import annotations

from panes.index.basic_windows import Summary
from panes.index.domain import Keys
from panes.index.index import Nulls
from panes.index.scan import runs_of
from panes.index.set_index import SetIndex


class AggrForm(SetIndex):
    """A domain over values and counts, ascending."""

    def add(self, first: int, keys: Keys, is_null: Nulls) -> None:
        self.rows.set_keys(first, keys, is_null)

    def seal(self) -> Summary:
        begin, end = self.rows.sealed, self.rows.end
        keys = self.keys_of(begin, end)
        return self._entered(*runs_of(keys), end - begin - len(keys))
