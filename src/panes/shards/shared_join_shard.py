"""One shard of a register over joins: every join once, and what each of its queries makes of it.

A shard has a join for each set of queries that share one, with a state of its own. Joined rows are
selected for queries that ask for them, and go up as partials to the shards of windows above
(`panes.shards.windows_above_shard`). A package is for one join or one query, and begins with its
key (`panes.shards.shared_joins`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from panes.arrays.columns import column_of
from panes.nodes.joined_rows import selected_rows
from panes.nodes.missed_rows import Whole, sure_rows
from panes.planning.terms import CheckedOptions
from panes.shards.combiner import Combiner
from panes.shards.going_up import GoingUp, Gone
from panes.shards.join_shard import JoinOutcome, JoinShard
from panes.shards.many_states import ManyStates
from panes.shards.marks import marks_table, read_marks
from panes.shards.missed_queries import MissedQueries
from panes.shards.names import AT, EVERY_SOURCE, MARKS, PROMISE, column_name
from panes.shards.query_filler import PlanFiller
from panes.shards.shard_of import shards_of
from panes.shards.shared_joins import SharedJoin, SharedQuery, address, addressed
from panes.shards.state import State
from panes.sharing.failures import noted, require_none
from panes.stores import codec

ANSWERS, MISSED = "answers", "missed"
"""The table of a package that has answers, on their way to the sink, and of one that says up to
where a query has missed rows."""
_QUERIES = "queries"


@dataclass(frozen=True, slots=True)
class SharedOutcome:
    """What a batch gave: packages for the shards above, counts of rows set aside, and sizes."""

    packages: list[tuple[int, bytes]]
    answers: int
    late: int
    rejected: int
    progress: int
    partials: int
    nbytes: int


class SharedJoinShard:
    """A shard's part of all joins of a register, for one batch; `above` are the shards above."""

    def __init__(
        self,
        joins: Sequence[SharedJoin],
        terms: CheckedOptions,
        state: State,
        *,
        shards: int,
        above: int,
    ) -> None:
        self._joins, self._terms, self._above = joins, terms, above
        self._states, self._shards = ManyStates(state), shards
        self._missed = MissedQueries(self._states.of(_QUERIES))

    def take(self, packages: Sequence[bytes]) -> SharedOutcome:
        """Take in one batch."""
        opened: dict[str, list[dict[str, pa.Table]]] = {}
        for package in packages:
            key, data = address(package)
            opened.setdefault(key, []).append(codec.unpack(data))
        found = []
        failing: dict[str, Exception] = {}
        for shared in self._joins:
            others = [t for key, tables in opened.items() if key != shared.key for t in tables]
            mine = [*opened.get(shared.key, []), *filter(None, map(_of_every_source, others))]
            whole = self._whole(shared, failing)
            with noted(failing, whole):
                shard = self._shard(shared)
                outcome = self._sure(shared, shard.take_opened(mine))
                found.append((outcome, self._sent_by_all(whole, outcome, shard, failing)))
                self._missed.came(shard.newest)
        require_none(failing)
        return self._outcome(found)

    def finish(self) -> SharedOutcome:
        """The streams have ended."""
        found = []
        failing: dict[str, Exception] = {}
        for shared in self._joins:
            whole = self._whole(shared, failing)
            with noted(failing, whole):
                shard = self._shard(shared)
                outcome = self._sure(shared, shard.finish())
                found.append((outcome, self._sent_by_all(whole, outcome, None, failing)))
                self._missed.came(shard.newest)
        require_none(failing)
        return self._outcome(found)

    def _whole(
        self, shared: SharedJoin, failing: dict[str, Exception]
    ) -> dict[str, tuple[SharedQuery, Whole | None]]:
        """The queries of a join, by name, each with what is whole of it; None: everything."""
        found = {}
        for query in shared.queries:
            with noted(failing, [query.name]):
                whole = self._missed.meet(shared, query)
                if whole is not None:
                    whole.require_answers()
                found[query.name] = query, whole
        return found

    def _sure(self, shared: SharedJoin, outcome: JoinOutcome) -> JoinOutcome:
        """What a join gave, without what rows before it could prove wrong."""
        unstored = self._missed.unstored(shared)
        return replace(outcome, answers=sure_rows(shared.join, unstored, outcome.answers))

    def _sent_by_all(
        self,
        queries: Mapping[str, tuple[SharedQuery, Whole | None]],
        outcome: JoinOutcome,
        shard: JoinShard | None,
        failing: dict[str, Exception],
    ) -> list[tuple[int, bytes]]:
        """What the queries of a join send up; without a shard, the stream has ended."""
        sent: list[tuple[int, bytes]] = []
        for name, (query, whole) in queries.items():
            with noted(failing, [name]):
                sent += self._sent(query, whole, outcome.answers, shard)
        return sent

    def _shard(self, shared: SharedJoin) -> JoinShard:
        state = self._states.of(shared.key)
        return JoinShard(shared.join, self._terms, state, shards=self._shards)

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
        combiner = Combiner(PlanFiller(plan), self._above)
        both = pa.concat_tables([pa.table(columns), pa.table(promised)], promote_options="default")
        for batch in both.combine_chunks().to_batches():
            combiner.add(batch)
        yield from combiner.packages(always=True)

    def _outcome(
        self, found: Sequence[tuple[JoinOutcome, list[tuple[int, bytes]]]]
    ) -> SharedOutcome:
        self._missed.write()
        self._states.write()
        outcomes = [outcome for outcome, _ in found]
        return SharedOutcome(
            packages=[package for _, sent in found for package in sent],
            answers=sum(len(o.answers) for o in outcomes),
            late=sum(len(o.late) for o in outcomes),
            rejected=sum(len(o.rejected) for o in outcomes),
            progress=min(o.progress for o in outcomes),
            partials=sum(o.partials for o in outcomes),
            nbytes=sum(o.nbytes for o in outcomes),
        )


def _of_every_source(tables: Mapping[str, pa.Table]) -> dict[str, pa.Table] | None:
    """Of a package for another join, what is said of all sources: a promise by the clock."""
    marks = read_marks(tables)
    if EVERY_SOURCE not in marks:
        return None
    return {MARKS: marks_table({EVERY_SOURCE: marks[EVERY_SOURCE]})}
