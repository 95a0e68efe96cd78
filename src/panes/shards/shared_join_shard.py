"""The joins of one shard of a register: each once, and what each of its queries makes of it.

A shard has a join for each set of queries that share one, with a state of its own. Joined rows are
selected for queries that ask for them, and go up as partials to the shards of windows above
(`panes.shards.above_shard`). A package is for one join or one query, and begins with its
key (`panes.shards.shared_joins`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import pyarrow as pa

from panes.arrays.columns import column_of
from panes.nodes.joined_rows import selected_rows
from panes.nodes.missed_rows import Whole, sure_rows
from panes.planning.terms import CheckedOptions
from panes.shards.combiner import Combiner
from panes.shards.going_up import GoingUp, Gone
from panes.shards.join_shard import JoinShard
from panes.shards.many_states import ManyStates
from panes.shards.missed_queries import MissedQueries
from panes.shards.names import AT, PROMISE, column_name
from panes.shards.outcome import PartsOutcome
from panes.shards.packages import Packages
from panes.shards.query_filler import filler_of
from panes.shards.shard_of import shards_of
from panes.shards.shared_joins import SharedJoin, SharedQuery, addressed
from panes.sharing.failures import noted
from panes.stores import codec

ANSWERS, MISSED = "answers", "missed"
"""The table of a package that has answers, on their way to the sink, and of one that says up to
where a query has missed rows."""
Sent: TypeAlias = Callable[[str], Packages]
"""What tasks have sent a part in a batch, by its key."""


class SharedJoinShard:
    """A shard's part of all joins of a register, for one batch; `above` are the shards above.

    Queries that fail are noted in `failing`.
    """

    def __init__(
        self,
        joins: Sequence[SharedJoin],
        terms: CheckedOptions,
        states: ManyStates,
        missed: MissedQueries,
        failing: dict[str, Exception],
        *,
        shards: int,
        above: int,
    ) -> None:
        self._joins, self._terms, self._above = joins, terms, above
        self._states, self._missed, self._shards = states, missed, shards
        self._failing = failing

    def step(self, given: PartsOutcome, sent: Sent | None) -> None:
        """Take in one batch; None: the streams have ended."""
        for shared in self._joins:
            whole = self._whole(shared)
            with noted(self._failing, [n for query, _ in whole for n in query.twins]):
                state = self._states.of(shared.key)
                shard = JoinShard(shared.join, self._terms, state, shards=self._shards)
                outcome = shard.finish() if sent is None else shard.take_opened(sent(shared.key))
                joined = self._sure(shared, outcome.answers)
                given.count(outcome)
                given.answers += len(joined)
                for query, missing in whole:
                    with noted(self._failing, query.twins):
                        below = None if sent is None else shard
                        given.packages.extend(self._sent(query, missing, joined, below))
                self._missed.came({(one, by): at for (one, by), at in shard.newest.items()})

    def _whole(self, shared: SharedJoin) -> list[tuple[SharedQuery, Whole | None]]:
        """The queries of a join, each with what is whole of it; None: everything."""
        found = []
        for query in shared.queries:
            with noted(self._failing, query.twins):
                whole = self._missed.meet(shared, query)
                if whole is not None:
                    whole.require_answers()
                found.append((query, whole))
        return found

    def _sure(self, shared: SharedJoin, joined: pa.Table) -> pa.Table:
        """Joined rows without those that rows before the join could prove wrong."""
        return sure_rows(shared.join, self._missed.unstored(shared), joined)

    def _sent(
        self, query: SharedQuery, whole: Whole | None, joined: pa.Table, shard: JoinShard | None
    ) -> Iterator[tuple[int, bytes]]:
        """What a query sends up in a batch; without a shard, the stream has ended."""
        if query.windows is None:
            answers = selected_rows(query.plan, joined)
            if len(answers):
                to = int(shards_of([pa.array([query.key])], self._above)[0])
                yield to, addressed(query.key, codec.pack({ANSWERS: answers}))
            return
        if whole is not None:
            joined = whole.rows(joined)
            told = codec.pack({MISSED: pa.table({MISSED: pa.array([whole.upto], pa.int64())})})
            yield from ((to, addressed(query.missed_key, told)) for to in range(self._above))
        up = GoingUp(query.plan, self._states.of(query.key))
        gone = up.finish(joined) if shard is None else up.take(joined, shard.stage)
        for to, package in self._partials(query, gone):
            yield to, addressed(query.key, package)

    def _partials(self, query: SharedQuery, gone: Gone) -> Iterator[tuple[int, bytes]]:
        """Rows that have gone up, as partials of windows, and the promise, to every shard."""
        plan = query.windows
        assert plan is not None
        rows = gone.rows
        at, missing = plan.placing.ticks(column_of(rows, plan.axis.column or ""))
        columns = {AT: pa.array(at, mask=missing), PROMISE: pa.nulls(len(rows), pa.int64())}
        _, values = plan.rows(rows)
        columns |= {column_name(i): value for i, value in enumerate(values)}
        promised = {AT: pa.nulls(1, pa.int64()), PROMISE: pa.array([gone.promise], pa.int64())}
        combiner = Combiner(filler_of(plan), self._above)
        both = pa.concat_tables([pa.table(columns), pa.table(promised)], promote_options="default")
        for batch in both.combine_chunks().to_batches():
            combiner.add(batch)
        yield from combiner.packages(always=True)
