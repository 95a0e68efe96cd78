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
from panes.aggregates.arithmetic import Count
from panes.answers.select import projected
from panes.errors import StateError
from panes.shards import query_identity, query_state
from panes.shards.blocks import MOST_BLOCKS
from panes.shards.names import ROW
from panes.shards.outcome import ShardOutcome
from panes.shards.query_shard import QueryShard
from panes.shards.query_state import RECALL
from panes.shards.state import ABOUT
from panes.stores import codec
from tests.sharded_query import ShardedQuery
from tests.strategies import streams
from tests.support import (
    AGGREGATES,
    ORDERED,
    PER_ROW,
    SCHEMA,
    WINDOWS,
    assert_same,
    in_turns,
    open_query,
    select,
)

HOSTED = tuple(w for w in WINDOWS if "ROWS" not in w and "FIRST" not in w)
COUNTED = (*ORDERED, *(w for w in PER_ROW if "1 ROW" in w or "rank" in w))


def in_batches(table: pa.Table, sizes: Sequence[int]) -> list[pa.Table]:
    cuts = np.cumsum([0, *sizes]).clip(max=len(table))
    parts = [table.slice(a, b - a) for a, b in itertools.pairwise(cuts)]
    return [*parts, table.slice(int(cuts[-1]))]


@pytest.mark.parametrize(("window", "late"), in_turns(HOSTED, ["open", "drop"]))
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
    host = ShardedQuery(text, lateness=lateness, late=late, tasks=tasks)
    query = open_query(text, lateness=lateness, late=late)
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


@pytest.mark.parametrize(("window", "late"), in_turns(COUNTED, ["open", "drop"]))
@given(
    stream=streams,
    sizes=st.lists(st.integers(0, 20), max_size=5),
    lateness=st.one_of(st.integers(0, 30), st.none()),
    tasks=st.integers(1, 3),
)
@settings(max_examples=25)
def test_every_batch_of_windows_that_count_rows_gives_what_one_process_gives(
    window: str,
    late: panes.Late,
    stream: pa.Table,
    sizes: list[int],
    lateness: int | None,
    tasks: int,
) -> None:
    """Positions are made different, so that ranks are the same whatever task a row comes from."""
    at = pa.array([a * 64 + n for n, a in enumerate(stream["at"].to_pylist())], pa.int64())
    stream = stream.set_column(0, "at", at)
    holistic = () if "ALL" in window else ("median(i)",)
    aggregates = ("count(*)", "sum(i)", "max(x)", "min_by(s, i)", *holistic)
    text = f"SELECT {select(aggregates)} FROM s [{window}] WHERE b OR i > 0"
    if window in PER_ROW:
        text = text.replace("SELECT", "SELECT at, i + 1 AS j,").replace("RANGE ", "RANGE 9")
    wait = None if lateness is None else lateness * 64
    host = ShardedQuery(text, lateness=wait, late=late, tasks=tasks)
    query = open_query(text, lateness=wait, late=late)
    for batch in in_batches(stream, sizes):
        got = host.push(s=batch)
        assert_same(host.answers(got), query.push(s=batch))
        want = query.take_late()
        reasons = [r for o in got for r in o.late.column("reason").to_pylist()]
        assert sorted(reasons) == sorted(want.column("reason").to_pylist())
    assert_same(host.answers(host.finish()), query.finish())
    if "rank" not in window and window in PER_ROW:
        assert all(set(state) <= {ABOUT} for state in host.states), "state returns to nothing"


@pytest.mark.parametrize("aggregate", AGGREGATES)
@given(stream=streams, sizes=st.lists(st.integers(0, 20), max_size=3))
@settings(max_examples=8)
def test_every_aggregate_survives_being_sent_and_kept(
    aggregate: str, stream: pa.Table, sizes: list[int]
) -> None:
    text = f"SELECT k, {aggregate} AS c FROM s [RANGE 23 SLIDE 5 WATTR at] GROUP BY k"
    host, query = ShardedQuery(text, lateness=4), open_query(text, lateness=4)
    for number, batch in enumerate(in_batches(stream, sizes)):
        host.forgetful = number != 1
        assert_same(host.answers(host.push(s=batch)), query.push(s=batch))
    assert_same(host.answers(host.finish()), query.finish())


