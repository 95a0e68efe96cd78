"""Queries inside queries over shards: parts at several levels, which hand on rows and promises.

Every nested graph of the matrix is asked of shards alone, of several queries at once, and of those
that come later; what they give is what the oracle gives over all rows.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import panes
from panes.planning.terms import Late, StreamOptions
from panes.sharing.failures import QueriesFailed
from tests.matrix.arrivals import LATENESS, usual
from tests.matrix.graphs import GRAPHS, PEAKS, Graph
from tests.shards.parts_host import PartsHost
from tests.support import assert_rows

NESTED = [g for g in GRAPHS if "nested" in g.needs and "DISTINCT" not in g.text]


def run(
    graphs: dict[str, Graph], order: str, late: Late = "drop", levels: int = 4
) -> tuple[dict[str, pa.Table], dict[str, pa.Table]]:
    streams = tuple(dict.fromkeys(s for graph in graphs.values() for s in graph.streams))
    come = usual(streams, order)
    schemas = {name: table.schema for name, table in come.whole().items()}
    host = PartsHost(schemas, StreamOptions(lateness=LATENESS, late=late), levels)
    for name, graph in graphs.items():
        host.add(name, graph.text)
    found: dict[str, list[pa.Table]] = {}
    for step in [*(host.push(**batch) for batch in come.batches), host.finish()]:
        for name, table in step.items():
            found.setdefault(name, []).append(table)
    counted = come.in_time()
    want = {
        n: panes.oracle(g.text, **{s: counted[s] for s in g.streams}) for n, g in graphs.items()
    }
    return {name: pa.concat_tables(tables) for name, tables in found.items()}, want


@pytest.mark.parametrize("order", ["in order", "shuffled", "late"])
@pytest.mark.parametrize("graph", NESTED, ids=lambda g: g.name)
def test_shards_answer_as_the_oracle(graph: Graph, order: str) -> None:
    given, want = run({"q": graph}, order)
    assert len(want["q"])
    assert_rows(given["q"], want["q"])


def test_all_of_them_together_and_twice() -> None:
    graphs = {f"{graph.name} {i}": graph for graph in NESTED for i in range(2)}
    given, want = run(graphs, "shuffled")
    for name, table in want.items():
        assert_rows(given[name], table)


LATER = ["windows over windows", "three levels", "named", "per row over windows",
         "selects of selects of windows"]  # fmt: skip


@pytest.mark.parametrize("begun", [False, True], ids=["new", "read before"])
@pytest.mark.parametrize("name", LATER)
def test_a_query_that_comes_later_answers_what_it_has_seen_in_full(name: str, begun: bool) -> None:
    """Its parts are new, or another query has read them before."""
    graph = next(graph for graph in NESTED if graph.name == name)
    come = usual(("s",), "shuffled")
    host = PartsHost({"s": come.whole()["s"].schema}, StreamOptions(lateness=LATENESS), 4)
    host.add("first", "SELECT max(v) AS m FROM s [TUMBLING 10 WATTR at]")
    if begun:
        host.add("inside", f"SELECT count(*) AS c FROM ({PEAKS}) [TUMBLING 10]")
    given = []
    for number, batch in enumerate(come.batches):
        if number == 1:
            host.add("q", graph.text)
        given.append(host.push(**batch).get("q"))
    given.append(host.finish().get("q"))
    found = pa.concat_tables([table for table in given if table is not None])
    begins = host.exact_from("q")
    assert isinstance(begins, int)
    want = panes.oracle(graph.text, s=come.whole()["s"])
    if "window_start" in want.column_names:
        want = want.filter(pc.greater_equal(want["window_start"], begins))
    else:
        want = want.filter(pc.greater_equal(want["window_end"], begins + 29))
    assert len(want)
    assert_rows(found, want)


def test_what_would_read_answers_of_a_join_comes_before_the_first_row() -> None:
    graph = next(graph for graph in NESTED if graph.name == "windows over a join")
    come = usual(("s", "u"), "in order")
    schemas = {name: table.schema for name, table in come.whole().items()}
    host = PartsHost(schemas, StreamOptions(lateness=LATENESS), 4)
    host.add("first", "SELECT max(v) AS m FROM s [TUMBLING 10 WATTR at]")
    host.add("second", "SELECT max(v) AS m FROM u [TUMBLING 10 WATTR at]")
    host.push(**come.batches[0])
    host.add("q", graph.text)
    with pytest.raises(QueriesFailed, match="rows have come before this query") as failed:
        host.push(**come.batches[1])
    assert list(failed.value.reasons) == ["q"]
