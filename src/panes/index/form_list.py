"""LIST: a basic window is its rows, each with a pointer to its value's entry (paper, 2.2).

| arrival | seal | evict | memory |
|---|---|---|---|
| 1, and one search in the index | 1 per row | 1 per row | b |

b rows in a basic window. The cheapest form unless a basic window has the same values many times.
"""

from __future__ import annotations

from panes.index.basic_windows import BasicWindow, Summary
from panes.index.domain import Entries, Keys
from panes.index.form import Form
from panes.index.index import Nulls


class ListForm(Form):
    """Rows with entries."""

    stores_entries = True

    def add(self, first: int, keys: Keys, is_null: Nulls) -> None:
        self.rows.set_pointers(first, self.domain.enter_rows(keys, is_null))

    def seal(self) -> Summary | None:
        for entries in self._entries(self.rows.sealed, self.rows.end):
            self.domain.add(entries)
        return None

    def evict(self, window: BasicWindow) -> None:
        for entries in self._entries(window.begin, window.end):
            self.domain.evict(entries)

    def _entries(self, begin: int, end: int) -> list[Entries]:
        runs = self.rows.runs(begin, end)
        return [self.rows.pointers[place : place + rows] for _, place, rows in runs]
