"""Docstrings as Markdown: examples are blocks of code, each parameter is described by itself."""

from __future__ import annotations

import re

TOGETHER = re.compile(r"^((?:\*{0,2}\w+, )+\*{0,2}\w+)\n((?: {4}.+\n?)+)", re.MULTILINE)
EXAMPLE = re.compile(r"^>>> (?:.+\n?)+", re.MULTILINE)


def fence(docstring: str) -> str:
    r"""Put every example, up to the next empty line, between fences.

    >>> fence("Adds.\n\n>>> 1 + 1\n2\n")
    'Adds.\n\n```pycon\n>>> 1 + 1\n2\n```\n'
    """
    return EXAMPLE.sub(lambda found: f"```pycon\n{_shown(found[0])}\n```\n", docstring)


def _shown(example: str) -> str:
    """An example without what only doctest needs."""
    return example.replace("<BLANKLINE>", "").rstrip()


def part(docstring: str) -> str:
    r"""Describe each parameter by itself, or all would be shown with the type of the first.

    >>> print(part("low, high\n    The bounds.\n"))
    low
        The bounds.
    high
        The bounds.
    <BLANKLINE>
    """
    return TOGETHER.sub(
        lambda found: "".join(f"{n}\n{found[2].rstrip()}\n" for n in found[1].split(", ")),
        docstring,
    )