@given(
    batches=st.lists(st.tuples(streams, streams), max_size=4),
    lateness=st.integers(0, 20),
)
@settings(max_examples=30)
def test_several_sources_progress_at_the_slowest(
    batches: list[tuple[pa.Table, pa.Table]], lateness: int
) -> None:
    text = "SELECT k, count(*) AS n FROM (u UNION ALL v) [RANGE 20 SLIDE 7 WATTR at] GROUP BY k"
    host, query = ShardedQuery(text, lateness=lateness), open_query(text, lateness=lateness)
    for u, v in batches:
        got = host.push(u=u, v=v)
        assert_same(host.answers(got), query.push(u=u, v=v))
        assert sum(len(o.late) for o in got) == len(query.take_late())


_maybe = st.one_of(st.integers(-40, 60), st.none())
promising = st.lists(
    st.tuples(
        st.one_of(st.integers(-40, 60), st.none()), st.one_of(st.integers(-40, 60), st.none())
    ),
    max_size=12,
).map(
    lambda pairs: pa.table(
        {
            "at": pa.array([at for at, _ in pairs], pa.int64()),
            "promise": pa.array([promise for _, promise in pairs], pa.int64()),
        }
    )
)


@given(batches=st.lists(promising, max_size=4), lateness=st.one_of(st.none(), st.integers(0, 30)))
@settings(max_examples=60)
def test_promises_in_a_column_close_windows(batches: list[pa.Table], lateness: int | None) -> None:
    """A row without a position is a promise and nothing else; without one, it is rejected."""
    text = "SELECT count(*) AS n FROM s [RANGE 10 SLIDE 4 WATTR at]"
    host = ShardedQuery(text, promising_schema(), lateness=lateness, punctuation="promise")
    query = open_query(text, lateness=lateness, punctuation="Promise")
    rejected = 0
    for batch in batches:
        got = host.push(s=batch)
        assert_same(host.answers(got), query.push(s=batch))
        assert sum(len(o.late) for o in got) == len(query.take_late())
        rejected += sum(len(o.rejected) for o in got)
        assert rejected == len(query.rejected)


def promising_schema() -> pa.Schema:
    return pa.schema({"at": pa.int64(), "promise": pa.int64()})


def test_a_long_wait_does_not_make_many_blocks() -> None:
    """Without progress every pane stays open; blocks grow longer instead of more."""
    text = "SELECT count(*) AS n, median(at) AS mid FROM s [TUMBLING 5 WATTR at]"
    schema = pa.schema({"at": pa.int64()})
    host, query = ShardedQuery(text, schema, lateness=10**9), open_query(text, lateness=10**9)
    for begin in range(0, 10_000, 1_000):
        rows = pa.table({"at": pa.array(range(begin, begin + 1_000), pa.int64())})
        assert_same(host.answers(host.push(s=rows)), query.push(s=rows))
        assert all(len(state) <= MOST_BLOCKS + 1 for state in host.states)
    assert_same(host.answers(host.finish()), query.finish())


def test_a_batch_far_from_the_others_costs_only_its_own_blocks() -> None:
    """A year of silence at one-second slides: the state is what the open windows hold."""
    text = "SELECT count(*) AS n FROM s [RANGE 60 SLIDE 1 WATTR at]"
    schema = pa.schema({"at": pa.int64()})
    host, query = ShardedQuery(text, schema, lateness=5), open_query(text, lateness=5)
    for at in (0, 31_536_000, 31_536_010):
        rows = pa.table({"at": pa.array([at], pa.int64())})
        assert_same(host.answers(host.push(s=rows)), query.push(s=rows))
    assert sum(len(s) for s in host.states) <= 2 * len(host.states) + 2


