"""A register gives every query what it would get alone, whatever runs beside it.

Catches: a piece, filter or edge that two queries share and should not; a window answered twice, too
early, from panes that do not know all of its rows, or not at all; anything left behind by a query
that was removed. What a query gets alone is the oracle's answer for streams on time, and that of
`panes.open` (proved against the oracle elsewhere) for late rows and for when answers come.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import panes
from tests.support import AGGREGATES, SCHEMA, assert_same, rows, select, streams

GROUPS = ("", "GROUP BY k", "GROUP BY k, b", "GROUP BY i % 3")
WHERES = ("", "WHERE i > -5", "WHERE b", "WHERE x > 1.5 OR s = 'p'", "WHERE NOT b AND i < 4")
HISTORIES = settings(max_examples=40, stateful_step_count=15)
HAVINGS = ("", "", "HAVING count(*) > 1")


@st.composite
def texts(draw: st.DrawFn, most: int = 3, groups: tuple[str, ...] = GROUPS) -> str:
    """A query over t: any sliding window, filter, grouping and aggregates."""
    size, slide = draw(st.integers(1, 40)), draw(st.sampled_from([1, 2, 3, 4, 6, 10, 12, 15]))
    origin = draw(st.sampled_from(["", "", "ORIGIN 1", "ORIGIN -5"]))
    chosen = draw(st.lists(st.sampled_from(AGGREGATES), min_size=1, max_size=most, unique=True))
    group, having = draw(st.sampled_from(groups)), draw(st.sampled_from(HAVINGS))
    return (
        f"SELECT {select(tuple(chosen))} FROM t [RANGE {size} SLIDE {slide} WATTR at {origin}] "
        f"{draw(st.sampled_from(WHERES))} {group} {having}"
    )


# Few choices, so that queries share all but their windows, and live changes meet what is there.
plain_texts = st.builds(
    "SELECT k, count(*) AS n, sum(i) AS s FROM t [RANGE {} SLIDE {} WATTR at] {} GROUP BY k".format,
    st.sampled_from([2, 3, 5, 8, 12, 20, 40]),
    st.sampled_from([1, 2, 4, 5, 10, 20]),
    st.sampled_from(WHERES[:2]),
)


def sorted_by_window(answers: list[pa.Table]) -> pa.Table:
    """Answers of several pushes by window; inside a window they came together, in order."""
    table = pa.concat_tables(answers)
    ends = table["window_end"].to_pylist()
    return table.take(pa.array(sorted(range(len(table)), key=ends.__getitem__), pa.int64()))


@settings(max_examples=60)
@given(table=streams, asked=st.lists(texts(), min_size=1, max_size=6), data=st.data())
def test_every_query_of_any_set_gets_the_oracles_answers(
    table: pa.Table, asked: list[str], data: st.DataObject
) -> None:
    """Rows in any order, in any batches, with honest promises in between."""
    order = data.draw(st.permutations(range(len(table))))
    shuffled = table.take(pa.array(order, pa.int64()))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(table)), max_size=4)))
    reg = panes.register("t")
    for i, text in enumerate(asked):
        assert reg.add(str(i), text).exact_from is None
    found: dict[str, list[pa.Table]] = {str(i): [] for i in range(len(asked))}

    def take(answers: dict[str, pa.Table]) -> None:
        for name, answer in answers.items():
            assert len(answer)
            found[name].append(answer)

    for begin, end in zip([0, *cuts], [*cuts, len(table)], strict=True):
        take(reg.push(shuffled.slice(begin, end - begin)))
        take(reg.punctuate(min(shuffled["at"].slice(end).to_pylist(), default=1_000)))
    take(reg.finish())
    assert not len(reg.late)
    assert reg.state["partials"] == 0
    for i, text in enumerate(asked):
        want = panes.oracle(text, t=table)
        got = found[str(i)]
        assert_same(sorted_by_window(got) if got else want.slice(0, 0), want)


@dataclass
class Life:
    """A query, the events it was there for, and what it was given after each."""

    text: str
    born: int
    exact_from: object
    given: dict[int, pa.Table] = field(default_factory=dict)
    died: int | None = None


class Registers(RuleBasedStateMachine):
    """Queries come and go, rows come late, progress moves: replayed for each query alone."""

    late = "open"

    @initialize(table=streams, text=texts())
    def begin(self, table: pa.Table, text: str) -> None:
        self.events: list[tuple[str, object]] = []
        self.lives: list[Life] = []
        self.names: dict[str, Life] = {}
        self.reg = panes.register("t", lateness=8, late=self.late)  # type: ignore[arg-type]
        self.add(text)
        self.push(table.to_pylist())

    @rule(text=st.one_of(plain_texts, plain_texts, texts(most=2, groups=GROUPS[:2])))
    def add(self, text: str) -> None:
        name = f"q{len(self.lives)}"
        added = self.reg.add(name, text)
        life = Life(text, len(self.events), added.exact_from)
        self.lives.append(life)
        self.names[name] = life

    @precondition(lambda self: self.names)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.names)))
        self.reg.remove(name)
        self.names.pop(name).died = len(self.events)

    @rule(batch=st.lists(rows, max_size=12), ahead=st.integers(0, 60))
    def push(self, batch: list[dict[str, object]], ahead: int = 0) -> None:
        moved = [{**row, "at": row["at"] + ahead} for row in batch]  # type: ignore[operator]
        table = pa.Table.from_pylist(moved, schema=SCHEMA)
        self.note("push", table, self.reg.push(table))

    @rule(at=st.integers(-40, 130))
    def punctuate(self, at: int) -> None:
        self.note("punctuate", at, self.reg.punctuate(at))

    def note(self, kind: str, what: object, answers: dict[str, pa.Table]) -> None:
        assert answers.keys() <= self.names.keys()
        for name, table in answers.items():
            self.names[name].given[len(self.events)] = table
        self.events.append((kind, what))

    @invariant()
    def nothing_is_held_for_nobody(self) -> None:
        if hasattr(self, "reg") and not self.names:
            assert self.reg.state["partials"] == self.reg.state["stores"] == 0

    def teardown(self) -> None:
        if not hasattr(self, "reg"):
            return
        self.note("finish", None, self.reg.finish())
        assert self.reg.state["partials"] == 0
        for life in self.lives:
            self.replay(life)

    def replay(self, life: Life) -> None:
        """The same events for one query alone, of which only windows in its life are looked at."""
        alone = panes.open(life.text, lateness=8, late=self.late)  # type: ignore[arg-type]
        for i, (kind, what) in enumerate(self.events):
            if kind == "push":
                answers = alone.push(t=what)
            elif kind == "punctuate":
                answers = alone.punctuate(t=what)  # type: ignore[arg-type]
            else:
                answers = alone.finish()
            if not life.born <= i < (len(self.events) if life.died is None else life.died):
                continue
            if life.exact_from is not None:
                starts = answers["window_start"].to_pylist()
                first: int = life.exact_from  # type: ignore[assignment]
                kept = [j for j, at in enumerate(starts) if at >= first]
                answers = answers.take(pa.array(kept, pa.int64()))
            assert_same(life.given.get(i, answers.slice(0, 0)), answers)


class DroppingRegisters(Registers):
    """The same where late rows count in no window."""

    late = "drop"


def test_any_history_of_a_register_is_that_of_its_queries_alone() -> None:
    run_state_machine_as_test(Registers, settings=HISTORIES)


def test_any_history_with_late_rows_dropped_is_that_of_its_queries_alone() -> None:
    run_state_machine_as_test(DroppingRegisters, settings=HISTORIES)
