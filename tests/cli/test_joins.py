"""Joins from the command line: run, explain and verify."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.call import call

QUERY = "SELECT l.id, r.x FROM l LEFT JOIN r ON l.k = r.k AND r.at BETWEEN l.at - 2 AND l.at + 1"
INPUTS = ("-i", "l=l.parquet", "-i", "r=r.parquet")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pq.write_table(
        pa.table({"at": [1, 5, 9, 7], "k": [1, 2, 1, 3], "id": [0, 1, 2, 3]}),
        tmp_path / "l.parquet",
    )
    pq.write_table(
        pa.table({"at": [2, 4, 9], "k": [1, 2, 1], "x": [5, 6, 0]}), tmp_path / "r.parquet"
    )
    (tmp_path / "join.sql").write_text(QUERY)
    return tmp_path


@pytest.mark.parametrize("streamed", [(), ("--lateness", "3"), ("--batch-rows", "1")])
def test_a_join_of_files_is_answered(folder: Path, streamed: tuple[str, ...]) -> None:
    done = call("run", "join.sql", *INPUTS, *streamed, folder=folder)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["0,5", "1,6", "2,0", "3,", "id,x"]
    assert "4 answers" in done.stderr


def test_a_join_is_explained(folder: Path) -> None:
    done = call("explain", "join.sql", *INPUTS, folder=folder)
    assert "left join of l and r" in done.stdout
    assert "r.at >= l.at - 2 and r.at <= l.at + 1" in done.stdout
    assert call("explain", "join.sql", *INPUTS, "--run", folder=folder).returncode == 0


def test_a_join_is_verified(folder: Path) -> None:
    done = call("verify", "join.sql", *INPUTS, "--no-spark", folder=folder)
    assert done.returncode == 0, done.stderr
    assert "all equal" in done.stderr


def test_a_stream_that_is_missing_is_asked_for(folder: Path) -> None:
    done = call("run", "join.sql", *INPUTS[:2], folder=folder)
    assert done.returncode == 2
    assert "reads a stream `r`, which was not given" in done.stderr
