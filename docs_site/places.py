"""Which files of the repository are pages of the site, where they stand, and how links find them.

Invariant: a page keeps its links as they are written for the repository; only what leaves `docs/`,
or comes from outside of it, is rewritten, and a link to a file that is not on the site is an error.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
INDEX = "docs/README.md"
PAGES = {  # outside docs/: file of the repository -> page of the site
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "benchmarks/README.md": "benchmarks/index.md",
}
LINK = re.compile(r"(!?\[[^\]]*\])\(([^)\s]+)\)")
FENCE = re.compile(r"^ *(```|~~~)")


def notebooks() -> dict[str, str]:
    """The notebooks, and the pages that they become."""
    found = sorted((ROOT / "examples").glob("*.ipynb"))
    return {f"examples/{p.name}": f"examples/{p.stem}.md" for p in found}


def raw_numbers() -> dict[str, str]:
    """What the benchmarks measured; pages link to it."""
    found = sorted((ROOT / "benchmarks" / "results").glob("*.json"))
    return {f"benchmarks/results/{p.name}": f"benchmarks/results/{p.name}" for p in found}


@cache
def sources() -> dict[str, str]:
    """The files of code that pages link to; each becomes a page that shows it.

    >>> sources()["src/panes/windows/extent.py"]
    'source/src/panes/windows/extent.py.md'
    """
    pages = [*(ROOT / "docs").rglob("*.md"), *(ROOT / page for page in PAGES)]
    linked = {
        posixpath.normpath(posixpath.join(str(page.parent.relative_to(ROOT)), target))
        for page in pages
        for _, target in LINK.findall(page.read_text())
        if ":" not in target
    }
    rooms = {path for path in linked if (ROOT / path / "__init__.py").exists()}
    code = {path for path in linked if path.endswith(".py")}
    shown = {path: f"source/{path}.md" for path in sorted(code)}
    return shown | {path: f"source/{path}/__init__.py.md" for path in sorted(rooms)}


def source_page(path: str) -> str:
    """A file of code as a page, which the search leaves out."""
    file = ROOT / path
    code = (file / "__init__.py" if file.is_dir() else file).read_text()
    return f"---\nsearch:\n  exclude: true\n---\n# `{path}`\n\n````python\n{code}````\n"


def places() -> dict[str, str]:
    """Every file outside `docs/` that the site has, and its place there.

    >>> places()["benchmarks/README.md"]
    'benchmarks/index.md'
    """
    return {**PAGES, **notebooks(), **raw_numbers(), **sources(), INDEX: "index.md"}


def place_of(path: str, known: Mapping[str, str]) -> str | None:
    """Where a file of the repository stands on the site, or None.

    >>> place_of("docs/guides/sizing.md", {}), place_of("src/panes/api.py", {})
    ('guides/sizing.md', None)
    """
    if path in known:
        return known[path]
    return path.removeprefix("docs/") if path.startswith("docs/") else None


def repository_path(place: str, known: Mapping[str, str]) -> str:
    """The file that a page is made of.

    >>> repository_path("guides/sizing.md", {}), repository_path("index.md", places())
    ('docs/guides/sizing.md', 'README.md')
    """
    return next((path for path, other in known.items() if other == place), f"docs/{place}")


def rewrite_links(text: str, place: str, known: Mapping[str, str]) -> str:
    """A page whose links lead to places of the site; code is left alone."""
    source = repository_path(place, known)

    def rewritten(found: re.Match[str]) -> str:
        label, target = found.groups()
        path, hash_, anchor = target.partition("#")
        if not path or re.match(r"[a-z]+:", path):
            return found[0]
        wanted = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        there = place_of(wanted, known)
        if there is None:
            raise ValueError(f"{source} links to {wanted}, which is not on the site")
        return f"{label}({posixpath.relpath(there, posixpath.dirname(place))}{hash_}{anchor})"

    in_code, lines = False, []
    for line in text.split("\n"):
        if FENCE.match(line):
            in_code = not in_code
        lines.append(line if in_code else LINK.sub(rewritten, line))
    return "\n".join(lines)
