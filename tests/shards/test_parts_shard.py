"""Registers of any queries over shards, with their state in dicts: against the oracle.

Queries of all kinds come and go between batches. What a query gives is what the oracle gives over
all rows, of windows from its `exact_from` on: nothing is missing, nothing twice, nothing before.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

from panes.planning.terms import StreamOptions
from panes.sharing.failures import QueriesFailed
from tests.sharded_register import ShardedRegister
from tests.shards.parts_histories import (
    another_column_is_followed,
    assert_exact,
    given_by,
    joins_and_windows_in_one_register,
    nothing_is_kept_of_what_has_gone,
    queries_come_later,
    windows_come_to_joins,
)
from tests.shards.parts_host import SHARDS, PartsHost
from tests.shards.parts_queries import (
    COUNTED,
    LATENESS,
    OVER_SEVERAL,
    WINDOWS,
    batches,
    rows,
)
from tests.support import assert_rows


@pytest.mark.parametrize("late", ["open", "drop"])
def test_all_kinds_of_queries_over_one_stream(late: str) -> None:
    streams = {"s": rows(1)}
    texts = {**WINDOWS, **COUNTED}
    host = PartsHost({"s": streams["s"].schema}, StreamOptions(lateness=LATENESS, late=late))  # type: ignore[arg-type]
    given, exact = given_by(host, [set(texts)] * 4, texts, streams)
    assert set(exact.values()) == {None}
    assert_exact(given, exact, texts, streams)
    assert set(given) == set(texts)


@pytest.mark.parametrize("seed", range(6))
def test_queries_that_come_later_answer_what_they_have_seen_in_full(seed: int) -> None:
    queries_come_later(seed)


@pytest.mark.parametrize("seed", range(4))
def test_joins_and_windows_of_each_stream_in_one_register(seed: int) -> None:
    joins_and_windows_in_one_register(seed)


def test_windows_come_to_a_register_that_only_joins() -> None:
    windows_come_to_joins()


def test_another_column_is_followed_as_long_as_a_query_reads_it() -> None:
    another_column_is_followed()


@pytest.mark.parametrize("name", COUNTED)
def test_what_counts_from_the_first_row_cannot_come_later(name: str) -> None:
    host = PartsHost({"s": rows(1).schema}, StreamOptions(lateness=LATENESS))
    host.add("sums", WINDOWS["sums"])
    first, second = batches(rows(1), 2)
    host.push(s=first)
    host.add(name, COUNTED[name])
    if name != "all":  # `i` orders these rows, and nobody has read it
        with pytest.raises(QueriesFailed, match="may have gone by"):
            host.push(s=second)
        host.remove(name)
        host.add(name, COUNTED[name].replace("WATTR i", "WATTR at"))
    with pytest.raises(QueriesFailed, match="would miss them") as failed:
        host.push(s=second)
    assert list(failed.value.reasons) == [name]


def test_a_column_that_nobody_has_read_is_refused() -> None:
    host = PartsHost({"s": rows(1).schema}, StreamOptions(lateness=LATENESS))
    host.add("sums", WINDOWS["sums"])
    first, second = batches(rows(1), 2)
    host.push(s=first)
    host.add("other", WINDOWS["other"])
    with pytest.raises(QueriesFailed, match="rows of `s` may have gone by") as failed:
        host.push(s=second)
    assert list(failed.value.reasons) == ["other"]


def test_before_the_first_row_nothing_is_missed() -> None:
    host = PartsHost({"s": rows(1).schema}, StreamOptions(lateness=LATENESS))
    host.add("sums", WINDOWS["sums"])
    nothing = rows(1).slice(0, 0)
    host.push(s=nothing)
    host.add("other", WINDOWS["other"])
    host.add("all", COUNTED["all"])
    host.push(s=rows(1))
    assert host.exact_from("other") is None


def test_nothing_is_kept_of_a_query_that_has_gone() -> None:
    nothing_is_kept_of_what_has_gone()


def test_a_register_of_shared_windows_keeps_nothing_more_for_its_parts() -> None:
    """Where there are no other parts, a state is what it was before there could be any."""
    host = PartsHost({"s": rows(1).schema}, StreamOptions(lateness=LATENESS))
    host.add("sums", WINDOWS["sums"])
    for table in batches(rows(1), 3):
        host.push(s=table)
    names = {name for state in host.below for name in state}
    assert {name for name in names if not name[0].isdigit()} == {"about"}


BAD = {
    "shared": "SELECT sum(x + 9223372036854775000) AS a FROM s [TUMBLING 20 WATTR at]",
    "alone": "SELECT sum(x + 9223372036854775000) AS a FROM s [RANGE ALL SLIDE 20 WATTR at]",
}


@pytest.mark.parametrize("bad", BAD)
def test_a_query_that_fails_is_named(bad: str) -> None:
    host = PartsHost({"s": rows(1).schema}, StreamOptions(lateness=LATENESS))
    for name, text in {"sums": WINDOWS["sums"], "bad": BAD[bad], "all": COUNTED["all"]}.items():
        host.add(name, text)
    with pytest.raises(QueriesFailed) as failed:
        host.push(s=rows(1))
    assert list(failed.value.reasons) == ["bad"]


def test_late_rows_are_told_of_once_for_each_stream() -> None:
    streams = {"s": rows(1), "r": rows(2)}
    texts = {**WINDOWS, **COUNTED, **OVER_SEVERAL}
    host = PartsHost({n: t.schema for n, t in streams.items()}, StreamOptions(lateness=0))
    for name, text in texts.items():
        host.add(name, text)
    for some in zip(*(batches(table, 3) for table in streams.values()), strict=True):
        host.push(**dict(zip(streams, some, strict=True)))
    late = streams["s"].slice(0, 5)
    before = dict(host.late)
    host.push(s=late, r=streams["r"].slice(0, 0))
    assert host.late == {"s": before["s"] + 5, "r": before["r"]}


def test_twins_over_a_join_keep_their_panes_once() -> None:
    streams = {"s": rows(1), "r": rows(2)}
    text = OVER_SEVERAL["per k"]

    def run(names: list[str]) -> tuple[dict[str, list[pa.Table]], int]:
        host = PartsHost(
            {n: t.schema for n, t in streams.items()}, StreamOptions(lateness=LATENESS)
        )
        given, exact = given_by(host, [set(names)] * 3, dict.fromkeys(names, text), streams)
        assert_exact(given, exact, dict.fromkeys(names, text), streams)
        held = len([name for state in host.states[1] for name in state if name != "ledger"])
        return given, held

    alone, held = run(["one"])
    both, held_by_both = run(["one", "two"])
    assert held_by_both == held
    assert_rows(pa.concat_tables(both["two"]), pa.concat_tables(alone["one"]))


def test_a_state_from_before_there_were_parts_goes_on() -> None:
    """Shards of shared windows alone wrote it, under names without a prefix."""
    table, text = rows(5), WINDOWS["sums"]
    parts = batches(table, 3)
    before = ShardedRegister("s", StreamOptions(lateness=LATENESS), table.schema, shards=SHARDS)
    before.add("sums", text)
    given = {"sums": [before.push(parts[0])["sums"]]}
    host = PartsHost({"s": table.schema}, StreamOptions(lateness=LATENESS))
    host.below = before.states
    host.add("sums", text)
    host.add("early", WINDOWS["early"])
    exact = {name: host.exact_from(name) for name in ("sums", "early")}
    assert exact["sums"] is None
    assert isinstance(exact["early"], int)
    for part in parts[1:]:
        for name, answers in host.push(s=part).items():
            given.setdefault(name, []).append(answers)
    for name, answers in host.finish().items():
        given.setdefault(name, []).append(answers)
    assert_exact(given, exact, WINDOWS, {"s": table})
