"""Shared by all tests: random streams, every aggregate once, every paned window."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import pyarrow as pa
from hypothesis import strategies as st

from panes.reference.compare import difference

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

# Quarters are exact in binary and their products stay so: any order of addition agrees to the bit.
_floats = st.one_of(st.integers(-40, 40).map(lambda n: n / 4), st.just(math.nan))
_instants = st.integers(0, 10**6).map(
    lambda s: dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=s)
)

rows = st.fixed_dictionaries(
    {
        "at": st.integers(-40, 60),
        "k": st.sampled_from(["a", "b", None]),
        "b": st.sampled_from([True, False, None]),
        "i": st.one_of(st.integers(-9, 9), st.none()),
        "x": st.one_of(_floats, st.none()),
        "s": st.sampled_from(["p", "q", "r", "é", None]),
        "d": st.one_of(st.integers(-999, 999).map(lambda n: Decimal(n) / 100), st.none()),
        "t": st.one_of(_instants, st.none()),
    }
)

streams = st.lists(rows, max_size=40).map(lambda r: pa.Table.from_pylist(r, schema=SCHEMA))


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