def two_batches() -> ShardedQuery:
    host = ShardedQuery(
        "SELECT k, count(*) AS n FROM s [RANGE 20 SLIDE 10 WATTR at] GROUP BY k", lateness=0
    )
    rows = [{"at": at, "k": k} for at in (1, 5, 12) for k in ("a", "b", "c", "d", "e")]
    host.push(s=pa.Table.from_pylist(rows, schema=SCHEMA))
    return host


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "SELECT k, count(*) AS n FROM s [RANGE 30 SLIDE 10 WATTR at] GROUP BY k",
            "the window was sliding, RANGE 20 SLIDE 10 on `at`, is sliding, RANGE 30",
        ),
        (
            "SELECT count(*) AS n FROM s [RANGE 20 SLIDE 10 WATTR at]",
            "GROUP BY was k string, is nothing",
        ),
        (
            "SELECT k, sum(i) AS n FROM s [RANGE 20 SLIDE 10 WATTR at] GROUP BY k",
            "SELECT was count(*) int64, is sum(i) int64",
        ),
        (
            "SELECT k, count(*) AS n FROM s [RANGE 20 SLIDE 10 WATTR at] WHERE i > 3 GROUP BY k",
            "WHERE was nothing, is i > 3",
        ),
    ],
)
def test_a_changed_query_is_refused_with_what_changed(text: str, told: str) -> None:
    changed = ShardedQuery(text, lateness=0)
    changed.states = two_batches().states
    with pytest.raises(StateError, match="the state of another query") as refused:
        changed.finish()
    assert told in str(refused.value)


def test_a_piece_of_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    host = two_batches()
    monkeypatch.setattr(Count, "VERSION", 2)
    with pytest.raises(StateError, match="another query: of what is stored, count was version 1"):
        host.finish()


def test_a_column_of_another_type_is_refused() -> None:
    text = "SELECT k, max(i) AS high FROM s [RANGE 20 SLIDE 10 WATTR at] GROUP BY k"
    before = ShardedQuery(text, lateness=0)
    rows = pa.Table.from_pylist([{"at": 1, "k": "a", "i": 3}], schema=SCHEMA)
    before.push(s=rows)
    index = SCHEMA.get_field_index("i")
    after = ShardedQuery(text, SCHEMA.set(index, pa.field("i", pa.int32())), lateness=0)
    after.states = before.states
    with pytest.raises(StateError, match=r"SELECT was max\(i\) int64, is max\(i\) int32"):
        after.finish()


