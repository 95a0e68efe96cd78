"""A cluster in dicts that runs a register over joins: what Spark will host, without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from panes.language.join_text import read_join
from panes.nodes.inner import joined_schemas
from panes.planning.join_query_plan import plan_join_query
from panes.planning.terms import CheckedOptions
from panes.shards.combiner import Combiner
from panes.shards.join_keys import shard_keys
from panes.shards.many_states import ManyStates
from panes.shards.missed_queries import MissedQueries
from panes.shards.outcome import PartsOutcome
from panes.shards.parts_shard import PartsShard
from panes.shards.register_parts import RegisterParts
from panes.shards.sent_answers import PACKED, TITLE
from panes.shards.sent_rows import rows_of_side
from panes.shards.shared_joins import SharedJoin, addressed, shared_joins
from panes.stores import codec
from tests.shards.join_tasks import rows_of_task

SHARDS = 3


class Host:
    """A cluster in dicts, with streams of these columns."""

    def __init__(self, schemas: Mapping[str, pa.Schema], lateness: int) -> None:
        self._schemas, self._lateness = schemas, lateness
        self.below: list[dict[str, bytes]] = [{} for _ in range(SHARDS)]
        self.above: list[dict[str, bytes]] = [{} for _ in range(SHARDS)]
        self.joins: tuple[SharedJoin, ...] = ()

    def run(self, queries: dict[str, str]) -> None:
        """From now on these queries."""
        plans = {}
        for name, text in queries.items():
            query = read_join(text)
            schemas = joined_schemas(query.join, {n: self._schemas[n] for n in query.streams})
            plans[name] = plan_join_query(query, schemas, is_shared=True)
        self.joins = shared_joins(plans)

    def push(self, **batches: pa.Table) -> dict[str, pa.Table]:
        inboxes: list[list[bytes]] = [[] for _ in self.below]
        for shared in self.joins:
            keys = shard_keys(shared.join)
            for number, side in enumerate(shared.join.sources):
                rows = rows_of_task(shared.join, number, number, batches[side.source.streams[0]])
                filler = rows_of_side(side, number, keys[number])
                combiner = Combiner(filler, SHARDS, notes_positions=False)
                for batch in rows.to_batches():
                    combiner.add(batch)
                for shard, package in combiner.packages():
                    inboxes[shard].append(addressed(shared.key, package))
        return self._given([s.take(i) for s, i in zip(self._shards(), inboxes, strict=True)])

    def finish(self) -> dict[str, pa.Table]:
        return self._given([shard.finish() for shard in self._shards()])

    def _parts(self) -> RegisterParts:
        contents = {q.name: 0 for shared in self.joins for q in shared.queries}
        terms = CheckedOptions(lateness=self._lateness)
        return RegisterParts(joins=self.joins, join_terms=terms, contents=contents)

    def _shards(self) -> list[PartsShard]:
        parts = self._parts()
        return [PartsShard(parts, state, shards=SHARDS, levels=2) for state in self.below]

    def _given(self, outcomes: Sequence[PartsOutcome]) -> dict[str, pa.Table]:
        inboxes: list[list[bytes]] = [[] for _ in self.above]
        for outcome in outcomes:
            assert not outcome.sent
            for shard, package in outcome.packages:
                inboxes[shard].append(package)
        schemas = {n: q.schema() for shared in self.joins for q in shared.queries for n in q.twins}
        found = {name: [schema.empty_table()] for name, schema in schemas.items()}
        for state, inbox in zip(self.above, inboxes, strict=True):
            shard_above = PartsShard(self._parts(), state, shards=SHARDS, level=2, levels=2)
            for sent in shard_above.take(inbox).sent:
                table = codec.unpack(sent.package)[PACKED]
                [name] = set(table.column(TITLE).to_pylist())
                found[name].append(table.drop_columns([TITLE]))
        return {name: pa.concat_tables(tables) for name, tables in found.items()}

    def exact_from(self, name: str) -> object | None:
        """From where a query is exact, as the first shard remembers it."""
        missed = MissedQueries(ManyStates(self.below[0]).of("queries"))
        for shared in self.joins:
            for query in shared.queries:
                if name in query.twins:
                    whole = missed.meet(shared, query)
                    return None if whole is None else whole.begins
        raise KeyError(name)
