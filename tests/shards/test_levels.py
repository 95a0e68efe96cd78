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
from tests.matrix.graphs import GRAPHS, Graph
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
