"""``--live``: the command tells the address, serves the page while it runs, and ends by itself."""

from __future__ import annotations

import subprocess
from pathlib import Path
from threading import Event, Timer

import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import panes
from panes import sample_streams
from panes.cli.live_option import staying
from tests.cli.call import PANES, QUERY, call
from tests.live.streams import TEXT, ask, bids


def files(folder: Path) -> None:
    (folder / "q.sql").write_text(TEXT)
    pacsv.write_csv(bids(list(range(100))), folder / "bids.csv")


def test_the_page_stays_while_somebody_looks_and_shows_what_was_answered(tmp_path: Path) -> None:
    files(tmp_path)
    asked = ["run", "q.sql", "-i", "bids=bids.csv", "-o", "out.csv", "--lateness", "0"]
    process = subprocess.Popen(
        [*PANES, *asked, "--live", "--live-stay", "3"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    said = next(line for line in process.stderr if line.startswith("live page: "))
    url = said.split()[-1]
    for line in process.stderr:
        if line.startswith("done;"):
            break
    status, _, shown = ask(url)
    assert (status, shown["status"], shown["counts"]["rows"]) == (200, "finished", 100)
    assert shown["counts"]["answers"] == len((tmp_path / "out.csv").read_text().splitlines()) - 1
    process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) == 0


def test_a_register_has_a_page_too(tmp_path: Path) -> None:
    files(tmp_path)
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "one.sql").write_text(TEXT)
    done = call(
        *("register", "queries", "-i", "bids=bids.csv", "-o", "out", "--lateness", "0"),
        *("--live", "--live-stay", "0"),
        folder=tmp_path,
    )
    assert done.returncode == 0
    assert "live page: http://127.0.0.1:" in done.stderr
    assert "answers of 1 query" in done.stderr


def test_on_spark_only_a_stream_has_a_page(tmp_path: Path) -> None:
    files(tmp_path)
    done = call("run", "q.sql", "-i", "bids=bids.csv", "--engine", "spark", "--live",
                folder=tmp_path)  # fmt: skip
    assert done.returncode == 2
    assert "--live shows a stream" in done.stderr


def test_files_are_replayed_at_a_speed(tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text(QUERY)
    pq.write_table(sample_streams.bids(5_000, hours=0.5), tmp_path / "bids.parquet")
    asked = ["live", "q.sql", "-i", "bids=bids.parquet", "--speed", "100000", "--live-stay", "0"]
    done = call(*asked, folder=tmp_path)
    assert done.returncode == 0
    assert "live page: http://127.0.0.1:" in done.stderr
    want = panes.sql(QUERY, bids=sample_streams.bids(5_000, hours=0.5))
    assert f"{len(want):,} answers" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("window", ["[TUMBLING 10 WATTR at]", "[RANGE 10 ROWS SLIDE 10 ROWS]"])
def test_a_replay_needs_no_lateness_on_an_axis_without_time(tmp_path: Path, window: str) -> None:
    files(tmp_path)
    (tmp_path / "q.sql").write_text(f"SELECT count(*) AS n FROM bids {window}")
    done = call("live", "q.sql", "-i", "bids=bids.csv", "--live-stay", "0", folder=tmp_path)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (0, "10 answers")


def test_a_page_ends_by_an_interrupt_that_raises_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Where Spark runs, Ctrl-C only sets an event: neither then nor later does the page stay."""
    interrupted = Event()
    with staying(panes.live(panes.open(TEXT, lateness=5)), 1_000, interrupted):
        interrupted.set()
    assert "done;" not in capsys.readouterr().err
    page = panes.live(panes.open(TEXT, lateness=5))
    later = Event()
    Timer(0.1, later.set).start()
    with staying(page, 1_000, later):
        pass
    assert "done;" in capsys.readouterr().err
