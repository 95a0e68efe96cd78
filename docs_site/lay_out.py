"""All pages of the site in one folder, as MkDocs wants them, with its configuration beside them.

Nothing here knows MkDocs but for the names of its settings: whatever reads `mkdocs.yml` can build
what is laid out.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from docs_site.api_page import api_page
from docs_site.bench_page import bench_page
from docs_site.navigation import API, PICTURES, navigation
from docs_site.notebook_page import notebook_page
from docs_site.paper_figures import draw_figures
from docs_site.places import (
    INDEX,
    PAGES,
    ROOT,
    notebooks,
    place_of,
    places,
    raw_numbers,
    rewrite_links,
    source_page,
    sources,
)

HERE = ROOT / "docs_site"


def lay_out(folder: Path) -> Path:
    """Write everything to an empty folder; returns the configuration."""
    for place, text in pages().items():
        _write(folder / "pages" / place, text)
    for path in (ROOT / "docs" / "papers").glob("*.json"):
        _write(folder / "pages" / "papers" / path.name, path.read_text())
    for path_, place in raw_numbers().items():
        _write(folder / "pages" / place, (ROOT / path_).read_text())
    shutil.copytree(ROOT / "docs" / "live", folder / "pages" / "live")
    shutil.copy(HERE / "site.css", folder / "pages")
    source = json.dumps(str(ROOT / "src"))
    settings = (HERE / "mkdocs.yml").read_text().replace("paths: [src]", f"paths: [{source}]")
    _write(folder / "mkdocs.yml", f"{settings}\nnav: {json.dumps(navigation(places()))}\n")
    return folder / "mkdocs.yml"


def pages() -> dict[str, str]:
    """The text of every page, by its place."""
    known = places()
    written = {place_of(path, known): (ROOT / path).read_text() for path in _written()}
    written |= {place: notebook_page(ROOT / path) for path, place in notebooks().items()}
    made = {API: api_page(), PICTURES: bench_page()}
    made |= {place: source_page(path) for path, place in sources().items()}
    return {place: page(text, place) for place, text in written.items() if place} | made


def page(text: str, place: str) -> str:
    """A page of the repository as the site shows it.

    Links lead to the site, examples are coloured as sessions, and figures are drawn.
    """
    coloured = text.replace("```python\n>>>", "```pycon\n>>>")
    return rewrite_links(draw_figures(coloured), place, places())


def _written() -> list[str]:
    """The pages that people wrote."""
    under_docs = (str(p.relative_to(ROOT)) for p in sorted((ROOT / "docs").rglob("*.md")))
    return [*(path for path in under_docs if path != INDEX), *PAGES]


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
