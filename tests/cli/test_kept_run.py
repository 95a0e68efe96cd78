"""`panes run --state`: files that grow in number, and a run that is killed between two pushes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import panes
from panes.cli import kept_run
from panes.cli.files import InputFiles
from panes.cli.kept_run import answer_kept
from panes.planning.terms import StreamOptions
from panes.process.opened import opened
from tests.cli.call import call, call_here

TEXT = "SELECT k, count(*) AS n FROM bids [TUMBLING 10 WATTR at] GROUP BY k"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "bids").mkdir()
    (tmp_path / "query.sql").write_text(TEXT)
    monkeypatch.chdir(tmp_path)
    for day in (1, 2):
        _write_day(tmp_path, day)
    return tmp_path


def _rows(day: int) -> pa.Table:
    at = range(35 * day, 35 * day + 35)
    return pa.table({"at": at, "k": [one % 2 for one in at]})


def _write_day(place: Path, day: int) -> None:
    pq.write_table(_rows(day), place / "bids" / f"{day}.parquet")


def _expected(days: int) -> list[object]:
    query = panes.open(TEXT, lateness=0, max_ahead=None)
    pushed = [query.push(bids=_rows(day)) for day in range(1, days + 1)]
    return pa.concat_tables(pushed).to_pylist()


def _found(place: Path) -> list[object]:
    files = sorted((place / "answers").glob("*.parquet"))
    return [row for file in files for row in pq.read_table(file).to_pylist()]


ASKED = ("run", "query.sql", "-i", "bids=bids", "-o", "answers", "--lateness", "0")
KEPT = (*ASKED, "--state", "state", "--batch-rows", "10")


def test_every_run_reads_what_is_new(place: Path) -> None:
    assert call_here(*KEPT, folder=place).returncode == 0
    assert _found(place) == _expected(2)
    assert call_here(*KEPT, folder=place).returncode == 0
    assert _found(place) == _expected(2)
    _write_day(place, 3)
    assert call_here(*KEPT, folder=place).returncode == 0
    assert _found(place) == _expected(3)


@pytest.mark.parametrize("ends_at", range(8))
def test_a_run_that_was_killed_before_it_wrote_its_answers_loses_none(
    ends_at: int, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A push is in, and the process has ended before the file of its answers was there."""
    sources, answers = [InputFiles.parse("bids=bids")], place / "answers"
    options = StreamOptions(lateness=0, max_ahead=None)
    answers.mkdir()
    left, write = ends_at, kept_run._write

    def killed(folder: Path, push: int, table: pa.Table) -> int:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        return write(folder, push, table)

    query = opened(TEXT, options, state=place / "state")
    with monkeypatch.context() as patch:
        patch.setattr(kept_run, "_write", killed)
        with pytest.raises(KeyboardInterrupt):
            answer_kept(query, sources, answers, 10)
    assert query._turn.keeper is not None
    query._turn.keeper.folder.close()
    answer_kept(opened(TEXT, options, state=place / "state"), sources, answers, 10)
    assert _found(place) == _expected(2)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("-o", "answers.csv"), "--output is a folder"),
        (("--engine", "spark"), "--state is for one process"),
        (("-i", "bids=-"), "standard input cannot be read again"),
    ],
)
def test_what_cannot_be_kept_is_refused(place: Path, given: tuple[str, ...], said: str) -> None:
    named = {given[0]: given[1]}
    asked = [part for flag, value in zip(KEPT[2::2], KEPT[3::2], strict=True) for part in
             (flag, named.pop(flag, value))]  # fmt: skip
    rest = [part for pair in named.items() for part in pair]
    done = call("run", "query.sql", *asked, *rest, folder=place, stdin="at,k\n1,1\n")
    assert done.returncode == 2
    assert said in done.stderr


def test_tables_have_no_state(place: Path) -> None:
    asked = ("run", "query.sql", "-i", "bids=bids", "-o", "answers", "--state", "state")
    done = call_here(*asked, folder=place)
    assert done.returncode == 2
    assert "--lateness" in done.stderr
