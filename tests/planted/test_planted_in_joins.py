"""Wrong edits in joins that the comparison with nested loops must catch, each planted by hand."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import panes
from panes.join import oa_join
from panes.join.as_of import AsOfJoin
from panes.join.oa_join import _Step
from panes.join.progress import joint
from panes.join.rule import Progress
from panes.join.time_blocks import TimeBlocks
from panes.nodes import join_stage, joined_rows
from panes.nodes.join_stage import JoinStage
from panes.process import join_node
from panes.windows.partners import Band, CommonWindows, Reach
from tests.join.histories import (
    END,
    HOWS,
    join_text,
    of_one,
    table,
    taken,
    taken_of_one,
    text_of_one,
    told,
)
from tests.join.nested_loops import How, InBand, InWindows, LastRows, NestedLoops, Row, Step
from tests.support import open_join as opened_join

PARTNERS = (InBand(-3, 2), InBand(1, 4), InWindows(10, 5), InWindows(5, 5), InWindows(3, 5))


def history() -> list[Step]:
    """Rows of a few keys, sparse, skewed and out of order, with promises now and then.

    A few rows come late, so that what is forgotten shows.
    """
    left = [Row(i + i * i % 5, (i * i % 3 if i % 11 != 5 else None,), i) for i in range(40)]
    right = [Row(i + i * i % 3, (i % 3,), i) for i in range(40)]
    ahead, behind = [0, 6, 12, 18, 22, 24, 26, 33, 40], [0, 0, 2, 4, 12, 24, 34, 36, 40]
    steps = []
    for number in range(8):
        mine = left[ahead[number] : ahead[number + 1]]
        other = right[behind[number] : behind[number + 1]]
        rest = left[ahead[number + 1] :], right[behind[number + 1] :]
        promises = [min((row.at for row in rows), default=70) for rows in rest]
        late = [Row(left[ahead[number]].at - 9, (0,), 100 + number)] if number in (3, 5) else []
        steps.append(Step((*mine, *late), tuple(other), *promises))
        if number % 3 == 2:
            steps[-1] = Step(steps[-1].left, steps[-1].right)
    return steps


STEPS = history()
IN_TIME = [
    Step(tuple(r for r in s.left if r.id < 100), s.right, s.left_promise, s.right_promise)
    for s in STEPS
]


# Both sides together, each with a row at every position, and promises between rows that are there.
TOGETHER = []
for _start in (0, 8, 16):
    _rows = tuple(Row(at, (1,), at) for at in range(_start, _start + 8))
    TOGETHER.append(Step(_rows, _rows, _start + 5, _start + 5))


def wrong() -> list[str]:
    """The first place where streams, or what is above them, differ from nested loops."""
    checks: list[tuple[str, Callable[[], bool]]] = [
        (f"{how} {partners}", partial(_streamed, partners, how))
        for partners in PARTNERS
        for how in HOWS
    ]
    checks += [(f"as of {size}", partial(_as_of, size)) for size in (1, 2, 6)]
    checks += [("positions", _positions), ("above", _above)]
    checks += [(f"one stream, {how}", partial(_one_stream, how)) for how in ("inner", "full")]
    for name, is_right in reversed(checks):
        try:
            if not is_right():
                return [name]
        except Exception as failure:
            return [f"{name}: {failure!r}"]
    return []


def _streamed(partners: InBand | InWindows, how: How) -> bool:
    loops, query = NestedLoops(partners, how), opened_join(join_text(how, partners))
    query.push(l=table([]), r=table([]))
    for step in STEPS:
        if taken(query, step) != sorted(loops.step(step), key=repr):
            return False
        if (query.state["left_rows"], query.state["right_rows"]) != loops.stored():
            return False
    return told(query.finish()) == sorted(loops.step(END), key=repr)


def _one_stream(how: How) -> bool:
    """One stream on both sides, through SELECTs that differ."""
    partners = InBand(-3, 2)
    loops, query = NestedLoops(partners, how), opened_join(text_of_one(how, partners))
    taken_of_one(query, Step())
    for step in map(of_one, STEPS):
        if taken_of_one(query, step) != sorted(loops.step(step), key=repr):
            return False
    return told(query.finish()) == sorted(loops.step(END), key=repr)


def _as_of(size: int) -> bool:
    query = opened_join(f"SELECT l.id AS a, r.id AS b FROM l ASOF LEFT JOIN r [RANGE {size} "
                       "WATTR at] ON l.k = r.k")  # fmt: skip
    query.push(l=table([]), r=table([]))
    loops = LastRows(size, "left")
    for step in STEPS:
        if taken(query, step) != sorted(loops.step(step), key=repr):
            return False
        if (query.state["left_rows"], query.state["right_rows"]) != loops.stored():
            return False
    return told(query.finish()) == sorted(loops.step(END), key=repr)


def _positions() -> bool:
    """Groups by both positions, which close by joint punctuation."""
    query = opened_join("SELECT l.at AS a, r.at AS b, count(*) AS n FROM l JOIN r "
                       "ON r.at BETWEEN l.at - 3 AND l.at + 2 GROUP BY l.at, r.at")  # fmt: skip
    query.push(l=table([]), r=table([]))
    given: set[tuple[int, int]] = set()
    loops = NestedLoops(InBand(-3, 2), condition=lambda a, b: True)
    for step in TOGETHER:
        loops.step(step)
        got = [query.push(l=table(step.left), r=table(step.right))]
        made = {"l": step.left_promise, "r": step.right_promise}
        got.append(query.punctuate(**{k: v for k, v in made.items() if v is not None}))
        left, right = loops.promised
        lefts, rights = ({r.id: r.at for r in side} for side in (loops.left, loops.right))
        pairs = {(lefts[a], rights[b]) for a, b, _ in loops.joined
                 if a is not None and b is not None}  # fmt: skip
        want = {(a, b) for a, b in pairs if a < left and b < right}
        rows = [(r["a"], r["b"]) for t in got for r in t.to_pylist()]
        if sorted(rows) != sorted(want - given):
            return False
        given |= want
    return True


def _above() -> bool:
    """Windows above a join, over each of its positions: against the oracle, and in time."""
    left = pa.concat_tables([table(s.left) for s in IN_TIME])
    right = pa.concat_tables([table(s.right) for s in IN_TIME])
    for of, slack in (("l.at", 2), ("r.at", 3), ("max(l.at, r.at)", 3), ("min(l.at, r.at)", 3)):
        text = (
            f"SELECT count(*) AS n [TUMBLING 4 WATTR {of}] FROM l FULL JOIN r ON l.k = r.k "
            "AND r.at BETWEEN l.at - 3 AND l.at + 2"
        )
        query = opened_join(text)
        parts = [query.push(l=table([]), r=table([]))]
        want = panes.oracle(text, l=left, r=right)
        for step in IN_TIME:
            parts.append(query.push(l=table(step.left), r=table(step.right)))
            made = {"l": step.left_promise, "r": step.right_promise}
            parts.append(query.punctuate(**{k: v for k, v in made.items() if v is not None}))
            done = min(query.progress.values()) - slack
            ends = [end for end in want["window_end"].to_pylist() if end <= done]
            given = [end for part in parts for end in part["window_end"].to_pylist()]
            if not set(ends) <= set(given):
                return False
        got = pa.concat_tables([*parts, query.finish()])
        if sorted(map(repr, got.to_pylist())) != sorted(map(repr, want.to_pylist())):
            return False
    return True


@pytest.mark.slow
def test_without_a_planted_bug_nothing_differs() -> None:
    assert wrong() == []


def shifted(function: Callable[..., Any], change: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda *args, **kwargs: change(function(*args, **kwargs))


def moved(low: int, high: int) -> Callable[[Any], Any]:
    """An edge of a pair of edges moved."""
    return lambda edges: (edges[0] + low, edges[1] + high)


def reaching(after: int, before: int) -> Callable[[Any], Any]:
    """An edge of what rows reach moved."""
    return lambda r: Reach(r.first, r.after + after, r.last, r.before + before)


BUGS: dict[str, tuple[object, str, Callable[[Any], Any]]] = {
    "a row reaches one too far back": (Band, "reach", reaching(-1, 0)),
    "a row misses the edge behind": (Band, "reach", reaching(1, 0)),
    "a row reaches one too far ahead": (Band, "reach", reaching(0, 1)),
    "a row misses the edge in front": (Band, "reach", reaching(0, -1)),
    "an as-of join misses the edge behind": (Band, "of_left", moved(1, 0)),
    "an as-of join misses its own position": (Band, "of_left", moved(0, -1)),
    "a left row is forgotten one too early": (Band, "left_from", lambda at: at + 1),
    "a left row is forgotten one too late": (Band, "left_from", lambda at: at - 1),
    "a right row is forgotten one too early": (Band, "right_from", lambda at: at + 1),
    "a right row is forgotten one too late": (Band, "right_from", lambda at: at - 1),
    "windows are forgotten one too early": (CommonWindows, "left_from", lambda at: at + 1),
    "windows are forgotten one too late": (CommonWindows, "left_from", lambda at: at - 1),
    "pairs are of one window too many": (oa_join, "common_wids", moved(-1, 0)),
    "pairs miss their last window": (oa_join, "common_wids", moved(0, -1)),
    "a window is over one too early": (_Step, "_closed", lambda wid: wid + 1),
    "a window is over one too late": (_Step, "_closed", lambda wid: wid - 1),
    "marks are one window off": (
        oa_join, "not_joined", lambda found: (found[0], None if found[1] is None else found[1] + 1),
    ),
    "probes reach one block too few": (Band, "span", moved(3, 0)),
    "blocks are dropped one too early": (
        TimeBlocks, "_trimmed", lambda run: run.where(np.arange(len(run)) > 0),
    ),
    "an as-of join forgets one too early": (AsOfJoin, "_needed_from", lambda at: at + 1),
    "a stream has the same columns wherever it stands": (
        join_node, "joined_schemas", lambda sides: (sides[-1],) * len(sides),
    ),
    "joint punctuation covers everything": (joined_rows, "joint", np.ones_like),
    "joint punctuation is never made": (joined_rows, "joint", np.zeros_like),
    "individual punctuation is one ahead": (join_stage, "individual", lambda at: at + 2),
    "individual punctuation is far behind": (JoinStage, "progress", lambda at: at - 9),
    "rows alone are not waited for": (
        join_stage, "individual", lambda at: at + 4 if abs(at) < 10**6 else at,
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_caught(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place, name, change = BUGS[bug]
    monkeypatch.setattr(place, name, shifted(getattr(place, name), change))
    assert wrong(), f"no test would notice that {bug}"


@pytest.mark.slow
@pytest.mark.parametrize("by", [-1, 1])
@pytest.mark.parametrize("side", [0, 1])
def test_joint_punctuation_off_by_one_is_caught(
    by: int, side: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrongly(promised: Progress, left: Any, right: Any) -> Any:
        off = (promised.left + by, promised.right) if side == 0 else (
            promised.left, promised.right + by
        )  # fmt: skip
        return joint(Progress(*off), left, right)

    monkeypatch.setattr(joined_rows, "joint", wrongly)
    assert not _positions()
