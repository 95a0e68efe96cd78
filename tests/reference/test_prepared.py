"""What is prepared is answered as the oracle would over the same rows, or by an interval around it.

Catches: a row counted after WHERE, a NULL or NaN taken for a number, a row that comes behind others
and is put in the wrong place, a window that begins before anything is known of it, a structure
shared by questions that should not share it, or one that forgets with a question what others need.
"""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

import panes
from tests.support import assert_same, slow

WHERES = ("", "WHERE i > -5", "WHERE b", "WHERE x > 1.5 OR i = 3")
SCHEMA = pa.schema(
    {"at": pa.int64(), "b": pa.bool_(), "i": pa.int64(), "x": pa.float64(), "id": pa.int64()}
)
# Quarters are exact in binary: any order of addition agrees to the bit.
quarters = st.integers(-40, 40).map(lambda n: n / 4)
floats = st.one_of(quarters, quarters, st.sampled_from([math.nan, math.inf, -math.inf, 1e300]))
rows = st.fixed_dictionaries(
    {
        "at": st.integers(-20, 30),
        "b": st.sampled_from([True, False, None]),
        "i": st.one_of(st.integers(-9, 9), st.none()),
        "x": st.one_of(floats, st.none()),
    }
)
batches = st.lists(st.lists(rows, max_size=10), min_size=1, max_size=5)
sizes = st.sampled_from([1, 2, 3, 5, 8, 13, 30, 60])

EXACT = (
    "max(x) AS h",
    "min(i) AS l, max(i) AS h",
    "max(i) - min(i) AS spread",
    "min(x * 2) AS l, max(i) FILTER (WHERE b) AS h",
)
exact_texts = st.builds(
    "SELECT {} FROM t [ROWS {}] {}".format,
    st.sampled_from(EXACT),
    sizes,
    st.sampled_from(WHERES),
)
BOUNDED = (
    "sum(i) AS s",
    "sum(x) AS s, avg(x) AS m",
    "min(x) AS l, max(x) AS h, count(x) AS n",
    "count(*) AS n, avg(i) AS m, max(i) AS h",
    "sum(i) FILTER (WHERE b) AS s, min(i * 3) AS l, count(b) AS n",
)
bounded_texts = st.builds(
    "SELECT {} FROM t [{}] {}".format,
    st.sampled_from(BOUNDED),
    st.one_of(sizes.map("ROWS {}".format), sizes.map("RANGE {} WATTR at".format)),
    st.sampled_from(WHERES),
)
questions = st.one_of(
    st.tuples(exact_texts, st.none()),
    st.tuples(bounded_texts, st.sampled_from([1, 4, 7])),
)


def table_of(batch: list[dict[str, Any]], first: int = 0) -> pa.Table:
    numbered = [{**row, "id": first + i} for i, row in enumerate(batch)]
    return pa.Table.from_pylist(numbered, schema=SCHEMA)


def truth(text: str, seen: pa.Table) -> pa.Table:
    """The oracle's answer for the window that ends after the last row, or the newest one."""
    end = len(seen) if "[ROWS" in text else max(seen["at"].to_pylist(), default=0) + 1
    once = text.replace(" WATTR at", f" SLIDE 1000 WATTR at ORIGIN {end}")
    answers = panes.oracle(once, t=seen)
    is_last = [e == end for e in answers["window_end"].to_pylist()]
    return answers.filter(pa.array(is_last, pa.bool_()))


def in_order(*values: Any) -> bool:
    """Ascending, in the order in which NaN is the greatest."""
    keys = [(math.isnan(v), 0.0 if math.isnan(v) else v) for v in values]
    return keys == sorted(keys)


def holds(answer: pa.Table, want: pa.Table, within: float) -> None:
    """Every interval holds the truth, and is no wider than its buckets make it."""
    assert len(answer) == len(want)
    for got, true in zip(answer.to_pylist(), want.to_pylist(), strict=True):
        for name, value in true.items():
            if name.startswith("window"):
                assert got[name] == value
                continue
            low, high = got[f"low_{name}"], got[f"high_{name}"]
            if value is None:
                assert (got[name], low, high) == (None, None, None)
            else:
                assert in_order(low, value, high), (name, low, value, high)
                assert name != "m" or not high - low > within * (1 + 1e-9)
                assert name != "n" or low == got[name] == high


