"""Queries over joins in a register: each is answered as it would be alone, joins are shared."""

from __future__ import annotations

import pyarrow as pa
import pytest

import panes
from tests.engine.registered_joins import BAND, LEFT, QUERIES, RIGHT, registered
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
    with pytest.raises(panes.QueryError, match="takes queries over joins"):
        reg.add("one", "SELECT count(*) AS n FROM l [TUMBLING 5 WATTR at]")
    with pytest.raises(panes.PanesError, match="`z`"):
        reg.add("other", QUERIES["pairs"].replace("FROM l", "FROM z l"))
    with pytest.raises(panes.QueryError, match="no query"):
        reg.remove("nobody")
    with pytest.raises(panes.QueryError, match="answers no questions"):
        reg.ask("SELECT 1")
