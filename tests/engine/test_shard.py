"""Combiners and shards, with their state in a dict: what Spark will host, without Spark.

Every batch is split over tasks, every shard is built anew from its bytes, and the answers of each
batch must be those that the same query gives in one process.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes
from panes.engine.combine import (
    AT,
    KEPT,
    PROMISE,
    ROW,
    SOURCE,
    Combiner,
    column_name,
)
from panes.engine.pipeline import Pipeline
from panes.engine.shard import ABOUT, RECALL, Outcome, Shard
from panes.engine.terms import Terms
from panes.language.parse import parse
from panes.planning.plan import Plan, plan
from tests.support import AGGREGATES, SCHEMA, WINDOWS, assert_same, select, sorted_answers, streams

HOSTED = tuple(w for w in WINDOWS if "ROWS" not in w and "FIRST" not in w)


class Host:
    """A cluster in a dict."""

    def __init__(
        self, text: str, schema: pa.Schema = SCHEMA, *, tasks: int = 3, **terms: object
    ) -> None:
        query = parse(text)
        self.plan: Plan = plan(query, dict.fromkeys(query.streams, schema))
        self.tasks = tasks
        self.terms = Terms(**terms)  # type: ignore[arg-type]
        self.states: list[dict[str, bytes]] = [{} for _ in range(3)]

    def push(self, **batches: pa.Table) -> list[Outcome]:
        rows = pa.concat_tables(
            [
                self._rows(number, batches[name])
                for number, name in enumerate(self.plan.query.streams)
                if name in batches
            ]
        )
        inboxes: list[list[bytes]] = [[] for _ in self.states]
        for task in range(self.tasks):
            combiner = Combiner(self.plan, len(self.states), keep_rows=self.terms.drops_late)
            for batch in rows.take(np.arange(task, len(rows), self.tasks)).to_batches(
                max_chunksize=5
            ):
                combiner.add(batch)
            for shard, package in combiner.packages():
                inboxes[shard].append(package)
        outcomes = []
        RECALL.clear()
        for state, inbox in zip(self.states, inboxes, strict=True):
            if inbox:
                outcomes.append(self.shard(state).take(inbox))
        return outcomes

    def shard(self, state: dict[str, bytes]) -> Shard:
        return Shard(self.plan, self.terms, state, shards=len(self.states))

    def finish(self) -> list[Outcome]:
        return [self.shard(state).finish() for state in self.states]

    def answers(self, outcomes: Sequence[Outcome]) -> pa.Table:
        pipeline = Pipeline(self.plan)
        tables = [pipeline.projected(o.answers) for o in outcomes]
        found = pa.concat_tables([pipeline.empty(), *tables])
        return sorted_answers(found, len(self.plan.query.shown_keys))

    def _rows(self, source: int, table: pa.Table) -> pa.Table:
        """What Spark's projection would hand to a task."""
        at, missing = self.plan.axis.ticks(table.column(self.plan.axis.column).combine_chunks())
        _, columns = replace(self.plan.rows, where=None)(table)
        kept, _ = self.plan.rows(table)
        passes = np.ones(len(table), dtype=bool)
        if kept is not None:
            passes = np.zeros(len(table), dtype=bool)
            passes[kept] = True
        named = {
            SOURCE: pa.array([source] * len(table), pa.int32()),
            AT: pa.array(at, mask=missing),
            KEPT: pa.array(passes),
            ROW: pa.StructArray.from_arrays(
                [c.combine_chunks() for c in table.columns], names=table.column_names
            ),
        }
        if "promise" in table.column_names:
            named[PROMISE] = table.column("promise")
        named |= {column_name(i): c for i, c in enumerate(columns)}
        return pa.table(named)


def in_batches(table: pa.Table, sizes: Sequence[int]) -> list[pa.Table]:
    cuts = np.cumsum([0, *sizes]).clip(max=len(table))
    parts = [table.slice(a, b - a) for a, b in itertools.pairwise(cuts)]
    return [*parts, table.slice(int(cuts[-1]))]


@pytest.mark.parametrize("window", HOSTED)
@pytest.mark.parametrize("late", ["open", "drop"])
@given(
    stream=streams,
    sizes=st.lists(st.integers(0, 20), max_size=5),
    lateness=st.one_of(st.integers(0, 30), st.none()),
    tasks=st.integers(1, 3),
)
@settings(max_examples=25)
def test_every_batch_gives_what_one_process_gives(
    window: str,
    late: panes.Late,
    stream: pa.Table,
    sizes: list[int],
    lateness: int | None,
    tasks: int,
) -> None:
    aggregates = ("count(*)", "sum(i)", "max(x)", "avg(d)", "min_by(s, i)")
    text = f"SELECT k, {select(aggregates)} FROM s [{window}] WHERE b OR i > 0 GROUP BY k"
    host = Host(text, lateness=lateness, late=late, tasks=tasks)
    query = panes.open(text, lateness=lateness, late=late)
    for batch in in_batches(stream, sizes):
        got = host.push(s=batch)
        assert_same(host.answers(got), query.push(s=batch))
        reasons = [r for o in got for r in o.late.column("reason").to_pylist()]
        rows = [r for o in got if len(o.late) for r in o.late.column(ROW).to_pylist()]
        want = query.take_late()
        assert sorted(reasons) == sorted(want.column("reason").to_pylist())
        assert sorted(r["at"] for r in rows) == sorted(want.column("at").to_pylist())
    assert_same(host.answers(host.finish()), query.finish())
    if "ALL" not in window:
        assert all(set(state) <= {ABOUT} for state in host.states), "state returns to nothing"


@pytest.mark.parametrize("aggregate", AGGREGATES)
@given(stream=streams, sizes=st.lists(st.integers(0, 20), max_size=3))
@settings(max_examples=8)
def test_every_aggregate_survives_being_sent_and_kept(
    aggregate: str, stream: pa.Table, sizes: list[int]
) -> None:
    text = f"SELECT k, {aggregate} AS c FROM s [RANGE 23 SLIDE 5 WATTR at] GROUP BY k"
    host, query = Host(text, lateness=4), panes.open(text, lateness=4)
    for batch in in_batches(stream, sizes):
        assert_same(host.answers(host.push(s=batch)), query.push(s=batch))
    assert_same(host.answers(host.finish()), query.finish())
