"""The structures that answer prepared questions, shared by all that need the same.

Each aggregate of a question needs one structure over its argument and filter. All questions that
need the same share it, whatever their sizes::

                               ┌─ newest row, per WHERE ──────── is there a row at all?
    rows ─► columns, filters ──┼─ staircase, per min or max ──── exact, [ROWS n]
            read once          └─ TimeGram, per width ────────── interval, [ROWS n], [RANGE n]

Of the report's two ways to share min and max over many sizes, the staircase is taken and not the
tree of windows: a lookup in the tree that finds no valid answer goes through the rows, and it keeps
them for that; the staircase keeps only rows that are an answer, and never looks at any other.

Invariant: a structure knows all rows from its `known_from` on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from panes.asking.preparable import StructureKey
from panes.asking.row_tail import RowTail
from panes.asking.structures import Batch, Positions, SharedStructure, structure_for
from panes.axis import BEGINNING
from panes.errors import PanesError
from panes.sharing.columns import SharedRows


class SharedStructures:
    """What is kept up to date for prepared questions, by what it is over."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.arrived = 0
        self.newest = BEGINNING
        self._rows = SharedRows(schema, (), ())
        self._by_over: dict[StructureKey, SharedStructure] = {}

    def __contains__(self, over: StructureKey) -> bool:
        return over in self._by_over

    def __getitem__(self, over: StructureKey) -> SharedStructure:
        return self._by_over[over]

    def __iter__(self) -> Iterator[StructureKey]:
        return iter(self._by_over)

    @property
    def nbytes(self) -> int:
        """Bytes that all structures take."""
        return sum(one.structure.nbytes for one in self._by_over.values())

    def by_title(self) -> dict[str, SharedStructure]:
        """The structures by what they are over, as text."""
        return {over.title: one for over, one in self._by_over.items()}

    # Questions come and go

    def prepare(self, needs: Sequence[StructureKey], size: int, tail: RowTail | None) -> None:
        """Have what one more question needs, for windows of a size.

        Rows that a tail has are known already.
        """
        fresh = [self._new(over, size) for over in needs if self._knows_less(over, size)]
        try:
            self._fill_from(tail, fresh)
        except PanesError:
            self._forget_columns()
            raise
        for one in fresh:
            self._by_over[one.over] = self._the_wiser(self._by_over.get(one.over), one)
        for over in needs:
            self._by_over[over].sizes[size] += 1

    def release(self, needs: Sequence[StructureKey], size: int) -> None:
        """Forget one question's interest in windows of a size, and what nobody needs any more."""
        for over in needs:
            self._by_over[over].release(size)
            if not self._by_over[over].sizes:
                del self._by_over[over]
        self._forget_columns()

    def _knows_less(self, over: StructureKey, size: int) -> bool:
        return over not in self._by_over or self._by_over[over].largest < size

    def _new(self, over: StructureKey, size: int) -> SharedStructure:
        """An empty structure that knows what is to come."""
        argument = None if over.argument is None else self._rows.number(over.argument, pa.null())
        where = None if over.where is None else self._rows.number_filter(over.where)
        since = BEGINNING if self.newest == BEGINNING and not over.by_arrival else self.end(over)
        return SharedStructure(over, structure_for(over, size), argument, where, since, size)

    def _fill_from(self, tail: RowTail | None, fresh: Iterable[SharedStructure]) -> None:
        """Take in the last rows, for windows that count them."""
        counted = [one for one in fresh if one.over.by_arrival]
        if tail is None or not len(tail) or not counted:
            return
        rows = tail.last(tail.keep)
        arrivals = np.arange(self.arrived - len(rows), self.arrived)
        batch = Batch(self._rows.read(rows, self._rows.filters), arrivals, arrivals)
        for one in counted:
            self._take(one, batch)
            one.known_from = self.arrived - len(rows)

    def _the_wiser(self, before: SharedStructure | None, fresh: SharedStructure) -> SharedStructure:
        """What is there so far and grows, or what a tail knows, whichever knows more rows."""
        if before is None:
            return fresh
        grown_from = max(before.known_from, self.end(before.over) - before.largest)
        if fresh.known_from < grown_from:
            fresh.sizes = before.sizes
            return fresh
        before.known_from = grown_from
        before.resize(fresh.largest)
        return before

    def _forget_columns(self) -> None:
        every = self._by_over.values()
        self._rows.keep({c for one in every for c in (one.argument, one.where) if c is not None})

    # Rows come

    def end(self, over: StructureKey) -> int:
        """Where windows end: just after the last row, or the newest one."""
        return self.arrived if over.by_arrival else self.newest + 1

    def read(self, rows: pa.Table) -> dict[int, pa.Array]:
        """The columns that structures need of a batch, by number; nothing is taken in yet."""
        return self._rows.read(rows, self._rows.filters) if self._by_over else {}

    def push(
        self, at: Positions, columns: Mapping[int, pa.Array], newest: int
    ) -> dict[StructureKey, Exception]:
        """Take in what `read` gave of rows at these positions, in the order they came.

        Gives the structures that could not, which are of no use any more, and why.
        """
        batch = Batch(columns, np.arange(self.arrived, self.arrived + len(at)), at)
        self.arrived += len(at)
        self.newest = max(self.newest, newest)
        failed: dict[StructureKey, Exception] = {}
        for one in self._by_over.values() if self.newest != BEGINNING else ():
            try:
                self._take(one, batch)
            except PanesError as error:
                failed[one.over] = error
        return failed

    def _take(self, one: SharedStructure, batch: Batch) -> None:
        one.structure.add(*batch.rows_for(one))
        one.structure.advance(self.end(one.over))
