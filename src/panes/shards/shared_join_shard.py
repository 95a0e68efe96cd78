"""The joins of one shard of a register: each once, and what each of its queries makes of it.

A shard has a join for each set of queries that share one, with a state of its own. Joined rows are
selected for queries that ask for them, and go up as partials to the shards of windows above
(`panes.shards.above_joins`). A package is for one join or one query, and begins with its
key (`panes.shards.shared_joins`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

import pyarrow as pa

from panes.arrays.columns import column_of
from panes.nodes.joined_rows import selected_rows
from panes.nodes.missed_rows import Whole, sure_rows
from panes.nodes.promised_answers import as_rows, promised_by_join
from panes.shards.combiner import Combiner
from panes.shards.going_up import GoingUp, Gone
from panes.shards.handed_on import HandedOn, Package
from panes.shards.join_shard import JoinShard
from panes.shards.many_states import ManyStates
from panes.shards.missed_queries import MissedQueries
from panes.shards.names import AT, PROMISE, column_name
from panes.shards.outcome import PartsOutcome
from panes.shards.packages import Packages
from panes.shards.query_filler import filler_of
from panes.shards.register_parts import RegisterParts
from panes.shards.shard_of import shards_of
from panes.shards.shared_joins import SharedJoin, SharedQuery, Source, addressed
from panes.sharing.failures import noted
from panes.stores import codec

ANSWERS, MISSED = "answers", "missed"
"""The table of a package that has answers, on their way to the sink, and of one that says up to
where a query has missed rows."""
Sent: TypeAlias = Callable[[str], Packages]
"""What tasks have sent a part in a batch, by its key."""


def _newest(sources: Sequence[Source], newest: Sequence[int]) -> dict[Source, int]:
    """Where the newest row of each stream lies, of which several sources may be one."""
    found: dict[Source, int] = {}
    for source, at in zip(sources, newest, strict=True):
        found[source] = max(at, found.get(source, at))
    return found


class SharedJoinShard:
    """A shard's part of all joins of a register at one level, for one batch.

    Queries that fail are noted in `failing`.
    """

    def __init__(
        self,
        parts: RegisterParts,
        states: ManyStates,
        missed: MissedQueries,
        failing: dict[str, Exception],
        *,
        shards: int,
        level: int,
    ) -> None:
        self._parts, self._joins = parts, [one for one in parts.joins if one.level == level]
        self._states, self._missed, self._shards = states, missed, shards
        self._failing, self._level = failing, level

    def step(self, given: PartsOutcome, sent: Sent | None) -> None:
        """Take in one batch; None: the streams have ended."""
        for shared in self._joins:
            mine = Packages() if sent is None else sent(shared.key)
            whole = self._whole(shared, mine)
            with noted(self._failing, [n for query, _ in whole for n in query.twins]):
                terms = replace(self._parts.join_terms, inside=frozenset(shared.parts))
                state = self._states.of(shared.key)
                came = [self._missed.newest(source) for source in shared.sources]
                shard = JoinShard(shared.join, terms, state, shards=self._shards, came=came)
                outcome = shard.finish() if sent is None else shard.take_opened(mine)
                joined = self._sure(shared, outcome.answers)
                given.count(outcome)
                given.answers += len(joined)
                for query, missing in whole:
                    with noted(self._failing, query.twins):
                        below = None if outcome.has_ended else shard
                        given.packages.extend(self._sent(query, missing, joined, below))
                if self._level == 1:
                    self._missed.came(_newest(shared.sources, shard.newest))

    def _whole(
        self, shared: SharedJoin, packages: Packages
    ) -> list[tuple[SharedQuery, Whole | None]]:
        """The queries of a join, each with what is whole of it; None: everything."""
        found = []
        for query in shared.queries:
            with noted(self._failing, query.twins):
                if self._level > 1:
                    self._missed.know(query.key, shared.sources, packages)
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
    ) -> Iterator[Package]:
        """What a query sends up in a batch; without a shard, the streams have ended."""
        if query.windows is None:
            answers = selected_rows(query.plan, joined)
            if query.inner:
                yield from self._handed_on(query, whole, answers, shard)
            elif len(answers):
                to = int(shards_of([pa.array([query.key])], self._shards)[0])
                yield to, addressed(query.key, codec.pack({ANSWERS: answers}))
            return
        if whole is not None:
            joined = whole.rows(joined)
            told = codec.pack({MISSED: pa.table({MISSED: pa.array([whole.upto], pa.int64())})})
            yield from ((to, addressed(query.missed_key, told)) for to in range(self._shards))
        up = GoingUp(query.plan, self._states.of(query.key))
        gone = up.finish(joined) if shard is None else up.take(joined, shard.stage)
        for to, package in self._partials(query, gone):
            yield to, addressed(query.key, package)

    def _handed_on(
        self,
        query: SharedQuery,
        whole: Whole | None,
        answers: pa.Table,
        shard: JoinShard | None,
    ) -> Iterator[Package]:
        """What those are sent that read a query; it cannot have missed any rows."""
        promised = {} if shard is None else promised_by_join(query.plan, shard.stage, None)
        given = HandedOn(
            as_rows(answers), promised, has_ended=shard is None,
            is_unknown=whole is not None or not self._missed.is_new(query.key),
        )  # fmt: skip
        return self._parts.handed_on(query.key, given, self._level, self._shards)

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
        combiner = Combiner(filler_of(plan), self._shards)
        both = pa.concat_tables([pa.table(columns), pa.table(promised)], promote_options="default")
        for batch in both.combine_chunks().to_batches():
            combiner.add(batch)
        yield from combiner.packages(always=True)
