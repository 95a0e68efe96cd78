"""Queries over joins in a register: each is answered as it would be alone, joins are shared."""

from __future__ import annotations

import pyarrow as pa
import pytest

import panes
from tests.process.registered_joins import BAND, LEFT, QUERIES, RIGHT, registered
from tests.support import assert_rows


def all_answers(reg: panes.JoinRegister, *batches: dict[str, pa.Table]) -> dict[str, pa.Table]:
    rounds = [*(reg.push(**batch) for batch in batches), reg.finish()]
    return {
        name: pa.concat_tables([r[name] for r in rounds if name in r]) for name in reg.queries()
    }


@pytest.mark.parametrize("cut", range(5))
def test_each_query_is_answered_as_it_would_be_alone(cut: int) -> None:
    reg = registered()
    found = all_answers(
        reg,
        {"l": LEFT.slice(0, cut)},
        {"r": RIGHT.slice(0, cut)},
        {"l": LEFT.slice(cut), "r": RIGHT.slice(cut)},
    )
    for name, text in QUERIES.items():
        assert_rows(found[name], panes.oracle(text, l=LEFT, r=RIGHT))


def test_queries_with_the_same_join_share_it() -> None:
    """Three differ in what they select, filter and aggregate; two others join otherwise."""
    reg = registered()
    reg.push(l=LEFT, r=RIGHT)
    assert reg.state["joins"] == 3
    assert "queries    pairs, dear, counted\n" in reg.explain()


def test_a_query_that_is_removed_takes_its_join_with_it() -> None:
    reg = registered()
    reg.push(l=LEFT, r=RIGHT)
    for name in ("pairs", "dear", "counted"):
        reg.remove(name)
    assert reg.state["joins"] == 2
    assert list(reg.queries()) == ["windows", "spent"]


def test_a_query_that_is_added_later_joins_with_what_is_stored() -> None:
    reg = panes.register(("l", "r"), lateness=0)
    reg.add("pairs", QUERIES["pairs"])
    reg.push(l=LEFT.slice(0, 1), r=RIGHT.slice(0, 0))
    reg.add("dear", QUERIES["dear"].replace("> 5", ">= 5"))
    assert reg.push(r=RIGHT.slice(0, 1))["dear"].to_pylist() == [{"id": 0, "x": 5}]


def test_a_query_that_fails_is_set_aside_and_the_others_go_on() -> None:
    reg = panes.register(("l", "r"), lateness=0)
    reg.add("pairs", QUERIES["pairs"])
    reg.add("bad", f"SELECT r.x * 9223372036854775807 AS n {BAND}")
    with pytest.warns(panes.FailedQueryWarning, match="bad"):
        given = reg.push(l=LEFT, r=RIGHT)
    assert len(given["pairs"]) == 4
    assert list(reg.failed) == ["bad"]
    assert list(reg.queries()) == ["pairs"]


def test_what_a_register_of_joins_cannot_take_is_refused() -> None:
    reg = registered()
    with pytest.raises(panes.QueryError, match="already"):
        reg.add("pairs", QUERIES["pairs"])
    with pytest.raises(panes.PanesError, match="reads z"):
        reg.add("other", QUERIES["pairs"].replace("FROM l", "FROM z l"))
    with pytest.raises(panes.QueryError, match="no query"):
        reg.remove("nobody")
    with pytest.raises(panes.QueryError, match="answers no questions"):
        reg.ask("SELECT 1")


UNFIT = {
    "unknown column": f"SELECT r.nothing AS n {BAND}",
    "another axis": QUERIES["pairs"].replace("WATTR at", "WATTR k2"),
    "text as axis": QUERIES["pairs"].replace("WATTR at", "WATTR s"),
    "type error": f"SELECT l.id + l.s AS n {BAND} AND array_contains(l.id, 1)",
    "no band": "SELECT l.id FROM l JOIN r ON l.k = r.k",
    "for ever": "SELECT l.id FROM l JOIN r ON r.at >= l.at",
}
WITH_TEXT = LEFT.append_column("s", pa.array(["a", "b", "c", "d"]))


@pytest.mark.parametrize("name", UNFIT)
def test_a_query_that_does_not_fit_the_columns_stops_nobody_else(name: str) -> None:
    """Once they are known, it is refused as it is added; before, it is set aside by its name."""
    reg = registered()
    reg.add(name, UNFIT[name])
    batch = {"l": WITH_TEXT, "r": RIGHT}
    with pytest.warns(panes.FailedQueryWarning, match=f"query `{name}` failed and is set aside"):
        given = [reg.push(**batch), reg.finish()]
    assert list(reg.failed) == [name]
    for query, text in QUERIES.items():
        found = pa.concat_tables([answers[query] for answers in given])
        assert_rows(found, panes.oracle(text, **batch))
    known = registered()
    known.push(**batch)
    with pytest.raises(panes.PanesError):
        known.add(name, UNFIT[name])
    assert list(known.queries()) == list(QUERIES)
    assert not known.failed


def test_a_batch_that_fits_no_query_is_refused() -> None:
    """Rather than all queries, the batch is wrong."""
    reg = registered()
    with pytest.raises(panes.PanesError, match="query `pairs`: no column `at` in stream `l`"):
        reg.push(l=LEFT.rename_columns(["att", "k", "id"]), r=RIGHT)
    assert not reg.failed
    assert len(all_answers(reg, {"l": LEFT, "r": RIGHT})["pairs"]) == 4


def test_a_query_that_fails_on_rows_that_waited_for_it_is_set_aside() -> None:
    """They came before the columns of its other side were known."""
    reg = panes.register(("l", "r", "m"), lateness=0)
    reg.add("pairs", QUERIES["pairs"])
    reg.add("bad", "SELECT l.id FROM l JOIN m ON l.k = m.k AND 1 / l.k > 0 "
            "AND m.at BETWEEN l.at AND l.at + 3")  # fmt: skip
    zero = LEFT.set_column(1, "k", pa.array([0, 0, 0, 0]))
    reg.push(l=zero, r=RIGHT)
    with pytest.warns(panes.FailedQueryWarning, match="bad"):
        reg.push(l=LEFT, r=RIGHT, m=RIGHT)
    assert list(reg.queries()) == ["pairs"]


def test_a_promise_that_cannot_be_meant_is_refused_and_stops_no_query() -> None:
    reg = registered()
    reg.push(l=LEFT, r=RIGHT)
    for promise in ("2026-01-01", "soon"):
        with pytest.raises(panes.PanesError, match="`l` has no time axis"):
            reg.punctuate(l=promise)
    assert list(reg.queries()) == list(QUERIES)


def test_queries_over_a_union_may_come_before_one_of_its_streams() -> None:
    reg = panes.register(("l", "r", "m"), lateness=0)
    union = "SELECT u.id, r.x FROM (l UNION ALL m) u JOIN r ON r.at BETWEEN u.at AND u.at + 1"
    reg.add("pairs", QUERIES["pairs"])
    reg.push(l=LEFT, r=RIGHT)
    assert reg.add("union", union).exact_from == 13
    reg.push(m=LEFT)
    assert reg.add("again", union + " AND u.id > 1").exact_from == 13
