"""Joins of streaming DataFrames: what the oracle gives, as soon as it is known, and restarts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import panes
import panes.spark
from panes.errors import OptionError, QueryError
from panes.spark.observe import JOIN, name_among
from tests.join_queries import ABOVE, AS_OF, BANDS, CHAINS, ONE_STREAM, START, THIRD, WINDOWS, L, R
from tests.spark.streaming import (
    as_batches,
    at_seconds,
    found,
    in_thirds,
    metrics,
    nearly_ordered,
    read_stream,
    run_to_end,
)
from tests.support import assert_rows, read, slow

TABLES = {"l": L, "r": R, "t": THIRD}
NEAR = "r.ts BETWEEN l.ts - INTERVAL 3 SECONDS AND l.ts + INTERVAL 4 SECONDS"
LEFT = f"SELECT l.id, r.id AS j FROM l LEFT JOIN r ON l.k = r.k AND {NEAR}"
QUERIES = [
    WINDOWS[3],
    ABOVE[1],
    ONE_STREAM[0],
    *map(slow, (*ONE_STREAM[1:3], *CHAINS)),
    *map(slow, (BANDS[0], BANDS[5], BANDS[17], BANDS[20], BANDS[21], BANDS[22])),
    *map(slow, (AS_OF[0], AS_OF[-1], ABOVE[0], ABOVE[2], ABOVE[4], ABOVE[5], ABOVE[6])),
]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The rows of each stream in two files, nearly in order."""
    place = tmp_path_factory.mktemp("streams")
    found = {}
    for name, table in TABLES.items():
        first, *others = in_thirds(_in_order(table))
        found[name] = as_batches(place / name, [first, pa.concat_tables(others)])
    return found


def _in_order(table: pa.Table) -> pa.Table:
    """Rows by their position, which is the same on both axes; those without one come first."""
    both = zip(table["at"].to_pylist(), table["ts"].to_pylist(), strict=True)
    by = [at or (0 if ts is None else (ts - START).seconds) for at, ts in both]
    filled = table.append_column("by", pa.array(by))
    return nearly_ordered(filled, "by", within=6).drop_columns(["by"])


def lateness(text: str, seconds: int = 60) -> str | int:
    return f"{seconds} seconds" if "ts" in text else seconds


@pytest.mark.parametrize("text", QUERIES)
def test_a_join_of_streams_equals_the_oracle(
    spark: SparkSession, folders: dict[str, Path], tmp_path: Path, text: str
) -> None:
    names = read(text).streams
    streams: dict[str, Any] = {name: read_stream(spark, folders[name]) for name in names}
    joined = panes.sql(text, lateness=lateness(text), bounded=True, **streams)
    query = run_to_end(joined, tmp_path)
    want = panes.oracle(text, **{name: TABLES[name] for name in names})
    assert_rows(found(spark, tmp_path / "out"), want)
    name = f"{name_among(query.recentProgress[-1]['observedMetrics'])}{JOIN * (text in ABOVE)}"
    assert metrics(query, name)[-1]["partials"] == 0, "the state returns to nothing"


def side(*seconds: float | None, first: int = 0, k: str = "a") -> pa.Table:
    ids: list[object] = list(range(first, first + len(seconds)))
    return at_seconds(*seconds, id=ids, k=[k] * len(seconds))


