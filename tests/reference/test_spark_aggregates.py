"""Spark's further aggregates equal the oracle's, whose folds share no code with them.

Catches: a wrong partial, merge or lowering of any of them, and any way in which arrival order or
the split into batches could reach their answers. That the oracle means what Spark means is shown
in ``tests/spark``.
"""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes
from tests.sharded_query import ShardedQuery
from tests.strategies import cuts_of, rows
from tests.support import SCHEMA, assert_same, select, slow, sorted_answers

AGGREGATES = (
    "count_if(i > 0)",
    "count_if(b) FILTER (WHERE i > 0)",
    "any(b)",
    "any_value(s)",
    "any_value(x, true)",
    "try_sum(i)",
    "try_sum(d)",
    "try_avg(d)",
    "bit_and(i)",
    "bit_or(i)",
    "bit_xor(i)",
    "bit_xor(DISTINCT i)",
    "skewness(i)",
    "kurtosis(i)",
    "regr_count(i, d)",
    "regr_avgx(i, d)",
    "regr_avgy(i, d)",
    "regr_sxx(i, d)",
    "regr_syy(i, d)",
    "regr_sxy(i, d)",
    "regr_slope(i, d)",
    "regr_intercept(i, d)",
    "regr_r2(i, d)",
    "percentile(i, array(0.25, 0.5, 1))",
    "percentile_approx(x, 0.3, 100)",
    "percentile_approx(t, array(0.5, 0.1))",
    "percentile_cont(0.3) WITHIN GROUP (ORDER BY i DESC)",
    "percentile_disc(0.3) WITHIN GROUP (ORDER BY d)",
    "percentile_disc(0.25) WITHIN GROUP (ORDER BY i DESC)",
    "mode(i, true)",
    "mode() WITHIN GROUP (ORDER BY s DESC)",
    "listagg(s, ', ')",
    "listagg(DISTINCT s) WITHIN GROUP (ORDER BY s DESC)",
    "listagg(s, '-') WITHIN GROUP (ORDER BY i DESC)",
    "min_by(s, i, 2)",
    "max_by(i, x, 3)",
    "listagg(CAST(s AS BINARY), ', ')",
    "histogram_numeric(i, 3)",
    "histogram_numeric(t, 3)",
    "histogram_numeric(CAST(t AS DATE), 3)",
    "count_min_sketch(s, 0.4, 0.9, 7)",
    "approx_count_distinct(replace(s, 'p', ''))",
    "approx_top_k(s, 2)",
    "regr_avgx(i, if(b, double('-infinity'), x))",
    "percentile(if(b, double('-infinity'), i), 0.3)",
    "skewness(if(b, i * 1e300, i))",
    "count_min_sketch(i, 0.4, 0.9, 7)",
    "hll_sketch_agg(s)",
    "hll_sketch_agg(DISTINCT i, 4)",
    "hll_sketch_agg(CAST(s AS BINARY)) FILTER (WHERE b)",
    "theta_sketch_agg(s, 4)",
    "theta_sketch_agg(DISTINCT i)",
    "theta_sketch_agg(x) FILTER (WHERE b)",
    "theta_sketch_agg(array(i, i))",
    "tuple_sketch_agg_double(i, x, 4)",
    "tuple_sketch_agg_double(s, x, 12, 'min') FILTER (WHERE b)",
    "tuple_sketch_agg_double(array(i, i), x, 4, 'Max')",
    "tuple_sketch_agg_integer(x, i)",
    "tuple_sketch_agg_integer(CAST(s AS BINARY), i, 4, 'alwaysone')",
    "md5(bitmap_construct_agg(i + 20))",
    "min(n)",
    "max(v)",
    "first(n)",
    "last(v) IGNORE NULLS",
    "max_by(n, i)",
    "min_by(i, v)",
    "mode(v)",
    "count(DISTINCT n)",
    "collect_list(n)",
    "collect_set(v)",
    "collect_union(v)",
)
NESTED = pa.schema(
    [
        *SCHEMA,
        ("n", pa.struct([("a", pa.int32()), ("b", pa.string())])),
        ("v", pa.list_(pa.float64())),
    ]
)
_structs = st.fixed_dictionaries(
    {"a": st.sampled_from([1, -1, None]), "b": st.sampled_from(["p", "", "p\0q", None])}
)
_lists = st.lists(st.sampled_from([1.5, -2.0, math.nan, None]), max_size=2)
_nested = st.fixed_dictionaries(
    {"n": st.one_of(_structs, st.none()), "v": st.one_of(_lists, st.none())}
)
streams = st.lists(st.tuples(rows, _nested).map(lambda both: both[0] | both[1]), max_size=25).map(
    lambda drawn: pa.Table.from_pylist(drawn, schema=NESTED)
)


@pytest.mark.parametrize(
    "window",
    [
        "RANGE 23 SLIDE 3 WATTR at",
        slow("TUMBLING 5 WATTR at"),
        slow("RANGE 7 SLIDE 4 WATTR at"),
        slow("RANGE 8 ROWS SLIDE 3 ROWS"),
        slow("RANGE 6 ROWS SLIDE 2 ROWS WATTR at"),
    ],
)
@settings(max_examples=8)
@given(table=streams, data=st.data())
def test_in_any_order_and_split_they_are_the_oracles(
    window: str, table: pa.Table, data: st.DataObject
) -> None:
    text = f"SELECT k, {select(AGGREGATES)} FROM t [{window}] GROUP BY k"
    if "ROWS" not in window:
        order = data.draw(st.permutations(range(len(table))))
        table = table.take(pa.array(order, pa.int64()))
    query = panes.open(text)
    found = [query.push(t=table.slice(a, b - a)) for a, b in cuts_of(data, table)]
    found.append(query.finish())
    assert_same(sorted_answers(pa.concat_tables(found), 1), panes.oracle(text, t=table))


@settings(max_examples=3)
@given(table=streams)
def test_over_per_row_windows_they_are_the_oracles(table: pa.Table) -> None:
    bounded = [a for a in AGGREGATES if not a.startswith("mode")]
    text = f"SELECT {select(tuple(bounded))} FROM t [RANGE 7 RATTR at SLIDE 1 ROW PA k]"
    assert_same(panes.sql(text, t=table), panes.oracle(text, t=table))


@settings(max_examples=3)
@given(table=streams)
def test_through_shards_whose_state_is_bytes_they_are_the_oracles(table: pa.Table) -> None:
    text = f"SELECT k, {select(AGGREGATES)} FROM t [RANGE 23 SLIDE 3 WATTR at] GROUP BY k"
    host = ShardedQuery(text, NESTED, lateness=200)
    found = [host.answers(host.push(t=part)) for part in (table.slice(0, 9), table.slice(9))]
    found.append(host.answers(host.finish()))
    assert_same(sorted_answers(pa.concat_tables(found), 1), panes.oracle(text, t=table))
