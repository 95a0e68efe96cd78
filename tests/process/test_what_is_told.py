"""What queries and registers tell of themselves, and of files that are another's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import panes
from panes.errors import QueryError, StateError
from panes.process.register import Register

ROWS = pa.table({"at": [1, 2, 12], "k": [1, 2, 1], "x": [1.0, 2.0, 3.0]})
COUNT = "SELECT count(*) AS n FROM t [TUMBLING 10 WATTR at]"
COUNT_TIME = "SELECT count(*) AS n FROM t [TUMBLING 10 seconds WATTR ts]"
JOIN = "SELECT l.at FROM l JOIN r ON r.at BETWEEN l.at AND l.at + 1"


def register(**options: object) -> Register:
    opened = panes.register("t", lateness=0)
    opened.add("n", COUNT)
    return opened


def test_queries_and_registers_are_told_from_each_other_at_a_prompt() -> None:
    query, join = panes.open(COUNT, lateness=0), panes.open(JOIN, lateness=0)
    joins = panes.register(("l", "r"), lateness=0)
    joins.add("j", JOIN)
    query.push(t=ROWS)
    assert repr(query) == f"<OpenQuery {COUNT}: open, 3 rows came>"
    assert repr(join) == f"<OpenJoin {JOIN}: open>"
    assert repr(register()) == "<Register of t: open, queries=1, failed=0>"
    assert repr(joins) == "<Register of l, r: open, queries=1, failed=0>"
    query.finish()
    assert repr(query) == f"<OpenQuery {COUNT}: finished>"
    graph = panes.open(f"SELECT max(n) AS m FROM ({COUNT}) [TUMBLING 30]", lateness=0)
    assert repr(graph).endswith("[TUMBLING 30]: open, 2 parts>")
    index = panes.window_index(ROWS.schema, at="at", size=20, basic=10, on="x", kind="list")
    assert repr(index) == "<WindowIndex on x: no index yet, 0 rows>"
    index.add(ROWS)
    index.advance(10)
    assert repr(index) == "<WindowIndex on x: list, 2 rows>"


def test_the_package_shows_its_public_names_only() -> None:
    assert dir(panes) == sorted(panes.__all__)
    assert {"pa", "Any", "cells", "html"}.isdisjoint(dir(panes))
    assert all(getattr(panes, name) is not None for name in panes.__all__)


def test_progress_after_the_end_is_where_the_rows_ended() -> None:
    #  rows  1  2 . . . 12        progress   12 ─► finish ─► 13
    query, many = panes.open(COUNT, lateness=0), register()
    query.push(t=ROWS)
    many.push(ROWS)
    for one in (query, many):
        assert one.progress == 12
        one.finish()
        assert one.progress == 13
        assert one.is_finished
    join, joins = panes.open(JOIN, lateness=0), panes.register(("l", "r"), lateness=0)
    joins.add("j", JOIN)
    for both in (join, joins):
        both.push(l=ROWS, r=ROWS)
        both.finish()
    assert join.progress == {"l": 13, "r": 13}
    assert joins.progress == 13


@pytest.mark.parametrize("options", [{}, {"lateness": "1 minute"}], ids=["none", "lateness"])
def test_progress_after_the_end_is_where_the_rows_ended_in_time_too(options: Any) -> None:
    """Whatever says when windows close, and where a SELECT inside FROM makes the position."""
    ended = 12_000_001
    for text in (
        COUNT_TIME,
        COUNT_TIME.replace("t [", "(SELECT timestamp_millis(ms) AS ts FROM t) ["),
    ):
        query = panes.open(text, **options)
        times = pa.array([5, 12, 7], pa.timestamp("s", "UTC"))
        query.push(t=pa.table({"ts": times, "ms": [5_000, 12_000, 7_000]}))
        query.finish()
        assert query.progress == ended


def test_a_promise_may_reach_further_than_the_rows_ever_did() -> None:
    query, many = panes.open(COUNT, lateness=0), register()
    query.push(t=ROWS)
    many.push(ROWS)
    query.punctuate(t=100)
    many.punctuate(100)
    for one in (query, many):
        one.finish()
        assert one.progress == 100


def test_state_and_explain_of_a_register_agree() -> None:
    many = register()
    assert "1 query waits for the first batch" in many.explain()
    assert many.state["queries"] == 1
    many.push(ROWS)
    assert "1 query in 1 store" in many.explain()
    many.finish()
    assert "`t` has ended: 1 query, and nothing is stored any more" in many.explain()
    assert (many.state["queries"], many.state["stores"]) == (1, 0)


def test_a_question_is_told_what_differs() -> None:
    many = register()
    many.add("by", "SELECT k, sum(x) AS s FROM t [TUMBLING 10 WATTR at] GROUP BY k")
    many.push(ROWS)
    with pytest.raises(QueryError, match=r"answers sum\(x\) over all rows together") as refused:
        many.ask("SELECT sum(x) AS s FROM t [RANGE 10 WATTR at]")
    assert "filter" not in str(refused.value)
    with pytest.raises(QueryError, match=r"answers max\(x\) by k\n"):
        many.ask("SELECT k, max(x) AS s FROM t [RANGE 10 WATTR at] GROUP BY k")
    with pytest.raises(QueryError, match=r"answers count\(\*\) over all rows together with that"):
        many.ask("SELECT count(*) AS n FROM t [RANGE 10 WATTR at] WHERE x > 1")


def test_a_file_of_another_register_is_not_written_over(tmp_path: Path) -> None:
    """Two registers, one file: whoever saved it or read it last may save it again.

    first saves ── second saves: refused ── second reads, saves ── first saves: refused
    """
    file = tmp_path / "t.register"
    first, second = register(), register()
    for one in (first, second):
        one.push(ROWS)
    first.save(file)
    first.save(file)
    with pytest.raises(StateError, match=r"another register of `t` \(2 times so far\)") as refused:
        second.save(file)
    assert "reg.save(path, overwrite=True)" in str(refused.value)
    third = panes.register("t", lateness=0, saved=file)
    third.save(file)
    with pytest.raises(StateError, match="another register"):
        first.save(file)
    first.save(file, overwrite=True)
    first.save(file)


def test_another_file_is_not_written_over_either(tmp_path: Path) -> None:
    file = tmp_path / "letter.txt"
    file.write_text("dear reader")
    one = register()
    one.push(ROWS)
    with pytest.raises(StateError, match="is no saved register, and would be lost"):
        one.save(file)
    assert file.read_text() == "dear reader"
    file.write_text("")
    one.save(file)


def test_an_aggregate_of_ones_own_takes_as_many_columns_as_its_lift() -> None:
    weighted = panes.CustomAggregate(
        name="weighted",
        lift=lambda x, w: np.stack([x.to_numpy() * w.to_numpy(), w.to_numpy()]).astype(float),
        combine=np.add,
        lower=lambda p: p[0] / p[1],
        empty=(0.0, 0.0),
        type=pa.float64(),
    )
    text = "SELECT weighted(x, k) AS a FROM t [TUMBLING 20 WATTR at]"
    answers = panes.sql(text, aggregates=[weighted], t=ROWS)
    assert answers["a"].to_pylist() == [(1 + 4 + 3) / 4]
    with pytest.raises(QueryError, match="2 columns"):
        panes.sql(text.replace("x, k", "x"), aggregates=[weighted], t=ROWS)
    summed = panes.CustomAggregate(
        name="summed", lift=lambda x, scale=2.0: x.to_numpy()[None, :] * scale, combine=np.add,
        lower=lambda p: p[0], empty=(0.0,), type=pa.float64(),
    )  # fmt: skip
    text = "SELECT summed(x) AS a FROM t [TUMBLING 20 WATTR at]"
    assert panes.sql(text, aggregates=[summed], t=ROWS)["a"].to_pylist() == [12.0]
