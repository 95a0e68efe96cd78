"""Registers on Spark of queries that share no panes, beside those that do: against the oracle.

What shards do of any history is tested without Spark (`tests.shards.test_parts_shard`). Here are
real streams, whose queries come later, fail, and are there again after a restart.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

import panes
from panes.errors import FailedQueryWarning, QueryError
from tests.shards.parts_queries import (
    COUNTED,
    LATENESS,
    OVER_SEVERAL,
    WINDOWS,
    batches,
    final,
    rows,
    wanted_of,
)
from tests.spark.streaming import as_batches, found, read_stream
from tests.support import assert_rows

ENDS = 140
"""Up to here everything has been answered once the last row has come."""


def with_last(table: pa.Table) -> pa.Table:
    """Rows, and one that is far behind all others, so that their windows close."""
    last = {"at": [1_000], "b": [2_000], "i": [10_000], "k": [9], "x": [0]}
    return pa.concat_tables([table, pa.table(last, schema=table.schema)])


def closed(table: pa.Table) -> pa.Table:
    """Answers of windows that have closed, whatever their positions are."""
    name = "window_end" if "window_end" in table.column_names else "at"
    return table if name not in table.column_names else table.filter(pc.less(table[name], ENDS))


def assert_given(
    spark: SparkSession, out: Path, name: str, text: str, exact: object, streams: dict[str, Any]
) -> None:
    got = found(spark, out / f"query={name}").drop_columns(["batch"])
    assert len(got), name
    assert_rows(closed(final([got])), closed(wanted_of(text, exact, streams)))


@pytest.mark.slow
def test_any_query_over_one_stream_comes_and_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    table = with_last(rows(1))
    parts = batches(table, 3)
    place: dict[str, Any] = {
        "checkpoint": str(tmp_path / "state"),
        "sink": str(tmp_path / "out"),
        "late": str(tmp_path / "late"),
    }
    frame = read_stream(spark, as_batches(tmp_path / "in", parts[:1]))
    texts = {**WINDOWS, **COUNTED}
    later = {"large", "per row"}
    reg = panes.register("s", frame, lateness=LATENESS, late="drop")
    for name in texts.keys() - later:
        reg.add(name, texts[name])
    with pytest.raises(QueryError, match="answers no joins"):
        reg.add("join", "SELECT a.i FROM s a JOIN s b ON a.k = b.k AND b.at BETWEEN a.at AND a.at")
    with pytest.raises(QueryError, match="no SELECT inside FROM"):
        reg.add("inner", "SELECT count(*) AS n FROM (SELECT at FROM s) [TUMBLING 10 WATTR at]")
    assert "with a state of its own" in reg.explain()
    reg.start(**place).process_all_available()

    too_late = "SELECT count(*) AS n FROM s [RANGE ALL SLIDE 30 WATTR at]"
    reg.change(add={name: texts[name] for name in sorted(later)} | {"too late": too_late})
    exact = {name: reg.exact_from(name) for name in later}
    assert None not in exact.values()
    as_batches(tmp_path / "in", parts[1:2], first=1)
    with pytest.warns(FailedQueryWarning, match="windows over ALL rows would miss them"):
        reg.process_all_available()
    assert list(reg.failed) == ["too late"]
    reg.remove("twice")
    reg.stop()

    again = panes.register("s", frame, lateness=LATENESS, late="drop")
    again.add("new", "SELECT k, count(*) AS n FROM s [TUMBLING 30 WATTR at] GROUP BY k")
    again.start(**place)
    assert list(again.failed) == ["too late"]
    assert again.queries().keys() == texts.keys() - {"twice"} | {"new"}
    assert {name: again.exact_from(name) for name in later} == exact
    assert again.exact_from("other") is None
    late = table.slice(0, 4)
    as_batches(tmp_path / "in", [pa.concat_tables([parts[2], late])], first=2)
    again.process_all_available()
    again.stop()
    told = found(spark, tmp_path / "late").drop_columns(["batch"])
    assert_rows(told.drop_columns(["reason"]), late)
    for name in texts.keys() - {"twice"}:
        exact_from = exact.get(name)
        assert_given(spark, tmp_path / "out", name, texts[name], exact_from, {"s": table})


@pytest.mark.slow
def test_windows_and_joins_of_several_streams(spark: SparkSession, tmp_path: Path) -> None:
    streams = {"s": with_last(rows(1)), "r": with_last(rows(2))}
    parts = {name: batches(table, 2) for name, table in streams.items()}
    for name in streams:
        as_batches(tmp_path / name, parts[name][:1])
    frames = {name: read_stream(spark, tmp_path / name) for name in streams}
    place: dict[str, Any] = {
        "checkpoint": str(tmp_path / "state"),
        "sink": str(tmp_path / "out"),
        "late": str(tmp_path / "late"),
    }
    texts = {**OVER_SEVERAL, "twin": OVER_SEVERAL["per k"], "sums": WINDOWS["sums"]}
    bad = "SELECT sum(1 / (x - x)) AS a FROM r [TUMBLING 10 WATTR at]"
    reg = panes.register(("s", "r"), frames, lateness=LATENESS)
    for name, text in {**texts, "bad": bad}.items():
        if name != "sums":
            reg.add(name, text)
    with pytest.warns(FailedQueryWarning, match="`bad`"):
        reg.start(**place).process_all_available()
    reg.stop()

    again = panes.register(("s", "r"), frames, lateness=LATENESS)
    again.start(**place)
    assert list(again.failed) == ["bad"]
    assert again.queries() == {n: t for n, t in texts.items() if n != "sums"}
    exact = again.add("sums", texts["sums"]).exact_from
    assert exact is not None
    for name in streams:
        as_batches(tmp_path / name, parts[name][1:], first=1)
    again.process_all_available()
    assert again.exact_from("sums") == exact
    assert again.exact_from("twin") is None
    again.stop()
    for name, text in texts.items():
        exact_from = exact if name == "sums" else None
        if name == "pairs":
            got = found(spark, tmp_path / "out" / "query=pairs").drop_columns(["batch"])
            assert_rows(got, panes.oracle(text, **streams))
            continue
        assert_given(spark, tmp_path / "out", name, text, exact_from, streams)
