"""Where commands write: refused before the work begins, whole afterwards, and never an input."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from panes.cli.files import InputFiles
from panes.cli.outputs import OutputFile
from panes.errors import OptionError, PanesError
from tests.cli.call import call

BIDS = pa.table({"at": [1, 2, 12, 5, 25], "price": [1, 2, 3, 4, 5]})
QUERY = "SELECT count(*) AS n FROM bids [TUMBLING 10 WATTR at]"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pq.write_table(BIDS, "bids.parquet")
    Path("busy.sql").write_text(QUERY)
    return tmp_path


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return call(*arguments, folder=Path.cwd())


def test_a_result_that_exists_is_replaced_only_when_told(folder: Path) -> None:
    asked = ("run", "busy.sql", "-i", "bids=bids.parquet", "-o", "busy.csv")
    assert command(*asked).returncode == 0
    before = Path("busy.csv").read_text()
    refused = command(*asked)
    assert refused.returncode == 2
    assert "--overwrite" in refused.stderr
    Path("busy.csv").write_text("older")
    assert command(*asked, "--overwrite").returncode == 0
    assert Path("busy.csv").read_text() == before


@pytest.mark.parametrize("path", ["bids.parquet", "./bids.parquet", "link.parquet"])
def test_an_input_is_never_replaced(folder: Path, path: str) -> None:
    Path("link.parquet").symlink_to("bids.parquet")
    source = InputFiles.parse("bids=bids.parquet")
    with pytest.raises(OptionError, match="the file that --input bids reads"):
        OutputFile.checked(path, sources=[source], overwrite=True)


def test_nothing_is_written_into_a_folder_that_is_read(folder: Path) -> None:
    Path("in").mkdir()
    pq.write_table(BIDS, "in/a.parquet")
    with pytest.raises(OptionError, match="the file that --input bids reads"):
        OutputFile.checked("in/new.parquet", sources=[InputFiles.parse("bids=in")])
    with pytest.raises(OptionError, match="the file that --input bids reads"):
        OutputFile.checked(
            "in/a.parquet", sources=[InputFiles.parse("bids=in/*.parquet")], overwrite=True
        )


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("o.xlsx", "write .parquet"),
        ("no/o.csv", "there is no folder no"),
        ("taken.csv", "this is a folder, not a file"),
    ],
)
def test_what_cannot_be_written_is_refused_at_once(folder: Path, path: str, words: str) -> None:
    Path("taken.csv").mkdir()
    with pytest.raises(OptionError, match=words):
        OutputFile.checked(path)


def test_a_link_stays_a_link_and_the_mode_stays_the_mode(folder: Path) -> None:
    Path("real.csv").write_text("older")
    Path("real.csv").chmod(0o640)
    Path("o.csv").symlink_to("real.csv")
    OutputFile.checked("o.csv", overwrite=True).write(pa.table({"n": [1]}))
    assert Path("o.csv").is_symlink()
    assert Path("real.csv").read_text() == "n\n1\n"
    assert Path("real.csv").stat().st_mode & 0o777 == 0o640


def test_a_write_that_fails_leaves_what_was_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("no space left")

    Path("o.parquet").write_text("older")
    monkeypatch.setattr(pq.ParquetWriter, "write_table", fail)
    with pytest.raises(PanesError, match=r"cannot write o\.parquet: no space left"):
        OutputFile("o.parquet").write(pa.table({"n": [1]}))
    assert Path("o.parquet").read_text() == "older"
    assert sorted(os.listdir()) == ["bids.parquet", "busy.sql", "o.parquet"]


def test_both_outputs_may_not_be_one_file(folder: Path) -> None:
    done = command(
        "run", "busy.sql", "-i", "bids=bids.parquet", "-o", "o.csv", "--late-output", "o.csv"
    )
    assert done.returncode == 2
    assert "name the same file" in done.stderr


@pytest.mark.parametrize("group", [1, 2, 5])
def test_late_rows_do_not_depend_on_row_groups(folder: Path, group: int) -> None:
    """
    at        1  2 12 |  5 25         progress after the first batch of three: 12
                         ^ behind 12, so late: in the window that closed at 10
    """
    pq.write_table(BIDS, "grouped.parquet", row_group_size=group)
    done = command(
        "run", "busy.sql", "-i", "bids=grouped.parquet", "--lateness", "0", "--batch-rows", "3"
    )
    assert done.stdout.splitlines() == ["window_start,window_end,n", "0,10,2", "10,20,1", "20,30,1"]
    assert "1 rows late" in done.stderr


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 7])
def test_batches_have_the_rows_asked_for(folder: Path, rows: int) -> None:
    pq.write_table(BIDS, "grouped.parquet", row_group_size=2)
    batches = list(InputFiles.parse("bids=grouped.parquet").batches(rows))
    assert [len(b) for b in batches if len(b)] == [min(rows, 5 - i) for i in range(0, 5, rows)]
    assert pa.concat_tables(batches).to_pylist() == BIDS.to_pylist()
