"""What the bar says on a terminal, and that there is none elsewhere."""

from __future__ import annotations

import io

import pyarrow as pa
import pytest
from rich.console import Console

import panes
from lab.bench.command import Measured
from lab.bench.measure import Report, telling
from panes.axis import BEGINNING, Axis
from panes.cli.meter import Reached, meter, reached_by, steps
from tests.support import open_query

TIME = Axis("time", "ts", pa.timestamp("us"))


def terminal() -> tuple[Console, io.StringIO]:
    drawn = io.StringIO()
    return Console(file=drawn, force_terminal=True, width=160, highlight=False), drawn


def test_it_tells_rows_of_how_many_progress_and_late_rows() -> None:
    console, drawn = terminal()
    with meter("rows", 2_000, console) as bar:
        bar.advance(500, lambda: Reached(1_767_225_900_000_000, TIME, 3))
    assert "500 of 2,000 rows" in drawn.getvalue()
    assert "at 2026-01-01T00:05:00Z · 3 late" in drawn.getvalue()


def test_without_a_known_end_it_counts() -> None:
    console, drawn = terminal()
    with meter("rows", None, console) as bar:
        bar.advance(1_500)
    assert "1,500 rows" in drawn.getvalue()
    assert " of " not in drawn.getvalue()


def test_elsewhere_nothing_is_drawn_and_nothing_asked() -> None:
    drawn = io.StringIO()
    with meter("rows", 2_000, Console(file=drawn)) as bar:
        bar.advance(500, lambda: pytest.fail("nobody sees it"))
    assert drawn.getvalue() == ""


def test_steps_say_what_is_being_done() -> None:
    console, drawn = terminal()
    with steps("figures", 3, console) as bar:
        bar.say("figure [8-7]: skew")
        bar.advance(1)
    assert "figure [8-7]: skew" in drawn.getvalue()
    assert "1 of 3 figures" in drawn.getvalue()


def test_the_time_left_follows_from_the_steps_that_are_done() -> None:
    """Whatever the last seconds were like: a step of a benchmark may take minutes."""
    console, drawn = terminal()
    with steps("figures", 3, console) as bar:
        bar.advance(0)
    assert "left" not in drawn.getvalue()
    with steps("figures", 3, console) as bar:
        bar.advance(1)
    assert "about 0:00 left" in drawn.getvalue()


def test_a_benchmark_tells_its_step_and_the_rows_it_has_timed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    console, drawn = terminal()
    report = Report("x", "panes bench x")
    with steps("steps", 3, console) as bar:
        progress = Measured(bar)
        with telling(progress.timed):
            progress.step("checking")
            progress.step("timing q5")
            report.add("panes", "q5", (0.5, 0.5), rows=1_000_000)
        report.add("duckdb", "q5", (0.5,), rows=1_000_000)  # nobody is told any more
    said = drawn.getvalue()
    assert "1 of 3 steps" in said
    assert "timing q5 · 2M rows timed, last panes 2M rows/s" in said
    assert "duckdb" not in said
    assert capsys.readouterr().err.splitlines() == ["checking", "timing q5"]


def test_what_a_query_has_reached() -> None:
    query = open_query("SELECT count(*) AS n FROM s [TUMBLING 10 WATTR at]", lateness=0)
    query.push(s=pa.table({"at": [1, 25]}))
    query.push(s=pa.table({"at": [7]}))
    assert reached_by(query).words() == "at 25 · 1 late"
    reg = panes.register("s", lateness=0)
    reg.add("q", "SELECT count(*) AS n FROM s [TUMBLING 10 WATTR at]")
    reg.push(pa.table({"at": [1, 25]}))
    assert reached_by(reg).words() == "at 25"
    assert Reached(BEGINNING, TIME, 0).words() == ""
