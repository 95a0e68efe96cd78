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
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from panes.aggregates.custom import UserAggregate
from panes.axis import BEGINNING
from panes.errors import OptionError, QueryError, UnknownStreamError
from panes.html import Explained, facts_html, facts_line
from panes.language.join_query import JoinQuery
from panes.language.query import WINDOW_TIME, Query
from panes.language.query_graph import Part, QueryGraph
from panes.planning.terms import Run
from panes.process.in_turn import Turn
from panes.process.open_join import OpenJoin
from panes.process.open_query import Instant, OpenQuery
from panes.process.promised_answers import as_rows, column_read, least, promising_columns
from panes.process.step import in_turn, step, whole
from panes.process.watched import Watcher


@dataclass(slots=True)
class _Node:
    """A part while it runs; `heard` is what it was last told of each part that it reads."""

    part: Part
    query: OpenQuery | OpenJoin
    heard: dict[str, int] = field(default_factory=dict)
    is_known: bool = False

    @property
    def streams(self) -> Sequence[str]:
        return self.part.query.streams

    def push(self, tables: Mapping[str, object]) -> list[pa.Table]:
        """Take in rows of what it reads."""
        mine = {name: tables[name] for name in self.streams if name in tables}
        return [self.query.push(**mine)] if mine else []

    def hear(self, promised: Mapping[str, Mapping[str, int]]) -> list[pa.Table]:
        """Take in what other parts promise of their answers."""
        now: dict[str, int] = {}
        for query in self._reading():
            for name in query.streams:
                at = least(promised.get(name, {}), column_read(query, name))
                if at > self.heard.get(name, BEGINNING):
                    now[name] = at
        self.heard |= now
        return self.punctuate(now)

    def punctuate(self, promised: Mapping[str, Instant]) -> list[pa.Table]:
        """Take in promises of streams that it reads."""
        given: dict[str, Any] = dict(promised)
        return [self.query.punctuate(**given)] if given else []

    def _reading(self) -> Iterable[Query]:
        """Queries that say by which column the rows of each stream are placed."""
        query = self.part.query
        if not isinstance(query, JoinQuery):
            return (query,)
        assert isinstance(self.query, OpenJoin)
        return (side.plan.query for side in self.query.sides)


class OpenGraph:
    """A running query that has queries inside: rows go in, final answers come out.

    It is used as an `OpenQuery` is. Threads may share it: they take turns.
    """

    UNCHANGED = frozenset({"watcher"})

    def __init__(
        self,
        query: QueryGraph,
        run: Run = Run(),  # noqa: B008 - frozen
        *,
        aggregates: Sequence[UserAggregate] = (),
        schemas: Mapping[str, pa.Schema] | None = None,
        now: Callable[[], int] = lambda: time.time_ns() // 1_000,
    ) -> None:
        self.query = query
        if run.late == "revise":
            raise OptionError(
                "late='revise' would answer a window again that other windows have counted",
                hint="give a lateness that is long enough",
            )
        if not run.bounded:
            _require_promises(query)
        self._nodes = [
            _node(part, query.inside, run, aggregates, query.everywhere(schemas or {}), now)
            for part in query.parts
        ]
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
        return self._step(batches)

    @step
    @whole
    def punctuate(self, /, **promised: Instant) -> pa.Table:
        """Promise that no later row of a stream lies before an instant; gives what that closes."""
        self._require_running()
        self._require_streams(promised)

        everywhere = self.query.everywhere(promised)

        def told(node: _Node) -> list[pa.Table]:
            return node.punctuate({n: at for n, at in everywhere.items() if n in node.streams})

        return self._step({}, told)

    @step
    @whole
    def beat(self) -> pa.Table:
        """Let the clock say how far the streams are, as `heartbeat` allows."""
        self._require_running()
        names = self.query.inside

        def told(node: _Node) -> list[pa.Table]:
            return [node.query.beat()] if not names.issuperset(node.streams) else []

        return self._step({}, told)

    @in_turn
    @whole
    def early(self) -> pa.Table:
        """The open windows of the last part, as they are now; their answers are not final."""
        self._require_running()
        return self._nodes[-1].query.early()

    @step
    @whole
    def finish(self) -> pa.Table:
        """The streams have ended: gives all answers that are left, and forgets everything."""
        self._require_running()
        found = self._step({}, lambda node: [node.query.finish()], ends=True)
        self._finished = True
        return found

    def _step(
        self,
        batches: Mapping[str, object],
        then: Callable[[_Node], list[pa.Table]] | None = None,
        *,
        ends: bool = False,
    ) -> pa.Table:
        """Every part takes in its rows and promises, and what comes of the step itself."""
        flowing = dict(batches)
        promised: dict[str, Mapping[str, int]] = {}
        for node in self._nodes:
            found = node.push(self.query.everywhere(flowing))
            if not ends:
                found += node.hear(self.query.everywhere(promised))
            found += [] if then is None else then(node)
            answers = _together(found or [node.query.punctuate()])
            if node.part.name and answers.num_columns and (len(answers) or not node.is_known):
                flowing[node.part.name] = as_rows(answers)
                node.is_known = True
            if node.part.name and node.is_known:
                promised[node.part.name] = node.query.promised_answers()
        return answers

    # What there is to see

    @property
    @in_turn
    def late(self) -> pa.Table:
        """Rows that broke a promise, with the reason; once for each place that reads them."""
        return _all_rows(node.query.late for node in self._reading_streams())

    @in_turn
    @whole
    def take_late(self) -> pa.Table:
        """The late rows so far, which are then forgotten: for queries that run for long."""
        return _all_rows(node.query.take_late() for node in self._reading_streams())

    @property
    @in_turn
    def rejected(self) -> pa.Table:
        """Rows that have no place on the axis, with the reason; once for each place."""
        return _all_rows(node.query.rejected for node in self._reading_streams())

    @property
    @in_turn
    def progress(self) -> Mapping[str, object]:
        """How far each query is, by its name; the outermost one is called `asked`."""
        return {node.part.name or "asked": node.query.progress for node in self._nodes}

    @property
    def is_finished(self) -> bool:
        """Whether the streams have ended."""
        return self._finished

    @property
    @in_turn
    def state(self) -> Mapping[str, int]:
        """How much is stored, of all parts together; see `OpenQuery.state`."""
        found: dict[str, int] = {}
        for node in self._nodes:
            for name, count in node.query.state.items():
                found[name] = found.get(name, 0) + count
        return found

    def explain(self, *, details: bool = False) -> str:
        """The plan of each part, inner ones first; see `panes.explain`."""
        return Explained(explained(
            (node.part.name, node.query.explain(details=details)) for node in self._nodes
        ))  # fmt: skip

    def __repr__(self) -> str:
        how = "finished" if self._finished else "open"
        return facts_line("OpenGraph", self.query.text, how, f"{len(self._nodes)} parts")

    def _repr_html_(self) -> str:
        facts: dict[str, object] = {"state": "finished" if self._finished else "open"}
        facts["parts"] = len(self._nodes)
        return facts_html("open query", self.query.text, facts)

    # Before anything changes

    def _reading_streams(self) -> list[_Node]:
        names = self.query.inside
        return [node for node in self._nodes if not names.issuperset(node.streams)]

    def _require_running(self) -> None:
        if self._finished:
            raise QueryError("the query has finished; open it again to ask once more")

    def _require_streams(self, given: Mapping[str, object]) -> None:
        for name in given:
            if name not in self.query.streams:
                raise UnknownStreamError(name, streams=self.query.streams)


