"""Every graph on Spark: bounded DataFrames, streams, and streams that stop and go on.

Streams are dear, so they are for `make test-slow`. Those that stop do so in the middle, with
windows open, and go on from their checkpoint: they give what one process gives for these batches.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import panes
from panes.planning.terms import Late
from tests.matrix.arrivals import LATENESS, Arrivals, usual
from tests.matrix.graphs import GRAPHS, Graph
from tests.matrix.hosts import Host, proved
from tests.spark.streaming import as_batches, found, read_stream, run_to_end
from tests.support import assert_rows


def _batch(graph: Graph, arrivals: Arrivals, late: Late, place: Path) -> pa.Table:
    spark = SparkSession.getActiveSession()
    assert spark is not None
    frames = {name: spark.createDataFrame(table) for name, table in arrivals.whole().items()}
    return panes.sql(graph.text, frames).toArrow()


def _stream(graph: Graph, arrivals: Arrivals, late: Late, place: Path) -> pa.Table:
    return _run(graph, arrivals, late, place, [len(arrivals.batches)])


def _stopped(graph: Graph, arrivals: Arrivals, late: Late, place: Path) -> pa.Table:
    """Stopped behind the second batch, and never told of an end."""
    return _run(graph, arrivals, late, place, [2, len(arrivals.batches)])


def _run(graph: Graph, arrivals: Arrivals, late: Late, place: Path, stops: list[int]) -> pa.Table:
    spark, begin = SparkSession.getActiveSession(), 0
    assert spark is not None
    for stop in stops:
        streams = {}
        for name in graph.streams:
            tables = [batch[name] for batch in arrivals.batches[begin:stop]]
            streams[name] = read_stream(spark, as_batches(place / name, tables, first=begin))
        ends = len(stops) == 1
        run_to_end(
            panes.sql(graph.text, streams, lateness=LATENESS, late=late, bounded=ends), place
        )
        begin = stop
    return found(spark, place / "out")


HOSTS = (
    Host("batch", _batch, frozenset({"batches"})),
    Host("stream", _stream),
    Host("stream, stopped", _stopped, ends=False),
)


def is_dear(graph: Graph, host: Host) -> bool:
    """Of bounded DataFrames, graphs of several queries are quick enough."""
    return host.run is not _batch or "nested" not in graph.needs


def cells() -> list[object]:
    found: list[object] = []
    for graph, host, order in product(GRAPHS, HOSTS, ("in order", "shuffled", "late")):
        if host.run is _batch and order != "shuffled":
            continue
        cell = (graph, host, order)
        name = f"{graph.name} - {host.name} - {order}"
        marks = [pytest.mark.slow] if is_dear(graph, host) else []
        found.append(pytest.param(*cell, id=name, marks=marks))
    return found


@pytest.mark.parametrize(("graph", "host", "order"), cells())
def test_spark_answers_as_the_oracle(
    spark: SparkSession, tmp_path: Path, graph: Graph, host: Host, order: str
) -> None:
    come = usual(graph.streams, order)
    counts = come.whole() if "batches" in host.lacks else come.in_time()
    want = panes.oracle(graph.text, **counts) if host.ends else proved(graph, come, "drop")
    assert len(want)
    assert_rows(host.run(graph, come, "drop", tmp_path), want)
