"""Random queries with queries inside, and their answers step by step.

Every drawn query is built twice: as one text, in which queries stand inside each other, and as a
list of steps, each of which is one query over tables that were written down before. Only the first
goes through the graph.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

import panes

Alone = Callable[[str, dict[str, pa.Table]], pa.Table]
"""How one step is answered: the query, and the tables that it reads."""


@dataclass(frozen=True)
class Drawn:
    """A query: `text` has everything inside, `flat` reads what `below` answers as `a` and `b`.

    Its answers have the columns `k` and `v`; `axis` are those that a window over them may lie on.
    """

    text: str
    flat: str
    below: tuple[Drawn, ...]
    axis: tuple[str, ...]

    def answers(self, stream: pa.Table, alone: Alone) -> pa.Table:
        """The answers, step by step."""
        names = ("a", "b")[: len(self.below)] or ("s",)
        tables = [b.written(stream, alone) for b in self.below] or [stream]
        return alone(self.flat, dict(zip(names, tables, strict=True)))

    def written(self, stream: pa.Table, alone: Alone) -> pa.Table:
        """The answers as rows: each lies one tick before the end of its window."""
        answers = self.answers(stream, alone)
        if "window_end" not in answers.column_names:
            return answers
        last = np.array(answers.column("window_end")) - 1
        return answers.append_column("window_time", pa.array(last, pa.int64()))


def _clause(data: st.DataObject, axis: str, *, over_stream: bool) -> tuple[str, str]:
    """A window, as it stands over a query and over a table; and its kind."""
    size, slide = data.draw(st.sampled_from([(10, 10), (20, 10), (7, 3), (3, 10), (40, 20)]))
    kind = data.draw(st.sampled_from(["sliding", "sliding", "sliding", "landmark", "row", "rows"]))
    if kind == "landmark":
        return f"[RANGE ALL SLIDE {slide} WATTR {axis}]", kind
    if kind == "row":
        return f"[RANGE {size} SLIDE 1 ROW RATTR {axis}]", kind
    if kind == "rows" and not over_stream and axis == "window_time":
        return f"[RANGE {size} ROWS SLIDE {slide} ROWS]", kind
    return f"[RANGE {size} SLIDE {slide} WATTR {axis}]", "sliding"


def windows(data: st.DataObject, below: Drawn | None) -> Drawn:
    """Windows over a stream, or over the answers of another query."""
    axis = data.draw(st.sampled_from(below.axis)) if below else "at"
    clause, kind = _clause(data, axis, over_stream=below is None)
    where = data.draw(st.sampled_from(["", " WHERE v > 2", " WHERE k = 1"]))
    inner = data.draw(st.sampled_from(["", f"SELECT k, v + 1 AS v, {axis} FROM "]))
    if kind == "row":
        select, group = f"SELECT k, {axis}, sum(v) AS v", ""
        found: tuple[str, ...] = (axis,)
    else:
        grouped = data.draw(st.booleans())
        select = f"SELECT {'k' if grouped else 'max(k) AS k'}, sum(v) AS v"
        group = " GROUP BY k" if grouped else ""
        found = ("window_time", "window_end")
        found += ("window_start",) if kind in ("sliding", "rows") else ()

    def said(source: str, clause: str) -> str:
        made = f"({inner}{source})" if inner else source
        return f"{select} FROM {made} {clause}{where}{group}"

    short = clause.replace(f" WATTR {axis}", "") if below and axis == "window_time" else clause
    source = "s" if below is None else f"({below.text})"
    if inner and below:
        source = f"({below.text}) x"
    over = () if below is None else (below,)
    return Drawn(said(source, short), said("a" if below else "s", clause), over, found)


def joined(data: st.DataObject, left: Drawn, right: Drawn) -> Drawn:
    """Answers of two queries whose windows end together, or not far from each other."""
    how = data.draw(st.sampled_from(["JOIN", "LEFT JOIN"]))
    apart = data.draw(st.sampled_from([0, 10]))
    text_on = "a.k = b.k AND a.window_end = b.window_end"
    flat_on = "a.k = b.k AND b.window_end >= a.window_end AND b.window_end <= a.window_end"
    if apart:
        flat_on += f" + {apart}"
        text_on = flat_on
    select = "SELECT a.k AS k, a.v - coalesce(b.v, 0) AS v, a.window_end AS e FROM"
    return Drawn(
        f"{select} ({left.text}) a {how} ({right.text}) b ON {text_on}",
        f"{select} a {how} b ON {flat_on}",
        (left, right),
        ("e",),
    )


def query(data: st.DataObject, depth: int = 3) -> Drawn:
    """A query of some queries inside each other: windows over windows, joins of windows."""
    below = None
    for _ in range(data.draw(st.integers(1, depth))):
        below = windows(data, below)
        if "window_end" in below.axis and data.draw(st.integers(0, 3)) == 0:
            other = windows(data, None)
            if "window_end" in other.axis:
                below = joined(data, below, other)
    assert below is not None
    return below


def alone(text: str, tables: dict[str, pa.Table]) -> pa.Table:
    """One step, as a query of its own over whole tables."""
    return panes.sql(text, **tables)


def in_order(table: pa.Table) -> pa.Table:
    """Answers of joins come in any order."""
    keys = [(name, "ascending") for name in table.column_names]
    return table.combine_chunks().sort_by(keys) if keys else table
