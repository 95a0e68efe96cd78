"""The figures of the papers' page, drawn from the numbers that are kept beside it."""

from __future__ import annotations

import json
import re
from typing import Any

from docs_site.chart import figure
from docs_site.places import ROOT
from lab.papers.figure import Panel

PICTURE = re.compile(r"^!\[([^\]]*)\]\(papers/([\w-]+)\.png\)$", re.MULTILINE)


def panel_of(kept: dict[str, Any]) -> Panel:
    """A panel as it was written to a file."""
    lines = {name: _points(kept.get(name, {})) for name in ("series", "outlines")}
    return Panel(**{**kept, **lines})


def _points(series: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple((float(x), float(y)) for x, y in points) for name, points in series.items()}


def draw_figures(page: str) -> str:
    """The page with a drawing in the place of each picture."""
    return PICTURE.sub(lambda found: _drawn(found[2], found[1]), page)


def _drawn(name: str, alt: str) -> str:
    kept = json.loads((ROOT / "docs" / "papers" / f"{name}.json").read_text())
    return figure([panel_of(panel) for panel in kept["measured"]["panels"]], alt)
