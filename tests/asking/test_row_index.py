"""Rows that a question looks up by an index are those that it finds by reading all rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes
from panes.asking import row_index
from panes.asking.row_index import RowIndex
from panes.asking.row_look_up import LookUp, look_up_of
from panes.asking.row_window import RowWindow
from panes.index.cost import IndexCost, IndexLoad
from panes.index.kinds import structure
from panes.language.row_question import read_row_question
from panes.planning.choose_index import IndexChoice

SCHEMA = pa.schema(
    [("at", pa.int64()), ("item", pa.int64()), ("price", pa.float64()), ("name", pa.string())]
)
WHERES = (
    "item = 7", "7 = item AND price > 2", "item IN (8, 7, 99)", "item BETWEEN 7 AND 8",
    "price BETWEEN -0.5 AND 2.5", "price = 2.5", "name = 'b'", "name IN ('a', '')", "item = 7.5",
    "(item = 8 AND name = 'a') AND at > 3",
)  # fmt: skip
ROWS = st.lists(
    st.tuples(
        st.integers(-6, 3),
        st.sampled_from((7, 8, 9, None)),
        st.sampled_from((2.5, 0.0, -0.5, float("nan"), None)),
        st.sampled_from(("a", "b", "", None)),
    ),
    min_size=1,
    max_size=6,
)


def question(where: str, size: int = 10) -> str:
    return f"SELECT * FROM s [RANGE {size} WATTR at] WHERE {where} ORDER BY at"


def batch(front: int, rows: Sequence[tuple[int, int | None, float | None, str | None]]) -> pa.Table:
    columns = zip(*((front + at, *rest) for at, *rest in rows), strict=True)
    return pa.table(
        [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], SCHEMA.names
    )


def only(kind: str) -> Callable[..., IndexChoice]:
    """What chooses an index of a kind, however few rows there are."""
    load = IndexLoad(windows=1, rows=1, values=1, window_values=1, questions={})
    made = structure(kind)  # type: ignore[arg-type]
    return lambda *_, **__: IndexChoice(made, load, (IndexCost(made, 0.0, 0.0),), is_asked=True)


@pytest.mark.parametrize("kind", ["hash", "group", "db"])
def test_looked_up_rows_are_those_that_reading_all_finds(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_index, "choose_index", only(kind))

    @settings(max_examples=5)
    @given(batches=st.lists(st.tuples(st.integers(0, 7), ROWS), min_size=2, max_size=8))
    def check(batches: list[tuple[int, list[tuple[int, int, float, str]]]]) -> None:
        by_index, by_reading = (panes.register("s", lateness=100) for _ in range(2))
        front = 0
        for number, (step, rows) in enumerate(batches):
            front += step
            for register in (by_index, by_reading):
                if number == 0:
                    register.prepare(question("at > 0", size=12))
                register.push(batch(front, rows))
            if number % 2:
                for where in WHERES:
                    monkeypatch.setattr(row_index, "READING_NS", 0.0)
                    want = by_reading.ask(question(where))
                    monkeypatch.setattr(row_index, "READING_NS", 1e9)
                    assert str(by_index.ask(question(where))) == str(want), where

    check()


def test_a_batch_that_was_taken_back_is_in_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_index, "choose_index", only("db"))
    window, seven = RowWindow(100), LookUp("item", (7,))

    def push(at: int, item: int) -> None:
        rows = batch(at, [(0, item, None, None)])
        window.push(rows["at"].to_numpy(), rows, at)

    def found() -> list[int]:
        return window.within(0, SCHEMA, seven)["at"].to_pylist()

    push(1, 7)
    push(2, 7)
    assert found() == [1, 2]
    window._pieces.pop()  # as a failing step does
    assert found() == [1]
    push(3, 7)
    assert found() == [1, 3]
    window._pieces.clear()
    push(4, 8)
    assert found() == []


def test_an_index_is_used_where_it_is_cheaper_and_explained() -> None:
    register = panes.register("s", lateness=0)
    register.prepare(question("item = 1", size=100_000))
    rows = 2_000
    for number in range(20):
        at = range(number * rows, (number + 1) * rows)
        columns = [at, [i % 997 for i in at], [0.5] * rows, ["a"] * rows]
        register.push(pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)],
                               SCHEMA.names))  # fmt: skip
    assert "rows by item" not in register.explain(), "nobody has asked"
    texts = [question(f"item = {n}", size=100_000) for n in (5, 5, 996, 997)]
    for _ in range(3):
        assert [len(register.ask(text)) for text in texts] == [41, 41, 40, 0]
    assert "rows by item: G-INDEX over GROUP; looked up 12 times" in register.explain()
    window = register._primary.reading.row_questions._window
    assert window is not None
    index: RowIndex = window.indexes["item"]
    assert 0 < index.nbytes < register.state["row_bytes"]


@pytest.mark.parametrize(
    ("where", "want"),
    [
        ("item = 7", LookUp("item", (7,))),
        ("price > 1 AND (name = 'b' AND item = 1)", LookUp("name", ("b",))),
        ("item BETWEEN -1 AND 2.5", LookUp("item", low=-1, high=Decimal("2.5"))),
        ("item = 7 OR price = 1", None),
        ("NOT item = 7", None),
        ("item = '7'", None),
        ("name = 7", None),
        ("item = price", None),
        ("item + 1 = 7", None),
        ("item = 1e999999999", None),
        ("other = 7", None),
        ("name BETWEEN 'a' AND 'b'", None),
        ("item NOT IN (7)", None),
    ],
)
def test_what_a_where_looks_up(where: str, want: LookUp | None) -> None:
    asked = read_row_question(question(where))
    assert asked is not None
    found = look_up_of(asked.where, SCHEMA)
    if want is None:
        assert found is None
    else:
        assert found is not None
        assert (found.column, found.values) == (want.column, want.values)
        assert (found.low, found.high) == (want.low, want.high)


def test_short_floats_are_read_and_not_looked_up() -> None:
    """SQL compares them as doubles, and no short float is 16777217: the nearest one is not it."""
    reg = panes.register("s", lateness=0)
    question = "SELECT x FROM s [RANGE 1000 WATTR at] WHERE x = 16777217"
    reg.prepare(question)
    for at in range(40):
        rows = {"at": [at] * 50, "x": pa.array([16777216.0] * 50, pa.float32())}
        reg.push(rows)
    assert {len(reg.ask(question)) for _ in range(40)} == {0}
    assert "rows by x" not in reg.explain()


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("price = 1e22", 1),
        ("price = 10000000000000000000000", 1),
        ("price = 9007199254740993", 1),
        ("item = 9007199254740992e0", 2),
        ("item IN (1, 9007199254740992e0)", 2),
        ("item BETWEEN 9007199254740993e0 AND 9007199254740994", 2),
        ("item = 9007199254740993", 1),
    ],
)
def test_numbers_are_looked_up_as_sql_compares_them(where: str, found: int) -> None:
    reg = panes.register("s", lateness=0)
    reg.prepare("SELECT * FROM s [RANGE 10 WATTR at]")
    rows = [(0, 2**53, 1e22, "a"), (0, 2**53 + 1, 2.0**53, "b"), *[(0, 7, 0.5, "c")] * 100]
    reg.push(batch(0, rows))
    assert [len(reg.ask(question(where))) for _ in range(3)] == [found] * 3
