"""`panes register`, as a user calls it: many queries of a folder over one stream."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import panes
from panes.sample_streams import bids
from tests.cli.call import QUERY, call, call_here
from tests.spark.streaming import found
from tests.support import assert_rows, assert_same

QUERIES = {
    "high": QUERY,
    "all": "SELECT count(*) AS n FROM bids [RANGE 20 minutes SLIDE 5 minutes WATTR ts];\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    table = bids(2_000, keys=5, hours=1)
    pq.write_table(table, tmp_path / "bids.parquet", row_group_size=300)
    pq.write_table(table.slice(0, 900), tmp_path / "a.parquet")
    pq.write_table(table.slice(900), tmp_path / "b.parquet")
    (tmp_path / "queries").mkdir()
    for name, text in QUERIES.items():
        (tmp_path / "queries" / f"{name}.sql").write_text(text)
    return tmp_path


def wanted(folder: Path, name: str) -> pa.Table:
    return panes.sql(QUERIES[name].strip().rstrip(";"), bids=pq.read_table(folder / "bids.parquet"))


def test_one_query_is_one(folder: Path) -> None:
    (folder / "queries" / f"{next(iter(QUERIES))}.sql").unlink()
    done = call("register", "queries", "-i", "bids=bids.parquet", "-o", "out", folder=folder)
    assert done.stderr.rstrip().endswith(" of 1 query")


def test_every_query_of_a_folder_is_answered_in_a_file_of_its_own(folder: Path) -> None:
    done = call(
        "register", "queries", "-i", "bids=bids.parquet", "-o", "out", "--explain", folder=folder
    )
    assert (done.returncode, done.stdout) == (0, "")
    for name in QUERIES:
        assert_same(pq.read_table(folder / "out" / f"{name}.parquet"), wanted(folder, name))
    assert "answers of 2 queries" in done.stderr
    assert "read once: 2 queries in 2 stores" in done.stderr


def test_text_goes_on_where_parquet_ended(folder: Path) -> None:
    """Text has no zones; the stream that was saved has moments of UTC."""
    rows = pq.read_table(folder / "b.parquet")
    written = pc.strftime(rows["ts"], format="%d.%m.%Y %H:%M:%S")
    pacsv.write_csv(rows.set_column(0, "ts", written), folder / "b.csv")
    common = ("register", "queries", "-o", "out", "--lateness", "0 seconds", "--saved", "state")
    assert call(*common, "-i", "bids=a.parquet", folder=folder).returncode == 0
    written_as = ("--timestamp-format", "dd.MM.yyyy HH:mm:ss.SSSSSS")
    done = call(*common, "-i", "bids=b.csv", *written_as, folder=folder)
    assert done.returncode == 0, done.stderr
    for name in QUERIES:
        told = answers_of(folder, name, 1, 2)
        assert_same(told, wanted(folder, name).slice(0, len(told)))


SAVED = ("-o", "out", "--lateness", "0 seconds", "--saved", "state", "--format", "parquet")


def answers_of(folder: Path, name: str, *runs: int) -> pa.Table:
    """The answers of a query in some runs that were saved."""
    files = [folder / "out" / name / f"{run:06}.parquet" for run in runs]
    return pa.concat_tables([pq.read_table(file) for file in files])


def test_a_saved_register_goes_on_and_follows_the_folder(folder: Path) -> None:
    first = call("register", "queries", "-i", "bids=a.parquet", *SAVED, folder=folder)
    assert first.returncode == 0, first.stderr
    (folder / "queries" / "high.sql").unlink()
    more = "SELECT sum(price) AS total FROM bids [TUMBLING 5 minutes WATTR ts]"
    (folder / "queries" / "more.sql").write_text(more)
    done = call("register", "queries", "-i", "bids=b.parquet", *SAVED, folder=folder)
    assert done.returncode == 0, done.stderr
    got, want = answers_of(folder, "all", 1, 2), wanted(folder, "all")
    assert_same(got, want.slice(0, len(got)))
    assert len(want) - len(got) <= 5
    written = {str(p.relative_to(folder / "out")) for p in (folder / "out").rglob("*.parquet")}
    runs = {"all/000001.parquet", "all/000002.parquet"}
    assert written == {*runs, "high/000001.parquet", "more/000002.parquet"}
    later = answers_of(folder, "more", 2)
    alone = panes.sql(more, bids=pq.read_table(folder / "bids.parquet"))
    same = alone.filter(pc.is_in(alone.column("window_start"), later.column("window_start")))
    assert len(later) > 3
    assert pc.all(pc.less(pc.abs(pc.subtract(later["total"], same["total"])), 1e-6)).as_py()


def test_a_run_that_died_before_it_was_saved_gives_the_same_files_again(folder: Path) -> None:
    """Answers are written before the state is saved: so none is lost, and none is given twice."""
    call("register", "queries", "-i", "bids=a.parquet", *SAVED, folder=folder)
    state = (folder / "state").read_bytes()
    call("register", "queries", "-i", "bids=b.parquet", *SAVED, folder=folder)
    files = {p: p.read_bytes() for p in (folder / "out").rglob("*.parquet")}
    (folder / "state").write_bytes(state)  # as if it had died between the two
    done = call("register", "queries", "-i", "bids=b.parquet", *SAVED, folder=folder)
    assert done.returncode == 0, done.stderr
    assert {p: p.read_bytes() for p in (folder / "out").rglob("*.parquet")} == files


def test_answers_of_another_run_are_not_replaced(folder: Path) -> None:
    """Nor are those of a register whose state was deleted."""
    arguments = ("register", "queries", "-i", "bids=bids.parquet", "-o", "plain")
    assert call(*arguments, folder=folder).returncode == 0
    again = call(*arguments, folder=folder)
    assert again.returncode == 2
    assert "--overwrite replaces it" in again.stderr
    assert call(*arguments, "--overwrite", folder=folder).returncode == 0
    call("register", "queries", "-i", "bids=a.parquet", *SAVED, folder=folder)
    (folder / "state").unlink()
    other = call("register", "queries", "-i", "bids=b.parquet", *SAVED, folder=folder)
    assert other.returncode == 2
    assert "exists and has other answers" in other.stderr
    assert not (folder / "state").exists()


def test_a_query_that_fails_is_told_and_the_others_are_answered(folder: Path) -> None:
    (folder / "queries" / "bad.sql").write_text(
        "SELECT to_timestamp(max('x' || item)) AS t FROM bids [TUMBLING 5 minutes WATTR ts]"
    )
    done = call("register", "queries", "-i", "bids=bids.parquet", "-o", "out", folder=folder)
    assert done.returncode == 1
    assert "query bad failed and was set aside: cannot evaluate" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Warning" not in done.stderr
    for name in QUERIES:
        assert_same(pq.read_table(folder / "out" / f"{name}.parquet"), wanted(folder, name))


@pytest.mark.slow
def test_a_query_that_fails_on_spark_is_told_and_the_others_are_answered(
    spark: SparkSession, folder: Path
) -> None:
    (folder / "queries" / "bad.sql").write_text(
        "SELECT sum(CAST('x' || item AS INT)) AS t FROM bids [TUMBLING 5 minutes WATTR ts]"
    )
    places = [str(folder / "queries"), "-i", f"bids={folder}/bids.parquet", "-o", f"{folder}/out"]
    done = call_here("register", *places, "--engine", "spark", folder=folder)
    assert done.returncode == 1
    assert "query bad failed and was set aside: The value 'x" in done.stderr
    assert "Traceback" not in done.stderr
    counted = sum(len(wanted(folder, name)) for name in QUERIES)
    assert f"{counted:,} answers of 2 queries" in done.stderr
    for name in QUERIES:
        answers = spark.read.parquet(str(folder / "out" / f"query={name}")).drop("batch")
        assert_rows(answers.toArrow(), wanted(folder, name))


@pytest.mark.parametrize("out", ["bids.parquet", "bids.parquet/x"])
def test_a_folder_that_cannot_be_made_is_refused_before_any_work(folder: Path, out: str) -> None:
    done = call("register", "queries", "-i", "bids=bids.parquet", "-o", out, folder=folder)
    assert done.returncode == 2
    assert f"--output {out}" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nowhere", "-i", "bids=bids.parquet"], "no folder of queries at nowhere"),
        (["empty", "-i", "bids=bids.parquet"], "no query in empty"),
        (["queries", "-i", "other=bids.parquet"], "reads bids"),
        (["queries", "-i", "bids=bids.parquet", "--follow"], "--engine spark"),
        (
            ["queries", "-i", "bids=bids.parquet", "--engine", "spark", "--saved", "x"],
            "one process",
        ),
    ],
)
def test_what_is_asked_wrongly_is_told(folder: Path, arguments: list[str], says: str) -> None:
    (folder / "empty").mkdir()
    done = call("register", *arguments, "-o", "out", folder=folder)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


JOINED = {
    "pairs": "SELECT b.item, b.price, s.price AS paid FROM b JOIN s ON b.item = s.item "
    "AND s.ts BETWEEN b.ts AND b.ts + INTERVAL 20 SECONDS",
    "most": "SELECT max(n) AS most FROM (SELECT item, count(*) AS n FROM b [TUMBLING 1 minute "
    "WATTR ts] GROUP BY item) [TUMBLING 10 minutes]",
}


@pytest.fixture
def two_streams(folder: Path) -> Path:
    (folder / "joined").mkdir()
    for name, text in JOINED.items():
        (folder / "joined" / f"{name}.sql").write_text(text)
    return folder


def test_queries_over_two_streams(two_streams: Path) -> None:
    call(
        "register", "joined", "-i", "b=a.parquet", "-i", "s=b.parquet", "-o", "out",
        "--lateness", "2 hours", folder=two_streams,
    )  # fmt: skip
    streams = {"b": pq.read_table(two_streams / "a.parquet"),
               "s": pq.read_table(two_streams / "b.parquet")}  # fmt: skip
    for name, text in JOINED.items():
        read = streams if name == "pairs" else {"b": streams["b"]}
        want = panes.sql(text, **read)
        assert len(want)
        assert_rows(pq.read_table(two_streams / "out" / f"{name}.parquet"), want)


def test_queries_over_two_streams_go_on_where_they_were_saved(two_streams: Path) -> None:
    arguments = ("register", "joined", "-o", "out", "--lateness", "2 hours", "--saved", "state")
    for b, s in (("a.parquet", "b.parquet"), ("b.parquet", "a.parquet")):
        call(*arguments, "-i", f"b={b}", "-i", f"s={s}", folder=two_streams)
    register = panes.register(("b", "s"), lateness="2 hours", max_ahead=None,
                              saved=two_streams / "state")  # fmt: skip
    left = register.finish()["pairs"]
    given = [pq.read_table(path) for path in sorted((two_streams / "out" / "pairs").iterdir())]
    both = pa.concat_tables([pq.read_table(two_streams / f"{n}.parquet") for n in "ab"])
    assert_rows(pa.concat_tables([*given, left]), panes.sql(JOINED["pairs"], b=both, s=both))


@pytest.mark.slow
def test_queries_over_two_streams_on_spark(two_streams: Path, spark: SparkSession) -> None:
    call(
        "register", "joined", "-i", "b=a.parquet", "-i", "s=b.parquet", "-o", "out",
        "--lateness", "2 hours", "--engine", "spark", folder=two_streams,
    )  # fmt: skip
    streams = {"b": pq.read_table(two_streams / "a.parquet"),
               "s": pq.read_table(two_streams / "b.parquet")}  # fmt: skip
    for name, text in JOINED.items():
        read = streams if name == "pairs" else {"b": streams["b"]}
        given = found(spark, two_streams / "out" / f"query={name}").drop_columns(["batch"])
        assert_rows(given, panes.sql(text, **read))
