"""The site: every page is in its menu, every number is drawn, every link leads somewhere."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

import panes
import panes.spark
from docs_site.api_page import api_page
from docs_site.bench_page import bench_page, points
from docs_site.chart import panel_svg
from docs_site.lay_out import pages
from docs_site.navigation import Nav, navigation
from docs_site.paper_figures import panel_of
from docs_site.places import ROOT, places, raw_numbers, rewrite_links, sources
from lab.papers.figure import Panel


def in_menu(nav: Nav) -> Iterator[str]:
    for entry in nav:
        for place in entry.values():
            yield from [place] if isinstance(place, str) else in_menu(place)


def test_the_menu_leads_to_every_page_once() -> None:
    listed = list(in_menu(navigation(places())))
    assert len(listed) == len(set(listed))
    assert set(listed) == set(pages()) - set(sources().values())


def test_the_api_page_has_every_public_name() -> None:
    named = set(re.findall(r"^::: (\S+)$", api_page(), re.MULTILINE))
    here = {f"panes.{n}" for n in panes.__all__ if n not in ("Late", "__version__")}
    assert named == here | {f"panes.spark.{n}" for n in panes.spark.__all__}


def test_every_contender_of_every_benchmark_is_drawn() -> None:
    page = bench_page()
    for path in raw_numbers():
        kept = json.loads((ROOT / path).read_text())
        section = page.split(f"\n## {kept['name']}\n")[1].split("\n## ")[0]
        drawn = sum(len(bars) for _, bars in points(kept["timings"]))
        assert drawn == section.count('class="bar ') > 0
        for timing in kept["timings"]:
            assert f">{timing['contender']}" in section


def test_every_figure_of_the_papers_is_drawn_from_its_numbers() -> None:
    written = (ROOT / "docs" / "papers.md").read_text()
    shown = pages()["papers.md"]
    assert "![" not in shown
    assert shown.count('<figure class="panels"') == written.count("\n![") > 0
    kept = json.loads((ROOT / "docs" / "papers" / "6-10.json").read_text())
    dots = sum(len(p) for panel in kept["measured"]["panels"] for p in panel["series"].values())
    drawing = re.search(r'aria-label="Figure 6-10.*?</figure>', shown)
    assert drawing
    assert drawing[0].count("<circle") == dots


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_larger_values_stand_higher_and_further_right(scale: str) -> None:
    points_ = ((1.0, 2.0), (10.0, 30.0), (100.0, 400.0))
    drawn = panel_svg(Panel("x", "y", {"a": points_}, x_scale=scale, y_scale=scale))  # type: ignore[arg-type]
    x = [float(v) for v in re.findall(r'cx="([\d.]+)"', drawn)]
    y = [float(v) for v in re.findall(r'cy="([\d.]+)"', drawn)]
    assert x == sorted(x)
    assert y == sorted(y, reverse=True)
    assert len({*x}) == len({*y}) == 3
    if scale == "log":
        assert x[1] - x[0] == pytest.approx(x[2] - x[1], abs=0.2)


def test_bars_begin_at_zero() -> None:
    drawn = panel_svg(Panel("x", "y", {"a": ((1.0, 10.0), (2.0, 20.0))}, kind="bars"))
    low, high = (float(h) for h in re.findall(r'height="([\d.]+)"', drawn))
    assert high == pytest.approx(2 * low, rel=0.02)


def test_a_name_of_a_series_is_text_and_never_markup() -> None:
    drawn = panel_svg(Panel("x", "<b>y", {"<script>": ((1, 2),), "b": ((1, 2),)}, "<i>"))
    assert not re.search(r"<(script|b|i)>", drawn)


def test_no_title_and_no_label_leaves_its_panel() -> None:
    """Figure 7-5 has a title of 59 letters, and names at its right edge."""
    kept = json.loads((ROOT / "docs/papers/7-5.json").read_text())["measured"]["panels"]
    for panel in map(panel_of, kept[:2]):
        drawn = panel_svg(panel)
        assert re.search(r'viewBox="0 -16 440 ', drawn)
        titles = re.findall(r'class="title" x="58" y="(-?\d+)">([^<]*)<', drawn)
        assert [y for y, _ in titles] == ["0", "16"]
        assert " ".join(line for _, line in titles) == panel.title
        assert max(len(line) for _, line in titles) * 7.5 < 440 - 58
        labels = re.findall(r'x="([\d.]+)" y="[^"]*" text-anchor="start">([^<]*)<', drawn)
        assert labels
        assert all(float(x) + 6.3 * len(label) <= 440 for x, label in labels)


def test_links_are_rewritten_for_the_site_but_not_in_code() -> None:
    text = "[a](docs/guides/sizing.md#memory) [b](LICENSE.txt#x)"
    with pytest.raises(ValueError, match=r"README\.md links to LICENSE\.txt, which is not on"):
        rewrite_links(text, "index.md", places())
    fine = "[a](docs/guides/sizing.md#memory)\n```\n[b](LICENSE.txt)\n```\n[c](https://x.org)"
    assert rewrite_links(fine, "index.md", places()) == fine.replace("docs/", "")
    there = rewrite_links("[n](../../benchmarks/README.md)", "guides/sizing.md", places())
    assert there == "[n](../benchmarks/index.md)"


class Page(HTMLParser):
    """What a page links to, what it loads, and what can be linked to in it."""

    LOADS = frozenset({"script", "img", "link", "iframe", "source", "video", "audio", "object"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = dict(attrs)
        target = said.get("href") or said.get("src") or said.get("data")
        if said.get("id"):
            self.anchors.add(str(said["id"]))
        if target and tag in self.LOADS:
            self.loads.append(target)
        elif target and tag == "a":
            self.links.append(target)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "docs_site", str(folder)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


@pytest.mark.slow
@pytest.mark.xdist_group("site")  # built once
def test_the_built_site_is_whole_and_loads_nothing_from_other_hosts(site: Path) -> None:
    """Every link leads to a file, and to an anchor in it; whatever is loaded is a file, too."""
    found = {path: Page(path.read_text()) for path in sorted(site.rglob("*.html"))}
    assert len(found) > 30
    for path, page in found.items():
        for target in (*page.loads, *page.links):
            if target in page.links and re.match(r"(https?|mailto):", target):
                continue
            assert not re.match(r"[a-z]+:|//", target), f"{path.name} loads {target}"
            if path.name == "404.html":
                continue  # its links begin at the root of wherever the site is put
            name, _, anchor = unquote(target).partition("#")
            there = (path.parent / name).resolve() if name else path
            there = there / "index.html" if there.is_dir() else there
            assert there.exists(), f"{path.relative_to(site)} leads to {target}"
            if anchor and not anchor.startswith("__"):
                assert anchor in found[there].anchors, f"{path.relative_to(site)}: {target}"


@pytest.mark.slow
@pytest.mark.xdist_group("site")  # built once
def test_no_style_of_the_built_site_loads_from_other_hosts(site: Path) -> None:
    for path in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*['\"]?(https?:)?//", path.read_text()), path.name


@pytest.mark.slow
@pytest.mark.xdist_group("site")  # built once
def test_the_built_site_can_be_searched_and_has_the_docstrings(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text())
    found = {entry["location"].partition("#")[0] for entry in index["docs"]}
    assert {"index.html", "guides/sizing.html", "reference/api.html"} <= found
    assert not any(place.startswith("source/") for place in found)
    api = Page((site / "reference" / "api.html").read_text())
    assert {"panes.sql", "panes.OpenQuery.push", "panes.spark.group_by"} <= api.anchors
