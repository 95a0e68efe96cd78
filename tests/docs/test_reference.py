"""The reference has every option, every default, every command and every error of the code."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import panes
import panes.errors
import panes.spark
from panes.errors import ASKED_WRONGLY
from panes.spark.register.register import SparkRegister
from tests.docs import commands_page, option_tables, scalar_functions_page
from tests.docs.option_tables import shown

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
FUNCTIONS = (REFERENCE / "functions.md").read_text()
CLASSES: dict[str, type] = {
    "LivePage": panes.LivePage,
    "RunningQuery": panes.RunningQuery,
    "OpenQuery": panes.OpenQuery,
    "OpenJoin": panes.OpenJoin,
    "OpenGraph": panes.OpenGraph,
    "Register": panes.Register,
    "WindowIndex": panes.WindowIndex,
    "SparkRegister": SparkRegister,
}
NOT_FOR_USERS = {
    *("plan", "stores", "take_up", "UNCHANGED", "watcher", "reached", "is_finished", "axis"),
    *("version", "view", "metrics_name", "show_feed", "next_end", "promised_answers", "sides"),
    *("answer_schema", "count_on", "is_planned", "open_from", "require_instants", "run"),
    *("aggregates", "is_of_one", "said", "given_columns", "open_streams"),
    *("written_by", "read_from"),
}


def section(name: str) -> str:
    found = re.search(rf"^## `{re.escape(name)}`\n(.*?)(?=^## |\Z)", FUNCTIONS, re.M | re.S)
    assert found, f"functions.md has no section `{name}`"
    return found[1]


def rows(text: str) -> list[list[str]]:
    """The rows of the first table of a section, without its head."""
    table = re.search(r"^\|.*?(?=\n\n|\Z)", text, re.M | re.S)
    assert table
    return [[c.strip() for c in line.strip("|").split("|")] for line in table[0].splitlines()[2:]]


PUBLIC: dict[str, Any] = {f"panes.{n}": getattr(panes, n) for n in panes.__all__}
PUBLIC |= {f"panes.spark.{n}": getattr(panes.spark, n) for n in panes.spark.__all__}
ELSEWHERE = {"panes.JoinRegister", "panes.Late", "panes.__version__", "panes.spark.SparkRegister"}
TAKES_OPTIONS = [
    name
    for name, thing in PUBLIC.items()
    if name not in ELSEWHERE
    and name.rpartition(".")[2] not in CLASSES
    and not (inspect.isclass(thing) and issubclass(thing, Exception))
]


@pytest.mark.parametrize("name", TAKES_OPTIONS)
def test_every_option_of_every_public_function_is_on_the_page(name: str) -> None:
    wanted = [shown(p) for p in inspect.signature(PUBLIC[name]).parameters.values()]
    found = [(row[0], row[1]) for row in rows(section(name))]
    assert found == wanted


def call(name: str, member: object) -> str:
    """A member as the page shows it: a property by its name, a method with its parameters.

    What comes without a name where names are needed is refused, and not shown.
    """
    if not inspect.isfunction(member):
        return name
    parts = []
    for p in list(inspect.signature(member).parameters.values())[1:]:
        if p.name == "unnamed":  # what is given without a name is refused
            continue
        shown_name, default = (text.strip("`") for text in shown(p))
        parts.append(f"{shown_name}={default}" if default else shown_name)
    return f"{name}({', '.join(parts)})"


@pytest.mark.parametrize("name", CLASSES)
def test_every_method_is_on_the_page_with_its_parameters(name: str) -> None:
    stated = [(n, None) for n in vars(CLASSES[name]).get("__annotations__", {})]
    if issubclass(CLASSES[name], panes.RunningQuery):
        stated = []  # what was asked, which says only of which type it is
    members = {
        n: m
        for n, m in [*inspect.getmembers_static(CLASSES[name]), *stated]
        if not n.startswith("_") and n not in NOT_FOR_USERS
    }
    found = {row[0].strip("`") for row in rows(section(name))}
    assert found == {call(n, m) for n, m in members.items()}


def test_the_tables_of_options_are_made_from_the_code() -> None:
    hint = "python -m tests.docs.option_tables writes them again"
    assert option_tables.PAGE.read_text() == option_tables.page(), hint


def test_the_page_of_commands_is_made_from_the_commands() -> None:
    hint = "python -m tests.docs.commands_page writes it again"
    assert commands_page.PAGE.read_text() == commands_page.page(), hint


def test_the_page_of_scalar_functions_is_made_from_the_table() -> None:
    hint = "python -m tests.docs.scalar_functions_page writes it again"
    assert scalar_functions_page.PAGE.read_text() == scalar_functions_page.page(), hint


@pytest.mark.long
@pytest.mark.parametrize("command", re.findall(r"^## `panes (\w+)`", commands_page.page(), re.M))
def test_the_page_has_every_option_that_the_help_shows(command: str) -> None:
    program = "from panes.cli.main import main; main()"
    run = [sys.executable, "-c", program, command, "--help"]
    help_text = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    listed = set(re.findall(r"^ {2}(?:-\w, )?(--[\w-]+)", help_text, re.M)) - {"--help"}
    text = commands_page.page().split(f"## `panes {command}`")[1].split("\n## ")[0]
    assert listed
    assert listed == set(re.findall(r"^\| `(--[\w-]+)`", text, re.M))


def test_every_error_is_on_the_page_with_its_builtin_and_its_exit_code() -> None:
    said = {row[0].strip("`"): row for row in rows((REFERENCE / "errors.md").read_text())}
    classes = {
        n: c
        for n, c in vars(panes.errors).items()
        if inspect.isclass(c) and issubclass(c, Exception)
    }
    assert said.keys() == classes.keys()
    for name, error in classes.items():
        assert said[name][1].strip("`") == error.__bases__[-1].__name__
        if issubclass(error, panes.PanesError):
            assert said[name][3] == ("2" if issubclass(error, ASKED_WRONGLY) else "1")
