"""Aggregates of many kinds on a stream that stops and goes on from its checkpoint.

Catches: a partial that is not the same once it was written into the state and merged with others,
for groups with NULL alone, NaN, wide decimals, and texts with accents, NUL or nothing in them.
"""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

import panes
from tests.spark.streaming import START, as_batches, found, read_stream, run_to_end
from tests.support import assert_rows, select

AGGREGATES = (
    "try_sum(m)", "avg(m)", "mode(s, true)", "percentile(x, array(0.3, 1))",
    "percentile_disc(0.5) WITHIN GROUP (ORDER BY i)", "percentile_approx(m, 0.5)",
    "listagg(s, ', ')", "listagg(CAST(s AS BINARY))", "collect_list(x)", "collect_set(m)",
    "max_by(s, x)", "min_by(s, i, 2)", "bit_and(i)", "bit_xor(i)", "histogram_numeric(i, 3)",
    "regr_count(x, i)", "regr_avgx(x, m)", "approx_count_distinct(s)", "approx_top_k(s, 3)",
    "count_min_sketch(s, 0.4, 0.9, 7)", "bool_or(i > 0)", "count_if(x > 0)", "last(s, true)",
    "hll_sketch_agg(s)", "hll_sketch_agg(i, 4)", "theta_sketch_agg(s)", "theta_sketch_agg(x, 4)",
    "tuple_sketch_agg_double(s, x)", "tuple_sketch_agg_integer(x, i, 4, 'max')",
)  # fmt: skip
TEXT = f"SELECT k, {select(AGGREGATES)} FROM s [RANGE 30 seconds SLIDE 10 seconds WATTR ts] "
LATENESS = dt.timedelta(seconds=40)


def batches() -> list[pa.Table]:
    """Rows out of order by less than the lateness, and one row that closes all their windows."""
    draw = random.Random(17)
    rows = [
        {
            "ts": START + dt.timedelta(seconds=at + draw.randrange(30)),
            "k": draw.choice(["a", "b", None]),
            "i": draw.choice([None, -3, 0, 7, 7]),
            "x": draw.choice([None, 0.5, -1.25, float("nan"), 2.0]),
            "m": draw.choice([None, Decimal("-9999999999999999999999.25"), Decimal(1)]),
            "s": None if at % 4 == 0 else draw.choice(["", "a\0b", "\U0001f44dx", "\u00e9"]),
        }
        for at in range(0, 240, 2)
    ]
    closing = {"ts": START + dt.timedelta(hours=1), "k": "a"}
    kinds = {"ts": pa.timestamp("us", "UTC"), "k": pa.string(), "i": pa.int32()}
    kinds |= {"x": pa.float64(), "m": pa.decimal128(38, 10), "s": pa.string()}
    parts = [rows[:40], rows[40:80], rows[80:], [closing]]
    return [pa.Table.from_pylist(part, schema=pa.schema(kinds)) for part in parts]


@pytest.mark.slow
def test_partials_are_the_same_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    tables = batches()
    for first, some in ((0, tables[:2]), (2, tables[2:])):
        folder = as_batches(tmp_path / "in", some, first=first)
        text = TEXT + "GROUP BY k"
        run_to_end(panes.sql(text, lateness=LATENESS, s=read_stream(spark, folder)), tmp_path)
    wanted = panes.oracle(text, s=pa.concat_tables(tables))
    end = pa.scalar(START + dt.timedelta(minutes=30))
    assert_rows(found(spark, tmp_path / "out"), wanted.filter(pc.less(wanted["window_end"], end)))
