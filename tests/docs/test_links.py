"""Every relative link of every page leads somewhere: the file is there, and so is the heading."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.prose import prose

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")])
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def anchors(page: Path) -> set[str]:
    """What links can name of a page: its headings, as GitHub spells them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    kept = (re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in headings)
    return set(kept)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    for link in LINK.findall(prose(page)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{link}: no such file"
        if anchor:
            assert anchor in anchors(target), f"{link}: no such heading"


def test_the_index_leads_to_every_page() -> None:
    index = ROOT / "docs" / "README.md"
    linked = {(index.parent / link).resolve() for link in LINK.findall(index.read_text())}
    papers = ROOT / "docs" / "papers"
    pages = {p for p in (ROOT / "docs").rglob("*.md") if papers not in p.parents}
    assert pages - linked == {index}


def test_hints_in_the_source_name_pages_that_exist() -> None:
    for path in (ROOT / "src").rglob("*.py"):
        for page in re.findall(r"docs/[\w/]+\.md", path.read_text()):
            assert (ROOT / page).exists(), f"{path.name} names {page}"


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/how_it_works.md"])
def test_files_that_a_page_names_exist(page: str) -> None:
    roots = (ROOT, ROOT / "src" / "panes")
    for name in re.findall(r"`([\w/]+/\w+\.(?:py|md))`", (ROOT / page).read_text()):
        assert any((root / name).exists() for root in roots), name
