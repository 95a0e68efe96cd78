"""Shards of SELECT DISTINCT, with their state in a dict: each row once, while it may count.

Catches: a row that comes twice, one that never comes, equal rows in two shards, rows that are
forgotten too early or never, and a state of other columns that is read.
"""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panes.axis import BEGINNING
from panes.errors import StateError
from panes.planning.terms import CheckedOptions
from panes.shards.combiner import Combiner
from panes.shards.distinct_shard import DistinctShard
from panes.shards.names import AT, column_name
from panes.shards.outcome import ShardOutcome
from panes.shards.sent_rows import rows_of_schema

SCHEMA = pa.schema({"at": pa.int64(), "k": pa.string(), "x": pa.float64()})
Row = tuple[int, str | None, float | None]


class Host:
    """A cluster in a dict."""

    def __init__(self, within: int | None, lateness: int = 5) -> None:
        self.within, self.terms = within, CheckedOptions(lateness=lateness)
        self.states: list[dict[str, bytes]] = [{} for _ in range(3)]

    def push(self, rows: list[Row], tasks: int = 2) -> list[ShardOutcome]:
        inboxes: list[list[bytes]] = [[] for _ in self.states]
        for task in range(tasks):
            combiner = Combiner(rows_of_schema("at", SCHEMA), 3, notes_positions=False)
            mine = rows[task::tasks]
            columns = [list(c) for c in zip(*mine, strict=True)] or [[], [], []]
            arrays = [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)]
            named = {AT: arrays[0]} | {column_name(i): a for i, a in enumerate(arrays)}
            combiner.add(pa.record_batch(named))
            for shard, package in combiner.packages():
                inboxes[shard].append(package)
        pairs = zip(self.states, inboxes, strict=True)
        return [self.shard(state).take(inbox) for state, inbox in pairs if inbox]

    def shard(self, state: dict[str, bytes], schema: pa.Schema = SCHEMA) -> DistinctShard:
        return DistinctShard(schema, self.within, self.terms, state, shards=3)


def rows_of(outcomes: list[ShardOutcome]) -> list[Row]:
    found = [o.answers for o in outcomes if len(o.answers)]
    return [tuple(row.values()) for t in found for row in t.to_pylist()]


def same(row: Row) -> str:
    """NaN is like NaN, and -0.0 like 0.0."""
    at, k, x = row
    return repr((at, k, x if x is None else x + 0.0))


ROWS = st.lists(
    st.tuples(
        st.integers(0, 40),
        st.sampled_from(["a", "b", None]),
        st.sampled_from([0.0, -0.0, 1.5, float("nan"), None]),
    ),
    max_size=60,
)


@settings(max_examples=80)
@given(
    rows=ROWS,
    cuts=st.lists(st.integers(0, 60), max_size=6),
    within=st.sampled_from([0, 3, 20, None]),
    tasks=st.integers(1, 3),
)
def test_each_row_comes_once_while_one_like_it_may_count(
    rows: list[Row], cuts: list[int], within: int | None, tasks: int
) -> None:
    host, come, promised = Host(within), dict[str, int](), BEGINNING
    edges = [0, *sorted(min(c, len(rows)) for c in cuts), len(rows)]
    for begin, end in itertools.pairwise(edges):
        outcomes = host.push(rows[begin:end], tasks)
        for row in rows_of(outcomes):
            again = same(row) in come
            assert not again or (within is not None and row[0] < promised - within)
            come[same(row)] = row[0]
        assert {same(row) for row in rows[begin:end]} <= come.keys()
        assert len({o.promised["left"] for o in outcomes}) <= 1, "all shards promise the same"
        promised = outcomes[0].promised["left"] if outcomes else promised
        if within is not None and outcomes:
            span = max(1, within // 8)
            open_rows = sum(at >= promised - within - span for at in come.values())
            assert sum(o.partials for o in outcomes) <= open_rows


def test_the_end_is_passed_on_and_rows_are_still_known() -> None:
    host = Host(within=20)
    assert len(rows_of(host.push([(30, "a", 1.0), (31, "a", 1.0), (30, "a", 1.0)]))) == 2
    assert all(host.shard(state).finish().has_ended for state in host.states)
    assert rows_of(host.push([(30, "a", 1.0)])) == []


def test_a_state_of_other_columns_is_refused() -> None:
    host = Host(within=20)
    host.push([(1, "a", 1.0)])
    with pytest.raises(StateError, match="SELECT DISTINCT was at int64, k string, x double"):
        host.shard(host.states[0], pa.schema({"at": pa.int64()}))
