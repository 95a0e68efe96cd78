"""The navigation of the site, made from the list of pages in `docs/README.md`.

So there is one list, and a page that is not in it fails the build as much as a line without a page.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping

from docs_site.places import INDEX, ROOT, place_of

Nav = list[dict[str, "str | Nav"]]

API = "reference/api.md"
PICTURES = "benchmarks/pictures.md"
ADDED = {"Reference": {"API": API}, "How it works": {"Benchmarks in pictures": PICTURES}}
PROJECT: Nav = [{"Changes": "changelog.md"}, {"Contributing": "contributing.md"}]
ENTRY = re.compile(r"^(?:-|\d+\.) \[([^\]]+)\]\(([^)]+)\)", re.MULTILINE)


def navigation(known: Mapping[str, str]) -> Nav:
    """Home, then the sections of the index with their pages, then the project's own."""
    sections = re.split(r"^## ", (ROOT / INDEX).read_text(), flags=re.MULTILINE)[1:]
    nav: Nav = [{"Home": "index.md"}]
    for section in sections:
        title, _, body = section.partition("\n")
        listed = {name: _place(link, known) for name, link in ENTRY.findall(body)}
        nav.append({title: [{n: p} for n, p in {**listed, **ADDED.get(title, {})}.items()]})
    return [*nav, {"Project": PROJECT}]


def _place(link: str, known: Mapping[str, str]) -> str:
    path = posixpath.normpath(posixpath.join(posixpath.dirname(INDEX), link))
    place = place_of(path, known)
    if place is None:
        raise ValueError(f"{INDEX} lists {path}, which is not on the site")
    return place
