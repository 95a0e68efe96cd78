"""What Hypothesis draws for joins: rows of two sides, and histories in which they come."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from hypothesis import strategies as st

from panes.process.running_query import OpenJoin
from tests.join.nested_loops import EVER, How, InBand, InWindows, Joined, Partners, Row, Step

Stepped = list[list[Joined]]

KEYS = st.sampled_from([1, 1, 1, 2, 3, None])
HOWS: tuple[How, ...] = ("inner", "left", "right", "full", "semi", "anti")
WORDS: dict[How, str] = {
    "inner": "JOIN",
    "left": "LEFT JOIN",
    "right": "RIGHT JOIN",
    "full": "FULL OUTER JOIN",
    "semi": "LEFT SEMI JOIN",
    "anti": "LEFT ANTI JOIN",
}


@st.composite
def sides(draw: st.DrawFn, most: int = 12, span: int = 40) -> tuple[list[Row], list[Row]]:
    """Rows of two sides, in any order; positions meet often."""
    both = []
    for _ in range(2):
        drawn = draw(st.lists(st.tuples(st.integers(-span // 2, span // 2), KEYS), max_size=most))
        both.append([Row(at, (key,), number) for number, (at, key) in enumerate(drawn)])
    return both[0], both[1]


@st.composite
def histories(draw: st.DrawFn, *, late: bool = False, most: int = 10) -> list[Step]:
    """Steps in which rows of both sides come in any order, with promises between them.

    Unless `late`, promises are kept: none is made that a row still to come would break.
    """
    left, right = draw(sides(most))
    left, right = draw(st.permutations(left)), draw(st.permutations(right))
    steps: list[Step] = []
    while left or right:
        a = draw(st.integers(0, min(3, len(left))))
        b = draw(st.integers(0, min(3, len(right))))
        taken, left = left[:a], left[a:]
        other, right = right[:b], right[b:]
        if not a and not b and draw(st.booleans()):
            taken, left = left[:1], left[1:]
            other, right = (other, right) if taken else (right[:1], right[1:])
        promises = [_promise(draw, rest, late=late) for rest in (left, right)]
        steps.append(Step(tuple(taken), tuple(other), *promises))
    return steps


def _promise(draw: st.DrawFn, rest: Sequence[Row], *, late: bool) -> int | None:
    """A promise or none; often right at the next row, which is as much as can be promised."""
    if draw(st.booleans()):
        return None
    if late:
        return draw(st.integers(-22, 22))
    most = min((row.at for row in rest), default=60)
    return draw(st.one_of(st.just(most), st.integers(-30, most)))


def table(rows: Sequence[Row]) -> pa.Table:
    """Rows as a table: at, k, id."""
    return pa.table(
        {
            "at": pa.array([r.at for r in rows], pa.int64()),
            "k": pa.array([r.key[0] if r.key else None for r in rows], pa.int64()),
            "id": pa.array([r.id for r in rows], pa.int64()),
        }
    )


def condition(partners: Partners, keyed: bool = True) -> str:
    """ON and the window clause of a join of `l` and `r`."""
    parts = ["l.k = r.k"] if keyed else []
    if isinstance(partners, InBand):
        parts += [f"r.at >= l.at + {partners.low}", f"r.at <= l.at + {partners.high}"]
        return "ON " + " AND ".join(parts).replace("+ -", "- ")
    window = f"[RANGE {partners.size} SLIDE {partners.slide} WATTR at ORIGIN {partners.origin}]"
    return ("ON " + " AND ".join(parts) if parts else "") + f" {window}"


def join_text(how: How, partners: Partners, keyed: bool = True) -> str:
    """A query that gives the numbers of joined rows."""
    given = "l.id AS a" + ("" if how in ("semi", "anti") else ", r.id AS b")
    return f"SELECT {given} FROM l {WORDS[how]} r {condition(partners, keyed)}"


def told(answers: pa.Table) -> list[Joined]:
    """Answers as the nested loops tell them, in their own order."""
    if not answers.num_columns:
        return []
    n = len(answers)
    a = answers["a"].to_pylist()
    b = answers["b"].to_pylist() if "b" in answers.column_names else [None] * n
    ends = answers["window_end"].to_pylist() if "window_end" in answers.column_names else [None] * n
    return sorted(zip(a, b, ends, strict=True), key=repr)


def run(query: OpenJoin, steps: Sequence[Step]) -> Stepped:
    """What a query gives in each step of a history, and at the end."""
    query.push(l=table([]), r=table([]))
    return [*(taken(query, step) for step in steps), told(query.finish())]


def taken(query: OpenJoin, step: Step) -> list[Joined]:
    """What a query gives in one step."""
    given = told(query.push(l=table(step.left), r=table(step.right)))
    promises = {"l": step.left_promise, "r": step.right_promise}
    made = {name: at for name, at in promises.items() if at is not None}
    return sorted([*given, *told(query.punctuate(**made))], key=repr)


_AHEAD = 3


def text_of_one(how: How, partners: Partners) -> str:
    """The same of one stream, whose SELECTs make the rows of both sides.

    That of the right side moves rows ahead, and gives columns other names and types.
    """
    selected = join_text(how, partners).replace("r.id", "r.number")
    left = "(SELECT at, k, id FROM s WHERE NOT is_right) l"
    right = (f"(SELECT id AS number, at + {_AHEAD} AS at, CAST(k AS DOUBLE) AS k FROM s "
             "WHERE is_right) r")  # fmt: skip
    return selected.replace(f"FROM l {WORDS[how]} r ", f"FROM {left} {WORDS[how]} {right} ")


def of_one(step: Step) -> Step:
    """A step in which both sides are made of one stream, which promises for both at once."""
    promised = step.left_promise, step.right_promise
    if None in promised:
        return Step(step.left, step.right)
    at = min(promised[0], promised[1] - _AHEAD)  # type: ignore[type-var, operator]
    return Step(step.left, step.right, at, at + _AHEAD)  # type: ignore[operator]


def taken_of_one(query: OpenJoin, step: Step) -> list[Joined]:
    """What a query over one stream gives in one step."""
    right = table([Row(row.at - _AHEAD, row.key, row.id) for row in step.right])
    of_right = [False] * len(step.left) + [True] * len(right)
    rows = pa.concat_tables([table(step.left), right])
    given = told(query.push(s=rows.append_column("is_right", pa.array(of_right, pa.bool_()))))
    if step.left_promise is not None:
        given += told(query.punctuate(s=step.left_promise))
    return sorted(given, key=repr)


END = Step((), (), EVER - 1, EVER - 1)
BANDS = (
    InBand(0, 0),
    InBand(-2, 2),
    InBand(-3, 1),
    InBand(0, 5),
    InBand(3, 7),
    InBand(-7, -3),
    InBand(2, 1),
    InBand(-100, 100),
    InBand(1, 1),
)
WINDOWS = (
    InWindows(5, 5),
    InWindows(10, 5),
    InWindows(7, 3),
    InWindows(3, 5),
    InWindows(12, 5, 2),
    InWindows(1, 1),
    InWindows(70, 1),
)
