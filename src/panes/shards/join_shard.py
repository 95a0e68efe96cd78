"""One shard of a join of streams: OA-Join at a host that keeps its state.

Each batch, a shard is given the packages of all tasks: rows of its keys, and marks of how far every
task's rows reach. It joins the rows with each other and with what is stored, gives pairs at once
and rows without a partner as soon as progress proves it, and puts back what is new. Every shard
is told all marks, so all of them know the same progress after every batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.arrays.columns import column_of
from panes.axis import FOREVER, LIMIT
from panes.join.rule import Arrivals
from panes.nodes.join_stage import Above, JoinStage
from panes.nodes.set_aside import late_reasons
from panes.planning.join_plan import JoinPlan, SourcePlan
from panes.planning.join_query_plan import JoinQueryPlan
from panes.planning.join_terms import COUNTED, FORGOTTEN
from panes.planning.terms import CheckedOptions
from panes.shards.going_up import GoingUp, Gone
from panes.shards.join_state import JoinState
from panes.shards.names import AT, ENDED, ROW, SOURCE
from panes.shards.outcome import Promised, ShardOutcome
from panes.shards.packages import Packages
from panes.shards.sent_rows import numbered, rows_name
from panes.shards.state import State


class JoinShard:
    """A shard's part of a join, for one batch.

    `along` are the positions of joined rows that readers may lie on, if there are any. Groups by
    positions are those of a query, and its rows go up when they are complete.
    """

    def __init__(
        self,
        join: JoinPlan,
        terms: CheckedOptions,
        state: State,
        *,
        shards: int,
        along: Sequence[Above] = (),
        groups: JoinQueryPlan | None = None,
        came: Sequence[int | None] = (),
    ) -> None:
        """The newest row of each source lay where it `came` to before the state began, if known."""
        self._join, self._terms, self._along = join, terms, along
        self._shards, self._state, self._of_groups = shards, state, groups
        self._about = JoinState(join, terms, state, shards=shards, came=came)
        self._groups = None if groups is None else GoingUp(groups, state)

    @property
    def stage(self) -> JoinStage:
        """The join itself, as far as it has come."""
        return self._about.stage

    @property
    def newest(self) -> Sequence[int]:
        """Where the newest row of each source lies."""
        return self._about.newest

    def take(self, packages: Sequence[bytes]) -> ShardOutcome:
        """Take in one batch; gives what is joined, or proved to be alone, from now on.

        `partials` are rows here: what is stored.
        """
        return self.take_opened(Packages.of(packages))

    def take_opened(self, packages: Packages) -> ShardOutcome:
        """Take in one batch, whose packages have been unpacked."""
        about = self._about
        rows: dict[str, list[Arrivals]] = {}
        late: list[pa.Table] = []
        first = 0
        for number, side in enumerate(self._join.sources):
            tables = packages.named(rows_name(number))
            if tables:
                rows[side.name] = [self._admit(side, first, pa.concat_tables(tables), late)]
            first += len(side.source.streams)
        packages.observe(about.promises)
        for number, high in packages.highest().items():
            about.newest[number] = max(about.newest[number], high)
        joined = about.stage.step(rows, about.promised())
        gone, promised = Gone(joined, None), self._promised()
        if self._groups is not None:
            gone = self._groups.take(joined, about.stage)
            promised = {"positions": gone.promise} if gone.promise is not None else {}
        about.write()
        given = replace(self._outcome(gone).beside(packages, late), promised=promised)
        if not packages.have_ended:
            return given
        again = JoinShard(
            self._join, self._terms, self._state, shards=self._shards, groups=self._of_groups
        )
        return given.followed_by(again.finish())

    def finish(self) -> ShardOutcome:
        """The streams have ended: gives all rows without a partner, and forgets everything."""
        about = self._about
        joined = about.stage.step({}, dict.fromkeys(about.promised(), FOREVER))
        about.end()
        about.write()
        gone = Gone(joined, ENDED) if self._groups is None else self._groups.finish(joined)
        return replace(self._outcome(gone), has_ended=True)

    def _admit(
        self, side: SourcePlan, first: int, table: pa.Table, late: list[pa.Table]
    ) -> Arrivals:
        """The rows of a side that count; late ones are noted with the reason."""
        at = column_of(table, AT).to_numpy()
        about = self._about
        promised = self._promised_of(first, table)
        is_late = at < promised
        columns = numbered(table, range(len(side.columns)))
        if not is_late.any():
            return Arrivals(at, (), columns)
        which = np.flatnonzero(is_late)
        is_open = at[which] >= about.stage.open_from(side.name)
        each = np.broadcast_to(promised, len(at))[which]
        reasons = late_reasons(
            side.axis, each, is_open, late=self._terms.late, counted=COUNTED, closed=FORGOTTEN
        )
        noted = {"reason": pa.array(reasons)}
        if ROW in table.column_names:
            noted[ROW] = table.column(ROW).take(pa.array(which))
        late.append(pa.table(noted))
        if not self._terms.drops_late:
            return Arrivals(at, (), columns)
        counted = np.flatnonzero(~is_late)
        return Arrivals(at[counted], (), [c.take(pa.array(counted)) for c in columns])

    def _promised_of(self, first: int, table: pa.Table) -> NDArray[np.int64]:
        """What the source of each row had promised before this batch."""
        promised = np.array([p.at for p in self._about.promises])
        if SOURCE not in table.column_names:
            return promised[first : first + 1]
        found: NDArray[np.int64] = promised[column_of(table, SOURCE).to_numpy()]
        return found

    def _promised(self) -> Promised:
        """What is promised of joined rows to come, where readers wait for it."""
        found = ((by, self._about.stage.progress_above(by)) for by in self._along)
        return {by: at for by, at in found if abs(at) < LIMIT}

    def _outcome(self, gone: Gone) -> ShardOutcome:
        about = self._about
        return ShardOutcome(
            answers=gone.rows,
            progress=about.progress,
            partials=about.rows + gone.waiting,
            nbytes=about.nbytes,
        )
