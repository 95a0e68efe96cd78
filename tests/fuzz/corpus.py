"""Query texts to begin with: those of the tests, of strangers, and of the pages for users."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.hostile import ATTACKS, PLACES
from tests.support import AGGREGATES, ORDERED, PARTITIONED, PER_ROW, SKETCHES, WINDOWS

ROOT = Path(__file__).parents[2]
_CALLS = (*AGGREGATES, *SKETCHES)
_SQL_BLOCK = re.compile(r"```sql\n(.*?)```", re.DOTALL)


@cache
def corpus() -> tuple[str, ...]:
    """All texts, each once, in the same order every time."""
    found = {**dict.fromkeys(_of_windows()), **dict.fromkeys(_of_strangers())}
    return (*found, *sorted({*_in_code(), *_in_pages()} - found.keys()))


def _of_windows() -> Iterator[str]:
    """Every kind of window, with aggregates that take turns."""
    windows = (*WINDOWS, *PARTITIONED, *PER_ROW, *ORDERED)
    for number, window in enumerate(windows * 20):
        calls = [_CALLS[(3 * number + i) % len(_CALLS)] for i in range(3)]
        key = "" if "SLIDE 1 ROW" in window or "RATTR" in window else " GROUP BY k"
        select = ", ".join(f"{call} AS c{i}" for i, call in enumerate(calls))
        yield f"SELECT {'k, ' * bool(key)}{select} FROM bids [{window}]{key}"


def _of_strangers() -> Iterator[str]:
    return (place.format(attack) for place in PLACES.values() for attack in ATTACKS.values())


def _in_code() -> Iterator[str]:
    """The texts of queries in the tests, and in examples of the library itself."""
    for folder in ("tests", "src"):
        for module in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
                text = node.value if isinstance(node, ast.Constant) else None
                if isinstance(text, str) and text.lstrip().upper().startswith("SELECT "):
                    yield text


def _in_pages() -> Iterator[str]:
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for block in _SQL_BLOCK.findall(page.read_text(encoding="utf-8")):
            yield block.strip()
            yield from (line for line in block.splitlines() if "SELECT" in line)
