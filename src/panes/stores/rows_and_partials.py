"""Stores that buffer rows beside partials.

When windows are answered, buffered rows become partials for that moment; these are not stored.
Each store says which rows it buffers, and which partials rows are put into.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.arrays.key_numbers import KeyNumbers
from panes.axis import BEGINNING
from panes.stores.contents import Contents
from panes.stores.keyed_panes import KeyedPanes
from panes.stores.rolled import WindowPartials
from panes.stores.row_buffer import BufferedRows, RowBuffer
from panes.stores.store import WindowStore
from panes.windows.cover import Wids
from panes.windows.extent import last_wid
from panes.windows.spec import PanedSpec, Sliding

_COUNTED_VALUE = 24


class RowsAndPartials(WindowStore):
    """A store that has either the rows of a group or its partials, whichever it prefers."""

    def __init__(self, contents: Contents, spec: PanedSpec, numbered: PanedSpec) -> None:
        assert isinstance(spec, Sliding)
        self.spec, self.partials = spec, KeyedPanes(contents, numbered)
        super().__init__(contents, self.partials.numbers)
        self.buffer = RowBuffer()
        self.first_open = BEGINNING
        self.partial_bytes = 16 + sum(8 * len(p.monoid.names) for p in contents.pieces)
        self._read = frozenset(contents.argument_columns)

    @abstractmethod
    def receive(self, rows: BufferedRows) -> None:
        """Take in rows: buffer them, or put them into partials."""

    @abstractmethod
    def put(self, rows: BufferedRows, first: Wids, end: Wids) -> None:
        """Make rows partials of the windows ``[first, end)``, the same for all or row by row."""

    def __len__(self) -> int:
        return len(self.partials)

    @property
    def rows(self) -> int:
        """The number of rows that are buffered."""
        return len(self.buffer)

    @property
    def key_bytes(self) -> int:
        """Bytes that the key values take."""
        return self.partials.key_bytes

    @property
    def nbytes(self) -> int:
        """Bytes of partials and rows."""
        return self.partials.nbytes + self.buffer.nbytes

    @property
    def row_bytes(self) -> float:
        """Bytes of a buffered row: as measured, or as types tell while there is none."""
        return self.buffer.nbytes / self.rows if self.rows else 12 + 8 * len(self._read)

    def add(
        self,
        at: NDArray[np.int64],
        columns: Sequence[pa.Array],
        groups: NDArray[np.int32] | None = None,
    ) -> None:
        """Take in rows: positions, the plan's projected columns, and groups if they are known."""
        groups = self.groups_of(columns, len(at), groups)
        nothing = pa.nulls(len(at))
        read = tuple(c if i in self._read else nothing for i, c in enumerate(columns))
        self.receive(BufferedRows(at, groups, read))

    def roll(
        self, first_due: Wids, end_due: Wids, *, in_order: bool = True
    ) -> WindowPartials | None:
        """The partials of the windows ``[first_due, end_due)``; None if none of them has rows."""
        with self.partials.lent():
            self._put_buffered(first_due, end_due)
            return self.partials.roll(first_due, end_due, in_order=in_order)

    def roll_named(
        self, groups: NDArray[np.int64], offsets: NDArray[np.int64], wid: NDArray[np.int64]
    ) -> WindowPartials:
        """The same for windows named one by one, ascending within each group."""
        with self.partials.lent():
            self._put_buffered(int(wid.min()), int(wid.max()) + 1)
            return self.partials.roll_named(groups, offsets, wid)

    def _put_buffered(self, first: Wids, end: Wids) -> None:
        buffered = self.buffer.everything()
        if buffered is not None:
            low, high = (d if isinstance(d, int) else d[buffered.groups] for d in (first, end))
            self.put(buffered, low, high)

    def evict(self, first_open: Wids) -> bool:
        """Drop what no open window holds; says whether there was anything."""
        before = len(self), self.rows
        if isinstance(first_open, int):  # else a group yet to come may have older windows
            self.first_open = max(self.first_open, first_open)
        self.partials.evict(first_open)
        buffered = self.buffer.everything()
        if buffered is not None:
            newest = last_wid(buffered.at, self.spec.size, self.spec.slide, self.spec.origin)
            first = first_open if isinstance(first_open, int) else first_open[buffered.groups]
            self.buffer.keep(newest >= first)
        return (len(self), self.rows) != before

    def forget_keys(self) -> NDArray[np.int64] | None:
        """Drop keys that nothing is stored of, if they are many."""
        renamed = self.partials.forget_keys(self.buffer.live_groups())
        if renamed is not None:
            self.buffer.rename_groups(renamed)
        return renamed

    def partial_bytes_of(
        self, rows: BufferedRows, owners: NDArray[np.signedinteger], size: int
    ) -> NDArray[np.float64]:
        """Bytes that the partials of each owner's rows take, at most, if they share a window."""
        total = np.full(size, self.partial_bytes, dtype=np.float64)
        for values in self.contents.value_sets:
            types = [self.contents.row_types[c] for c in values.columns]
            value = KeyNumbers(types).encode([rows.columns[c] for c in values.columns], len(rows))
            pairs = np.unique((owners.astype(np.int64) << 32) | value)
            total += _COUNTED_VALUE * np.bincount(pairs >> 32, minlength=size)
        return total
