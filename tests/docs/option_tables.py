"""The tables of options of `sql`, `open`, `register` and `window_index`, made from the code.

``python -m tests.docs.option_tables`` writes them again.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import panes
from panes.planning.public_options import (
    IndexOptions,
    OpenOptions,
    RegisterOptions,
    SqlOptions,
    meanings,
)

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "functions.md"
OPTIONS: dict[str, type] = {
    "sql": SqlOptions,
    "open": OpenOptions,
    "register": RegisterOptions,
    "window_index": IndexOptions,
}


def shown(parameter: inspect.Parameter) -> tuple[str, str]:
    """A parameter as the page shows it: its name and its default."""
    star: dict[Any, str] = {
        inspect.Parameter.VAR_POSITIONAL: "*",
        inspect.Parameter.VAR_KEYWORD: "**",
    }
    name = f"`{star.get(parameter.kind, '')}{parameter.name}`"
    has_default = parameter.default is not inspect.Parameter.empty
    return name, f"`{parameter.default!r}`" if has_default else ""


def option_rows(function: str) -> Iterator[str]:
    """The rows of the table of a function that are its options."""
    meaning = meanings(OPTIONS[function])
    for name, parameter in inspect.signature(getattr(panes, function)).parameters.items():
        if name in meaning:
            yield f"| {' | '.join(shown(parameter))} | {meaning[name]} |"


def _name(line: str) -> str:
    """The option that a line of the page is about, if it is about one."""
    found = re.match(r"\| `(\w+)` \|", line)
    return found[1] if found else ""


def page() -> str:
    """The page of functions, with these tables."""
    text = PAGE.read_text()
    for function in OPTIONS:
        head, section, rest = re.split(
            rf"(?s)(?<=## `panes\.{function}`\n)(.*?\n)(?=## |\Z)", text, maxsplit=1
        )
        lines, named = section.split("\n"), meanings(OPTIONS[function])
        own = [n for n, line in enumerate(lines) if _name(line) in named]
        kept = [line for n, line in enumerate(lines) if n not in own]
        text = head + "\n".join([*kept[: own[0]], *option_rows(function), *kept[own[0] :]]) + rest
    return text


if __name__ == "__main__":
    PAGE.write_text(page())
