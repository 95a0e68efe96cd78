"""What is answered of joined rows: they are selected, or aggregated in windows above the join."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from panes.aggregates.custom import UserAggregate
from panes.engine.join_run import JoinRun
from panes.engine.joined_windows import Above, above, with_edges
from panes.pipelines.fold_stage import FoldStage
from panes.planning.join_query_plan import JoinQueryPlan
from panes.planning.scalar import Projection
from panes.planning.terms import Run


class JoinAnswers:
    """The answers of one query over a join."""

    def __init__(self, plan: JoinQueryPlan, run: Run, aggregates: Sequence[UserAggregate]) -> None:
        self.plan = plan
        self.above: Above | None = above(plan, run, aggregates)

    def of(self, joined: pa.Table, run: JoinRun, *, ends: bool = False) -> pa.Table:
        """The answers that joined rows give, by what the join has promised so far."""
        if isinstance(run.stage, FoldStage):
            return joined
        if self.above is None:
            return self._selected(with_edges(self.plan, joined))
        passing, _ = Projection((), self.plan.answers.where)(with_edges(self.plan, joined))
        joined = joined if passing is None else joined.take(pa.array(passing))
        return self.above.finish(joined) if ends else self.above.take(joined, run.stage)

    def _selected(self, joined: pa.Table) -> pa.Table:
        plan = self.plan
        passing, columns = plan.answers(joined)
        edges = list(joined.columns[: 2 * plan.names_windows])
        if passing is not None:
            edges = [c.take(pa.array(passing)) for c in edges]
        return pa.table([*edges, *columns], schema=plan.schema())
