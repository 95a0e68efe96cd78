"""AdaptWID over panes: rows or a partial per pane and group, whichever is smaller (thesis 6.3.4).

A pane only fills until it is closed, so a pair of a pane and a group begins with rows, turns into
a partial once its rows take more than that, and never turns back.
"""

from __future__ import annotations

import numpy as np

from panes.arrays.ordering import number_pairs
from panes.stores.contents import Contents
from panes.stores.row_buffer import BufferedRows
from panes.stores.rows_and_partials import RowsAndPartials
from panes.windows.cover import Wids
from panes.windows.cut import cut
from panes.windows.extent import extent
from panes.windows.spec import PanedSpec


class AdaptivePanes(RowsAndPartials):
    """Rows of sparse panes, partials of dense ones."""

    def __init__(self, contents: Contents, spec: PanedSpec) -> None:
        super().__init__(contents, spec, spec)
        self._cut = cut(spec)

    def receive(self, rows: BufferedRows) -> None:
        self.buffer.add(rows)
        buffered = self.buffer.everything()
        assert buffered is not None
        pairs, starts, groups = number_pairs(self._cut.pane_start(buffered.at), buffered.groups)
        taken = np.bincount(pairs) * self.row_bytes
        turning = taken > self.partial_bytes_of(buffered, pairs, len(starts))
        turning |= self.partials.holds(starts, groups)
        if turning.any():
            which = turning[pairs]
            turned = buffered.taken(np.flatnonzero(which))
            self.partials.add(turned.at, turned.columns, turned.groups)
            self.buffer.keep(~which)

    def put(self, rows: BufferedRows, first: Wids, end: Wids) -> None:  # noqa: ARG002
        """Fill the panes under the windows with these rows; buffered rows lie in no older ones."""
        high = extent(self.spec, int(np.max(end)) - 1).end
        under = rows.taken(np.flatnonzero(rows.at < high))
        if len(under):
            self.partials.add(under.at, under.columns, under.groups)
