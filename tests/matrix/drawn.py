"""Random queries with queries inside, and what loops over rows answer to them.

Each is drawn as text, in which queries stand inside each other, and as a function of the rows of
its streams (`plain_rows`). `flat` and `reads` say it once more, as steps: `flat` reads answers by
the names `a` and `b`, as if they had been written down. Answers have the columns `k` and `v`, and
those of `axis`, which a window over them may lie on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa
from hypothesis import strategies as st

from tests.matrix import plain_rows
from tests.matrix.plain_rows import Fold, Row, Rows

Streams = Mapping[str, Rows]
Reads = tuple[tuple[str, "Drawn | None"], ...]
Alone = Callable[[str, dict[str, pa.Table]], pa.Table]
"""How one step is answered: the query, and the tables that it reads."""
Condition = Callable[[Row], bool]
Matches = Callable[[Row, Row], bool]
EDGES = ("window_time", "window_end", "window_start")
SIZES = ((10, 10), (20, 10), (7, 3), (3, 10), (40, 20), (1, 1), (5, 10))
FOLDS: dict[str, Fold] = {
    "sum(v)": lambda rows: {"v": _sum(rows)},
    "max(v)": lambda rows: {"v": max(_values(rows), default=None)},
    "min(v)": lambda rows: {"v": min(_values(rows), default=None)},
    "count(*)": lambda rows: {"v": len(rows)},
    "count(DISTINCT v)": lambda rows: {"v": len(set(_values(rows)))},
}
CONDITIONS: dict[str, Condition] = {
    "": lambda row: True,
    "v > 2": lambda row: row["v"] is not None and row["v"] > 2,
    "k = 1": lambda row: row["k"] == 1,
}


@dataclass(frozen=True)
class Drawn:
    """A query with state: windows, or a join; see the module.

    `reads` has what `flat` reads by name: the query that answers it, or None for a stream.
    """

    text: str
    flat: str
    reads: Reads
    axis: tuple[str, ...]
    answers: Callable[[Streams], Rows]

    @property
    def streams(self) -> frozenset[str]:
        """The streams that it reads, itself or inside."""
        of = (frozenset({name}) if node is None else node.streams for name, node in self.reads)
        return frozenset().union(*of)

    @property
    def is_layered(self) -> bool:
        """Whether no query reads a stream beside answers."""
        inside = [node for _, node in self.reads if node is not None]
        return len(inside) in (0, len(self.reads)) and all(node.is_layered for node in inside)

    def in_steps(self, tables: Mapping[str, pa.Table], alone: Alone) -> pa.Table:
        """The answers, every query for itself over what was written down before."""
        read = {
            name: tables[name] if node is None else _written(node.in_steps(tables, alone))
            for name, node in self.reads
        }
        return alone(self.flat, read)


@dataclass(frozen=True)
class Source:
    """What stands in FROM: a stream or a query, perhaps with a SELECT or a union around it."""

    text: str
    flat: str
    reads: Reads
    axis: tuple[str, ...]
    rows: Callable[[Streams], Rows]
    is_plain: bool = True

    @property
    def is_inside(self) -> bool:
        """Whether answers are read, and not the rows of a stream."""
        return any(node is not None for _, node in self.reads)


def query(data: st.DataObject, nodes: int = 4) -> Drawn:
    """A query of at most `nodes` queries with state, one inside the other."""
    budget = data.draw(st.integers(1, nodes))
    if data.draw(st.integers(0, 7)) == 0:
        return _windows(data, _source(data, budget - 1, "a"), is_last=True)
    return _node(data, budget)


def _node(data: st.DataObject, budget: int) -> Drawn:
    """A query of at most `budget` nodes, of which the outermost is one."""
    if budget > 1 and data.draw(st.integers(0, 2)) == 0:
        mine = data.draw(st.integers(0, budget - 1))
        left = _source(data, mine, "a")
        right = _source(data, budget - 1 - mine, "b")
        return data.draw(st.sampled_from([_joined, _joined, _in_common, _above, _as_of]))(
            data, left, right
        )
    return _windows(data, _source(data, budget - 1, "a"))


def _source(data: st.DataObject, budget: int, name: str) -> Source:
    if not budget:
        stream = data.draw(st.sampled_from(["s", "s", "u"]))
        found = Source(stream, stream, ((stream, None),), ("at",), lambda given: given[stream])
    else:
        node = _node(data, budget)
        found = Source(f"({node.text})", name, ((name, node),), node.axis, node.answers)
    around = data.draw(st.sampled_from(["", "", "", "select", "distinct", "twice", "moved"]))
    below = data.draw(st.sampled_from(["", "select", "moved"])) if around else ""
    for how in filter(None, (below, around)):
        found = _around(data, found, how)
    return found


def _around(data: st.DataObject, source: Source, how: str) -> Source:
    """A SELECT around a source: of some rows, of different rows, twice, or moved on the axis."""
    axis = data.draw(st.sampled_from(source.axis))
    where = data.draw(st.sampled_from(list(CONDITIONS)))
    passes, behind = CONDITIONS[where], f" WHERE {where}" if where else ""
    moved = 4 if how == "moved" else 0
    word = "SELECT DISTINCT" if how == "distinct" else "SELECT"
    at = f"{axis} + {moved} AS {axis}" if moved else axis

    def rows(given: Streams) -> Rows:
        found = [
            {"k": r["k"], "v": None if r["v"] is None else r["v"] + 1, axis: r[axis] + moved}
            for r in source.rows(given)
            if passes(r)
        ]
        if how == "distinct":
            return [dict(r) for r in dict.fromkeys(tuple(r.items()) for r in found)]
        if how == "twice":
            return found + [{**r, "v": None if r["v"] is None else r["v"] - 2} for r in found]
        return found

    def said(inner: str) -> str:
        selected = f"{word} k, v + 1 AS v, {at} FROM {inner}{behind}"
        if how == "twice":
            selected += f" UNION ALL SELECT k, v - 1 AS v, {at} FROM {inner}{behind}"
        return f"({selected})"

    return Source(said(source.text), said(source.flat), source.reads, (axis,), rows, False)


def _windows(data: st.DataObject, source: Source, *, is_last: bool = False) -> Drawn:
    """Windows over a stream or over answers; the last ones may count answers."""
    axis = data.draw(st.sampled_from(source.axis))
    size, slide = data.draw(st.sampled_from(SIZES))
    kinds = ["sliding", "sliding", "sliding", "sliding", "landmark", "row"]
    if is_last and source.is_plain and axis == "window_time":
        kinds = ["rows"]
    kind = data.draw(st.sampled_from(kinds))
    where = data.draw(st.sampled_from(list(CONDITIONS)))
    passes, behind = CONDITIONS[where], f" WHERE {where}" if where else ""
    called = data.draw(st.sampled_from(list(FOLDS)[: 4 if kind == "landmark" else 5]))
    keys: tuple[str, ...] = ("k",) if data.draw(st.booleans()) else ()
    group = " GROUP BY k" if keys else ""
    select = f"SELECT {'k' if keys else 'max(k) AS k'}, {called} AS v"
    found: tuple[str, ...] = EDGES
    clause = f"[RANGE {size} SLIDE {slide} WATTR {axis}]"
    if kind == "landmark":
        clause, found = f"[RANGE ALL SLIDE {slide} WATTR {axis}]", found[:2]
    if kind == "rows":
        clause = f"[RANGE {size} ROWS SLIDE {slide} ROWS]"
        found = ()
    if kind == "row":
        clause, found = f"[RANGE {size} SLIDE 1 ROW RATTR {axis}]", (axis,)
        select, keys, group = f"SELECT k, {axis}, {called} AS v", (), ""

    def fold(rows: Rows) -> Row:
        return FOLDS[called](rows) | ({} if keys else {"k": max(_values(rows, "k"), default=None)})

    def answers(given: Streams) -> Rows:
        rows = source.rows(given)
        some = [r for r in rows if passes(r)]
        if kind == "landmark":
            return plain_rows.landmark(some, axis, slide, keys, fold)
        if kind == "row":
            return plain_rows.per_row(rows, axis, size, passes, FOLDS[called])
        if kind == "rows":
            return plain_rows.counted(rows, size, slide, passes, keys, fold)
        return plain_rows.sliding(some, axis, size, slide, keys, fold)

    said_alone = source.is_inside and source.is_plain and axis == "window_time"
    short = clause.replace(" WATTR window_time", "") if said_alone else clause
    return Drawn(
        f"{select} FROM {source.text} {short}{behind}{group}",
        f"{select} FROM {source.flat} {clause}{behind}{group}",
        source.reads,
        found,
        answers,
    )


HOWS = ("JOIN", "LEFT JOIN", "LEFT JOIN", "SEMI JOIN", "ANTI JOIN")


def _band(data: st.DataObject, left: Source, right: Source) -> tuple[str, str, str, Matches]:
    """What ON says, also as steps read it; the axis on the left; and what it means."""
    mine, other = (data.draw(st.sampled_from(side.axis)) for side in (left, right))
    low, high = data.draw(st.sampled_from([(0, 0), (0, 10), (-10, 0), (-3, 4), (5, 12)]))
    is_keyed = data.draw(st.booleans())
    band = f"b.{other} >= a.{mine} + {low} AND b.{other} <= a.{mine} + {high}".replace("+ -", "- ")
    said = band
    if (low, high) == (0, 0) and mine == other and mine.startswith("window_"):
        said = f"a.{mine} = b.{other}"

    def matches(one: Row, with_: Row) -> bool:
        at, there = one[mine], with_[other]
        same = not is_keyed or (one["k"] is not None and one["k"] == with_["k"])
        return same and at + low <= there <= at + high

    keyed = "a.k = b.k AND " if is_keyed else ""
    return f"{keyed}{said}", f"{keyed}{band}", mine, matches


def _pairs(left: Rows, right: Rows, how: str, matches: Matches, mine: str) -> Rows:
    """Joined rows with the value that each join gives: what its sides differ by."""
    found = []
    for one, partner in plain_rows.joined(left, right, how, matches):
        other = 0 if partner is None else partner["v"] or 0
        value = one["v"] if how in ("SEMI JOIN", "ANTI JOIN") else (one["v"] or 0) - other
        found.append({"k": one["k"], "v": value, "e": one[mine]})
    return found


def _value(how: str) -> str:
    return "a.v" if how in ("SEMI JOIN", "ANTI JOIN") else "coalesce(a.v, 0) - coalesce(b.v, 0)"


def _said(left: Source, right: Source, how: str, behind: tuple[str, str]) -> tuple[str, str]:
    """FROM and ON of a join: as text, and as steps read it."""
    text, flat = behind
    return (
        f"FROM {left.text} a {how} {right.text} b {text}",
        f"FROM {left.flat} a {how} {right.flat} b {flat}",
    )


def _joined(data: st.DataObject, left: Source, right: Source) -> Drawn:
    """Rows or answers of two sources, of which some lie near each other."""
    how = data.draw(st.sampled_from(HOWS))
    on, flat_on, mine, matches = _band(data, left, right)
    select = f"SELECT a.k AS k, {_value(how)} AS v, a.{mine} AS e"
    text, flat = _said(left, right, how, (f"ON {on}", f"ON {flat_on}"))

    def answers(given: Streams) -> Rows:
        return _pairs(left.rows(given), right.rows(given), how, matches, mine)

    return Drawn(f"{select} {text}", f"{select} {flat}", left.reads + right.reads, ("e",), answers)


def _above(data: st.DataObject, left: Source, right: Source) -> Drawn:
    """Windows over joined rows, in the SELECT of the join."""
    how = data.draw(st.sampled_from(["JOIN", "LEFT JOIN"]))
    on, flat_on, mine, matches = _band(data, left, right)
    size, slide = data.draw(st.sampled_from(SIZES))
    text, flat = _said(left, right, how, (f"ON {on}", f"ON {flat_on}"))
    select = f"SELECT a.k AS k, sum({_value(how)}) AS v [RANGE {size} SLIDE {slide} WATTR a.{mine}]"

    def answers(given: Streams) -> Rows:
        pairs = _pairs(left.rows(given), right.rows(given), how, matches, mine)
        return plain_rows.sliding(pairs, "e", size, slide, ("k",), FOLDS["sum(v)"])

    said = (f"{select} {text} GROUP BY a.k", f"{select} {flat} GROUP BY a.k")
    return Drawn(*said, left.reads + right.reads, EDGES, answers)


def _in_common(data: st.DataObject, left: Source, right: Source) -> Drawn:
    """Rows of two sources that lie in one window, for every window; or else a join by a band."""
    both = [axis for axis in left.axis if axis in right.axis]
    if not both:
        return _joined(data, left, right)
    axis, (size, slide) = data.draw(st.sampled_from(both)), data.draw(st.sampled_from(SIZES))
    how = data.draw(st.sampled_from(HOWS))
    behind = f"ON a.k = b.k [RANGE {size} SLIDE {slide} WATTR {axis}]"
    text, flat = _said(left, right, how, (behind, behind))
    select = f"SELECT a.k AS k, {_value(how)} AS v"

    def placed(rows: Rows) -> Rows:
        ends = [(r, plain_rows.ends_holding(r[axis], size, slide)) for r in rows]
        return [{**r, "end": end} for r, some in ends for end in some]

    def matches(one: Row, other: Row) -> bool:
        return one["end"] == other["end"] and one["k"] is not None and one["k"] == other["k"]

    def answers(given: Streams) -> Rows:
        sides = placed(left.rows(given)), placed(right.rows(given))
        pairs = _pairs(*sides, how, matches, "end")
        return [plain_rows.answer(size, p["e"], {"k": p["k"]}, {"v": p["v"]}) for p in pairs]

    reads = left.reads + right.reads
    return Drawn(f"{select} {text}", f"{select} {flat}", reads, EDGES, answers)


def _as_of(data: st.DataObject, left: Source, right: Source) -> Drawn:
    """Each row on the left with the last one on the right; of several the one of most value."""
    mine, other = (data.draw(st.sampled_from(side.axis)) for side in (left, right))
    how = data.draw(st.sampled_from(["ASOF JOIN", "ASOF LEFT JOIN"]))
    reach = data.draw(st.sampled_from([1, 5, 30]))
    on = f"ON a.k = b.k AND b.{other} <= a.{mine} AND b.{other} >= a.{mine} - {reach}"
    text, flat = _said(left, right, how, (on, on))
    select = f"SELECT a.k AS k, coalesce(a.v, 0) - coalesce(b.v, 0) AS v, a.{mine} AS e"

    def answers(given: Streams) -> Rows:
        found, there = [], right.rows(given)
        for one in left.rows(given):
            at = one[mine]
            near = [r for r in there if r["k"] == one["k"] and r["k"] is not None]
            near = [r for r in near if at - reach <= r[other] <= at]
            last = max(near, key=lambda r: (r[other], _ranked(r["v"])), default=None)
            if last is not None or how == "ASOF LEFT JOIN":
                value = (one["v"] or 0) - ((last or {}).get("v") or 0)
                found.append({"k": one["k"], "v": value, "e": at})
        return found

    reads = left.reads + right.reads
    return Drawn(f"{select} {text}", f"{select} {flat}", reads, ("e",), answers)


def _ranked(value: int | None) -> tuple[bool, int]:
    return value is not None, value or 0


def _values(rows: Rows, of: str = "v") -> list[int]:
    return [value for value in (row[of] for row in rows) if value is not None]


def _sum(rows: Rows) -> int | None:
    values = _values(rows)
    return sum(values) if values else None


def _written(answers: pa.Table) -> pa.Table:
    """Answers as rows: each lies one tick before the end of its window."""
    if "window_end" not in answers.column_names:
        return answers
    last = [end - 1 for end in answers["window_end"].to_pylist()]
    return answers.append_column("window_time", pa.array(last, pa.int64()))
