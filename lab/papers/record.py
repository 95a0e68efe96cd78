"""A run of a figure as a file: the raw numbers, with the machine that gave them.

`read(write(record))` is the same record, so pages are made from files and one figure can be run
again without the others.
"""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lab.papers.figure import Claim, Figure, Grid, Measured, Panel
from panes.errors import InputError


@dataclass(frozen=True, slots=True)
class Record:
    """A figure's words and what one run of it measured."""

    name: str
    title: str
    source: str
    published: str
    setup: str
    cpus: int
    python: str
    seconds: float
    measured: Measured

    @classmethod
    def of(cls, figure: Figure, measured: Measured, *, seconds: float) -> Record:
        """The record of a run that took so many seconds on this machine."""
        return cls(
            name=figure.name,
            title=figure.title,
            source=figure.source,
            published=figure.published,
            setup=figure.setup,
            cpus=os.cpu_count() or 1,
            python=platform.python_version(),
            seconds=round(seconds, 1),
            measured=measured,
        )


def write(record: Record, folder: Path) -> Path:
    """Keep a record as JSON, under the figure's name."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{record.name}.json"
    path.write_text(json.dumps(asdict(record), indent=1, ensure_ascii=False) + "\n")
    return path


def read(path: Path) -> Record:
    """A record that was kept."""
    try:
        document: dict[str, Any] = json.loads(path.read_text())
        return Record(**{**document, "measured": _measured(document["measured"])})
    except (ValueError, TypeError, KeyError) as fault:
        raise InputError(
            f"{path} is not the record of a figure: {fault}",
            hint=f"run it again: panes papers {path.stem}",
        ) from None


def _measured(document: dict[str, Any]) -> Measured:
    return Measured(
        panels=tuple(_panel(panel) for panel in document["panels"]),
        claims=tuple(Claim(**claim) for claim in document["claims"]),
        grids=tuple(
            Grid(grid["title"], tuple(grid["head"]), tuple(tuple(row) for row in grid["rows"]))
            for grid in document["grids"]
        ),
        remarks=tuple(document["remarks"]),
    )


def _panel(document: dict[str, Any]) -> Panel:
    series, outlines = (
        {name: tuple((float(x), float(y)) for x, y in points) for name, points in named.items()}
        for named in (document["series"], document.get("outlines", {}))
    )
    return Panel(**{**document, "series": series, "outlines": outlines})
