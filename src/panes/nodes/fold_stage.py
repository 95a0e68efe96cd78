"""A join whose pairs are only aggregated, for each row on the left: the pairs are never made.

    SELECT l.id, l.ts, sum(r.amount) AS spent
    FROM   l LEFT JOIN r ON l.k = r.k AND r.ts BETWEEN l.ts - INTERVAL 1 HOUR AND l.ts
    GROUP  BY l.id, l.ts

Every row on the right is lifted to partials once. The partners of a row on the left are a run of
these, and a run is rolled by the same kernels as the panes of a window. Rows on the left that
agree in their group are combined in the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.aggregates.aggregate import Rows
from panes.aggregates.monoid import Columns, Lanes, Monoid, merge_slots
from panes.answers.lower import lower
from panes.answers.select import projected
from panes.arrays.key_numbers import KeyNumbers
from panes.arrays.spread import spread
from panes.arrays.workers import workers
from panes.expressions.projection import Projection
from panes.join.partner_runs import PartnerRuns, PartnerRunsJoin
from panes.join.rule import Arrivals
from panes.join.sorted_rows import SortedRows
from panes.kernels.block_scan import block_scan
from panes.kernels.two_stacks import two_stacks
from panes.nodes.join_stage import JoinStage
from panes.planning.join_plan import JoinPlan
from panes.planning.plan import Plan
from panes.stores.rolled import AnswerPartials
from panes.windows.cover import Cover


class FoldStage(JoinStage):
    """The state of one join with a fold over the partners of each left row."""

    def __init__(self, plan: JoinPlan, fold: Plan) -> None:
        super().__init__(plan)
        self._fold = fold
        keys = len(fold.query.keys)
        self._keys = Projection(fold.rows.expressions[:keys], None)
        self._arguments = Projection(fold.rows.evaluated[keys:], None)

    def _join(self) -> PartnerRunsJoin:
        return PartnerRunsJoin(self.rule)

    def answers(
        self, rows: Mapping[str, Sequence[Arrivals]], promised: Mapping[str, int]
    ) -> pa.Table:
        """Take in rows of the sides, by name; gives the groups that are complete from now on."""
        assert isinstance(self.join, PartnerRunsJoin)
        left, right, after = self.arrivals(rows, promised)
        before, self.promised = self.promised, after
        return self._answered(list(self.join.step(left, right, before, after)))

    def _answered(self, found: Sequence[PartnerRuns]) -> pa.Table:
        """Groups of rows on the left, with the aggregates of all their partners."""
        numbers = KeyNumbers(self._fold.key_types)
        groups: list[NDArray[np.int64]] = []
        partials: list[tuple[Columns, ...]] = []
        for runs in found:
            kept = np.flatnonzero(runs.count) if self.plan.how == "inner" else None
            index = np.arange(len(runs.left)) if kept is None else kept
            if not len(index):
                continue
            columns = dict(zip(self._names[0], runs.left.taken(index), strict=False))
            _, keys = self._keys(pa.table(columns))
            groups.append(numbers.encode(keys, len(index)).astype(np.int64))
            partials.append(self._partials(runs, index))
        if not groups:
            return self._selected(None, numbers)
        slots = np.concatenate(groups)
        merged = tuple(
            merge_slots(piece.monoid, np.concatenate(own, axis=1), slots, len(numbers))
            for piece, own in zip(self._fold.pieces, zip(*partials, strict=True), strict=True)
        )
        return self._selected(merged, numbers)

    def _partials(self, runs: PartnerRuns, index: NDArray[np.int64]) -> tuple[Columns, ...]:
        """One partial per piece and left row: of its run, or of the row of NULLs it is given."""
        begin, count = runs.begin[index], runs.count[index]
        has_partner = np.flatnonzero(count)
        lifted = self._lifted(runs.right)
        nothing = self._lifted(None)
        cover = None
        if runs.right is not None and len(has_partner):
            first = begin[has_partner]
            code = runs.left.code[index][has_partner]
            changes = np.flatnonzero(np.r_[True, code[1:] != code[:-1]])
            offsets = np.r_[changes, len(code)]
            cover = Cover(offsets, np.arange(len(first)), first, first + count[has_partner])

        def roll(own: tuple[Monoid, Columns, Columns]) -> Columns:
            monoid, rows, of_nothing = own
            result = np.repeat(of_nothing, len(index), axis=1)
            if cover is not None and runs.right is not None:
                result[:, has_partner] = self._rolled(monoid, rows, cover, runs.right)
            return result

        monoids = [piece.monoid for piece in self._fold.pieces]
        return tuple(
            spread(
                workers(), roll, list(zip(monoids, lifted, nothing, strict=True)), rows=len(index)
            )
        )

    def _rolled(self, monoid: Monoid, rows: Columns, cover: Cover, right: SortedRows) -> Columns:
        """A partial for every run."""
        if isinstance(monoid, Lanes):
            return two_stacks(monoid, rows, cover)
        changes = np.flatnonzero(np.r_[True, right.code[1:] != right.code[:-1]])
        groups = np.r_[changes, len(right)]
        size = self.plan.partners.width
        return block_scan(monoid, rows, cover, starts=right.at, groups=groups, size=size)

    def _lifted(self, right: SortedRows | None) -> list[Columns]:
        """Every row on the right as a partial of its own; without rows, one row of NULLs."""
        types = {f.name: f.type for f in self.plan.right.schema()}
        if right is None:
            columns = {name: pa.nulls(1, kind) for name, kind in types.items()}
            count = 1
        else:
            count = len(right)
            columns = dict(zip(types, right.taken(np.arange(count)), strict=False))
        _, arguments = self._arguments(pa.table({**columns, "__row": pa.array(np.arange(count))}))
        keys = [pa.nulls(count, t) for t in self._fold.key_types]
        rows = Rows(np.zeros(count, dtype=np.int64), (*keys, *arguments))
        slots = np.arange(count)
        return [piece.lift(rows, slots, count) for piece in self._fold.pieces]

    def _selected(self, merged: tuple[Columns, ...] | None, numbers: KeyNumbers) -> pa.Table:
        """What is selected of the groups, which lie in no window."""
        if merged is None:
            lowered = self._fold.lowered_schema().empty_table()
        else:
            columns = lower(self._fold, AnswerPartials(merged))
            groups = numbers.columns(np.arange(len(numbers)))
            edges = [pa.array(np.zeros(len(numbers), dtype=np.int64))] * 2
            lowered = pa.table([*edges, *groups, *columns], schema=self._fold.lowered_schema())
        return projected(self._fold, lowered).drop_columns(["window_start", "window_end"])
