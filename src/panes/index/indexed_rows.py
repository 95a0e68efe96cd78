"""Rows and an index of one of their columns, kept in step: entered, sealed, evicted, forgotten.

Whoever keeps rows of a stretch drives them through this, basic window by basic window. Before an
index is made there are no rows, and it answers like one that has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from panes.arrays.slots import distinct
from panes.index.basic_windows import BasicWindow, BasicWindows
from panes.index.domain import Keys
from panes.index.index import Index, Nulls
from panes.index.keys import NumberedKeys, ValueKeys
from panes.index.kinds import Structure, make_index, make_rows
from panes.index.row_ring import RowRing
from panes.index.scan import Scan

_FEW = 4_096


class IndexedRows:
    """The rows of sealed basic windows, and hidden ones that came since, with their index."""

    def __init__(self, schema: pa.Schema, keys: ValueKeys) -> None:
        self.schema, self.keys = schema, keys
        self.windows = BasicWindows()
        self.rows = RowRing(schema, np.int64)
        self.index: Index = Scan(self.rows, self.windows)
        self.is_made = False

    def make(self, chosen: Structure, first_keys: Keys) -> None:
        """Make the index, now that there are rows."""
        self.rows = make_rows(self.schema, chosen)
        self.index = make_index(chosen, self.rows, self.windows, first_keys)
        self.is_made = True

    def __len__(self) -> int:
        """The number of rows in sealed basic windows."""
        return self.rows.sealed - self.rows.begin

    @property
    def nbytes(self) -> int:
        """Bytes of rows, index and basic windows."""
        return self.rows.nbytes + self.index.nbytes + self.windows.nbytes if self.is_made else 0

    def encoded(self, values: pa.Array) -> tuple[Keys, Nulls]:
        """The keys of values, and which of them stand for NULL; None: none does."""
        keys = self.keys.encode(values)
        return keys, values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None

    def enter(self, arrays: Sequence[pa.Array], keys: Keys, is_null: Nulls) -> None:
        """More rows, which are hidden."""
        self.index.add(self.rows.append(arrays, len(keys)), keys, is_null)

    def seal(self, number: int) -> None:
        """The hidden rows are the basic window of a number, and seen from now on."""
        begin, summary = self.rows.sealed, self.index.seal()
        self.rows.seal()
        self.windows.append(BasicWindow(number, begin, self.rows.end, summary))

    def evict_before(self, number: int) -> None:
        """Drop the basic windows with smaller numbers."""
        for window in self.windows.pop_before(number):
            self.index.evict(window)
            self.rows.evict(window.end)

    def purge(self, waiting: Iterable[Keys] = ()) -> None:
        """Forget values that no row has any more; rows that wait elsewhere have these keys."""
        self.index.purge()
        if isinstance(self.keys, NumberedKeys):
            self._forget_text(self.keys, list(waiting))

    def _forget_text(self, keys: NumberedKeys, waiting: Sequence[Keys]) -> None:
        """Forget text that no row has, if most of it is. Keys that wait change in place."""
        numbers = keys.numbers
        if len(numbers) <= _FEW:
            return
        live = distinct(np.concatenate([self.index.live_keys(), *waiting]))
        if len(numbers) <= 2 * len(live):
            return
        renamed = numbers.keep(live)
        self.index.rekey(renamed)
        for some in waiting:
            some[:] = renamed[some]
