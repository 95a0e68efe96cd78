"""A query with queries inside, in this process: a graph whose parts hand rows and promises on.

Each part is a query of its own. What it answers is pushed into the parts that read it, and what it
promises of answers to come closes their windows in the same step, so no answer comes a batch later
than if there were one query only. Answers of inner parts are final, so no row between two parts is
ever late.

Invariant: a part is stepped after those that it reads, once in a step.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from panes.aggregates.custom import UserAggregate
from panes.errors import OptionError, QueryError, UnknownStreamError
from panes.html import facts_html, facts_line
from panes.language.query_graph import QueryGraph
from panes.nodes.parts import require_parts
from panes.nodes.set_aside import all_rows
from panes.planning.terms import StreamOptions
from panes.process.in_turn import Turn
from panes.process.keeper import KeptQuery
from panes.process.node import Step
from panes.process.open_query import Instant
from panes.process.query_node import Inside, QueryNode
from panes.process.running_graph import RunningGraph
from panes.process.step import in_turn, kept, step, whole
from panes.process.watched import Watcher


class OpenGraph(KeptQuery):
    """A running query that has queries inside: rows go in, final answers come out.

    It is used as an `OpenQuery` is. Threads may share it: they take turns.
    """

    UNCHANGED = frozenset({"watcher"})

    def __init__(
        self,
        query: QueryGraph,
        run: StreamOptions = StreamOptions(),  # noqa: B008 - frozen
        *,
        aggregates: Sequence[UserAggregate] = (),
        schemas: Mapping[str, pa.Schema] | None = None,
        now: Callable[[], int] = lambda: time.time_ns() // 1_000,
    ) -> None:
        self.query = query
        require_parts(query, run)
        self._graph = RunningGraph()
        for part in query.parts:
            inside = Inside({n: query.again.get(n, n) for n in part.query.streams}, query.names)
            options = replace(run, flush=None, why=False, store=None) if part.name else run
            node = QueryNode(
                part.query, inside, options, aggregates=aggregates, schemas=schemas or {}, now=now
            )
            self._graph.add(part.name, node.named(part.name))
        self._finished = False
        self._turn = Turn(run.max_answers)
        self.watcher: Watcher | None = None

    # What comes

    @step
    @whole
    def push(self, /, **batches: object) -> pa.Table:
        """Take in a batch of each named stream; gives the answers that are final from now on.

        All or nothing: if a batch is refused, or its answers cannot be computed, every part is as
        it was before.
        """
        self._require_running()
        if not batches:
            raise OptionError("push needs a batch", hint=f"push({self.query.streams[0]}=table)")
        self._require_streams(batches)
        return self._step(Step(dict(batches)))

    @step
    @whole
    def punctuate(self, /, **promised: Instant) -> pa.Table:
        """Promise that no later row of a stream lies before an instant; gives what that closes."""
        self._require_running()
        self._require_streams(promised)
        return self._step(Step(told=promised))

    @step
    @whole
    def beat(self) -> pa.Table:
        """Let the clock say how far the streams are, as `heartbeat` allows."""
        self._require_running()
        return self._step(Step(beats=True))

    @in_turn
    @whole
    def early(self) -> pa.Table:
        """The open windows of the last part, as they are now; their answers are not final."""
        self._require_running()
        return self._nodes[""].query.early()

    @step
    @whole
    def finish(self) -> pa.Table:
        """The streams have ended: gives all answers that are left, and forgets everything."""
        self._require_running()
        found = self._step(Step(is_last=True))
        self._finished = True
        return found

    def _step(self, step: Step) -> pa.Table:
        """Every part takes in its rows and promises; gives what the last one answers."""
        *_, (_, [asked]) = self._graph.step(step)
        return asked.table

    # What there is to see

    @property
    @in_turn
    def late(self) -> pa.Table:
        """Rows that broke a promise, with the reason; once for each place that reads them."""
        return all_rows(node.query.late for node in self._reading_streams())

    @in_turn
    @whole
    @kept
    def take_late(self) -> pa.Table:
        """The late rows so far, which are then forgotten: for queries that run for long."""
        return all_rows(node.query.take_late() for node in self._reading_streams())

    @property
    @in_turn
    def rejected(self) -> pa.Table:
        """Rows that have no place on the axis, with the reason; once for each place."""
        return all_rows(node.query.rejected for node in self._reading_streams())

    @property
    @in_turn
    def progress(self) -> Mapping[str, object]:
        """How far each query is, by its name; the outermost one is called `asked`."""
        return {name or "asked": node.query.progress for name, node in self._nodes.items()}

    @property
    def is_finished(self) -> bool:
        """Whether the streams have ended."""
        return self._finished

    @property
    def given_columns(self) -> Mapping[str, pa.Schema]:
        """The columns of batches, of the streams that are known."""
        found = {
            name: s for node in self._nodes.values() for name, s in node.query.given_columns.items()
        }
        return {name: found[name] for name in self.query.streams if name in found}

    @property
    @in_turn
    def state(self) -> Mapping[str, int]:
        """How much is stored, of all parts together; see `OpenQuery.state`."""
        found: dict[str, int] = {}
        for node in self._nodes.values():
            for name, count in node.state.items():
                found[name] = found.get(name, 0) + count
        return found | self._on_disk

    def explain(self, *, details: bool = False) -> str:
        """The plan of each part, inner ones first; see `panes.explain`."""
        return self._explained(explained(
            (name, node.explain(details=details)) for name, node in self._nodes.items()
        ))  # fmt: skip

    def __repr__(self) -> str:
        how = "finished" if self._finished else "open"
        return facts_line("OpenGraph", self.query.text, how, f"{len(self._nodes)} parts")

    def _repr_html_(self) -> str:
        facts: dict[str, object] = {"state": "finished" if self._finished else "open"}
        facts["parts"] = len(self._nodes)
        return facts_html("open query", self.query.text, facts)

    # Before anything changes

    @property
    def _nodes(self) -> dict[str, QueryNode]:
        """The parts by name, the outermost one last; it has none."""
        return {n: node for n, node in self._graph.nodes.items() if isinstance(node, QueryNode)}

    def _reading_streams(self) -> list[QueryNode]:
        return [node for node in self._nodes.values() if node.reads_streams]

    def _require_running(self) -> None:
        if self._finished:
            raise QueryError("the query has finished; open it again to ask once more")

    def _require_streams(self, given: Mapping[str, object]) -> None:
        for name in given:
            if name not in self.query.streams:
                raise UnknownStreamError(name, streams=self.query.streams)


def explained(parts: Iterable[tuple[str, str]]) -> str:
    """The plans of parts under their names; what was asked comes last."""
    said = ((f"part       {name}\n" if name else "asked\n") + text for name, text in parts)
    return "\n".join(said)
