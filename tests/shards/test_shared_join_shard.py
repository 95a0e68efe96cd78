"""Shards of a register over joins, with their state in dicts: what Spark will host, without Spark.

Every shard is built anew from its bytes in every batch. What a batch gives must be what a register
in one process gives, query by query and batch by batch, while queries come and go.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pytest

import panes
from panes.planning.terms import StreamOptions
from panes.sharing.failures import QueriesFailed
from tests.join_queries import NEAR_AT, REGISTERED, L, R, batches
from tests.shards.parts_host import PartsHost
from tests.shards.shared_joins_host import Host
from tests.support import assert_rows

LATENESS = 6


def hosted() -> Host:
    return Host({"l": L.schema, "r": R.schema}, LATENESS)


def assert_same(got: Mapping[str, pa.Table], want: Mapping[str, pa.Table]) -> None:
    assert got.keys() == want.keys()
    for name, table in want.items():
        assert got[name].schema.names == table.schema.names, name
        assert_rows(got[name], table)


def test_queries_of_a_register_share_joins_and_answer_as_in_one_process() -> None:
    host, here = hosted(), panes.register(("l", "r"), lateness=LATENESS)
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
    host, here = hosted(), panes.register(("l", "r"), lateness=LATENESS)
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
    host = hosted()
    host.run({"pairs": REGISTERED["pairs"], "bad": BAD[bad], "sums": REGISTERED["sums"]})
    with pytest.raises(QueriesFailed) as failed:
        host.push(l=L, r=R)
    assert list(failed.value.reasons) == ["bad"]


def test_windows_over_all_rows_that_come_later_are_named() -> None:
    host = hosted()
    first = {"pairs": REGISTERED["pairs"]}
    everything = f"SELECT count(*) AS n [RANGE ALL SLIDE 20 WATTR l.at] {NEAR_AT}"
    halves = list(zip(batches(L, 2), batches(R, 2), strict=True))
    host.run(first)
    host.push(l=halves[0][0], r=halves[0][1])
    host.run({**first, "all": everything})
    with pytest.raises(QueriesFailed, match="windows over ALL rows would miss them"):
        host.push(l=halves[1][0], r=halves[1][1])


def test_a_changed_text_begins_anew() -> None:
    host = hosted()
    host.run({"sums": REGISTERED["sums"]})
    before = host.joins[0].queries[0].key
    host.run({"sums": REGISTERED["sums"].replace("RANGE 10", "RANGE 15")})
    assert host.joins[0].queries[0].key != before


def test_a_join_that_comes_later_has_heard_what_was_promised() -> None:
    """A row that was late before the query came meets none that would be forgotten by then."""
    host = PartsHost({"l": L.schema, "r": R.schema}, StreamOptions(lateness=LATENESS))
    here = panes.register(("l", "r"), lateness=LATENESS)
    for name in ("l", "r"):
        host.add(name, f"SELECT count(*) AS n FROM {name} [TUMBLING 10 WATTR at]")
        here.add(name, f"SELECT count(*) AS n FROM {name} [TUMBLING 10 WATTR at]")
    host.push(l=_at(L, [21]), r=_at(R, [5]))
    here.push(l=_at(L, [21]), r=_at(R, [5]))
    text = "SELECT l.at AS a, r.at AS b FROM l JOIN r ON r.at BETWEEN l.at - 1 AND l.at + 3"
    host.add("pairs", text)
    here.add("pairs", text)
    later = {"l": _at(L, [12, 20]), "r": _at(R, [12, 18, 19])}
    want = here.push(**later)["pairs"].to_pylist()
    assert host.push(**later)["pairs"].to_pylist() == want == [{"a": 20, "b": 19}]


def _at(table: pa.Table, at: list[int]) -> pa.Table:
    """Rows of a table at these positions."""
    rows = table.slice(0, len(at))
    return rows.set_column(rows.schema.get_field_index("at"), "at", pa.array(at, pa.int64()))
