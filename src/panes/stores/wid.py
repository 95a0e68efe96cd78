"""WID: rows are tagged with window ids, and a window is one more grouping column (thesis 6.1).

There is a partial per window and group. The stores differ in *when* a row enters its partials:

    eager       when it comes: a partial for every open window, no row is buffered
    buffered    when its windows close: rows are buffered, and read once for each window
    adaptive    group by group, whichever takes less memory (`panes.stores.adaptive`)

Answers are the same. With late rows dropped the buffered store is the in-order baseline with
consistent slack, with late rows in open windows the one with generous slack (thesis 6.1.5).
"""

from __future__ import annotations

from panes.axis import FOREVER
from panes.stores.contents import Contents
from panes.stores.row_buffer import BufferedRows
from panes.stores.rows_and_partials import RowsAndPartials
from panes.windows.cover import Wids
from panes.windows.spec import PanedSpec, Sliding
from panes.windows.tag import tagged

WINDOW_IDS = Sliding(size=1, slide=1)
"""The axis of window ids: every id is a pane and a window of its own."""


class Wid(RowsAndPartials):
    """A store of partials per window id and group."""

    def __init__(self, contents: Contents, spec: PanedSpec) -> None:
        super().__init__(contents, spec, WINDOW_IDS)

    def put(self, rows: BufferedRows, first: Wids, end: Wids) -> None:
        """Tag rows with the windows that hold them."""
        for which, wid in tagged(self.spec, rows.at, first, end):
            tumbles = self.spec.size == self.spec.slide and len(which) == len(rows)
            each = rows if tumbles else rows.taken(which)
            self.partials.add(each.at, each.columns, each.groups, cut_at=wid)


class EagerWid(Wid):
    """A partial for every open window and group, updated by every row (thesis 6.1.3)."""

    def receive(self, rows: BufferedRows) -> None:
        self.put(rows, self.first_open, FOREVER)


class BufferedWid(Wid):
    """Rows, aggregated when their windows close."""

    def receive(self, rows: BufferedRows) -> None:
        self.buffer.add(rows)
