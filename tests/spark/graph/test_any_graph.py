"""Random queries with queries inside, over streams on Spark, against loops over rows.

Catches what no list of cases has: a node that is told of no promise, or of no end, in a graph that
nobody thought of.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import panes
from tests.matrix import drawn
from tests.matrix.any_graph import DISORDER, assert_answers, case, plain
from tests.spark.streaming import as_batches, found, read_stream, run_to_end


def test_any_graph_can_be_asked_of_streams(spark: SparkSession) -> None:
    rate = spark.readStream.format("rate").load()
    columns = [f"CAST(value AS BIGINT) AS {name}" for name in ("at", "k", "v")]
    frames = {name: rate.selectExpr(*columns) for name in ("s", "u")}

    @settings(max_examples=15, phases=[Phase.generate])
    @given(data=st.data())
    def law(data: st.DataObject) -> None:
        query = drawn.query(data)
        assume("ROWS" not in query.text)  # rows of a DataFrame have no order of their own
        given: dict[str, Any] = {name: frames[name] for name in query.streams}
        ends, late = data.draw(st.booleans()), data.draw(st.booleans())
        asked = panes.sql(query.text, lateness=DISORDER, bounded=ends, with_late=late, **given)
        assert asked.isStreaming

    law()


@pytest.mark.slow
def test_bounded_streams_answer_as_loops_over_rows(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Rows in any order and split; one stream may have fewer batches than the other."""

    @settings(max_examples=5, phases=[Phase.generate])
    @given(data=st.data())
    def law(data: st.DataObject) -> None:
        query, streams = case(data)
        assume("ROWS" not in query.text and query.text.count("SELECT") > 2)
        place = tmp_path_factory.mktemp("graph")
        given: dict[str, Any] = {}
        for name, table in streams.items():
            cuts = data.draw(st.lists(st.integers(1, len(table)), max_size=2, unique=True))
            edges = sorted({0, *cuts, len(table)})
            parts = [table.slice(a, b - a) for a, b in itertools.pairwise(edges)]
            given[name] = read_stream(spark, as_batches(place / name, parts))
        run_to_end(panes.sql(query.text, lateness=DISORDER, bounded=True, **given), place)
        assert_answers(found(spark, place / "out"), plain(query, streams), query.text)

    law()
