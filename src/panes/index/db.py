"""DB: backward links that are not followed when rows leave (5.4).

| arrival | seal | evict | memory beside BW |
|---|---|---|---|
| search, then 1 | d per basic window | 1 per value of the basic window | D bits; none here |

D values in the window, d in a basic window. Per row, as the paper has it:
``d + (d / b) (1 + D + N / D)`` in, 1 out. In the paper a ring keeps its youngest expired row as a
stub, and its dirty bit says that it ends there. Here its end is known without either: a ring has as
many rows as its value counts, and what lies behind them, the stub or whatever row has taken its
place since, is never looked at. So nothing is stored beside BW.

To follow links through a large window is to wait for memory, once a row. So a row is not linked to
the row of its value before it, but to the sixth before it, and an entry knows its newest six: so
six links are followed at once. Rows that are not sealed are in the same rings, and passed over.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from panes.arrays.compiled import compiled
from panes.index.basic_windows import Summary
from panes.index.row_links import HIDDEN, RowLinks, damaged, long_number
from panes.index.row_ring import SHORT
from panes.index.short_answers import FEW


@compiled
def _prepend(entries, first, links, mask, heads, came, different):  # type: ignore[no-untyped-def]
    for i in range(entries.shape[0]):
        entry, row = entries[i], np.int32((first + i) & SHORT)
        if heads[entry, HIDDEN] == 0:
            came[different] = entry
            different += 1
        links[row & mask] = heads[entry, 5]
        heads[entry, 5] = heads[entry, 4]
        heads[entry, 4] = heads[entry, 3]
        heads[entry, 3] = heads[entry, 2]
        heads[entry, 2] = heads[entry, 1]
        heads[entry, 1] = heads[entry, 0]
        heads[entry, 0] = row
        heads[entry, HIDDEN] += 1
    return different


@compiled
def _collect(entries, begins, found, links, mask, heads, begin):  # type: ignore[no-untyped-def]
    """As many rows as each entry counts, behind the hidden ones; all in the window, descending."""
    for i in range(entries.shape[0]):
        entry = entries[i]
        if entry >= 0:
            a, b, c = heads[entry, 0], heads[entry, 1], heads[entry, 2]
            d, e, f = heads[entry, 3], heads[entry, 4], heads[entry, 5]
            for _ in range(heads[entry, HIDDEN]):
                a, b, c, d, e, f = b, c, d, e, f, links[a & mask]
            after = begin + mask + 1
            for at in range(begins[i + 1] - 1, begins[i] - 1, -1):
                number = long_number(a, begin)
                if a < 0 or number >= after:
                    return False
                found[at] = after = number
                a, b, c, d, e, f = b, c, d, e, f, links[a & mask]
    return True


@compiled
def _copy_rows(entry, count, links, mask, heads, begin, columns, found, place):  # type: ignore[no-untyped-def]
    """As `_collect`, of one entry; a row is copied, column by column, while its link is read."""
    a, b, c = heads[entry, 0], heads[entry, 1], heads[entry, 2]
    d, e, f = heads[entry, 3], heads[entry, 4], heads[entry, 5]
    for _ in range(heads[entry, HIDDEN]):
        a, b, c, d, e, f = b, c, d, e, f, links[a & mask]
    after = begin + mask + 1
    for at in range(place + count - 1, place - 1, -1):
        number = long_number(a, begin)
        if a < 0 or number >= after:
            return False
        after = number
        for column in range(len(columns)):
            found[column, at] = columns[column][a & mask]
        a, b, c, d, e, f = b, c, d, e, f, links[a & mask]
    return True


class Db(RowLinks):
    """Backward links, six to a ring, that go on behind the rows of the window."""

    linking, collecting = staticmethod(_prepend), staticmethod(_collect)

    def table_of_one(self, key: int) -> pa.Table:
        entry, rows = self.domain.find_one(key), self.rows
        count, columns = (int(self.domain.counts[entry]) if entry >= 0 else 0), rows.words()
        if not columns or count > FEW:
            return super().table_of_one(key)
        found, place = rows.short_answers.room(count)
        links = (rows.pointers, rows.size - 1, self.heads, rows.begin)
        if count and not _copy_rows(entry, count, *links, columns, found, place):
            raise damaged()
        return rows.short_answers.last(count)

    def seal(self) -> Summary:
        return self.show()
