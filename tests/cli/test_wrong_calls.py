"""Every command called wrongly: one message that says what was given, and what to type."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from panes.cli.main import _as_typed
from panes.sample_streams import bids
from tests.cli.call import QUERY, call, call_here

COMMANDS = ("run", "explain", "verify", "live", "register")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("wrong")
    table = bids(50, keys=3, hours=0.1)
    csv.write_csv(table, path / "bids.csv")
    files = {
        "empty.csv": "",
        "header.csv": "ts,item,price\n",
        "ragged.csv": "ts,item,price\n2026-01-01T00:00:00Z,1,2\n2026-01-01T00:00:00Z,1\n",
        "packed.csv.gz": "ts,item,price\n",
        "empty.ndjson": "",
        "broken.ndjson": '{"ts": "2026-01-01T00:00:00Z", "item": 1}\n{"ts": \n',
        "array.json": '[{"ts": "2026-01-01T00:00:00Z", "item": 1, "price": 2}]',
        "five.ndjson": "5\n",
        "broken.parquet": "PAX1",
        "empty.parquet": "",
        "busy.sql": QUERY,
        "empty.sql": "",
        "comment.sql": "-- later\n",
        "two.sql": f"{QUERY};\n{QUERY}",
        "column.sql": QUERY.replace("max(price)", "max(prise)"),
        "stream.sql": QUERY.replace("FROM bids", "FROM asks"),
    }
    for name, text in files.items():
        (path / name).write_text(text)
    (path / "binary.sql").write_bytes(b"\xff\xfeS")
    for name in ("nothing", "queries"):
        (path / name).mkdir()
    for query in ("empty", "two", "column", "stream", "binary"):
        (path / f"of_{query}").mkdir()
        (path / f"of_{query}" / f"{query}.sql").write_bytes((path / f"{query}.sql").read_bytes())
    (path / "queries" / "busy.sql").write_text(QUERY)
    return path


FILES = {
    "empty.csv": "empty.csv is empty, not even a header",
    "header.csv": "header.csv has no rows, so its columns have no types",
    "ragged.csv": "line 3 of ragged.csv: it has 2 values, and the header has 3 columns",
    "packed.csv.gz": "packed.csv.gz: it is not packed as its name says",
    "empty.ndjson": "empty.ndjson is empty, not even a row",
    "broken.ndjson": "line 2 of broken.ndjson: it is no JSON from character 9 on",
    "array.json": "array.json is one JSON array",
    "five.ndjson": "the first line of five.ndjson is no JSON object",
    "broken.parquet": "broken.parquet: it is no Parquet file",
    "empty.parquet": "empty.parquet is empty",
    "nothing": "nothing has no files in it",
    "bid.csv": "bid.csv is no file or folder",
    "no/bids.csv": "no/bids.csv is no file or folder",
}
HINTS = {
    "empty.csv": "write it as Parquet",
    "packed.csv.gz": "mv packed.csv.gz packed.csv",
    "broken.ndjson": "every line is a JSON object",
    "array.json": "jq -c '.[]' array.json",
    "broken.parquet": ".csv or .ndjson",
    "nothing": ".parquet, .csv or .ndjson",
    "bid.csv": "did you mean bids.csv?",
    "no/bids.csv": "there is no folder no",
}
QUERIES = {
    "empty.sql": ("the query file empty.sql is empty", "SELECT item, count(*) AS n"),
    "comment.sql": ("a window query is one SELECT, found the end", "SELECT count(*) AS n"),
    "two.sql": ("exactly one SELECT", "panes.register"),
    "binary.sql": ("binary.sql is not UTF-8 text", "UTF-8"),
    "column.sql": ("no column `prise` in stream `bids`", "did you mean `price`?"),
    "stream.sql": ("reads a stream `asks`, which was not given", "--input asks=asks.parquet"),
    "busi.sql": ("there is no query file at busi.sql", "did you mean busy.sql?"),
    "nothing": ("at nothing, which is a folder", "panes register nothing"),
}


def words(command: str, query: str, file: str) -> list[str]:
    """A command over a query and a file; of a register, over the folder with that query alone."""
    called = [command, query, "--input", f"bids={file}"]
    if command == "register":
        called[1] = f"of_{Path(query).stem}" if query != "busy.sql" else "queries"
        called += ["--output", f"answers of {called[1]} {file.replace('/', ' ')}"]
    if command == "verify":
        called += ["--no-spark"]
    if command == "live":
        called += ["--live-stay", "0", "--speed", "1000000"]
    return called


def with_bad_files() -> Iterator[tuple[str, str]]:
    """Every bad file with `run`, which reads it as all commands do; two of them with each."""
    yield from (("run", file) for file in FILES)
    for command in COMMANDS[1:]:
        yield from ((command, file) for file in ("broken.ndjson", "bid.csv"))


@pytest.mark.parametrize(("command", "file"), [*with_bad_files()])
def test_a_file_that_cannot_be_read_is_told_with_what_to_do(
    folder: Path, command: str, file: str
) -> None:
    done = call(*words(command, "busy.sql", file), folder=folder)
    assert done.returncode in (1, 2)
    assert f"panes: --input bids: {'cannot read ' if ': it' in FILES[file] else ''}" in done.stderr
    assert FILES[file] in done.stderr
    assert HINTS.get(file, "") in done.stderr.partition("Hint: ")[2]
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def with_bad_queries() -> Iterator[tuple[str, str]]:
    yield from (("run", query) for query in QUERIES)
    for command in COMMANDS[1:]:
        both = ("empty.sql", "binary.sql") if command == "register" else ("empty.sql", "stream.sql")
        yield from ((command, query) for query in both)


@pytest.mark.parametrize(("command", "query"), [*with_bad_queries()])
def test_a_query_that_cannot_be_asked_is_told_with_what_to_type(
    folder: Path, command: str, query: str
) -> None:
    message, hint = QUERIES[query]
    done = call(*words(command, query, "bids.csv"), folder=folder)
    assert done.returncode == 2
    assert message.removeprefix("the query file ").removeprefix("binary.sql ") in done.stderr
    assert hint in done.stderr.partition("Hint: ")[2]
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("query", ["two", "stream"])
def test_a_register_names_the_file_of_a_query_that_it_cannot_run(folder: Path, query: str) -> None:
    done = call(*words("register", f"{query}.sql", "bids.csv"), folder=folder)
    assert done.returncode == 2
    assert done.stderr.startswith(f"panes: of_{query}/{query}.sql: ")


OPTIONS = {
    "run busy.sql -i bids=bids.csv -i bids=bids.csv": ("bids is given twice", "bids='logs/*.csv'"),
    "run busy.sql -i bids=bids.csv -o nothing": ("this is a folder", "nothing/answers.parquet"),
    "run busy.sql -i bids=bids.csv --keep-open": ("are for Spark", "--engine spark"),
    "run busy.sql -i bids=bids.csv --lateness 5": ("needs a unit, got 5", "--lateness '5 seconds'"),
    "run busy.sql -i bids=bids.csv --lateness '5 s' --rows-late 2": (
        "both say how late", "--rows-late 2, --lateness '5 s'",
    ),
    "run busy.sql -i bids=bids.csv --rows-late -1": ("0 or more, got -1", "--rows-late 100"),
    "register queries -i bids=bids.csv -o a --lateness soon": (
        "panes: lateness must be a duration, got 'soon'", "--lateness '10 seconds'",
    ),
    "register queries -i bids=bids.csv -o bids.csv": ("bids.csv is a file", "--output answers"),
    "register queries -i bids=bids.csv -o a --saved no/state": ("no folder no", "mkdir -p no"),
    "run busy.sql -i bids=bids.csv --late drop": (
        "--late drop changes nothing: without --lateness", "--lateness '0 seconds'",
    ),
    "register queries -i bids=bids.csv -o a --late drop": (
        "--late drop changes nothing: without --lateness", "--lateness '0 seconds'",
    ),
    "run busy.sql -i bids=bids.csv --files-per-batch 3": (
        "--files-per-batch is for a stream on Spark", "--engine spark --lateness '0 seconds'",
    ),
    "register queries -i bids=bids.csv -o a --files-per-batch 3": (
        "--files-per-batch is for a stream on Spark", "--engine spark",
    ),
    "register queries -i asks=bids.csv -o a": (
        "query `busy` reads bids, and --input names the stream `asks`", "--input bids=bids.csv",
    ),
    "explain busy.sql --lateness '1 s'": ("without --run they are not", "--run"),
    "explain busy.sql --run": ("a stream `bids`, which was not given", "--input bids=bids.parquet"),
    "verify -i bids=bids.csv": ("without a query", "panes verify busy.sql --input bids=bids.csv"),
    "verify busy.sql -i bids=bids.csv --rows 0": ("'--rows': Input should be greater", ""),
    "bench in-process --rows 0": ("'--rows': Input should be greater", ""),
    "bench in-process --repeat 0": ("'--repeat': Input should be greater", ""),
}  # fmt: skip


@pytest.mark.parametrize("line", OPTIONS)
def test_an_option_that_makes_no_sense_is_told_as_it_is_typed(folder: Path, line: str) -> None:
    message, hint = OPTIONS[line]
    done = call(*shlex.split(line), folder=folder)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert hint in done.stderr.partition("Hint: ")[2]
    assert "Traceback" not in done.stderr


def test_a_query_file_without_permission_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, **options: object) -> str:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_text", refuse)
    done = call_here("run", "busy.sql", "-i", "bids=bids.csv", folder=folder)
    assert (done.returncode, done.stderr) == (1, "panes: busy.sql: Permission denied\n")


def test_a_query_with_a_byte_order_mark_is_read(folder: Path) -> None:
    (folder / "mark.sql").write_text(QUERY, encoding="utf-8-sig")
    done = call("run", "mark.sql", "-i", "bids=bids.csv", folder=folder)
    assert (done.returncode, "answers" in done.stderr) == (0, True)


BEFORE_SPARK = {
    "ragged.csv": ("run", "--lateness", "5 seconds"),
    "header.csv": ("register",),
    "broken.ndjson": ("register", "--lateness", "5 seconds"),
    "broken.parquet": ("run",),
}


@pytest.mark.parametrize("file", BEFORE_SPARK)
def test_a_bad_file_is_told_before_spark_starts_in_the_same_words(folder: Path, file: str) -> None:
    command, *options = BEFORE_SPARK[file]
    called = [*words(command, "busy.sql", file), "--engine", "spark", *options]
    done = call(*called, folder=folder)
    assert done.returncode == 1
    assert done.stderr.startswith("panes: --input bids: ")
    assert FILES[file] in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["run", "register"])
def test_a_checkpoint_that_is_a_file_is_refused(folder: Path, command: str) -> None:
    called = words(command, "busy.sql", "bids.csv")
    if command == "run":
        called += ["--output", "answers"]
    done = call(*called, "--engine", "spark", "--checkpoint", "empty.csv", folder=folder)
    assert done.returncode == 2
    assert "--checkpoint empty.csv: this is a file" in done.stderr


def test_what_spark_cannot_evaluate_is_one_message(spark: SparkSession, folder: Path) -> None:
    rows = f"bids={folder / 'bids.csv'}"
    (folder / "zero.sql").write_text("SELECT count(*) / 0 AS n FROM bids [TUMBLING 60 s WATTR ts]")
    for options in ([], ["--engine", "spark"]):
        done = call_here("run", "zero.sql", "-i", rows, *options, folder=folder)
        assert done.returncode == 1
        assert "ivision by zero" in done.stderr
        assert len(done.stderr.split("Hint: ")[0].strip().splitlines()) == 1
    checked = call_here("verify", "zero.sql", "-i", rows, folder=folder)
    assert checked.stdout.count("fails, as the oracle does") == 4
    stored = call_here(
        "run", "busy.sql", "-i", rows, "--engine", "spark", "--store", "eager", folder=folder
    )
    assert (stored.returncode, "not available on Spark" in stored.stderr) == (2, True)


def test_no_answers_are_fine_and_told(folder: Path) -> None:
    pq.write_table(bids(5, keys=1, hours=0.1).slice(0, 0), folder / "none.parquet")
    done = call("run", "busy.sql", "-i", "bids=none.parquet", folder=folder)
    assert (done.returncode, done.stderr) == (0, "0 answers\n")
    assert done.stdout == "window_start,window_end,item,high,n\n"


def test_a_warning_comes_in_its_own_words(folder: Path) -> None:
    rows = pa.table({"at": pa.array([None, 1], pa.int64())})
    pq.write_table(rows, folder / "nulls.parquet")
    (folder / "count.sql").write_text("SELECT count(*) AS n FROM t [TUMBLING 5 WATTR at]")
    done = call("verify", "count.sql", "-i", "t=nulls.parquet", "--no-spark", folder=folder)
    assert "panes: left out 1 rows: `at` is NULL or outside the axis\n" in done.stderr
    assert ".py" not in done.stderr


def test_only_options_that_are_typed_are_written_as_typed() -> None:
    told = 'group by item="lamp", store=panes, max_answers=None, lateness="5 s"'
    typed = "group by item=\"lamp\", --store panes, --max-answers None, --lateness '5 s'"
    assert _as_typed(told) == typed
