"""Unions and intersections of sketches that a stream brings equal the oracle's.

Catches: a partial of sketches that depends on arrival, on batches or on the bytes it was stored
in. The sketches are those of another query, some of them beyond what they hold exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import panes
from tests.sharded_query import ShardedQuery
from tests.strategies import cuts_of
from tests.support import assert_same, select, sorted_answers

AGGREGATES = (
    "hll_union_agg(h)",
    "hll_union_agg(h, true) FILTER (WHERE at > 0)",
    "theta_union_agg(t)",
    "theta_union_agg(t, 5)",
    "theta_intersection_agg(t)",
    "tuple_union_agg_double(d, 5)",
    "tuple_union_agg_double(d, 12, 'max')",
    "tuple_intersection_agg_double(d)",
    "tuple_union_agg_integer(i, 5) FILTER (WHERE at > 0)",
    "tuple_intersection_agg_integer(i, 'min')",
)
NAMES = ("h", "t", "d", "i")
SCHEMA = pa.schema({"at": pa.int64(), "k": pa.string(), **dict.fromkeys(NAMES, pa.binary())})
TEXT = f"SELECT k, {select(AGGREGATES)} FROM s [RANGE 23 SLIDE 3 WATTR at] GROUP BY k"


def some_sketches() -> list[tuple[bytes, ...]]:
    """Sketches of the values from some number on, up to 600."""
    numbers = pa.table({"at": np.arange(600), "x": np.arange(600)})
    sketches = (
        "hll_sketch_agg(x, 9) AS h, theta_sketch_agg(x, 6) AS t, "
        "tuple_sketch_agg_double(x, x / 7, 6) AS d, tuple_sketch_agg_integer(x, x, 6, 'max') AS i"
    )
    text = f"SELECT {sketches} FROM n [TUMBLING 600 WATTR at]"
    made = [panes.sql(text, n=numbers[begin:]).to_pylist()[0] for begin in (0, 300, 550, 597, 599)]
    return [tuple(m[name] for name in NAMES) for m in made]


_sketches = st.one_of(st.none(), st.sampled_from(some_sketches()))
rows: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"at": st.integers(-20, 40), "k": st.sampled_from(["a", None]), "all": _sketches}
)
streams = st.lists(rows, max_size=20).map(
    lambda drawn: pa.Table.from_pylist(
        [r | dict(zip(NAMES, r["all"] or (None,) * 4, strict=True)) for r in drawn], schema=SCHEMA
    )
)


@settings(max_examples=10)
@given(table=streams, data=st.data())
def test_in_any_order_and_split_they_are_the_oracles(table: pa.Table, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(table))))
    table = table.take(pa.array(order, pa.int64()))
    query = panes.open(TEXT)
    found = [query.push(s=table.slice(a, b - a)) for a, b in cuts_of(data, table)]
    found.append(query.finish())
    assert_same(sorted_answers(pa.concat_tables(found), 1), panes.oracle(TEXT, s=table))


@settings(max_examples=5)
@given(table=streams)
def test_through_shards_whose_state_is_bytes_they_are_the_oracles(table: pa.Table) -> None:
    host = ShardedQuery(TEXT, SCHEMA, lateness=200)
    found = [host.answers(host.push(s=part)) for part in (table.slice(0, 9), table.slice(9))]
    found.append(host.answers(host.finish()))
    assert_same(sorted_answers(pa.concat_tables(found), 1), panes.oracle(TEXT, s=table))


@settings(max_examples=5)
@given(table=streams)
def test_over_per_row_windows_they_are_the_oracles(table: pa.Table) -> None:
    text = f"SELECT {select(AGGREGATES)} FROM s [RANGE 7 RATTR at SLIDE 1 ROW PA k]"
    assert_same(panes.sql(text, s=table), panes.oracle(text, s=table))


def test_queries_of_a_register_answer_as_alone() -> None:
    table = pa.Table.from_pylist(
        [
            {"at": at, "k": "a", **dict(zip(NAMES, some, strict=True))}
            for at, some in enumerate(some_sketches() * 6)
        ],
        schema=SCHEMA,
    )
    texts = {f"{n}": TEXT.replace("RANGE 23", f"RANGE {n}") for n in (6, 9, 23)}
    register = panes.register("s")
    for name, text in texts.items():
        register.add(name, text)
    answered = register.push(table), register.finish()
    for name, text in texts.items():
        found = pa.concat_tables([some[name] for some in answered if name in some])
        assert_same(sorted_answers(found, 1), panes.oracle(text, s=table))


def test_sketches_are_taken_from_polars() -> None:
    table = pa.table([[0, 1], *zip(*some_sketches()[2:4], strict=True)], ["at", *NAMES])
    text = f"SELECT {select(AGGREGATES)} FROM s [TUMBLING 5 WATTR at]"
    frame = polars.from_arrow(table)
    assert_same(panes.sql(text, s=frame), panes.sql(text, s=table))
