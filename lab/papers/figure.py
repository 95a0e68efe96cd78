"""What a figure is: what was published, and a function that measures the same here.

Published numbers are those in the text and the tables of the papers, never read off a curve. A
shape that differs is a result and is shown as one; a wrong answer is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes and the series drawn in it. Labels carry the unit.

    Of kind `labels`, the name of a series is written at each of its points. `outlines` are lines
    named ``kind, variant``: the first kind is solid, others are dotted and carry their variant.
    """

    x: str
    y: str
    series: Mapping[str, Points]
    title: str = ""
    kind: Literal["lines", "bars", "labels"] = "lines"
    x_scale: Literal["linear", "log"] = "linear"
    y_scale: Literal["linear", "log"] = "linear"
    outlines: Mapping[str, Points] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement of the paper, what was measured for it, and whether it holds here."""

    published: str
    measured: str
    holds: bool


@dataclass(frozen=True, slots=True)
class Grid:
    """A table: a title, the heads of its columns, and rows of as many cells."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Measured:
    """What one run of an experiment gave; `remarks` say where and why the shape differs."""

    panels: tuple[Panel, ...]
    claims: tuple[Claim, ...]
    grids: tuple[Grid, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Figure:
    """A published experiment. `run` checks its answers before it measures.

    Parameters
    ----------
    name
        As printed, ``8-7``; also the name of its files.
    source
        The paper and its section.
    published
        What the paper says of it, in a few sentences.
    setup
        How it is run here, with every choice that the text leaves open.
    run
        Measures; raises `WrongAnswerError` if an answer is wrong.
    """

    name: str
    title: str
    source: str
    published: str
    setup: str
    run: Callable[[], Measured]
