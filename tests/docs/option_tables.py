"""The tables of options of `sql`, `open` and `register`, made from the code.

``python -m tests.docs.option_tables`` writes them again.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import panes
from panes.planning.public_options import OpenOptions, RegisterOptions, SqlOptions, meanings

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "functions.md"
OPTIONS: dict[str, type] = {"sql": SqlOptions, "open": OpenOptions, "register": RegisterOptions}


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


def page() -> str:
    """The page of functions, with these tables."""
    text = PAGE.read_text()
    for function in OPTIONS:
        head, section, rest = re.split(
            rf"(?s)(?<=## `panes\.{function}`\n)(.*?\n)(?=## |\Z)", text, maxsplit=1
        )
        lines = section.split("\n")
        is_option = [bool(re.match(r"\| `(\w+)` \| `", line)) for line in lines]
        frame = [bool(re.match(r"\| `frames?` ", line)) for line in lines]
        first = next(n for n, own in enumerate(is_option) if own and not frame[n])
        kept = [n for n, own in enumerate(is_option) if not own or frame[n]]
        before = [lines[n] for n in kept if n < first]
        after = [lines[n] for n in kept if n > first]
        text = head + "\n".join([*before, *option_rows(function), *after]) + rest
    return text


if __name__ == "__main__":
    PAGE.write_text(page())
