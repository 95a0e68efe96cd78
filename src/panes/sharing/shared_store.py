"""One pane store for all queries with the same GROUP BY.

It puts together what the queries need (`panes.sharing.needs`), the columns that this is computed
from (`panes.sharing.columns`), the panes (`panes.sharing.classed_panes`), and from where on they
are complete (`panes.sharing.completeness`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.aggregates.custom import UserAggregate
from panes.arrays.workers import workers
from panes.planning.plan import Plan
from panes.planning.shared_cut import SharedCut, choose_cut
from panes.sharing.classed_panes import ClassedPanes, Filled
from panes.sharing.columns import Numbering, SharedRows
from panes.sharing.completeness import Completeness, after
from panes.sharing.needs import Needs, needed_by
from panes.sharing.shape import Shape
from panes.stores.filter_regions import ClassedRows
from panes.windows.cut import Cut
from panes.windows.many import Rulers
from panes.windows.spec import Sliding


class SharedStore:
    """The panes of one grouping, for all queries that have it.

    In a state it is named by its number, `serial`; `title` is the identity of what it groups by.
    """

    def __init__(
        self,
        plan: Plan,
        schema: pa.Schema,
        aggregates: Sequence[UserAggregate] = (),
        numbering: Numbering | None = None,
    ) -> None:
        self.serial, self.title = 0, ""
        self.keys = plan.rows.expressions[: len(plan.query.keys)]
        self.rows = SharedRows(schema, self.keys, plan.key_types, numbering)
        self.needs = Needs(self.rows, aggregates)
        self.panes = ClassedPanes(plan.key_types)
        self.completeness = Completeness()

    @property
    def shapes(self) -> list[Shape]:
        """The shapes of all its queries."""
        return self.needs.shapes

    # Queries come and go

    def add_shape(self, plan: Plan, newest: int) -> Shape:
        """What a query needs, from now on stored; rows up to `newest` have come without it."""
        shape = self.needs.add(plan, newest)
        self.panes.add_pieces(self.needs.pieces[len(self.panes.pieces) :])
        for values in shape.value_sets:
            self.panes.add_values(values, [self.rows.types[c] for c in values.columns])
        return shape

    def remove_shape(self, shape: Shape) -> None:
        """A shape has no queries left: forget what only it needed."""
        self.needs.remove(shape)
        self.panes.keep_only(self.needs.pieces, self.needs.values, self.needs.filters)

    def complete_from(self, shape: Shape, spec: Sliding, newest: int) -> int:
        """From where on everything is there that windows of a shape and a spec need.

        `BEGINNING` if it was there from the beginning of the stream.
        """
        since = [self.needs.since[n] for n in needed_by(shape)]
        return self.completeness.complete_from(since, spec, newest)

    # How panes are cut

    @property
    def cut(self) -> Cut:
        """Where panes begin from now on; it is settled when this is first asked."""
        chosen = self.chosen_cut()
        if not self.completeness.is_current:
            self.completeness.settle(chosen)
        return chosen.cut

    def chosen_cut(self) -> SharedCut:
        """Where panes begin from now on, and why; it is not settled by asking."""
        known = self.completeness.shared_cut
        if known is not None and self.completeness.is_current:
            return known
        return choose_cut(Rulers.joined([shape.rulers for shape in self.shapes]))

    # Rows come

    def fill(self, at: NDArray[np.int64], table: pa.Table) -> Filled:
        """Rows as partials: positions, and the columns of the stream; nothing is stored yet."""
        columns = self.rows.read(table, self._asked_of_rows())
        return self._filled(at, columns, self.rows.classify(table, columns, len(at), workers()))

    def fill_read(
        self, at: NDArray[np.int64], read: Mapping[int, pa.Array], compared: pa.Table
    ) -> Filled:
        """As `fill`, from columns that have been read, and from those that filters compare."""
        asked = [n for n in self.rows.compared_columns() if n in self._asked_of_rows()]
        columns = {**read, **self.rows.holding(compared, asked)}
        classed = self.rows.classify(compared, columns, len(at), workers())
        return self._filled(at, columns, classed)

    def fill_columns(self, at: NDArray[np.int64], read: Mapping[int, pa.Array]) -> Filled:
        """As `fill`, from columns that have been read, all filters among them."""
        return self._filled(at, read, self.rows.classify_read(read, len(at), workers()))

    def _asked_of_rows(self) -> set[int | None]:
        """Filters that must be known of every row, not only of every class of rows."""
        return {v.selection.where for v in self.panes.values}

    def _filled(
        self, at: NDArray[np.int64], read: Mapping[int, pa.Array], classed: ClassedRows
    ) -> Filled:
        return self.panes.fill(at, read, classed, columns=self.rows.end, cut=self.cut)

    # Panes go

    def needed_from(self) -> int:
        """The oldest position that a window yet to be answered holds; `BEGINNING` if unknown."""
        return min(shape.needed_from() for shape in self.shapes)

    def evict(self, newest: int) -> None:
        """Forget panes that no window of any query needs any more, and keys nothing is stored of.

        Progress may be ahead of the newest row; after that row nothing is missing.
        """
        low = self.needed_from()
        if self.completeness.evict_before(low, newest):
            self.panes.evict_before(low)

    def fold(self, progress: int, newest: int) -> None:
        """Panes that only long windows still need become the coarser panes of those.

        Not before panes have been cut for the queries that are there now: a new one may still need
        what the others no longer do.
        """
        shared = self.completeness.shared_cut
        older = None if shared is None else shared.older
        if older is None or not self.completeness.is_current:
            return
        edge = int(older.cut.pane_start(np.array([progress - older.reach]))[0])
        self.completeness.note_cut(older.cut, min(edge, after(newest)))
        self.panes.fold(older.cut, edge)
