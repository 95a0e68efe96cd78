"""DISTINCT, INTERSECT and EXCEPT over windows, against Python's own sets.

The oracle reads the same rewritten query as the engine, so here each window's rows are collected by
hand: end by end, every row whose position lies in the extent.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes

Row = tuple[int, int | None]
SIZE, SLIDE = 10, 4
W = f"[RANGE {SIZE} SLIDE {SLIDE} WATTR ts]"
QUERIES: dict[str, Callable[[set[int | None], set[int | None]], set[int | None]]] = {
    f"SELECT item FROM bids {W} INTERSECT SELECT item FROM sales {W}": lambda a, b: a & b,
    f"SELECT item FROM bids {W} EXCEPT SELECT item FROM sales {W}": lambda a, b: a - b,
    f"SELECT item FROM bids {W} MINUS SELECT item FROM sales {W} WHERE item > 1": (
        lambda a, b: a - {v for v in b if v is not None and v > 1}
    ),
}
rows = st.lists(st.tuples(st.integers(-15, 30), st.sampled_from((None, 0, 1, 2, 3))), max_size=25)


def table(drawn: list[Row]) -> pa.Table:
    at, item = zip(*drawn, strict=True) if drawn else ((), ())
    return pa.table({"ts": pa.array(at, pa.int64()), "item": pa.array(item, pa.int64())})


def by_hand(
    bids: list[Row],
    sales: list[Row],
    values: Callable[[set[int | None], set[int | None]], set[int | None]],
) -> list[tuple[int, int | None]]:
    found = []
    for end in range(-40, 60, 1):
        if end % SLIDE == 0:
            here = {v for at, v in bids if end - SIZE <= at < end}
            there = {v for at, v in sales if end - SIZE <= at < end}
            found += [(end, v) for v in values(here, there)]
    return sorted(found, key=str)


def shown(answers: pa.Table) -> list[tuple[int, int | None]]:
    pairs = zip(answers["window_end"].to_pylist(), answers["item"].to_pylist(), strict=True)
    return sorted(pairs, key=str)


@given(bids=rows, sales=rows)
@settings(max_examples=40)
@pytest.mark.parametrize("text", QUERIES)
def test_set_operations_are_those_of_python(text: str, bids: list[Row], sales: list[Row]) -> None:
    want = by_hand(bids, sales, QUERIES[text])
    assert shown(panes.sql(text, bids=table(bids), sales=table(sales))) == want
    assert shown(panes.oracle(text, bids=table(bids), sales=table(sales))) == want


@given(bids=rows, sales=rows, cut=st.integers(0, 25))
@settings(max_examples=40)
def test_a_stream_gives_the_same_sets_in_any_order(
    bids: list[Row], sales: list[Row], cut: int
) -> None:
    for text, values in QUERIES.items():
        query = panes.open(text)
        parts = [query.push(bids=table(bids[:cut])), query.push(sales=table(sales))]
        parts += [query.push(bids=table(bids[cut:])), query.finish()]
        assert shown(pa.concat_tables(parts)) == by_hand(bids, sales, values)


@given(bids=rows)
@settings(max_examples=40)
def test_distinct_values_and_two_sets_of_one_stream(bids: list[Row]) -> None:
    distinct = panes.sql(f"SELECT DISTINCT item FROM bids {W}", bids=table(bids))
    assert shown(distinct) == by_hand(bids, [], lambda a, _: a)
    even, small = [r for r in bids if r[0] % 2 == 0], [r for r in bids if r[1] in (0, 1)]
    text = f"SELECT item FROM bids {W} WHERE ts % 2 = 0 "
    text += f"EXCEPT SELECT item FROM bids {W} WHERE item < 2"
    assert shown(panes.sql(text, bids=table(bids))) == by_hand(even, small, lambda a, b: a - b)


def test_a_register_answers_sets_beside_other_queries() -> None:
    register = panes.register("bids", lateness=0)
    register.add("items", f"SELECT DISTINCT item FROM bids {W}")
    register.add("rows", f"SELECT count(*) AS n FROM bids {W}")
    came: list[Row] = [(1, 7), (2, 8), (2, 7), (13, 8)]
    given_by = [register.push(table(came)), register.finish()]
    items = pa.concat_tables([answers["items"] for answers in given_by])
    assert shown(items) == by_hand(came, [], lambda a, _: a)
