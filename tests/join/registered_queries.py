"""What Hypothesis draws for registers over joins: queries of every kind, rows of three streams."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import pyarrow as pa
from hypothesis import strategies as st

LATENESS = 4
SCHEMA = pa.schema([(name, pa.int64()) for name in ("id", "at", "half", "k", "v")])
Answer = Mapping[str, int | None]

_BANDS = ((-3, 3), (0, 5), (4, 7), (-7, -4), (2, 2))
_KINDS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL OUTER JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN")
_ON = ("", "", " AND l.v > 2", " AND r.v IS NOT NULL", " AND l.v <= r.v", " AND l.v + 1 > 1")
_CLAUSES = ("[TUMBLING 5 WATTR at]", "[RANGE 6 SLIDE 4 WATTR at]", "[RANGE 3 SLIDE 5 WATTR at]")
_ABOVE = ("TUMBLING 5", "RANGE 6 SLIDE 3", "RANGE 2 SLIDE 4")
_SEEN = "count(*) AS n, sum({0}.v + 1) AS s, count(*) FILTER (WHERE {0}.v {1}) AS f"
_FILTERS = ("> 2", "> 2", "+ 1 > 2", "% 2 = 1", "IS NULL")
_WHERES = ("", "", "", "{0}.v > 1", "{0}.v + 1 IS NULL", "{0}.v % 2 = 0")
_WHERES_OF_BOTH = ("l.v + r.v > 3", "coalesce(r.v, l.v, 0) < 2", "r.k IS NULL OR l.v <> r.v")
_GROUPS = ("", "", "{0}.v % 2", "{0}.v + 1")
_GROUPS_OF_BOTH = ("l.v + r.v", "coalesce(r.v, -1) % 2")
_DERIVED = "(SELECT at + 2 AS at, k, v, id, half FROM l WHERE v > 1)"
_TWICE = (
    "(SELECT at + 2 AS at, half, v AS k, id, CAST(k + 1 AS DOUBLE) AS v FROM l WHERE v > 0) r",
    "l r",
)
_THIRD = (
    "FROM l {} r ON l.k = r.k AND r.at BETWEEN l.at - 2 AND l.at + 1 {} m "
    "ON m.k = r.k AND m.at BETWEEN r.at + 1 AND r.at + 3",
    "FROM l {} r ON l.k = r.k AND r.at BETWEEN l.at + 3 AND l.at + 4 {} m "
    "ON m.k = l.k AND m.at BETWEEN l.at - 2 AND l.at",
)


class Drawn(NamedTuple):
    """A join: its FROM, its kind, the column it lies on, and its form."""

    text: str
    kind: str
    at: str
    form: str


@st.composite
def joins(draw: st.DrawFn, *, in_process: bool) -> Drawn:
    """A join of any kind."""
    form = draw(st.sampled_from(("band", "band", "band", "windows", "as of", "third")))
    kind, on = draw(st.sampled_from(_KINDS)), draw(st.sampled_from(_ON))
    if form == "third":
        kind = draw(st.sampled_from(_KINDS[:4]))
        other = draw(st.sampled_from(_KINDS[:4]))
        return Drawn(draw(st.sampled_from(_THIRD)).format(kind, other), kind, "at", form)
    if form == "windows":
        clause = draw(st.sampled_from(_CLAUSES))
        return Drawn(f"FROM l {kind} r ON l.k = r.k{on} {clause}", kind, "at", form)
    if form == "as of":
        kind = draw(st.sampled_from(("ASOF JOIN", "ASOF LEFT JOIN")))
        return Drawn(f"FROM l {kind} r [RANGE 6 WATTR at] ON l.k = r.k{on}", kind, "at", form)
    low, high = draw(st.sampled_from(_BANDS))
    left = draw(st.sampled_from(("l", "l", _DERIVED + " l" if in_process else "l")))
    right = draw(st.sampled_from(("r", "r", "r", *(_TWICE if in_process else _TWICE[1:]))))
    at = draw(st.sampled_from(("at", "at", "half" if in_process else "at")))
    band = f"BETWEEN l.{at} + {low} AND l.{at} + {high}".replace("+ -", "- ")
    return Drawn(f"FROM {left} {kind} {right} ON l.k = r.k AND r.{at} {band}{on}", kind, at, form)


@st.composite
def queries_over(draw: st.DrawFn, join: Drawn) -> str:
    """A query over a join: joined rows or aggregates; positions are called `la`, `ra` and `ma`."""
    joined, kind, at, form = join
    is_one_sided = "SEMI" in kind or "ANTI" in kind
    of = "l" if is_one_sided else draw(st.sampled_from("lr"))
    where = draw(st.sampled_from(_WHERES + _WHERES_OF_BOTH * (not is_one_sided))).format(of)
    joined += f" WHERE {where}" if where else ""
    which = draw(st.sampled_from(("rows", "rows", "above", "positions", "positions", "fold")))
    if form == "third":
        which = draw(st.sampled_from(("rows", "rows", "above")))
    sides = "l" if is_one_sided else "lrm" if form == "third" else "lr"
    if which == "rows":
        columns = [f"{s}.id AS {s}i, {s}.{at} AS {s}a, {s}.v + 1 AS {s}e" for s in sides]
        return f"SELECT {', '.join(columns)} {joined}"
    which_rows = draw(st.sampled_from(_FILTERS))
    seen = _SEEN.format(of, which_rows)
    group = draw(st.sampled_from(_GROUPS + _GROUPS_OF_BOTH * (not is_one_sided))).format(of)
    group = f" GROUP BY {group}" if group else ""
    if form == "windows":
        return f"SELECT {seen} {joined}{group}"
    if form == "third":
        by = f"l.{at}" if "m.k = l.k" in joined else "r.at"
        by = draw(st.sampled_from((by, "m.at", f"max({by}, m.at)", f"min({by}, m.at)")))
        return f"SELECT {seen} [{draw(st.sampled_from(_ABOVE))} WATTR {by}] {joined}{group}"
    if which == "above":
        places = [f"{s}.{at}" for s in sides]
        places += [f"max(l.{at}, r.{at})", f"min(l.{at}, r.{at})"] * (not is_one_sided)
        on = draw(st.sampled_from(places))
        return f"SELECT {seen} [{draw(st.sampled_from(_ABOVE))} WATTR {on}] {joined}{group}"
    if which == "fold" or is_one_sided:
        seen = _SEEN.format("l" if is_one_sided else "r", which_rows)
        return f"SELECT l.{at} AS la, l.id AS li, {seen} {joined} GROUP BY l.{at}, l.id"
    by_left, by_right = f"l.{at} AS la", f"r.{at} AS ra"
    names = draw(st.sampled_from(((by_left,), (by_right,), (by_left, by_right))))
    keys = ", ".join(name.split(" ")[0] for name in names)
    return f"SELECT {', '.join(names)}, {seen} {joined} GROUP BY {keys}"


_EQUAL = "FROM l JOIN r ON l.k = r.k AND r.at BETWEEN l.at - 3 AND l.at + 3"
_BY_NOTHING = "1 / (l.k - r.k)"
FAILING = (
    f"SELECT l.id AS li, l.at AS la, {_BY_NOTHING} AS q {_EQUAL}",
    f"SELECT l.id AS li, l.at AS la {_EQUAL} AND {_BY_NOTHING} > 1".replace("JOIN", "LEFT JOIN"),
    f"SELECT l.id AS li, l.at AS la {_EQUAL} WHERE {_BY_NOTHING} > 1",
    f"SELECT sum({_BY_NOTHING}) AS s [TUMBLING 5 WATTR l.at] {_EQUAL}",
    f"SELECT count(*) FILTER (WHERE {_BY_NOTHING} > 1) AS n [TUMBLING 5 WATTR l.at] {_EQUAL}",
    f"SELECT count(*) AS n [TUMBLING 5 WATTR l.at] {_EQUAL} GROUP BY {_BY_NOTHING}",
    f"SELECT count(*) AS n [TUMBLING 5 WATTR r.at] {_EQUAL} WHERE 1 / (l.v - r.v) > 0",
)
"""Queries that fail of rows that are joined: most of them of any."""


def rows(draw: st.DrawFn, first_id: int, at_least: int) -> pa.Table:
    """Some rows of a stream, of which none lies before a position."""
    one = st.tuples(
        st.sampled_from([*range(10), *range(10), 17, 29, None]),
        st.sampled_from([1, 1, 1, 1, 2, None]),
        st.sampled_from([0, 1, 2, 3, 4, None]),
    )
    drawn = draw(st.lists(one, max_size=7))
    at = [None if ahead is None else at_least + ahead for ahead, _, _ in drawn]
    columns = [
        list(range(first_id, first_id + len(drawn))),
        at,
        [None if a is None else a // 2 for a in at],
        [k for _, k, _ in drawn],
        [v for _, _, v in drawn],
    ]
    return pa.table([pa.array(c, pa.int64()) for c in columns], schema=SCHEMA)


def counted(answers: pa.Table) -> Counter[tuple[tuple[str, object], ...]]:
    """Answers, as a bag."""
    return Counter(tuple(row.items()) for row in answers.to_pylist())


def lies_at(answer: Answer) -> int | None:
    """Where an answer begins: its window, its group, or the first row of a joined row."""
    if "window_start" in answer:
        return answer["window_start"]
    found = [answer.get(name) for name in ("la", "ra", "ma")]
    at = [position for position in found if position is not None]
    return (max if "n" in answer else min)(at, default=None)
