"""Every graph, on every host, with rows in any order, stopped or not: the answers of the oracle.

A new node adds a line to `graphs`, a new host one to `hosts`. Catches whatever is right on one host
and wrong on another, and what only meets in a graph.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes
from panes.planning.terms import Late
from tests.matrix.arrivals import ORDERS, Arrivals, answers_while_open, arrivals, usual
from tests.matrix.graphs import GRAPHS, Graph
from tests.matrix.hosts import IN_PROCESS, Host
from tests.support import assert_rows

CELLS = [(graph, host) for graph, host in product(GRAPHS, IN_PROCESS) if host.takes(graph)]
LACKING = [(graph, host) for graph, host in product(GRAPHS, IN_PROCESS) if not host.takes(graph)]


def ids(cells: list[tuple[Graph, Host]]) -> list[str]:
    return [f"{graph.name} - {host.name}" for graph, host in cells]


@cache
def wanted(graph: Graph, order: str, *, in_batches: bool) -> pa.Table:
    """The oracle's answers to the rows of `usual` that count."""
    come = usual(graph.streams, order)
    return panes.oracle(graph.text, **(come.in_time() if in_batches else come.whole()))


def answered(graph: Graph, host: Host, come: Arrivals, late: Late) -> pa.Table:
    with TemporaryDirectory() as place:
        return host.run(graph, come, late, Path(place))


def assert_answers(found: pa.Table, want: pa.Table) -> None:
    """The same rows; who has said nothing has named no columns either."""
    assert_rows(found if found.num_columns else want.slice(0, 0), want)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("graph", "host"), CELLS, ids=ids(CELLS))
def test_a_host_answers_as_the_oracle(graph: Graph, host: Host, order: str) -> None:
    """Late rows are dropped: the answers are those of the rows that are in time."""
    found = answered(graph, host, usual(graph.streams, order), "drop")
    want = wanted(graph, order, in_batches="batches" not in host.lacks)
    assert len(want)
    assert_answers(found, want)


@pytest.mark.slow
@pytest.mark.parametrize(("graph", "host"), CELLS, ids=ids(CELLS))
@settings(max_examples=15)
@given(data=st.data())
def test_a_host_answers_as_the_oracle_in_any_history(
    graph: Graph, host: Host, data: st.DataObject
) -> None:
    come = data.draw(arrivals(graph.streams, data.draw(st.sampled_from(sorted(ORDERS)))))
    counts = come.whole() if "batches" in host.lacks else come.in_time()
    assert_answers(answered(graph, host, come, "drop"), panes.oracle(graph.text, **counts))


OPEN = [cell for cell in CELLS if not cell[0].needs and "batches" not in cell[1].lacks]


@pytest.mark.parametrize(("graph", "host"), OPEN, ids=ids(OPEN))
def test_a_late_row_counts_in_the_windows_that_it_finds_open(graph: Graph, host: Host) -> None:
    come = usual(graph.streams, "late")
    assert_answers(answered(graph, host, come, "open"), answers_while_open(graph.text, come))


@pytest.mark.parametrize(("graph", "host"), LACKING, ids=ids(LACKING))
def test_a_host_refuses_what_it_lacks(graph: Graph, host: Host) -> None:
    """So that a word leaves `lacks` when a host can do more."""
    with pytest.raises(panes.PanesError):
        answered(graph, host, usual(graph.streams, "in order"), "drop")
