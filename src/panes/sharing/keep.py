"""Which rows a register keeps beside its panes, for questions that ask for rows.

Rows are kept by their distance from the newest one, since a window that is asked for ends there;
and with the columns that some question reads, and no others.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from panes.axis import BEGINNING


@dataclass(frozen=True, slots=True)
class Keep:
    """Rows that are at most `size` behind the newest one, with some of the stream's columns.

    >>> Keep(10, pa.schema({"item": pa.int64()})).start(newest=12)
    3
    """

    size: int
    columns: pa.Schema

    def start(self, newest: int) -> int:
        """Where the longest window begins that can be asked for now: no row before is needed."""
        return BEGINNING if newest == BEGINNING else newest + 1 - self.size
