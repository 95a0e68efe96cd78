"""Every example in the documentation of the installed Spark's aggregates, asked of both engines.

An example is a SELECT over a table of its own. Spark answers it as it stands. In this process the
rows of the table lie at 0, 1, 2, ... and one window holds all of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import panes

Outcome = Literal["same", "refused", "different", "raw", "not for Python"]

# Spark says of these that the order of their values is arbitrary; ours is that of the values.
_ANY_ORDER = re.compile(
    r"\b(collect_list|collect_set|collect_union|array_agg|approx_top_k)\(", re.I
)


@dataclass(frozen=True, slots=True)
class Example:
    """A documented statement: what it selects, and from what."""

    function: str
    statement: str

    @property
    def selected(self) -> str:
        """What stands between SELECT and FROM."""
        return _parts(self.statement)[0]

    @property
    def source(self) -> str:
        """The table, as it stands behind FROM."""
        return _parts(self.statement)[1]

    @property
    def rest(self) -> str:
        """GROUP BY and what follows."""
        return _parts(self.statement)[2]


@dataclass(frozen=True, slots=True)
class Result:
    """What became of an example, and both answers."""

    example: Example
    outcome: Outcome
    ours: object = None
    theirs: object = None


def examples(spark: SparkSession) -> Iterator[Example]:
    """The examples of every function that is an aggregate, as the session describes them."""
    names = [row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()]
    for name in names:
        if not re.match(r"[a-z]", name) or name in ("case", "between"):
            continue
        described = spark.sql(f"DESCRIBE FUNCTION EXTENDED `{name}`").collect()
        text = "\n".join(row[0] for row in described)
        if not re.search(r"^Class: .*(\.aggregate\.|Bitmap\w+Agg$|Grouping)", text, re.M):
            continue
        for statement in re.findall(r">\s+(SELECT\b.*?);\s*\n", text, re.S):
            yield Example(name, " ".join(statement.split()))


def ask_both(spark: SparkSession, example: Example, asked: str | None = None) -> Result:
    """The example on Spark and in this process, where something else may be `asked`."""
    try:
        table = spark.sql(f"SELECT * FROM {example.source}").toArrow()
        theirs = spark.sql(example.statement).toArrow()
    except PySparkException as failure:
        return Result(example, "not for Python", theirs=str(failure)[:80])
    rows = table.append_column("__at", pa.array(range(len(table)), pa.int64()))
    names = ", ".join(f"{s} AS c{i}" for i, s in enumerate(_split(asked or example.selected)))
    text = f"SELECT {names} FROM rows [TUMBLING {len(table)} WATTR __at] {example.rest}"
    try:
        ours = panes.sql(text, rows=rows)
    except panes.PanesError as refusal:
        return Result(example, "refused", str(refusal), theirs.to_pylist())
    except Exception as failure:
        return Result(example, "raw", repr(failure), theirs.to_pylist())
    ours = ours.drop_columns(["window_start", "window_end"])
    free = bool(_ANY_ORDER.search(example.selected))
    given, wanted = (_told(t, any_order=free) for t in (ours, theirs))
    outcome: Outcome = "same" if _equal(given, wanted) else "different"
    return Result(example, outcome, given, wanted)


def _parts(statement: str) -> tuple[str, str, str]:
    depth, at = 0, 0
    for at in range(len("SELECT "), len(statement)):
        depth += {"(": 1, ")": -1}.get(statement[at], 0)
        if depth == 0 and re.match(r"\sFROM\s", statement[at:], re.I):
            break
    source, _, group = statement[at + len(" FROM ") :].partition(" GROUP BY ")
    return statement[len("SELECT ") : at], source, f"GROUP BY {group}" if group else ""


def _split(selected: str) -> list[str]:
    """The items of a SELECT list."""
    items, depth = [""], 0
    for letter in selected:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            items.append("")
        else:
            items[-1] += letter
    return [i.strip() for i in items]


def _told(answers: pa.Table, *, any_order: bool) -> tuple[list[str], list[list[Any]]]:
    """Types without what Arrow calls their parts, and rows."""
    types = [re.sub(r"(item|element): | not null", "", str(f.type)) for f in answers.schema]
    rows = [list(row.values()) for row in answers.to_pylist()]
    if any_order:
        rows = [[_sorted(v) for v in row] for row in rows]
    return types, rows


def _sorted(value: Any) -> Any:
    return sorted(value, key=repr) if isinstance(value, list) else value


def _equal(a: Any, b: Any) -> bool:
    """Whether two answers are the same; doubles to their last digits but two."""
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_equal, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-13) or (math.isnan(a) and math.isnan(b))
    return type(a) is type(b) and bool(a == b)
