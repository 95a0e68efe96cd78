"""An index of the rows that a register keeps, by the values of one column.

It is made of the batches when a question first needs it, and takes in at each question what has
come since: whoever asks nothing pays nothing. Each batch is a basic window, which leaves as one.
The index holds no rows, only where they are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.arrays.columns import column_of
from panes.asking.row_look_up import LookUp
from panes.index.basic_windows import BasicWindow, BasicWindows
from panes.index.index import Index
from panes.index.keys import NumberedKeys, ValueKeys, value_keys
from panes.index.kinds import Structure, make_index, make_rows
from panes.index.row_ring import RowRing, Rows
from panes.planning.choose_index import IndexChoice, choose_index

Piece = tuple[int, NDArray[np.int64], pa.Table]
"""A batch of rows: its greatest position, all its positions, and the rows."""
READING_NS = 40.0
"""What it costs to read a row that the WHERE does not let through, in nanoseconds."""
_FEW = 4_096
_NO_KEYS = np.zeros(0, dtype=np.int64)
_PURGED_EVERY = 16


class RowIndex:
    """What finds rows of pieces by a column's values. `choice` says which index, and why."""

    def __init__(self, column: str, data_type: pa.DataType) -> None:
        self.column, self._type = column, data_type
        self.asked = 0
        self.choice: IndexChoice | None = None
        self._forget()

    def _forget(self) -> None:
        self._keys: ValueKeys = value_keys(self.column, self._type)
        self._seen: deque[Piece] = deque()
        self._windows = BasicWindows()
        self._rows: RowRing | None = None
        self._index: Index | None = None
        self._number = 0

    @property
    def nbytes(self) -> int:
        """Bytes of the index, rows aside."""
        if self._index is None or self._rows is None:
            return 0
        return self._rows.nbytes + self._index.nbytes + self._windows.nbytes

    def is_worth_it(self, pieces: Sequence[Piece], pushed: int) -> bool:
        """Whether an index is cheaper than reading all rows, by how often is asked for them.

        Which one it is, is asked again whenever twice as many questions have come.
        """
        if self.asked & (self.asked - 1) == 0:
            before, self.choice = self.choice, self._chosen(pieces, self.asked / max(pushed, 1))
            if before is not None and before.structure != self._structure:
                self._forget()
        return self.choice is not None

    def _chosen(self, pieces: Sequence[Piece], often: float) -> IndexChoice | None:
        keys = self._keys.encode(column_of(pieces[-1][2], self.column))
        choice = choose_index(keys, windows=len(pieces), kind=None, questions={"rows": often})
        best = next(cost for cost in choice.compared if cost.structure.kind != "scan")
        if best.total >= often * len(pieces) * READING_NS:
            return None
        return replace(choice, structure=best.structure)

    @property
    def _structure(self) -> Structure | None:
        return None if self.choice is None else self.choice.structure

    def rows_of(self, look_up: LookUp, pieces: deque[Piece]) -> Rows:
        """The rows of a look-up, numbered from the first piece's first row on.

        What has come since the last one is taken in first.
        """
        self._catch_up(pieces)
        assert self._index is not None
        assert self._rows is not None
        there = self._index.present()[0] if look_up.is_range else _NO_KEYS
        keys = look_up.keys(self._keys, there)
        return np.sort(self._index.rows_by_key(keys)[0]) - self._rows.begin

    def _catch_up(self, pieces: deque[Piece]) -> None:
        """Drop the pieces that have left, and take in those that have come.

        Pieces that were taken back, because a step failed, are noticed: then all begins anew.
        """
        gone = 0
        while self._seen and (not pieces or self._seen[0] is not pieces[0]):
            self._seen.popleft()
            gone += 1
        same = zip(self._seen, pieces, strict=False)
        if len(self._seen) > len(pieces) or any(a is not b for a, b in same) or self._is_stale:
            self._forget()
        else:
            self._evict(self._number - len(self._seen))
        for piece in list(pieces)[len(self._seen) :]:
            self._take_in(piece)

    @property
    def _is_stale(self) -> bool:
        """Whether most of the text that was ever numbered is gone."""
        if not isinstance(self._keys, NumberedKeys) or self._index is None:
            return False
        known = len(self._keys.numbers)
        return known > _FEW and known > 4 * len(self._index.present()[0])

    def _take_in(self, piece: Piece) -> None:
        values = column_of(piece[2], self.column)
        keys, is_null = self._keys.encode(values), None
        if values.null_count:
            is_null = values.is_null().to_numpy(zero_copy_only=False)
        if self._index is None or self._rows is None:
            made = self._structure
            assert made is not None
            self._rows = make_rows(pa.schema([]), made)
            self._index = make_index(made, self._rows, self._windows, keys)
        first = self._rows.append((), len(keys))
        self._index.add(first, keys, is_null)
        summary = self._index.seal()
        self._rows.seal()
        self._windows.append(BasicWindow(self._number, first, self._rows.end, summary))
        self._seen.append(piece)
        self._number += 1
        if self._number % _PURGED_EVERY == 0:
            self._index.purge()

    def _evict(self, number: int) -> None:
        for window in self._windows.pop_before(number):
            assert self._index is not None
            assert self._rows is not None
            self._index.evict(window)
            self._rows.evict(window.end)
