"""`panes bench` and `panes papers` run the lab of a checkout, and say so where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from panes.cli import lab
from panes.cli.main import app
from panes.errors import PanesError
from tests.cli.call import call


def test_words_and_exit_codes_are_passed_on(tmp_path: Path) -> None:
    done = call("papers", "9-9", folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "no figure `9-9` is run here" in done.stderr


def test_an_installed_package_says_where_the_lab_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lab, "__file__", str(tmp_path / "src" / "panes" / "cli" / "lab.py"))
    with pytest.raises(PanesError, match="an installed package does not have"):
        CliRunner().invoke(app, ["bench", "in-process"], catch_exceptions=False)