def _node(
    part: Part,
    names: frozenset[str],
    run: Run,
    aggregates: Sequence[UserAggregate],
    schemas: Mapping[str, pa.Schema],
    now: Callable[[], int],
) -> _Node:
    """A part that is yet to see rows, run as was said of the streams it reads."""
    query = part.query
    run = replace(run, inside=names.intersection(query.streams))
    if part.name:
        run = replace(run, flush=None, why=False, store=None)
    if names.issuperset(query.streams):
        run = replace(
            run, lateness=None, rows_late=None, punctuation=None, heartbeat=None, max_ahead=None,
            stall_rows=None,
        )  # fmt: skip
    known = {name: schemas[name] for name in query.streams if name in schemas}
    if isinstance(query, JoinQuery):
        return _Node(part, OpenJoin(query, run, aggregates=aggregates, schemas=known, now=now))
    return _Node(part, OpenQuery(query, run, aggregates=aggregates, schemas=known, now=now))


def _require_promises(graph: QueryGraph) -> None:
    """Refuse windows over a column of answers that nothing is promised of: they never close."""
    parts = graph.everywhere({part.name: part.query for part in graph.parts[:-1]})
    for part in graph.parts:
        query = part.query
        if isinstance(query, JoinQuery):
            continue
        for name in query.streams:
            column = column_read(query, name)
            inner = parts.get(name)
            if column is None or inner is None or isinstance(inner, JoinQuery):
                continue
            known = promising_columns(inner)
            if column not in known:
                raise _no_promise(column, known)


def _no_promise(column: str, known: frozenset[str]) -> QueryError:
    said = f"the answers of the query inside promise nothing of `{column}`"
    if not known:
        return QueryError(
            f"{said}, nor of any other column, so windows over them would never close",
            hint="windows over tables may lie on any column: panes.sql",
        )
    better = WINDOW_TIME if WINDOW_TIME in known else min(known)
    return QueryError(f"{said}, so windows over it would never close", hint=f"WATTR {better}")


def _together(tables: Sequence[pa.Table]) -> pa.Table:
    """Tables as one; those without columns say nothing."""
    some = [table for table in tables if table.num_columns]
    return pa.concat_tables(some) if some else pa.table({})


def _all_rows(tables: Iterable[pa.Table]) -> pa.Table:
    """Rows of different streams, with the columns of all."""
    return pa.concat_tables(tables, promote_options="permissive")


def explained(parts: Iterable[tuple[str, str]]) -> str:
    """The plans of parts under their names; what was asked comes last."""
    said = ((f"part       {name}\n" if name else "asked\n") + text for name, text in parts)
    return "\n".join(said)
