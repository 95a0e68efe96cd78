"""Query texts to begin with: those of the tests, of strangers, and of the pages for users."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests import join_queries
from tests.hostile import ATTACKS, PLACES
from tests.support import AGGREGATES, ORDERED, PARTITIONED, PER_ROW, SKETCHES, WINDOWS

ROOT = Path(__file__).parents[2]
_CALLS = (*AGGREGATES, *SKETCHES)
_JOINS = (
    *join_queries.BANDS,
    *join_queries.WINDOWS,
    *join_queries.AS_OF,
    *join_queries.ABOVE,
)
_EXTENTS = ("RANGE 10 SLIDE 4 WATTR at", "TUMBLING 7 WATTR at", "RANGE 5 ROWS SLIDE 2 ROWS")
_SETS = (
    "SELECT DISTINCT k FROM bids [{}]",
    "SELECT DISTINCT k, upper(s) AS big FROM bids [{}] WHERE x > 0",
    "SELECT k FROM bids [{0}] INTERSECT SELECT s FROM sales [{0}]",
    "SELECT k, i FROM bids [{0}] WHERE x > 0 EXCEPT SELECT k, i FROM sales [{0}] WHERE b",
    "SELECT k FROM bids [{0}] MINUS SELECT item FROM sales [{0}]",
)
_ROW_QUESTIONS = (
    "SELECT * FROM bids [RANGE 20 WATTR at]",
    "SELECT * FROM bids [RANGE 20 WATTR at] WHERE k = 'p' ORDER BY x LIMIT 3",
    "SELECT * FROM bids [RANGE 5 ROWS] WHERE x BETWEEN 0 AND 2 AND NOT b",
    "SELECT k, x + 1 AS more FROM bids [RANGE 30 WATTR at] WHERE at > 5 ORDER BY k DESC, x LIMIT 2",
    "SELECT k, count(*) AS n FROM bids [RANGE 30 WATTR at] GROUP BY k",
)
_SQL_BLOCK = re.compile(r"```sql\n(.*?)```", re.DOTALL)


@cache
def corpus() -> tuple[str, ...]:
    """All texts, each once, in the same order every time."""
    found = dict.fromkeys([*_of_windows(), *_of_strangers(), *_of_two_streams()])
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


def _of_two_streams() -> Iterator[str]:
    """Joins, sets of values, and questions about rows."""
    yield from _JOINS
    yield from (text.format(extent) for text in _SETS for extent in _EXTENTS)
    yield from _ROW_QUESTIONS


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
