"""A cluster in a dict: shards of one join, built anew from their bytes in every batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

import panes
from panes.expressions.projection import Projection
from panes.language.join_text import read_join
from panes.nodes.inner import joined_schemas
from panes.nodes.joined_rows import with_edges
from panes.planning.join_query_plan import plan_join_query
from panes.planning.terms import CheckedOptions
from panes.shards.combiner import Combiner
from panes.shards.join_keys import shard_keys
from panes.shards.join_shard import JoinShard
from panes.shards.outcome import ShardOutcome
from panes.shards.sent_rows import rows_of_side
from panes.shards.stored_runs import RECALL
from tests.join_queries import THIRD, L, R
from tests.shards.join_tasks import rows_of_task
from tests.support import assert_rows

TABLES = {"l": L, "r": R, "t": THIRD}
FAR = (
    "SELECT l.id AS i, r.id AS j FROM l {} r ON l.k = r.k AND r.at BETWEEN l.at + 60 AND l.at + 65"
)


class Host:
    """A cluster in a dict."""

    def __init__(self, text: str, *, tasks: int = 2, along: Any = (), **terms: object) -> None:
        query = read_join(text)
        schemas = joined_schemas(query.join, {n: TABLES[n].schema for n in query.streams})
        self.plan = plan_join_query(query, schemas)
        self.join, self.along = self.plan.join, along
        self.keys = shard_keys(self.join)
        self.terms, self.tasks = CheckedOptions(**terms), tasks  # type: ignore[arg-type]
        self.states: list[dict[str, bytes]] = [{} for _ in range(3 if self.keys[0] else 1)]

    def push(self, **batches: pa.Table) -> list[ShardOutcome]:
        inboxes: list[list[bytes]] = [[] for _ in self.states]
        first = 0
        for number, side in enumerate(self.join.sources):
            for source, name in enumerate(side.source.streams, start=first):
                rows = rows_of_task(self.join, number, source, batches[name])
                for task in range(self.tasks):
                    filler = rows_of_side(side, number, self.keys[number])
                    combiner = Combiner(filler, len(self.states), notes_positions=False)
                    mine = rows.take(np.arange(task, len(rows), self.tasks))
                    for batch in mine.to_batches(max_chunksize=7):
                        combiner.add(batch)
                    for shard, package in combiner.packages():
                        inboxes[shard].append(package)
            first += len(side.source.streams)
        RECALL.clear()
        pairs = zip(self.states, inboxes, strict=True)
        return [self.shard(state).take(inbox) for state, inbox in pairs if inbox]

    def shard(self, state: dict[str, bytes]) -> JoinShard:
        return JoinShard(self.join, self.terms, state, shards=len(self.states), along=self.along)

    def finish(self) -> list[ShardOutcome]:
        return [self.shard(state).finish() for state in self.states]

    def answers(self, outcomes: Sequence[ShardOutcome]) -> pa.Table:
        """What Spark selects of joined rows; windows are named by their numbers here."""
        found = [self.plan.schema().empty_table()]
        for outcome in outcomes:
            joined = outcome.answers
            _, columns = self.plan.answers(joined)
            passing, _ = Projection((), self.plan.answers.where)(joined)
            edges = []
            if self.plan.names_windows:
                edges = _edges(self.plan, joined, passing)
            found.append(pa.table([*edges, *columns], schema=self.plan.schema()))
        return pa.concat_tables(found)


def _edges(plan: Any, joined: pa.Table, passing: Any) -> list[pa.Array]:
    edged = with_edges(plan, joined)
    edges = [c.combine_chunks() for c in edged.columns[:2]]
    return edges if passing is None else [e.take(pa.array(passing)) for e in edges]


def require_late_after_an_end(text: str) -> None:
    """What could have had a partner that the end forgot is late, however far apart.

    at    0 ------- 60 ------- 65
    l     x                                     run 1, which ends
    r               . its partners .            run 2
    """
    host = Host(text, lateness=0, late="drop")
    reach, streams = host.join.reach, host.plan.query.streams
    given_, late = [], 0
    for parts in ([range(9)], [range(9, 110), range(110, 111), range(111, 240)]):
        for at in parts:
            outcomes = host.push(**{name: rows_at(name, at) for name in streams})
            given_.append(host.answers(outcomes))
            late += sum(len(o.late) for o in outcomes)
        given_.append(host.answers(host.finish()))
    assert late == reach * len(streams)
    in_time = [*range(9), *range(9 + reach, 240)]
    wanted = panes.oracle(text, **{name: rows_at(name, in_time) for name in streams})
    assert_rows(pa.concat_tables(given_), wanted)


def rows_at(name: str, at: Sequence[int]) -> pa.Table:
    """One row at every instant, all of one key."""
    schema = TABLES[name].schema
    columns = {"id": at, "at": at, "k": [1] * len(at)}
    empty = [[None] * len(at)] * len(schema)
    filled = [columns.get(f.name, n) for f, n in zip(schema, empty, strict=True)]
    return pa.table(
        [pa.array(c, f.type) for c, f in zip(filled, schema, strict=True)], schema=schema
    )
