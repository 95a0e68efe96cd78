"""Every graph on Spark: bounded DataFrames, streams, streams that stop and go on, and registers.

Streams are dear: `make test-slow` asks each graph in one order. Those that stop do so in the
middle, with windows open, and go on from their checkpoint: they give what one process gives for
these batches.
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


def _registered(graph: Graph, arrivals: Arrivals, late: Late, place: Path) -> pa.Table:
    """Registered alone, and read to its end; the sink adds the number of the batch."""
    spark = SparkSession.getActiveSession()
    assert spark is not None
    streams = {}
    for name in graph.streams:
        tables = [batch[name] for batch in arrivals.batches]
        streams[name] = read_stream(spark, as_batches(place / name, tables))
    register = panes.register(graph.streams, streams, lateness=LATENESS, late=late)
    register.add("q", graph.text)
    register.start(checkpoint=str(place / "checkpoint"), sink=str(place / "out"), bounded=True)
    assert register.await_end(600)
    return found(spark, place / "out" / "query=q").drop_columns(["batch"])


HOSTS = (
    Host("batch", _batch, frozenset({"batches"})),
    Host("stream", _stream),
    Host("stream, stopped", _stopped, ends=False),
    Host("register", _registered),
)


ORDERS = ("in order", "shuffled", "late")


def mark_of(graph: Graph, host: Host, order: str) -> list[pytest.MarkDecorator]:
    """What a cell costs: streams that stop are asked each graph in one order, which goes round.

    Other streams are asked every third graph; the rest of the cells is for torture.
    """
    if host.run is _batch:
        return [] if "nested" in graph.needs else [pytest.mark.slow]
    number = GRAPHS.index(graph)
    is_its_turn = order == ORDERS[number // 3 % 3] and (host.run is _stopped or number % 3 == 0)
    return [pytest.mark.slow] if is_its_turn else [pytest.mark.torture]


def cells() -> list[object]:
    found: list[object] = []
    for graph, host, order in product(GRAPHS, HOSTS, ORDERS):
        if (host.run is _batch and order != "shuffled") or not host.takes(graph):
            continue
        name = f"{graph.name} - {host.name} - {order}"
        marks = mark_of(graph, host, order)
        found.append(pytest.param(graph, host, order, id=name, marks=marks))
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