def test_a_window_is_compared_by_its_numbers_and_not_by_its_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Windows may be described in better words; that makes no other query of them."""
    host = two_batches()
    monkeypatch.setattr(query_identity, "describe", lambda _: "a window in other words")
    assert len(host.answers(host.finish()))


@pytest.mark.parametrize("version", [1, 3])
def test_another_format_is_refused_by_name(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_state, "_FORMAT", version)
    host = two_batches()
    monkeypatch.undo()
    said = f"a query was written in format {version}; this version of panes reads format 2"
    with pytest.raises(StateError, match=said):
        host.finish()


def test_the_state_of_a_register_is_not_that_of_a_query() -> None:
    host = two_batches()
    table = pa.table({"what": ["a register"], "version": [2]})
    for state in host.states:
        state[ABOUT] = codec.pack({**codec.unpack(state[ABOUT]), "format": table})
    with pytest.raises(StateError, match="that of a register, and not that of a query"):
        host.finish()


def test_another_select_having_or_lateness_goes_on() -> None:
    host = ShardedQuery(
        "SELECT count(*) * 2 AS twice, k FROM s [RANGE 20 SLIDE 10 WATTR at] GROUP BY k "
        "HAVING twice > 1",
        lateness=7,
    )
    host.states = two_batches().states
    assert host.answers(host.finish())["twice"].to_pylist()


def test_another_number_of_shards_is_refused() -> None:
    host = two_batches()
    with pytest.raises(StateError, match="the number of shards was 3, is 4"):
        QueryShard(host.plan, host.terms, host.states[0], shards=4)


def test_what_was_read_lately_is_not_fetched_again() -> None:
    """The digest in `about` names the bytes; a state that lost them is noticed without it."""
    host = two_batches()
    for state in host.states:
        for name in [n for n in state if n != ABOUT]:
            del state[name]
    with pytest.raises(KeyError):  # recalled, and only removing what is not there fails
        host.finish()
    RECALL.clear()
    with pytest.raises(StateError, match="is missing"):
        host.finish()


def test_shards_revise_what_one_process_revises() -> None:
    """8 comes after 11 was promised, to a shard that has forgotten nothing."""
    text = "SELECT k, count(*) AS n FROM t [TUMBLING 10 WATTR at] GROUP BY k"
    schema = pa.schema({"at": pa.int64(), "k": pa.string()})
    host = ShardedQuery(text, schema, lateness=2, late="revise", why=True)
    host.push(t=pa.table({"at": [5, 13], "k": ["a", "a"]}))
    (outcome,) = [o for o in host.push(t=pa.table({"at": [8], "k": ["a"]})) if len(o.answers)]
    assert outcome.answers.to_pylist()[0]["__a0"] == 2
    assert outcome.answers["status"].to_pylist() == ["revised"]
    assert outcome.answers["closed_by"].to_pylist() == ["a late row"]
    assert [r for o in host.finish() for r in o.answers["status"].to_pylist()] == ["final"]


@pytest.mark.parametrize("within", [None, 12])
@pytest.mark.parametrize("early", ["", " EMIT EARLY", " EMIT EARLY EVERY 7"])
@pytest.mark.parametrize("window", ["RANGE 20 SLIDE 10 WATTR at", "RANGE 7 SLIDE 4 WATTR at"])
@settings(max_examples=8)
@given(table=streams, lateness=st.integers(0, 10), sizes=st.lists(st.integers(1, 12), max_size=4))
def test_every_batch_of_early_and_revised_answers_is_that_of_one_process(
    window: str,
    early: str,
    within: int | None,
    table: pa.Table,
    lateness: int,
    sizes: list[int],
) -> None:
    aggregates = ("count(*)", "sum(i)", "max(x)", "median(i)", "min_by(s, i)")
    text = f"SELECT k, {select(aggregates)} FROM t [{window}] GROUP BY k{early}"
    host = ShardedQuery(text, lateness=lateness, late="revise", revise_within=within)
    query = open_query(text, lateness=lateness, late="revise", revise_within=within)
    for batch in in_batches(table, sizes):
        if len(batch):
            assert_same(told(host, host.push(t=batch)), ordered(query.push(t=batch)))
    if query._windows._plan is not None:
        assert_same(told(host, host.finish()), ordered(query.finish()))


def told(host: ShardedQuery, outcomes: Sequence[ShardOutcome]) -> pa.Table:
    """What shards say, with the status of every answer, in one order."""
    tables = [
        projected(host.plan, o.answers).append_column("status", o.answers["status"])
        for o in outcomes
        if len(o.answers)
    ]
    schema = host.plan.schema().append(pa.field("status", pa.string()))
    return ordered(pa.concat_tables([schema.empty_table(), *tables]))


def ordered(answers: pa.Table) -> pa.Table:
    by = ["window_end", "k", "status"]
    return answers.sort_by([(name, "ascending", "at_start") for name in by])


def test_answers_that_wait_in_line_survive_in_the_state() -> None:
    text = "SELECT k, count(*) AS n FROM t [TUMBLING 10 WATTR at] GROUP BY k"
    schema = pa.schema({"at": pa.int64(), "k": pa.int64()})
    host = ShardedQuery(text, schema, lateness=0, flush=panes.SlowFlush(at_most=3))
    host.push(t=pa.table({"at": [1] * 20, "k": list(range(20))}))
    sizes = []
    for _ in range(9):
        outcomes = host.push(t=pa.table({"at": [11], "k": [0]}))
        sizes.append(sum(len(o.answers) for o in outcomes))
    assert max(sizes) <= 3
    assert sum(sizes) == 20
    assert sum(len(o.answers) for o in host.finish()) == 1


def test_a_state_that_kept_no_closed_windows_revises_only_later_ones() -> None:
    """The query went on with late='revise' after a restart: what was forgotten stays so."""
    text = "SELECT k, count(*) AS n FROM t [TUMBLING 10 WATTR at] GROUP BY k"
    schema = pa.schema({"at": pa.int64(), "k": pa.string()})
    host = ShardedQuery(text, schema, lateness=0)
    host.push(t=pa.table({"at": [5, 13], "k": ["a", "a"]}))
    host.terms = replace(host.terms, late="revise")
    outcomes = host.push(t=pa.table({"at": [8, 23], "k": ["a", "a"]}))
    answers = pa.concat_tables([o.answers for o in outcomes])
    assert [(r["window_end"], r["__a0"]) for r in answers.to_pylist()] == [(20, 1)]
    outcomes = host.push(t=pa.table({"at": [14], "k": ["a"]}))
    answers = pa.concat_tables([o.answers for o in outcomes])
    assert [(r["window_end"], r["__a0"]) for r in answers.to_pylist()] == [(20, 2)]
