"""Whatever can run a query: a line each, with what it lacks.

A host takes a query and batches, and gives all answers, whenever they came. One that is stopped
after every batch, and goes on from what it had written, is a host of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

import panes
from panes.planning.terms import Late
from tests.matrix.arrivals import LATENESS, Arrivals
from tests.matrix.graphs import Graph

Runs = Callable[[Graph, Arrivals, Late, Path], pa.Table]


@dataclass(frozen=True)
class Host:
    """Something that runs queries; `lacks` are needs of graphs that it does not meet.

    One that never `ends` gives what its batches prove, and no more.
    """

    name: str
    run: Runs
    lacks: frozenset[str] = frozenset()
    ends: bool = True

    def takes(self, graph: Graph) -> bool:
        """Whether it can do all that a graph needs."""
        return graph.needs.isdisjoint(self.lacks)


def together(tables: Iterable[pa.Table]) -> pa.Table:
    """Answers that came one after the other; a step that says nothing has no columns."""
    some = [table for table in tables if table.num_columns]
    return pa.concat_tables(some) if some else pa.table({})


def _tables(graph: Graph, arrivals: Arrivals, late: Late, place: Path) -> pa.Table:
    return panes.sql(graph.text, **arrivals.whole())


def proved(graph: Graph, arrivals: Arrivals, late: Late) -> pa.Table:
    """The answers that are given before streams end."""
    query = panes.open(graph.text, lateness=LATENESS, late=late)
    return together(query.push(**batch) for batch in arrivals.batches)


def _open(graph: Graph, arrivals: Arrivals, late: Late, place: Path) -> pa.Table:
    query = panes.open(graph.text, lateness=LATENESS, late=late)
    return together([*(query.push(**batch) for batch in arrivals.batches), query.finish()])


def _stopped(graph: Graph, arrivals: Arrivals, late: Late, place: Path) -> pa.Table:
    """Closed behind every batch, and opened again on what it wrote."""
    found = []
    for batch in arrivals.batches:
        query = panes.open(graph.text, lateness=LATENESS, late=late, state=place)
        found.append(query.push(**batch))
        query.close()
    query = panes.open(graph.text, lateness=LATENESS, late=late, state=place)
    return together([*found, query.finish()])


def _registered(graph: Graph, arrivals: Arrivals, late: Late, place: Path) -> pa.Table:
    """Registered alone; a register takes the batches of several streams by name."""
    register = panes.register(graph.streams, lateness=LATENESS, late=late)
    register.add("q", graph.text)
    found = [register.push(**batch) for batch in arrivals.batches]
    return together(step["q"] for step in [*found, register.finish()] if "q" in step)


def _saved(graph: Graph, arrivals: Arrivals, late: Late, place: Path) -> pa.Table:
    """A register that is saved behind every batch, and read again."""
    terms: dict[str, Any] = {"lateness": LATENESS, "late": late}
    register = panes.register(graph.streams, **terms)
    register.add("q", graph.text)
    found = []
    for batch in arrivals.batches:
        found.append(register.push(**batch))
        register.save(place / "saved")
        register = panes.register(graph.streams, **terms, saved=place / "saved")
    return together(step["q"] for step in [*found, register.finish()] if "q" in step)


def _killed(graph: Graph, arrivals: Arrivals, late: Late, place: Path) -> pa.Table:
    """A register that is killed behind every batch, and goes on from its folder."""
    terms: dict[str, Any] = {"lateness": LATENESS, "late": late, "state": place / "state"}
    register = panes.register(graph.streams, **terms)
    register.add("q", graph.text)
    found = []
    for batch in arrivals.batches:
        found.append(register.push(**batch))
        let_go(register)
        register = panes.register(graph.streams, **terms)
    return together(step["q"] for step in [*found, register.finish()] if "q" in step)


def let_go(query: Any) -> None:
    """Let go of the folder, as the system does when a process is killed."""
    query._turn.keeper.folder.close()


IN_PROCESS = (
    Host("tables", _tables, frozenset({"batches"})),
    Host("open", _open),
    Host("open, stopped", _stopped),
    Host("register", _registered),
    Host("register, saved", _saved),
    Host("register, killed", _killed),
)
