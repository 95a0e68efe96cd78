"""Shards of a register over joins, with their state in dicts: what Spark will host, without Spark.

Every shard is built anew from its bytes in every batch. What a batch gives must be what a register
in one process gives, query by query and batch by batch, while queries come and go.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

import panes
from panes.language.join_text import read_join
from panes.operators.inner import joined_schemas
from panes.planning.join_query_plan import plan_join_query
from panes.planning.terms import Terms
from panes.register.failures import QueriesFailed
from panes.shards.combiner import Combiner
from panes.shards.join_filler import SideFiller
from panes.shards.join_keys import shard_keys
from panes.shards.shared_join_shard import SharedJoinShard
from panes.shards.shared_joins import SharedJoin, addressed, shared_joins
from panes.shards.windows_above_shard import WindowsAboveShard
from tests.join_queries import NEAR_AT, REGISTERED, L, R, batches
from tests.shards.join_tasks import rows_of_task
from tests.support import assert_rows

TABLES = {"l": L, "r": R}
SHARDS, ABOVE, LATENESS = 3, 2, 6


class Host:
    """A cluster in dicts."""

    def __init__(self) -> None:
        self.below: list[dict[str, bytes]] = [{} for _ in range(SHARDS)]
        self.above: list[dict[str, bytes]] = [{} for _ in range(ABOVE)]
        self.joins: tuple[SharedJoin, ...] = ()

    def run(self, queries: dict[str, str]) -> None:
        """From now on these queries."""
        plans = {}
        for name, text in queries.items():
            query = read_join(text)
            schemas = joined_schemas(query.join, {n: TABLES[n].schema for n in query.streams})
            plans[name] = plan_join_query(query, schemas, is_shared=True)
        self.joins = shared_joins(plans)

    def push(self, **batches: pa.Table) -> dict[str, pa.Table]:
        inboxes: list[list[bytes]] = [[] for _ in self.below]
        for shared in self.joins:
            keys = shard_keys(shared.join)
            for number, side in enumerate(shared.join.sources):
                rows = rows_of_task(shared.join, number, number, batches[side.source.streams[0]])
                filler = SideFiller(side, number, keys[number])
                combiner = Combiner(filler, SHARDS, notes_positions=False)
                for batch in rows.to_batches():
                    combiner.add(batch)
                for shard, package in combiner.packages():
                    inboxes[shard].append(addressed(shared.key, package))
        return self._given([s.take(i) for s, i in zip(self._shards(), inboxes, strict=True)])

    def finish(self) -> dict[str, pa.Table]:
        return self._given([shard.finish() for shard in self._shards()])

    def _shards(self) -> list[SharedJoinShard]:
        terms = Terms(lateness=LATENESS)
        return [
            SharedJoinShard(self.joins, terms, state, shards=SHARDS, above=ABOVE)
            for state in self.below
        ]

    def _given(self, outcomes: Sequence[object]) -> dict[str, pa.Table]:
        inboxes: list[list[bytes]] = [[] for _ in self.above]
        for outcome in outcomes:
            for shard, package in outcome.packages:  # type: ignore[attr-defined]
                inboxes[shard].append(package)
        schemas = {q.name: q.schema() for shared in self.joins for q in shared.queries}
        found = {name: [schema.empty_table()] for name, schema in schemas.items()}
        for state, inbox in zip(self.above, inboxes, strict=True):
            shard = WindowsAboveShard(self.joins, Terms(), state, shards=ABOVE)
            for name, table in shard.take(inbox).answers.items():
                found[name].append(table)
        return {name: pa.concat_tables(tables) for name, tables in found.items()}


def assert_same(got: dict[str, pa.Table], want: dict[str, pa.Table]) -> None:
    assert got.keys() == want.keys()
    for name, table in want.items():
        assert got[name].schema.names == table.schema.names, name
        assert_rows(got[name], table)


def test_queries_of_a_register_share_joins_and_answer_as_in_one_process() -> None:
    host, here = Host(), panes.register(("l", "r"), lateness=LATENESS)
    host.run(REGISTERED)
    for name, text in REGISTERED.items():
        here.add(name, text)
    assert [[q.name for q in shared.queries] for shared in host.joins] == [
        ["pairs", "sums", "later", "boxes"],
        ["lone"],
        ["windows"],
    ]
    given = 0
    for left, right in zip(batches(L), batches(R), strict=True):
        want = here.push(l=left, r=right)
        assert_same(host.push(l=left, r=right), want)
        given += sum(map(len, want.values()))
    assert given > 100
    assert_same(host.finish(), here.finish())


LISTS = (
    (["pairs", "sums"], ["pairs", "sums", "lone"], ["sums"], ["sums", "later"], ["sums"]),
    (["pairs"], ["pairs", "boxes", "sums"], ["windows", "boxes"], ["windows"], ["boxes", "later"]),
    (["lone"], ["windows"], ["windows", "later"], ["later", "boxes"], ["later", "sums"]),
)


@pytest.mark.parametrize("lists", LISTS)
def test_a_query_that_comes_takes_part_in_its_join_and_one_that_goes_leaves_nothing(
    lists: tuple[list[str], ...],
) -> None:
    """What a query has missed is not answered, and nothing is stored for one that has gone."""
    host, here = Host(), panes.register(("l", "r"), lateness=LATENESS)
    for names, left, right in zip(lists, batches(L), batches(R), strict=True):
        host.run({name: REGISTERED[name] for name in names})
        for gone in here.queries().keys() - set(names):
            here.remove(gone)
        for name in names:
            if name not in here.queries():
                here.add(name, REGISTERED[name])
        assert_same(host.push(l=left, r=right), here.push(l=left, r=right))
        kept = {shared.key for shared in host.joins}
        kept |= {query.key for shared in host.joins for query in shared.queries}
        for state in (*host.below, *host.above):
            assert {name.split("/")[0] for name in state} <= kept | {"ledger", "queries"}
    assert_same(host.finish(), here.finish())


BAD = {
    "selects": f"SELECT 1 / (l.k - r.k) AS q {NEAR_AT}",
    "aggregates": f"SELECT sum(1 / (l.k - r.k)) AS t [TUMBLING 10 WATTR l.at] {NEAR_AT}",
    "asks": f"SELECT l.id {NEAR_AT} AND 1 / (l.k - r.k) > 1",
    "answers": f"SELECT 1 / (count(*) - count(*)) AS q [TUMBLING 5 WATTR l.at] {NEAR_AT}",
}
"""Queries that fail in each of the places where one can."""


@pytest.mark.parametrize("bad", BAD)
def test_a_query_that_fails_is_named(bad: str) -> None:
    """It alone: the others share its join, its batch and its shards."""
    host = Host()
    host.run({"pairs": REGISTERED["pairs"], "bad": BAD[bad], "sums": REGISTERED["sums"]})
    with pytest.raises(QueriesFailed) as failed:
        host.push(l=L, r=R)
    assert list(failed.value.reasons) == ["bad"]


def test_windows_over_all_rows_that_come_later_are_named() -> None:
    host = Host()
    first = {"pairs": REGISTERED["pairs"]}
    everything = f"SELECT count(*) AS n [RANGE ALL SLIDE 20 WATTR l.at] {NEAR_AT}"
    halves = list(zip(batches(L, 2), batches(R, 2), strict=True))
    host.run(first)
    host.push(l=halves[0][0], r=halves[0][1])
    host.run({**first, "all": everything})
    with pytest.raises(QueriesFailed, match="windows over ALL rows would miss them"):
        host.push(l=halves[1][0], r=halves[1][1])


def test_a_changed_text_begins_anew() -> None:
    host = Host()
    host.run({"sums": REGISTERED["sums"]})
    before = host.joins[0].queries[0].key
    host.run({"sums": REGISTERED["sums"].replace("RANGE 10", "RANGE 15")})
    assert host.joins[0].queries[0].key != before
