"""Figures as files and pages: what was measured is what is kept, drawn and shown."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lab.__main__ import app
from lab.papers.catalog import FIGURES, named
from lab.papers.draw import draw
from lab.papers.fig_8_7 import GROUPS, SIZES, TABLE_8_1, VARIANTS
from lab.papers.figure import Claim, Figure, Grid, Measured, Panel
from lab.papers.page import page, write_page
from lab.papers.record import Record, read, write
from panes.errors import InputError, OptionError, WrongAnswerError

LINES = Panel(
    x="skew (seconds)",
    y="memory (MB)",
    series={"IOP": ((0, 1.0), (10, 4.0)), "OOP": ((0, 1.0), (10, 1.1))},
)
BARS = Panel(
    x="tuples per pane", y="ratio", series={"5 P/W": ((1, 0.9), (20, 0.3))}, kind="bars"
)  # fmt: skip
MEASURED = Measured(
    panels=(LINES, BARS),
    claims=(
        Claim("IOP grows", "4.0 times", holds=True),
        Claim("about | 30 %", "45 %", holds=False),
    ),
    grids=(Grid("Table.", ("skew", "MB"), (("0", "1"), ("10", "4"))),),
    remarks=("Why it differs.",),
)


def tiny(name: str, measured: Measured = MEASURED) -> Figure:
    return Figure(
        name, f"title of {name}", "Thesis, 1", "It was so.", "It is so.", lambda: measured
    )


def record(name: str) -> Record:
    return Record.of(tiny(name), MEASURED, seconds=1.23)


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = write(record("1-1"), tmp_path / "new")
    assert path.name == "1-1.json"
    assert read(path) == record("1-1")
    raw = json.loads(path.read_text())
    assert raw["measured"]["panels"][0]["series"]["OOP"] == [[0, 1.0], [10, 1.1]]
    assert (raw["cpus"] >= 1, raw["python"][:2]) == (True, "3.")


def test_a_broken_record_says_what_to_run(tmp_path: Path) -> None:
    (tmp_path / "1-1.json").write_text("{}")
    with pytest.raises(InputError, match="run it again: panes papers 1-1"):
        write_page(tmp_path)


def test_a_page_shows_published_and_measured_side_by_side() -> None:
    text = page([record("1-1"), record("1-2")], pictures="papers")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == [
        "Figure 1-1: title of 1-1",
        "Figure 1-2: title of 1-2",
    ]
    for line in (
        "| IOP grows | 4.0 times | yes |",
        "| about \\| 30 % | 45 % | **differs** |",
        "| 10 | 4 |",
        "- Why it differs.",
        "![Figure 1-1, measured](papers/1-1.png)",
    ):
        assert line in text.splitlines()


def test_a_drawing_holds_more_than_paper(tmp_path: Path) -> None:
    drawn = draw(MEASURED, "title", tmp_path / "new" / "a.png").read_bytes()
    bare = Measured((Panel("x", "y", {"s": ((0, 0), (1, 1))}),), ())
    assert drawn.startswith(b"\x89PNG")
    assert len(drawn) > len(draw(bare, "", tmp_path / "b.png").read_bytes()) > 3_000


def test_the_library_does_without_matplotlib_until_it_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(Exception, match=r"pip install .panes\[papers\]"):
        draw(MEASURED, "", tmp_path / "a.png")


def test_every_figure_is_in_the_catalog_under_its_own_name() -> None:
    for name, figure in FIGURES.items():
        assert (figure.name, named(name)) == (name, figure)
        assert figure.title
        assert figure.published
        assert figure.source
        assert figure.setup
    with pytest.raises(OptionError, match=r"figures: .*8-7"):
        named("0-0")


def test_table_8_1_has_a_number_for_every_variant() -> None:
    assert set(TABLE_8_1) == {(variant, size) for variant in VARIANTS for size in SIZES}
    assert {len(row) for row in TABLE_8_1.values()} == {len(GROUPS)}


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> Measured:
        raise WrongAnswerError("figure 1-3: wrong")

    wrong = Figure("1-3", "wrong", "Thesis", "p", "s", fail)
    for name in list(FIGURES):
        monkeypatch.delitem(FIGURES, name)
    for figure in (tiny("1-2"), tiny("1-1"), wrong):
        monkeypatch.setitem(FIGURES, figure.name, figure)


@pytest.mark.usefixtures("figures")
def test_the_command_runs_a_figure_and_refreshes_only_its_section(tmp_path: Path) -> None:
    folder = tmp_path / "docs" / "papers"
    write(record("1-1"), folder)
    before = (folder / "1-1.json").stat().st_mtime_ns
    done = CliRunner().invoke(app, ["papers", "1-2", "--output", str(folder)])
    assert done.exit_code == 0
    assert "DIFFERS" in done.stdout
    assert {p.name for p in folder.iterdir()} == {"1-1.json", "1-2.json", "1-2.png"}
    assert (folder / "1-1.json").stat().st_mtime_ns == before
    text = (tmp_path / "docs" / "papers.md").read_text()
    assert text.index("Figure 1-2") < text.index("Figure 1-1")


@pytest.mark.usefixtures("figures")
def test_the_command_lists_figures_and_fails_on_a_wrong_answer(tmp_path: Path) -> None:
    listed = CliRunner().invoke(app, ["papers"])
    assert listed.exit_code == 0
    assert "title of 1-1" in listed.stdout
    failed = CliRunner().invoke(app, ["papers", "--all", "--output", str(tmp_path)])
    assert isinstance(failed.exception, WrongAnswerError)
    assert (tmp_path / "1-2.json").exists()