def check(reg: panes.Register, text: str, within: float | None, seen: pa.Table) -> None:
    answer, want = reg.ask(text, within=within), truth(text, seen)
    if within is None:
        assert_same(answer, want)
    else:
        holds(answer, want, within)


@settings(max_examples=100)
@given(pushed=batches, asked=st.lists(questions, min_size=1, max_size=4))
def test_any_rows_in_any_order_and_any_batches(
    pushed: list[list[dict[str, Any]]], asked: list[tuple[str, float | None]]
) -> None:
    reg = panes.register("t", schema=SCHEMA)
    reg.add("axis", "SELECT count(*) AS n FROM t [TUMBLING 10 WATTR at]")
    for text, within in asked:
        reg.prepare(text, within=within)
    seen = SCHEMA.empty_table()
    for batch in pushed:
        table = table_of(batch, len(seen))
        reg.push(table)
        seen = pa.concat_tables([seen, table])
        for text, within in asked:
            check(reg, text, within, seen)


# Few kinds and many sizes, so that questions meet what others have left.
alike = st.one_of(
    st.tuples(sizes.map("SELECT max(i) AS h FROM t [ROWS {}]".format), st.none()),
    st.tuples(sizes.map("SELECT sum(i) AS s FROM t [RANGE {} WATTR at]".format), st.just(4)),
    st.tuples(sizes.map("SELECT avg(x) AS m FROM t [ROWS {}] WHERE b".format), st.just(1)),
)


class Questions(RuleBasedStateMachine):
    """Questions come and go while rows do, some of them late; nothing wrong is ever answered."""

    @initialize(first=st.lists(alike, max_size=3), keep=st.sampled_from([0, 4, 1_000]))
    def begin(self, first: list[tuple[str, float | None]], keep: int) -> None:
        self.keep = keep
        self.reg = panes.register("t", lateness=15, late="drop", keep_rows=keep, schema=SCHEMA)
        self.reg.add("axis", "SELECT count(*) AS n FROM t [TUMBLING 10 WATTR at]")
        self.rows: list[dict[str, Any]] = []
        self.known: set[tuple[str, float | None]] = set()
        for question in first:
            self.prepare(question)

    @rule(question=alike)
    def prepare(self, question: tuple[str, float | None]) -> None:
        self.reg.prepare(question[0], within=question[1])
        if not self.rows:
            self.known.add(question)

    @precondition(lambda self: self.reg.prepared())
    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        text, within = data.draw(st.sampled_from(self.reg.prepared()))
        self.reg.forget(text, within=within)
        self.known.discard((text, within))
        if not self.reg.prepared():
            assert self.reg.state["prepared_bytes"] == 0

    @rule(batch=st.lists(rows, max_size=8), ahead=st.integers(0, 60))
    def push(self, batch: list[dict[str, Any]], ahead: int) -> None:
        moved = [{**row, "at": row["at"] + ahead} for row in batch]
        table = table_of(moved, len(self.rows))
        self.rows += table.to_pylist()
        self.reg.push(table)

    @rule(question=alike)
    def ask_any(self, question: tuple[str, float | None]) -> None:
        self.ask(*question)

    @precondition(lambda self: self.reg.prepared())
    @rule(data=st.data())
    def ask_prepared(self, data: st.DataObject) -> None:
        self.ask(*data.draw(st.sampled_from(self.reg.prepared())))

    def ask(self, text: str, within: float | None) -> None:
        late = set(self.reg.late["id"].to_pylist()) if len(self.reg.late) else set()
        on_time = [row for row in self.rows if row["id"] not in late]
        try:
            check(self.reg, text, within, pa.Table.from_pylist(on_time, schema=SCHEMA))
        except panes.QueryError:
            assert (text, within) not in self.known
            assert within is not None or self.keep < 1_000


@pytest.mark.parametrize("examples", [20, slow(60)])
def test_any_history_of_questions_is_answered_rightly_or_refused(examples: int) -> None:
    long = settings(max_examples=examples, stateful_step_count=30)
    run_state_machine_as_test(Questions, settings=long)
