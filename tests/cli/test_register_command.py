"""`panes register`, as a user calls it: many queries of a folder over one stream."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import panes
from panes.bench.workloads import bids
from tests.cli.call import QUERY, call
from tests.support import assert_same

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


def test_every_query_of_a_folder_is_answered_in_a_file_of_its_own(folder: Path) -> None:
    done = call(
        "register", "queries", "-i", "bids=bids.parquet", "-o", "out", "--explain", folder=folder
    )
    assert (done.returncode, done.stdout) == (0, "")
    for name in QUERIES:
        assert_same(pq.read_table(folder / "out" / f"{name}.parquet"), wanted(folder, name))
    assert "answers of 2 queries" in done.stderr
    assert "read once: 2 queries in 2 stores" in done.stderr


def test_a_saved_register_goes_on_and_follows_the_folder(folder: Path) -> None:
    options = ("--lateness", "0 seconds", "--saved", "state", "--format", "parquet")
    first = call(
        "register", "queries", "-i", "bids=a.parquet", "-o", "one", *options, folder=folder
    )
    assert first.returncode == 0, first.stderr
    (folder / "queries" / "high.sql").unlink()
    more = "SELECT sum(price) AS total FROM bids [TUMBLING 5 minutes WATTR ts]"
    (folder / "queries" / "more.sql").write_text(more)
    done = call("register", "queries", "-i", "bids=b.parquet", "-o", "two", *options, folder=folder)
    assert done.returncode == 0, done.stderr
    parts = [pq.read_table(folder / place / "all.parquet") for place in ("one", "two")]
    got, want = pa.concat_tables(parts), wanted(folder, "all")
    assert_same(got, want.slice(0, len(got)))
    assert len(want) - len(got) <= 5
    assert {p.stem for p in (folder / "two").iterdir()} == {"all", "more"}
    later = pq.read_table(folder / "two" / "more.parquet")
    alone = panes.sql(more, bids=pq.read_table(folder / "bids.parquet"))
    same = alone.filter(pc.is_in(alone.column("window_start"), later.column("window_start")))
    assert len(later) > 3
    assert pc.all(pc.less(pc.abs(pc.subtract(later["total"], same["total"])), 1e-6)).as_py()


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