@pytest.mark.slow
def test_rows_are_given_in_the_batch_that_proves_them(spark: SparkSession, tmp_path: Path) -> None:
    """A pair when its second row comes; a lone row when the other stream has passed its band.

    batch   left            right        given
    0       id 0 at 10      at 100       nothing: no promise had been made before
    1       id 1 at 101     at 102       the pair of 101 and 100, that of 101 and 102
    2       late row at 20  at 200       nothing that was lost; 20 is reported late
    """
    left = [side(10), side(101, first=1), side(20, first=2)]
    right = [side(100), side(102, first=1), side(200, first=2)]
    streams: dict[str, Any] = {
        name: read_stream(spark, as_batches(tmp_path / name, tables))
        for name, tables in {"l": left, "r": right}.items()
    }
    tagged = panes.sql(LEFT, lateness="1 second", with_late=True, **streams)
    sinks = {name: tmp_path / name for name in ("answers", "late", "rejected")}
    query = (
        tagged.writeStream.foreachBatch(panes.spark.split(**sinks))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    here = panes.open(LEFT, lateness="1 second")
    given = [here.push(l=a, r=b) for a, b in zip(left, right, strict=True)]
    assert [m["answers"] for m in metrics(query)] == [len(g) for g in given] == [1, 2, 0]
    assert_rows(found(spark, sinks["answers"]).drop_columns(["batch"]), pa.concat_tables(given))
    assert_rows(found(spark, sinks["late"]).drop_columns(["batch"]), here.late)
    assert [m["late"] for m in metrics(query)] == [0, 0, 1]


@pytest.mark.slow
def test_rows_that_a_join_sets_aside_are_given_beside_the_windows_above_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The second batch has a row that is late, and one without a position."""
    left = [side(1, 2, 3), side(0.5, None, 40, first=3)]
    right = [side(2, 20), side(41, first=2)]
    streams: dict[str, Any] = {
        name: read_stream(spark, as_batches(tmp_path / name, tables))
        for name, tables in {"l": left, "r": right}.items()
    }
    text = "SELECT count(*) AS n [TUMBLING 2 seconds WATTR l.ts] FROM l JOIN r ON l.k = r.k AND "
    text += NEAR
    tagged = panes.sql(text, lateness="1 second", with_late=True, **streams)
    sinks = {name: tmp_path / name for name in ("answers", "late", "rejected")}
    query = (
        tagged.writeStream.foreachBatch(panes.spark.split(**sinks))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    here = panes.open(text, lateness="1 second")
    given = [here.push(l=a, r=b) for a, b in zip(left, right, strict=True)]
    assert len(here.late) == len(here.rejected) == 1
    for sink, want in {"answers": pa.concat_tables(given), "late": here.late,
                       "rejected": here.rejected}.items():  # fmt: skip
        assert_rows(found(spark, sinks[sink]).drop_columns(["batch"]), want)


def start(spark: SparkSession, place: Path, text: str = LEFT, **options: Any) -> StreamingQuery:
    streams: dict[str, Any] = {name: read_stream(spark, place / name) for name in "lr"}
    return run_to_end(panes.sql(text, **{"lateness": "5 seconds", **options}, **streams), place)


@pytest.mark.slow
@pytest.mark.parametrize("text", [LEFT, *map(slow, (ABOVE[1], ABOVE[6]))])
def test_a_join_goes_on_from_its_checkpoint(spark: SparkSession, tmp_path: Path, text: str) -> None:
    """Stopped after one batch; the second batch runs again after a crash before its commit."""
    allowed = lateness(text, 8)
    thirds = {name: in_thirds(_in_order(TABLES[name])) for name in "lr"}
    for name in "lr":
        as_batches(tmp_path / name, thirds[name][:1])
    start(spark, tmp_path, text, lateness=allowed)
    for name in "lr":
        as_batches(tmp_path / name, thirds[name][1:2], first=1)
    start(spark, tmp_path, text, lateness=allowed)
    for path in (tmp_path / "checkpoint" / "commits").iterdir():
        if path.name.strip(".").startswith("1"):
            path.unlink()
    for name in "lr":
        as_batches(tmp_path / name, thirds[name][2:], first=2)
    start(spark, tmp_path, text, lateness=allowed, bounded=False)
    here = panes.open(text, lateness=allowed)
    batches = zip(thirds["l"], thirds["r"], strict=True)
    given = [here.push(l=one, r=other) for one, other in batches]
    assert all(map(len, given[1:])), "every batch but the first has answers"
    assert_rows(found(spark, tmp_path / "out"), pa.concat_tables(given))


@pytest.mark.slow
def test_the_checkpoint_of_another_join_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    for name in "lr":
        as_batches(tmp_path / name, [side(1)])
    start(spark, tmp_path)
    for name in "lr":
        as_batches(tmp_path / name, [side(2)], first=1)
    with pytest.raises(StreamingQueryException, match="the band of l and r was"):
        start(spark, tmp_path, LEFT.replace("4 SECONDS", "5 SECONDS"))


def test_what_streams_cannot_do_is_refused(spark: SparkSession, folders: dict[str, Path]) -> None:
    streams: dict[str, Any] = {name: read_stream(spark, folders[name]) for name in "lr"}
    with pytest.raises(OptionError, match="every row would be kept for ever"):
        panes.sql(LEFT, **streams)
    with pytest.raises(QueryError, match="keep every row of `l` for ever"):
        panes.sql("SELECT l.id FROM l JOIN r ON l.k = r.k AND r.at >= l.at", lateness=1, **streams)
    with pytest.raises(OptionError, match="late='revise' is for windows over one stream"):
        panes.sql(LEFT, lateness="1 second", late="revise", **streams)
    grouped = "SELECT l.at, count(*) AS n FROM l RIGHT JOIN r ON r.at BETWEEN l.at AND l.at + 1"
    with pytest.raises(QueryError, match="would be kept for ever in one group"):
        panes.sql(f"{grouped} GROUP BY l.at", lateness=1, **streams)


def test_explain_says_where_rows_of_streams_go(
    spark: SparkSession, folders: dict[str, Path]
) -> None:
    streams: dict[str, Any] = {name: read_stream(spark, folders[name]) for name in "lr"}
    said = panes.explain(LEFT, **streams)
    assert "rows go to the shard of their key, l.k = r.k" in said
    said = panes.explain(f"SELECT l.id FROM l JOIN r ON {NEAR}", **streams)
    assert "all rows go to one shard: the join has no keys" in said
