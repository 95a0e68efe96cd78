"""Joined rows in windows and groups: answered once, complete, and as early as promises allow.

How early that is, is found here by trying positions: a window is over when no pair of positions
within the band, with one row that may still come, lies in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes
from panes.join.progress import Of, individual
from panes.join.rule import Progress
from panes.process.running_query import OpenJoin
from panes.windows.partners import Band
from tests.join.histories import END, WORDS, condition, histories, table
from tests.join.nested_loops import EVER, How, InBand, InWindows, NestedLoops, Row, Step
from tests.support import open_join

BANDS = st.sampled_from([InBand(0, 0), InBand(-2, 2), InBand(0, 5), InBand(3, 7), InBand(-6, -2)])
Position = Callable[[int, int], int]
OF: dict[str, Position] = {
    "l.at": lambda a, b: a,
    "r.at": lambda a, b: b,
    "max(l.at, r.at)": lambda a, b: max(a, b),
    "min(l.at, r.at)": lambda a, b: min(a, b),
}
NAMES: dict[str, Of] = {
    "l.at": "left",
    "r.at": "right",
    "max(l.at, r.at)": "max",
    "min(l.at, r.at)": "min",
}
GRID = range(-45, 75)
Answers = list[tuple[int, int, int]]


def steps_of(query: OpenJoin, steps: list[Step]) -> Iterator[pa.Table]:
    """What a query gives in each step and at the end."""
    empty = query.push(l=table([]), r=table([]))
    for step in steps:
        found = [query.push(l=table(step.left), r=table(step.right))]
        made = {"l": step.left_promise, "r": step.right_promise}
        found.append(query.punctuate(**{k: v for k, v in made.items() if v is not None}))
        yield pa.concat_tables([empty, *found])
    yield query.finish()


def first_to_come(band: InBand, how: How, of: str, left: int, right: int) -> int:
    """The least position of any joined row that may still come, found by trying all."""
    found = [EVER]
    at = OF[of]
    for a, b in product(GRID, GRID):
        if band.low <= b - a <= band.high and (a >= left or b >= right):
            found.append(at(a, b))
    if how in ("left", "full") and of != "r.at":
        found += [a for a in GRID if a >= left or a + band.high >= right]
    if how in ("right", "full") and of != "l.at":
        found += [b for b in GRID if b >= right or b - band.low >= left]
    return min(found)


@pytest.mark.parametrize("of", OF)
@settings(max_examples=30)
@given(
    band=BANDS,
    how=st.sampled_from(["inner", "left", "right", "full"]),
    left=st.integers(-20, 30),
    right=st.integers(-20, 30),
)
def test_a_join_promises_the_first_position_that_may_come(
    of: str, band: InBand, how: How, left: int, right: int
) -> None:
    got = individual(Band(band.low, band.high), Progress(left, right), NAMES[of], how=how)
    assert got == first_to_come(band, how, of, left, right)


@pytest.mark.parametrize("how", ["inner", "left", "full"])
@pytest.mark.parametrize("of", OF)
@settings(max_examples=12)
@given(band=BANDS, steps=histories())
def test_a_window_above_is_answered_in_the_step_that_completes_it(
    of: str, how: How, band: InBand, steps: list[Step]
) -> None:
    size, slide = 4, 2
    text = (
        f"SELECT count(*) AS n [RANGE {size} SLIDE {slide} WATTR {of}] "
        f"FROM l {WORDS[how]} r {condition(band)}"
    )
    lefts = {r.id: r.at for s in steps for r in s.left}
    rights = {r.id: r.at for s in steps for r in s.right}
    loops, rows, given_ends = NestedLoops(band, how), Counter[int](), set[int]()
    for step, got in zip([*steps, END], steps_of(open_join(text), steps), strict=True):
        for a, b, _ in loops.step(step):
            here = [None if a is None else lefts[a], None if b is None else rights[b]]
            own = [x for x in here if x is not None]
            at = OF[of](own[0], own[-1]) if of in OF and of[1] != "." else here[of == "r.at"]
            if at is not None:
                rows.update(e for e in range(-60, 90, slide) if e - size <= at < e)
        reached = EVER
        if step is not END:
            reached = first_to_come(band, how, of, *loops.promised)
        due = {e: n for e, n in rows.items() if e <= reached and e not in given_ends}
        given_ends |= set(due)
        want = sorted((e - size, e, n) for e, n in due.items())
        assert sorted(zip(*(c.to_pylist() for c in got.columns), strict=True)) == want


@settings(max_examples=30)
@given(band=BANDS, steps=histories(), how=st.sampled_from(["inner", "left", "full"]))
def test_groups_by_both_positions_close_by_joint_punctuation(
    band: InBand, steps: list[Step], how: How
) -> None:
    text = (
        f"SELECT l.at, r.at, count(*) AS n FROM l {WORDS[how]} r {condition(band)} "
        "GROUP BY l.at, r.at"
    )
    lefts = {r.id: r.at for s in steps for r in s.left}
    rights = {r.id: r.at for s in steps for r in s.right}
    loops = NestedLoops(band, how)
    waiting = Counter[tuple[int | None, int | None]]()
    for step, got in zip([*steps, END], steps_of(open_join(text), steps), strict=True):
        for a, b, _ in loops.step(step):
            waiting[lefts.get(a), rights.get(b)] += 1  # type: ignore[arg-type]
        left, right = loops.promised
        # No more pairs of these positions can come: neither row can, or it is alone for good.
        done = {
            (a, b): n
            for (a, b), n in waiting.items()
            if (a is None or a < left or (b is None and a + band.high < right and a < left))
            and (b is None or b < right)
            and (a is not None or (b is not None and b - band.low < left and b < right))
            and (b is not None or (a is not None and a + band.high < right and a < left))
        }
        for group in done:
            del waiting[group]
        want = sorted(((a, b, n) for (a, b), n in done.items()), key=repr)
        assert sorted(zip(*(c.to_pylist() for c in got.columns), strict=True), key=repr) == want


@settings(max_examples=20)
@given(
    windows=st.sampled_from([InWindows(5, 5), InWindows(10, 5), InWindows(3, 5)]),
    steps=histories(),
    how=st.sampled_from(["inner", "left", "full"]),
)
def test_windows_of_the_join_itself_close_when_both_sides_have_passed(
    windows: InWindows, steps: list[Step], how: How
) -> None:
    text = f"SELECT count(*) AS n FROM l {WORDS[how]} r {condition(windows)}"
    loops, rows = NestedLoops(windows, how), Counter[int]()
    for step, got in zip([*steps, END], steps_of(open_join(text), steps), strict=True):
        rows.update(end for _, _, end in loops.step(step) if end is not None)
        due = {end: n for end, n in rows.items() if end <= min(loops.promised)}
        for end in due:
            del rows[end]
        want = sorted((end - windows.size, end, n) for end, n in due.items())
        assert sorted(zip(*(c.to_pylist() for c in got.columns), strict=True)) == want


@pytest.mark.parametrize("how", ["inner", "left"])
@settings(max_examples=20)
@given(band=BANDS, steps=histories())
def test_what_each_left_row_found_is_folded_without_pairs(
    how: How, band: InBand, steps: list[Step]
) -> None:
    text = (
        f"SELECT l.id, l.at, count(r.id) AS n, sum(r.id) AS s, max(r.at) AS m "
        f"FROM l {WORDS[how]} r {condition(band)} GROUP BY l.id, l.at"
    )
    query = open_join(text)
    rights = {r.id: r.at for s in steps for r in s.right}
    lefts = {r.id: r for s in steps for r in s.left}
    loops, given_ids = NestedLoops(band, how), set[int]()
    for step, got in zip([*steps, END], steps_of(query, steps), strict=True):
        loops.step(step)
        left, right = loops.promised
        want = []
        for row in loops.left:
            found = [b for a, b, _ in loops.joined if a == row.id and b is not None]
            over = row.at < left and row.at + band.high < right
            if over and row.id not in given_ids and (found or how == "left"):
                last = max((rights[b] for b in found), default=None)
                want.append((row.id, row.at, len(found), sum(found) if found else None, last))
            given_ids |= {row.id} if over else set()
        assert sorted(zip(*(c.to_pylist() for c in got.columns), strict=True)) == sorted(want)
    assert len(given_ids) == len(lefts)
    assert (query.state["rows"], query.state["bytes"]) == (0, 0)


def test_rows_alone_reach_the_window_over_the_later_position() -> None:
    # at    0   1   2   3   4        band: r within 5 after l
    # l                 a            alone once r has passed 8
    # r             b                alone once l has passed 2
    # both promise 4: the window [0, 4) is not over, for `a` may be given with the position 3
    text = (
        "SELECT count(*) AS n [TUMBLING 4 WATTR max(l.at, r.at)] FROM l FULL JOIN r "
        "ON l.k = r.k AND r.at BETWEEN l.at AND l.at + 5"
    )
    query = open_join(text)
    query.push(l=table([Row(3, (1,), 0)]), r=table([Row(2, (1,), 0)]))
    assert len(query.punctuate(l=4, r=4)) == 0
    assert query.punctuate(r=9)["n"].to_pylist() == [2]


def test_an_as_of_join_promises_only_what_waiting_rows_leave() -> None:
    # at    40   45   50        RANGE 10
    # r           b
    # l                a        waits for r to pass 50, though l has promised 100
    # the window [45, 48) over r.at is not over at r's promise of 50: `a` will find `b`
    text = (
        "SELECT count(*) AS n [TUMBLING 3 WATTR r.at] FROM l ASOF JOIN r [RANGE 10 WATTR at] "
        "ON l.k = r.k"
    )
    query = open_join(text)
    query.push(l=table([Row(50, (1,), 0)]), r=table([Row(45, (1,), 0)]))
    assert len(query.punctuate(l=100, r=50)) == 0
    answers = query.punctuate(r=58).to_pylist()
    assert answers == [{"window_start": 45, "window_end": 48, "n": 1}]


@pytest.mark.parametrize("kinds", [("d", "d"), ("d", "t"), ("t", "d"), ("z", "z")])
@pytest.mark.parametrize("pick", ["max", "min"])
def test_the_later_and_the_earlier_of_two_dates(pick: str, kinds: tuple[str, str]) -> None:
    """
    day     1    2    3
    l       .         .
    r            .           a pair of 1 and 2, a pair of 3 and 2
    """
    types = {"d": pa.date32(), "t": pa.timestamp("ms"), "z": pa.timestamp("s", "UTC")}

    def days(kind: str, *numbers: int) -> pa.Table:
        instants = pa.array([n * 86_400 for n in numbers], pa.timestamp("s"))
        return pa.table({"at": instants.cast(types[kind])})

    text = (
        f"SELECT count(*) AS n [TUMBLING 1 day WATTR {pick}(l.at, r.at)] FROM l FULL JOIN r "
        "ON r.at BETWEEN l.at - INTERVAL 1 DAY AND l.at + INTERVAL 1 DAY"
    )
    for answer in (panes.sql, panes.oracle):
        got = answer(text, l=days(kinds[0], 1, 3), r=days(kinds[1], 2))
        starts = got["window_start"].cast(pa.int64()).to_pylist()
        found = {
            at // 86_400_000_000: n for at, n in zip(starts, got["n"].to_pylist(), strict=True)
        }
        assert found == ({2: 1, 3: 1} if pick == "max" else {1: 1, 2: 1})
