"""What a user holds of a query that runs in this process: a face of its graph of nodes.

A face takes turns between threads, makes every step all or nothing, tells who watches and writes
what is kept. What is computed is the matter of the nodes. There is one part for a query without
others inside, and one for each query inside: what a part answers are rows of those that read it,
and what it promises of answers to come closes their windows in the same step, so no answer comes a
batch later than if there were one query only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from panes.aggregates.custom import UserAggregate
from panes.errors import OptionError, QueryError, UnknownStreamError
from panes.html import facts_html, facts_line
from panes.language.join_query import JoinQuery
from panes.language.query import Query
from panes.language.query_graph import Part, QueryGraph, read_graph
from panes.nodes.parts import require_parts, run_of
from panes.nodes.set_aside import Aside, late_of, rejected_of, take_late_of
from panes.planning.join_query_plan import JoinQueryPlan
from panes.planning.plan import Plan
from panes.planning.terms import StreamOptions
from panes.process.in_turn import Turn
from panes.process.join_node import JoinNode
from panes.process.keeper import KeptQuery
from panes.process.node import Instant, Step, clock
from panes.process.query_node import Inside, QueryNode
from panes.process.running_graph import RunningGraph
from panes.process.step import Steps, in_turn, kept, step, whole
from panes.process.watched import Watcher
from panes.process.windows_node import WindowsNode


class RunningQuery(KeptQuery):
    """A query on streams, whatever it is over: rows go in, final answers come out.

    Answers are given once, when nothing can change them any more; with ``EMIT EARLY`` before that
    too, and with ``late="revise"`` again when a late row changes them. Row order and the split into
    batches change no answer, as long as no row comes later than was promised. Threads may share it:
    they take turns.
    """

    query: Query | JoinQuery | QueryGraph
    _TITLE = "open query"

    def __init__(
        self,
        asked: str | Query | JoinQuery | QueryGraph,
        run: StreamOptions = StreamOptions(),  # noqa: B008 - frozen
        *,
        aggregates: Sequence[UserAggregate] = (),
        schemas: Mapping[str, pa.Schema] | None = None,
        now: Callable[[], int] = clock,
    ) -> None:
        if isinstance(asked, str):
            asked = read_graph(asked, aggregates)
        if not isinstance(asked, QueryGraph):
            asked = QueryGraph(asked.text, (Part("", asked),))
        graph, self.query = asked, asked.asked if asked.is_single else asked
        if not graph.is_single:
            require_parts(graph, run)
        self._graph = RunningGraph()
        self._parts: dict[str, QueryNode] = {}
        for part in graph.parts:
            inside = Inside({n: graph.again.get(n, n) for n in part.query.streams}, graph.names)
            options = run_of(part, run, graph.inside)
            node = node_of(part.query, inside, options, aggregates=aggregates, schemas=schemas,
                           now=now)  # fmt: skip
            self._graph.add(part.name, node.named(part.name))
            self._parts[part.name] = node
        self._turn = Turn(run.max_answers)

    @property
    def _asked(self) -> QueryNode:
        """The node whose answers are given."""
        return self._parts[""]

    @property
    def watcher(self) -> Watcher | None:
        """Who is told of every step, and of its batches; see `panes.live`."""
        return self._asked.watcher

    @watcher.setter
    def watcher(self, watcher: Watcher | None) -> None:
        self._asked.watcher = watcher

    # What comes

    @step
    @whole
    def push(self, /, *unnamed: object, **batches: Any) -> pa.Table:
        """Take in a batch of each of some streams; gives the answers that are final from now on.

        All or nothing: if a batch is refused, or its answers cannot be computed, the query is as it
        was before. Until every side of a join has sent a batch, what comes waits.
        """
        self._require_names("push", unnamed, "table")
        return self._step(self._pushed(batches))

    def _pushed(self, batches: Mapping[str, object]) -> Step:
        self._require_running()
        if not batches:
            raise OptionError("push needs a batch", hint=f"push({self.query.streams[0]}=table)")
        self._require_streams(batches)
        return Step(dict(batches))

    @step
    @whole
    def punctuate(self, /, *unnamed: object, **promised: Any) -> pa.Table:
        """Promise that no later row of a stream lies before an instant; gives what that closes."""
        self._require_names("punctuate", unnamed, "instant")
        return self._promise(promised)

    def _promise(
        self, promised: Mapping[str, Instant], key: Mapping[str, object] | None = None
    ) -> pa.Table:
        self._require_running()
        if "key" in promised and "key" not in self.query.streams:
            raise QueryError("promises for one key are for windows over one stream")
        self._require_streams(promised)
        return self._step(Step(told=promised, key=key))

    @step
    @whole
    def beat(self) -> pa.Table:
        """Let the clock say how far the streams are, as `heartbeat` allows; gives what that closes.

        To be called now and then while no rows come; every push does it too.
        """
        self._require_running()
        return self._step(Step(beats=True))

    @in_turn
    @whole
    def early(self) -> pa.Table:
        """The windows that are still open, as they are now; their answers are not final."""
        self._require_running()
        if not self.query.emits_early:
            raise QueryError("the query does not emit early", hint="end it with EMIT EARLY")
        return self._asked.early()

    @step
    @whole
    def finish(self) -> pa.Table:
        """The streams have ended: gives all answers that are left, and forgets everything."""
        self._require_running()
        return self._step(Step(is_last=True))

    def _step(self, step: Step) -> pa.Table:
        """Every part takes in its rows and promises; gives what the last one answers."""
        *_, (_, [asked]) = self._graph.step(step)
        return asked.table

    # What there is to see

    @property
    @in_turn
    def late(self) -> pa.Table:
        """Rows that broke a promise, with the reason; once for each part that reads the stream."""
        return late_of(self._aside())

    @in_turn
    @whole
    @kept
    def take_late(self) -> pa.Table:
        """The late rows so far, which are then forgotten: for queries that run for long."""
        return take_late_of(self._aside())

    @property
    @in_turn
    def rejected(self) -> pa.Table:
        """Rows that have no place on the axis, with the reason; once for each part."""
        return rejected_of(self._aside())

    def _aside(self) -> list[Aside]:
        return [one for part in self._parts.values() for one in part.aside()]

    @property
    @in_turn
    def progress(self) -> Any:
        """Up to where the streams are complete: a position, or one for each side or query."""
        return self._asked.progress

    @property
    def is_finished(self) -> bool:
        """Whether the streams have ended."""
        return self._asked.is_finished

    @property
    def given_columns(self) -> Mapping[str, pa.Schema]:
        """The columns of batches, of the streams that are known."""
        found = {n: s for part in self._parts.values() for n, s in part.given_columns.items()}
        return {name: found[name] for name in self.query.streams if name in found}

    @property
    @in_turn
    def state(self) -> Mapping[str, int]:
        """How much is stored, of all parts together; see `OpenQuery` and `OpenJoin`."""
        found: dict[str, int] = {}
        for part in self._parts.values():
            for name, count in part.state.items():
                found[name] = found.get(name, 0) + count
        return found | self._on_disk

    def explain(self, *, details: bool = False) -> str:
        """The plan, and what it was estimated to cost and did so far; see `panes.explain`."""
        return self._explained(self._asked.explain(details=details))

    def __repr__(self) -> str:
        return facts_line(type(self).__name__, self.query.text, self._how(), *self._facts())

    def _repr_html_(self) -> str:
        state = self.state
        names = ("keys", "partials", "rows", "total_bytes", "late_rows")
        facts: dict[str, object] = {"state": self._how(), **self._shown()}
        facts |= {name: state[name] for name in names if name in state}
        return facts_html(self._TITLE, self.query.text, facts)

    def _how(self) -> str:
        return "finished" if self.is_finished else "open"

    def _facts(self) -> Iterable[str]:
        return ()

    def _shown(self) -> Mapping[str, object]:
        return {}

    # Before anything changes

    def _require_running(self) -> None:
        if self.is_finished:
            raise QueryError("the query has finished; open it again to ask once more")

    def _require_streams(self, given: Mapping[str, object]) -> None:
        for name in given:
            if name not in self.query.streams:
                raise UnknownStreamError(name, streams=self.query.streams)

    def _require_names(self, verb: str, unnamed: Sequence[object], what: str) -> None:
        """Refuse what was given without saying to which stream it belongs."""
        if unnamed:
            named = ", ".join(f"{stream}={what}" for stream in self.query.streams)
            raise OptionError(
                f"{verb} takes each {what} by the name of its stream", hint=f"{verb}({named})"
            )


class OpenQuery(RunningQuery):
    """A running query over one stream or a union: windows of any kind."""

    query: Query

    @property
    def _windows(self) -> WindowsNode:
        node = self._parts[""]
        assert isinstance(node, WindowsNode)
        return node

    @step
    @whole
    def punctuate(
        self, /, *unnamed: object, key: Mapping[str, object] | None = None, **promised: Instant
    ) -> pa.Table:
        """Promise that no later row of a stream lies before an instant; gives what that closes.

        With a `key`, ``key={"item": 7}``, the promise is for rows of that key only: its windows
        close, and the others wait for their own.
        """
        self._require_names("punctuate", unnamed, "instant")
        return self._promise(promised, key)

    def _push_in_steps(self, batches: Mapping[str, object]) -> Steps:
        """As `push`, with pauses; who takes the steps has the turn (`panes.process.in_steps`)."""
        return self._windows.in_steps(self._pushed(batches))

    def _finish_in_steps(self) -> Steps:
        """The same of `finish`."""
        self._require_running()
        return self._windows.in_steps(Step(is_last=True))

    def _taken(self) -> pa.Table:
        """The answers since the last pause of a step that pauses."""
        return self._windows.taken()

    @property
    @in_turn
    def progress(self) -> int:
        """Up to where the whole input is complete: the watermark.

        In microseconds, or in units of an integer axis. After the end it is just after the newest
        row, or at the last promise if that is further.
        """
        return self._windows.progress

    @property
    @in_turn
    def reached(self) -> tuple[int, str]:
        """How far the windows of the query have come, and what says so."""
        return self._windows.reached()

    @property
    def punctuations(self) -> Mapping[str, int]:
        """How often progress moved, and how often it moved past the end of a window."""
        return self._windows.punctuations

    @property
    @in_turn
    def state(self) -> Mapping[str, int]:
        """How much is stored: keys, partial results, rows, answers, and the bytes of each.

        ``bytes`` are those of partial results and of rows that the store keeps.
        ``operator_bytes`` are rows that DISTINCT inside FROM remembers. ``total_bytes`` are all.

        Rows wait beside the store for ``ORIGIN FIRST`` to be known, for their own per-row window
        to end, or for the rows before them where a column orders them. Answers wait where a
        `flush` releases them a few at a time. Rows that were set aside are counted; the first
        million of late and of rejected ones are stored.
        """
        return {**self._windows.state, **self._on_disk}

    @property
    def plan(self) -> Plan:
        """The plan, known from the first batch on."""
        return self._windows.plan

    def _how(self) -> str:
        return "finished" if self.is_finished else f"open, {self._windows.arrived:,} rows came"

    def _shown(self) -> Mapping[str, object]:
        return self._windows.shown()


class OpenJoin(RunningQuery):
    """A running query over a join: rows of both sides go in, joined rows or answers come out.

    A pair is given as soon as both its rows are there, a row without partner as soon as progress
    proves that it has none.
    """

    query: JoinQuery
    _TITLE = "open join"

    @in_turn
    @whole
    @kept
    def answer(self, /, **tables: object) -> pa.Table:
        """Take in whole streams at once, which end with it; nothing of them is stored."""
        self._require_running()
        self._require_streams(tables)
        return self._step(Step(dict(tables), is_last=True))

    @property
    def plan(self) -> JoinQueryPlan:
        """The plan, known once every side has sent a batch."""
        node = self._parts[""]
        assert isinstance(node, JoinNode)
        return node.plan


class OpenGraph(RunningQuery):
    """A running query that has queries inside: each of them is a part."""

    query: QueryGraph

    @property
    @in_turn
    def progress(self) -> Mapping[str, object]:
        """How far each query is, by its name; the outermost one is called `asked`."""
        return {name or "asked": part.progress for name, part in self._parts.items()}

    def explain(self, *, details: bool = False) -> str:
        """The plan of each part, inner ones first; see `panes.explain`."""
        said = (
            (f"part       {name}\n" if name else "asked\n") + part.explain(details=details)
            for name, part in self._parts.items()
        )
        return self._explained("\n".join(said))

    def _facts(self) -> Iterable[str]:
        return (f"{len(self._parts)} parts",)

    def _shown(self) -> Mapping[str, object]:
        return {"parts": len(self._parts)}


def node_of(
    query: Query | JoinQuery,
    inside: Inside,
    run: StreamOptions,
    *,
    aggregates: Sequence[UserAggregate],
    schemas: Mapping[str, pa.Schema] | None,
    now: Callable[[], int],
) -> QueryNode:
    """A new node that answers a query."""
    if isinstance(query, JoinQuery):
        return JoinNode(query, inside, run, aggregates=aggregates, schemas=schemas, now=now)
    return WindowsNode(query, inside, run, aggregates=aggregates, schemas=schemas, now=now)
