"""Inputs of commands: files, folders, patterns, packed text, partitions and standard input."""

from __future__ import annotations

import gzip
import io
import re
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import panes
from panes.cli.files import InputFiles
from panes.errors import InputError
from tests.cli.call import call, call_here

ROWS = "ts,item,price\n1,a,2\n2,b,3\n"
MORE = "ts,item,price\n11,a,2.5\n"
LINES = '{"ts": 1, "item": "a"}\n{"ts": 2, "item": "b", "price": 3.5}\n'
BOTH = [
    {"ts": 1, "item": "a", "price": 2.0},
    {"ts": 2, "item": "b", "price": 3.0},
    {"ts": 11, "item": "a", "price": 2.5},
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs").mkdir()
    return tmp_path


def write(path: str, text: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    packed = path.endswith(".gz")
    Path(path).write_bytes(gzip.compress(text.encode()) if packed else text.encode())


def rows(text: str) -> list[dict[str, object]]:
    return pa.concat_tables(list(InputFiles.parse(text).batches())).to_pylist()


@pytest.mark.parametrize("path", ["logs", "logs/*.csv*", "l*/**/*.csv*"])
def test_many_files_are_one_stream_whose_types_hold_all_values(folder: Path, path: str) -> None:
    write("logs/a.csv", ROWS)
    write("logs/b.csv.gz", MORE)
    write("logs/_SUCCESS", "")
    write("logs/.hidden.csv", "x\n1\n")
    assert rows(f"bids={path}") == BOTH


def test_folders_of_ndjson_and_other_separators(folder: Path) -> None:
    write("logs/a.ndjson", LINES)
    write("logs/b.jsonl.gz", '{"ts": 3, "item": "c"}\n')
    assert [r["ts"] for r in rows("bids=logs")] == [1, 2, 3]
    for separator in "\t;|":
        write("one.csv", ROWS.replace(",", separator))
        assert rows("bids=one.csv") == [dict(r) for r in BOTH[:2]]


def test_names_of_folders_are_columns(folder: Path) -> None:
    for day in (1, 2):
        write(f"csv/day={day}/a.csv", ROWS)
        Path(f"parquet/day={day}").mkdir(parents=True)
        pq.write_table(pa.table({"ts": [day]}), f"parquet/day={day}/a.parquet")
    assert [r["day"] for r in rows("bids=csv")] == [1, 1, 2, 2]
    assert rows("bids=parquet") == [{"ts": 1, "day": 1}, {"ts": 2, "day": 2}]
    assert InputFiles.parse("bids=parquet").rows == 2


def test_a_column_that_is_text_in_one_file_alone_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write("mixed/a.csv", "ts,item,price\n1,a,2\n")
    write("mixed/b.csv", "ts,item,price\n2,b,free\n")
    assert [r["price"] for r in rows("bids=mixed")] == ["2", "free"]
    told = "`price` is read as text: mixed/a.csv has bigint in it, and not all files have\n"
    assert capsys.readouterr().err == told
    write("mixed/b.csv", "ts,item,price\n2,b,\n")
    assert [r["price"] for r in rows("bids=mixed")] == [2, None]
    assert not capsys.readouterr().err


@pytest.mark.parametrize("kind", ["csv", "ndjson", "parquet", "packed"])
def test_standard_input_is_known_by_its_first_bytes(
    folder: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(pa.table({"ts": [1], "item": ["a"]}), "a.parquet")
    held = {
        "csv": ROWS.encode(),
        "ndjson": LINES.encode(),
        "parquet": Path("a.parquet").read_bytes(),
        "packed": gzip.compress(LINES.encode()),
    }
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(held[kind])))
    first = rows("bids=-")[0]
    assert (first["ts"], first["item"]) == (1, "a")


REFUSED = {
    "nothing/*.csv": "nothing/\\*.csv is no file or folder",
    "logs": "logs has no files in it",
    "differ": "differ/b.csv has no column `item`, and differ/a.csv has",
    "more": "more/b.csv has a column `note`, and more/a.csv has not",
    "types": "`ts` is string in types/b.parquet, and int64 in types/a.parquet",
    "formats": "formats/a.csv and formats/b.ndjson are of different formats",
    "ragged.csv": "line 3 of ragged.csv: it has 2 values, and the header has 3 columns",
    "late.csv": "cannot read line 30002 of late.csv: Error when converting column",
    "bad.ndjson": "cannot read line 2 of bad.ndjson: it is no JSON from character 9",
    "rows.parquet.gz": "is neither Parquet, CSV nor NDJSON",
}


def test_files_of_two_formats_are_read_as_the_hint_says(folder: Path) -> None:
    write("mixed/a.csv", ROWS)
    write("mixed/b.ndjson", LINES)
    with pytest.raises(InputError) as refused:
        rows("bids=mixed")
    old, new = re.findall(r"--input (\w+='[^']+')", str(refused.value))
    assert rows(old.replace("'", "")) == rows("bids=mixed/a.csv")
    assert rows(new.replace("'", "")) == rows("bids=mixed/b.ndjson")


@pytest.mark.parametrize("path", REFUSED)
def test_what_cannot_be_read_is_named(folder: Path, path: str) -> None:
    write("differ/a.csv", ROWS)
    write("differ/b.csv", "ts,price\n1,2\n")
    write("more/a.csv", ROWS)
    write("more/b.csv", "ts,item,price,note\n1,a,2,x\n")
    write("formats/a.csv", ROWS)
    write("formats/b.ndjson", LINES)
    write("ragged.csv", "ts,item,price\n1,a,2\n2,b\n3,c,4,5\n")
    write("late.csv", "ts,item,price\n" + "1,a,2\n" * 30_000 + "7,b,x\n")
    write("bad.ndjson", '{"ts": 1}\n{"ts": \n{"ts": 3}\n')
    write("rows.parquet.gz", "")
    Path("types").mkdir()
    pq.write_table(pa.table({"ts": [1]}), "types/a.parquet")
    pq.write_table(pa.table({"ts": ["1"]}), "types/b.parquet")
    with pytest.raises(panes.PanesError, match=f"(?s)--input bids: .*{REFUSED[path]}"):
        rows(f"bids={path}")


QUERY = "SELECT count(*) AS n FROM t [TUMBLING 1 day WATTR ts]"


@pytest.mark.parametrize("when", ["03/02/2026", "03-02-2026", "03/02/2026 10:00:00"])
def test_dates_that_could_be_of_two_months_are_refused(folder: Path, when: str) -> None:
    write("t.csv", f"ts,x\n{when},1\n{when.replace('03', '04')},2\n,3\n")
    with pytest.raises(
        InputError, match=r"`ts` of .* could be dd.MM.yyyy.* or MM.dd.yyyy"
    ) as refused:
        rows("t=t.csv")
    assert "--timestamp-format 'dd" in str(refused.value)


def test_a_pattern_says_which(folder: Path) -> None:
    write("t.csv", "ts,x\n03/02/2026 10:00:00,1\n04/02/2026 11:00:00,2\n")
    for pattern, month in (("dd/MM/yyyy HH:mm:ss", 2), ("MM/dd/yyyy HH:mm:ss", 3)):
        (batch,) = (b for b in InputFiles.parse("t=t.csv", pattern).batches() if len(b))
        assert batch["ts"][0].as_py().month == month


def test_dates_that_only_one_month_has_are_read_and_no_two_files_differ(folder: Path) -> None:
    write("logs/a.csv", "ts,x\n25/02/2026,1\n03/02/2026,2\n")
    assert [r["ts"].month for r in rows("t=logs")] == [2, 2]  # type: ignore[attr-defined]
    write("logs/b.csv", "ts,x\n02/25/2026,1\n")
    with pytest.raises(InputError, match=r"as dd/MM/yyyy in .* and as MM/dd/yyyy in"):
        rows("t=logs")


def test_the_commands_take_the_pattern(folder: Path) -> None:
    write("t.csv", "ts,x\n03/02/2026,1\n04/03/2026,2\n")
    write("q.sql", QUERY)
    write("queries/q.sql", QUERY)
    pattern = ("--input", "t=t.csv", "--timestamp-format", "dd/MM/yyyy")
    refused = call("run", "q.sql", "--input", "t=t.csv", folder=folder)
    assert (refused.returncode, "--timestamp-format" in refused.stderr) == (1, True)
    assert "2026-02-03" in call("run", "q.sql", *pattern, folder=folder).stdout
    assert call("explain", "q.sql", *pattern, folder=folder).returncode == 0
    assert call("verify", "q.sql", *pattern, "--no-spark", folder=folder).returncode == 0
    assert call("register", "queries", *pattern, "--output", "out", folder=folder).returncode == 0
    wrong = call("run", "q.sql", *pattern[:3], "QQ", folder=folder)
    assert "`QQ` is not known" in wrong.stderr


def test_spark_takes_the_pattern(folder: Path, spark: SparkSession) -> None:
    write("t.csv", "ts,x\n03/02/2026,1\n04/03/2026,2\n")
    write("q.sql", QUERY)
    pattern = ("--input", f"t={folder}/t.csv", "--timestamp-format", "dd/MM/yyyy")
    found = call_here("run", "q.sql", *pattern, "--engine", "spark", folder=folder)
    assert "2026-02-03" in found.stdout
