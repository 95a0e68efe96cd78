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
from panes.index.indexed_rows import IndexedRows
from panes.index.keys import value_keys
from panes.index.kinds import Structure
from panes.index.row_ring import Rows
from panes.planning.choose_index import IndexChoice, choose_index

Piece = tuple[int, NDArray[np.int64], pa.Table]
"""A batch of rows: its greatest position, all its positions, and the rows."""
READING_NS = 40.0
"""What it costs to read a row that the WHERE does not let through, in nanoseconds."""
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
        self._indexed = IndexedRows(pa.schema([]), value_keys(self.column, self._type))
        self._seen: deque[Piece] = deque()
        self._number = 0

    @property
    def nbytes(self) -> int:
        """Bytes of the index, rows aside."""
        return self._indexed.nbytes

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
        keys = self._indexed.keys.encode(column_of(pieces[-1][2], self.column))
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
        index = self._indexed.index
        there = index.present()[0] if look_up.is_range else _NO_KEYS
        keys = look_up.keys(self._indexed.keys, there)
        return np.sort(index.rows_by_key(keys)[0]) - self._indexed.rows.begin

    def _catch_up(self, pieces: deque[Piece]) -> None:
        """Drop the pieces that have left, and take in those that have come.

        Pieces that were taken back, because a step failed, are noticed: then all begins anew.
        """
        while self._seen and (not pieces or self._seen[0] is not pieces[0]):
            self._seen.popleft()
        same = zip(self._seen, pieces, strict=False)
        if len(self._seen) > len(pieces) or any(a is not b for a, b in same):
            self._forget()
        else:
            self._indexed.evict_before(self._number - len(self._seen))
        for piece in list(pieces)[len(self._seen) :]:
            self._take_in(piece)

    def _take_in(self, piece: Piece) -> None:
        indexed = self._indexed
        keys, is_null = indexed.encoded(column_of(piece[2], self.column))
        if not indexed.is_made:
            assert self._structure is not None
            indexed.make(self._structure, keys)
        indexed.enter((), keys, is_null)
        indexed.seal(self._number)
        self._seen.append(piece)
        self._number += 1
        if self._number % _PURGED_EVERY == 0:
            indexed.purge()
