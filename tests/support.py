"""Shared by all tests: every aggregate once, every kind of window, and what equal answers are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

import panes
from panes.aggregates.custom import UserAggregate
from panes.language.join_query import JoinQuery
from panes.language.join_text import is_join, read_join
from panes.language.parse import parse
from panes.language.query import Query
from panes.reference.compare import difference, same

AGGREGATES = (
    "count(*)",
    "count(x)",
    "count(x, s)",
    "sum(i)",
    "sum(x)",
    "sum(d)",
    "avg(i)",
    "avg(x)",
    "avg(d)",
    "min(i)",
    "max(x)",
    "min(x)",
    "max(s)",
    "min(d)",
    "max(t)",
    "var_pop(x)",
    "var_samp(i)",
    "stddev_pop(i)",
    "stddev(x)",
    "covar_pop(x, i)",
    "covar_samp(i, x)",
    "corr(x, i)",
    "weighted_mean(x, i)",
    "first(x)",
    "last(s)",
    "first(s) IGNORE NULLS",
    "last(i, true)",
    "min_by(s, i)",
    "max_by(x, s)",
    "max_by(i, x)",
    "bool_and(b)",
    "bool_or(b)",
    "median(i)",
    "quantile(x, 0.9)",
    "quantile_disc(s, 0.3)",
    "mode(s)",
    "mode(x)",
    "count(DISTINCT s)",
    "count(DISTINCT s, b)",
    "sum(DISTINCT i)",
    "avg(DISTINCT x)",
    "heavy_hitters(s, 0.3)",
    "top_k(i, 2)",
    "histogram(s)",
    "collect_list(x)",
    "collect_set(s)",
    "count(*) FILTER (WHERE i > 0)",
    "sum(x) FILTER (WHERE b)",
    "median(x) FILTER (WHERE b)",
    "sum(i * 2) / count(*)",
)
SKETCHES = ("approx_count_distinct(s)", "approx_top_k(s, 2)", "max(x)", "last(s)", "count(*)")

WINDOWS = (
    "RANGE 20 SLIDE 10 WATTR at",
    "RANGE 7 SLIDE 4 WATTR at",
    "RANGE 3 SLIDE 10 WATTR at",
    "RANGE 23 SLIDE 3 WATTR at ORIGIN -5",
    "RANGE 20 SLIDE 7 WATTR at ALIGN START",
    "RANGE 12 SLIDE 5 WATTR at ORIGIN FIRST",
    "TUMBLING 5 WATTR at",
    "RANGE ALL SLIDE 10 WATTR at",
    "RANGE 8 ROWS SLIDE 3 ROWS",
    "RANGE 2 ROWS SLIDE 5 ROWS",
    "ROWS 4",
    "RANGE ALL SLIDE 4 ROWS",
    "RANGE 6 ROWS SLIDE 2 ROWS WATTR at",
)

PARTITIONED = (
    "RANGE 4 ROWS SLIDE 2 ROWS PA k",
    "RANGE 5 ROWS SLIDE 3 ROWS PA k",
    "RANGE 2 ROWS SLIDE 5 ROWS PA k",
    "ROWS 3 PA k, b",
    "RANGE 4 ROWS SLIDE 1 ROW WATTR at PA b",
)
PER_ROW = (
    "RANGE 10 RATTR at SLIDE 1 ROW",
    "RANGE 7 RATTR at SLIDE 1 ROW PA k",
    "RANGE 1 RATTR at SLIDE 1 ROW PA k, b",
    "RANGE 15 RATTR at SLIDE 3 ROWS PA k",
    "RANGE 15 RATTR at SLIDE 2 ROWS",
    "RANGE 12 RATTR at SLIDE 2 ROWS SATTR rank(at) PA k",
    "RANGE 200 RATTR at SLIDE 3 ROWS SATTR rank(at)",
)
ORDERED = (
    "RANGE 5 ROWS SLIDE 3 ROWS WATTR at",
    "RANGE 2 ROWS SLIDE 4 ROWS WATTR at PA k",
    "RANGE 4 ROWS SLIDE 1 ROW WATTR at PA b",
    "RANGE ALL SLIDE 4 ROWS WATTR at",
)

STORES = ("panes", "eager", "buffered", "adaptive", "adaptive-panes")

SCHEMA = pa.schema(
    {
        "at": pa.int64(),
        "k": pa.string(),
        "b": pa.bool_(),
        "i": pa.int64(),
        "x": pa.float64(),
        "s": pa.string(),
        "d": pa.decimal128(10, 2),
        "t": pa.timestamp("us", "UTC"),
    }
)


def select(aggregates: tuple[str, ...]) -> str:
    """A SELECT list with every aggregate under a name of its own."""
    return ", ".join(f"{a} AS c{i}" for i, a in enumerate(aggregates))


def assert_same(got: pa.Table, want: pa.Table) -> None:
    """The same columns, types, rows and order."""
    found = difference(got, want)
    assert found is None, found


def sorted_answers(answers: pa.Table, keys: int) -> pa.Table:
    """Answers of several pushes in the order one push would have given them."""
    names = answers.column_names[: 2 + keys]
    return answers.sort_by([(n, "ascending", "at_start") for n in names])


def newest_of_each(answers: pa.Table, keys: int) -> pa.Table:
    """What a reader has who keeps the newest answer of each window and key."""
    kept: dict[tuple[object, ...], int] = {}
    for number, row in enumerate(answers.to_pylist()):
        kept[tuple(list(row.values())[: 2 + keys])] = number
    found = answers.take(pa.array(sorted(kept.values()), pa.int64()))
    return sorted_answers(found.drop_columns(["status"]), keys)


def assert_rows(got: pa.Table, want: pa.Table, *, in_order: bool = False) -> None:
    """The same names and rows, in any order unless it matters."""
    assert got.column_names == want.column_names
    mine, other = ([tuple(r.values()) for r in t.to_pylist()] for t in (got, want))
    if not in_order:
        mine, other = sorted(mine, key=repr), sorted(other, key=repr)
    for a, b in zip(mine, other, strict=True):
        assert same(list(a), list(b))


def rows_in_order(table: pa.Table) -> list[dict[str, object]]:
    """The rows of answers in an order of their own: joins give them in any."""
    keys = [(name, "ascending") for name in table.column_names]
    ordered = table.combine_chunks().sort_by(keys) if keys else table
    found: list[dict[str, object]] = ordered.to_pylist()
    return found


def answers_to(text: str, **streams: Any) -> list[dict[str, object]]:
    """The answers of tables, without the columns that say which window they are of."""
    rows = panes.sql(text, **streams).to_pylist()
    return [{k: v for k, v in r.items() if not k.startswith("window_")} for r in rows]


def slow(*values: Any) -> Any:
    """A case of a table that only ``make test-slow`` runs."""
    return pytest.param(*values, marks=pytest.mark.slow)


def torture(*values: Any) -> Any:
    """A case of a table that only ``make torture`` runs."""
    return pytest.param(*values, marks=pytest.mark.torture)


def in_turns(one: Sequence[Any], other: Sequence[Any]) -> list[Any]:
    """Every pair of both; each value of the first is in one pair that is not slow."""
    chosen = [(v, other[i % len(other)]) for i, v in enumerate(one)]
    return [*chosen, *(slow(*pair) for pair in product(one, other) if pair not in chosen)]


def open_query(text: str, **options: Any) -> panes.OpenQuery:
    """A query over one stream or a union, opened with more to look at than all queries have."""
    query = panes.open(text, **options)
    assert isinstance(query, panes.OpenQuery)
    return query


def open_join(text: str, **options: Any) -> panes.OpenJoin:
    """A query over a join, opened."""
    query = panes.open(text, **options)
    assert isinstance(query, panes.OpenJoin)
    return query


def open_graph(text: str, **options: Any) -> panes.OpenGraph:
    """A query with queries inside, opened."""
    query = panes.open(text, **options)
    assert isinstance(query, panes.OpenGraph)
    return query


def read(text: str, aggregates: Sequence[UserAggregate] = ()) -> Query | JoinQuery:
    """A query without others inside: over a stream, a union of streams, or a join."""
    return read_join(text, aggregates) if is_join(text) else parse(text, aggregates)
