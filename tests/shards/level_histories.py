"""Histories of nested queries over shards at several levels, which tests and planted bugs share."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

import panes
from panes.planning.terms import Late, StreamOptions
from tests.matrix.arrivals import LATENESS, usual
from tests.matrix.graphs import GRAPHS, PEAKS, Graph
from tests.shards.parts_host import PartsHost
from tests.support import assert_rows

LEVELS = 4
NESTED = {g.name: g for g in GRAPHS if "nested" in g.needs and "DISTINCT" not in g.text}


def host_of(streams: tuple[str, ...], late: Late = "drop") -> PartsHost:
    """A register over some of the matrix's streams."""
    tables = usual(streams, "in order").whole()
    schemas = {name: table.schema for name, table in tables.items()}
    return PartsHost(schemas, StreamOptions(lateness=LATENESS, late=late), LEVELS)


def nested_together(graphs: dict[str, Graph], order: str) -> None:
    """Some queries from the first row to the last answer what the oracle does."""
    streams = tuple(dict.fromkeys(s for graph in graphs.values() for s in graph.streams))
    come, host = usual(streams, order), host_of(streams)
    for name, graph in graphs.items():
        host.add(name, graph.text)
    given = [*(host.push(**batch) for batch in come.batches), host.finish()]
    counted = come.in_time()
    for name, graph in graphs.items():
        want = panes.oracle(graph.text, **{s: counted[s] for s in graph.streams})
        assert len(want)
        assert_rows(pa.concat_tables([step[name] for step in given if name in step]), want)


def nested_comes_later(name: str, *, is_read: bool) -> None:
    """A query that comes later answers what it has seen in full.

    Its parts are new, or another query has read the first of them before.
    """
    graph, come, host = NESTED[name], usual(("s",), "shuffled"), host_of(("s",))
    host.add("first", "SELECT max(v) AS m FROM s [TUMBLING 10 WATTR at]")
    if is_read:
        host.add("inside", f"SELECT count(*) AS c FROM ({PEAKS}) [TUMBLING 10]")
    given = []
    for number, batch in enumerate(come.batches):
        if number == 1:
            host.add("q", graph.text)
        given.append(host.push(**batch).get("q"))
    given.append(host.finish().get("q"))
    begins = host.exact_from("q")
    assert isinstance(begins, int)
    want = panes.oracle(graph.text, s=come.whole()["s"])
    if "window_start" in want.column_names:
        want = want.filter(pc.greater_equal(want["window_start"], begins))
    else:  # windows of 30 that end with their row
        want = want.filter(pc.greater_equal(want["window_end"], begins + 29))
    assert len(want)
    assert_rows(pa.concat_tables([table for table in given if table is not None]), want)
