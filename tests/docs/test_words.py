"""Pages, docstrings and messages for users say nothing in words of the inside.

The second part of the glossary has those words. Some are plain English too, and may be that.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import panes
import panes.spark
from tests.docs.prose import prose

ROOT = Path(__file__).parents[2]
FOLDERS = ("start", "guides", "reference", "cookbook")
PAGES = sorted(
    [ROOT / "README.md", ROOT / "docs" / "limits.md", ROOT / "docs" / "indexes.md"]
    + [page for folder in FOLDERS for page in (ROOT / "docs" / folder).glob("*.md")]
)
PLAIN_ENGLISH = frozenset(
    {"adaptive", "at", "bin", "block", "bucket", "combine", "cover", "cut", "describe"}
    | {"differential", "domain", "due", "eager", "entry", "fill", "form", "hidden", "host", "kept"}
    | {"kind", "lazy", "lift", "link", "lower", "mark", "need", "observe", "package", "passing"}
    | {"piece", "plan", "purge", "reach", "room", "run", "selection", "size", "stretch", "tag"}
    | {"tail", "terms", "valid", "volume", "wanted"}
)
TABLE_ROW = re.compile(r"^\| ([^|]+?) \|", re.MULTILINE)


def words_of(part: str) -> set[str]:
    """The words that a part of the glossary explains, without what stands in brackets."""
    text = (ROOT / "docs" / "glossary.md").read_text()
    section = text.split(f"\n## {part}\n")[1].split("\n## ")[0]
    cells = [re.sub(r" \(.*?\)|,? in names .*", "", cell) for cell in TABLE_ROW.findall(section)]
    return {word for cell in cells for word in cell.split(", ")} - {"word", "---"}


USERS, INSIDE = words_of("Words for users"), words_of("Words of the inside")
TOLD_APART = sorted(INSIDE - PLAIN_ENGLISH - USERS - {"punctuation"})
EACH = "|".join(f"[{word[0].upper()}{word[0]}]{word[1:]}" for word in TOLD_APART)
PATTERN = re.compile(rf"\b(?:{EACH})(?:e?s|e?d|ing)?\b(?!\s+results?)")


def test_no_word_is_explained_for_users_and_for_the_inside() -> None:
    """But `punctuation`, of which a join promises two kinds."""
    assert {"limb", "lane", "parcel", "partial", "shape"} <= set(TOLD_APART)
    assert {"lateness", "progress", "punctuation", "pane", "shard"} <= USERS
    assert {"punctuation"} >= USERS & INSIDE


@pytest.mark.parametrize("word", sorted(PLAIN_ENGLISH))
def test_a_word_that_may_be_plain_english_is_one_of_the_inside(word: str) -> None:
    assert word in INSIDE


def test_watermark_stands_beside_the_words_that_mean_it() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text()
    beside = {row.split("|")[1].strip() for row in text.splitlines() if "**watermark" in row}
    assert beside == {"lateness", "progress", "punctuation"}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_page_for_users_has_no_word_of_the_inside(page: Path) -> None:
    text = re.sub(r"\]\([^)]*\)", "]", prose(page))
    assert [found[0] for found in PATTERN.finditer(text)] == []


def docstrings() -> Iterator[tuple[str, str]]:
    """What `help` says of every public name, and of what it has."""
    for module in (panes, panes.spark):
        for name in module.__all__:
            thing = getattr(module, name)
            yield name, inspect.getdoc(thing) or ""
            if inspect.isclass(thing):
                for part, member in vars(thing).items():
                    if not part.startswith("_") and (
                        callable(member) or isinstance(member, property)
                    ):
                        yield f"{name}.{part}", inspect.getdoc(member) or ""


@pytest.mark.parametrize(("name", "text"), list(docstrings()), ids=lambda x: x[:40])
def test_a_public_docstring_has_no_word_of_the_inside(name: str, text: str) -> None:
    plain = re.sub(r"``[^`]+``|`[^`]+`|^ *(>>>|\.\.\.).*$", "", text, flags=re.MULTILINE)
    assert [found[0] for found in PATTERN.finditer(plain)] == [], name


def messages() -> Iterator[tuple[str, str]]:
    """Every text in an error, a warning or a word to people, and where it is written."""
    for path in sorted((ROOT / "src" / "panes").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            called = node.func if isinstance(node, ast.Call) else None
            name = getattr(called, "id", getattr(called, "attr", ""))
            if name.endswith(("Error", "error", "error_in", "error_at", "warn", "say")):
                for part in ast.walk(node):
                    if isinstance(part, ast.Constant) and isinstance(part.value, str):
                        yield f"{path.name}:{part.lineno}", part.value


BETWEEN_PROCESSES = {"pane_tables.py", "blocks.py"}  # raised where no question can lead


def test_no_message_has_a_word_of_the_inside() -> None:
    found = [
        (place, text)
        for place, text in messages()
        if PATTERN.search(text) and place.split(":")[0] not in BETWEEN_PROCESSES
    ]
    assert found == []
