"""What is answered of joined rows: they are selected, or aggregated in windows above the join."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from panes.aggregates.custom import UserAggregate
from panes.nodes.fold_stage import FoldStage
from panes.nodes.joined_rows import passing_rows, selected_rows
from panes.nodes.missed_rows import Missed, Whole, whole_windows
from panes.planning.join_query_plan import JoinQueryPlan
from panes.planning.terms import StreamOptions
from panes.process.join_run import JoinRun
from panes.process.joined_windows import Above, above


class JoinAnswers:
    """The answers of one query over a join; it may have `missed` rows."""

    def __init__(
        self,
        plan: JoinQueryPlan,
        run: StreamOptions,
        aggregates: Sequence[UserAggregate],
        missed: Missed | None = None,
    ) -> None:
        self.plan = plan
        self.whole = None if missed is None or missed.is_nothing else Whole(plan, missed)
        self.above: Above | None = above(plan, run, aggregates)

    def of(self, joined: pa.Table, run: JoinRun, *, ends: bool = False) -> pa.Table:
        """The answers that joined rows give, by what the join has promised so far."""
        if isinstance(run.stage, FoldStage):
            return joined
        if self.above is None:
            return selected_rows(self.plan, joined)
        joined = passing_rows(self.plan, joined)
        if self.whole is not None:
            joined = self.whole.rows(joined)
        found = self.above.finish(joined) if ends else self.above.take(joined, run.stage)
        if self.whole is None:
            return found
        return whole_windows(self.plan, self.whole.upto, found)
