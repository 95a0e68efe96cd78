"""The queries of a register on Spark, and what belongs to each: its plan, its sink, its origin.

A query shares the panes of its stream if it can, or else has a part of its own; its key says which
(`panes.shards.register_parts`). It is there because the program added it, because the watched place
names it, or because the checkpoint's manifest had it. One rule holds for all three: a query that
was removed while the register ran stays removed, unless it is added again or its text has changed.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from panes.aggregates.custom import UserAggregate
from panes.axis import Axis, Duration, axis_over, parse_duration
from panes.errors import PanesError, QueryError
from panes.language.expressions import quoted
from panes.language.join_query import JoinQuery
from panes.language.parse import parse
from panes.language.query import Query
from panes.language.query_graph import QueryGraph, read_graph
from panes.path_part import require_path_part
from panes.planning.plan import Plan
from panes.planning.terms import (
    CheckedOptions,
    StreamOptions,
    check_options,
    require_clock,
    require_lateness,
)
from panes.shards.register_parts import ALL_STATE
from panes.shards.shared_joins import part_key
from panes.sharing.manifest import (
    QueryEntry,
)
from panes.sharing.queries import Asked, Failed, Queries
from panes.sharing.shareable import shared_spec
from panes.spark.bind import BoundQuery, arrow_schema, bind_query, comparable
from panes.spark.host import stream_terms
from panes.spark.join.bind import BoundJoin
from panes.spark.query import Sink
from panes.spark.register.alone import frames_read
from panes.spark.register.nested import BoundPart, bound_parts
from panes.spark.register.prepared_rows import PreparedStreamRows
from panes.spark.register.watched_queries import LOG


@dataclass(frozen=True, slots=True)
class AloneAsked:
    """A query with parts of its own, or with a join or parts that others may share."""

    name: str
    text: str
    key: str
    deadline: int | None
    parts: tuple[BoundPart, ...]

    @property
    def bound(self) -> BoundQuery | BoundJoin:
        """What gives the answers."""
        return self.parts[-1].bound

    @property
    def levels(self) -> int:
        """How many levels it takes."""
        return self.parts[-1].gives_at


class RegisteredQueries:
    """The queries over some streaming DataFrames, in the order in which they came."""

    def __init__(
        self,
        streams: Mapping[str, DataFrame],
        run: StreamOptions,
        aggregates: tuple[UserAggregate, ...],
    ) -> None:
        self.streams, self.run, self.aggregates = dict(streams), run, aggregates
        self.windows = {name: Queries(name, aggregates) for name in streams}
        self.alone: dict[str, AloneAsked] = {}
        several = 2 if len(streams) > 1 else 1
        self.levels = None if run.levels is None else max(several, run.levels)
        self.failed: dict[str, Failed] = {}
        self.version = 0
        self.order: dict[str, None] = {}
        self._comparable: dict[str, pa.Schema] = {}
        self.own_sinks: dict[str, Sink] = {}
        self.watched: set[str] = set()
        self.removed: dict[str, str] = {}
        stream, frame = next(iter(streams.items()))
        self.prepared = PreparedStreamRows(stream, frame, run, aggregates)

    def copied(self) -> RegisteredQueries:
        """The same queries, to try a change on."""
        found = copy(self)
        found.windows = {name: queries.copied() for name, queries in self.windows.items()}
        found.prepared = self.prepared.copied()
        for name in ("alone", "failed", "order", "own_sinks", "watched", "removed"):
            setattr(found, name, copy(getattr(self, name)))
        return found

    def __bool__(self) -> bool:
        """Whether there is any query, or any question that rows are kept for."""
        return bool(self.order or self.prepared)

    def __contains__(self, name: str) -> bool:
        return name in self.order

    def texts(self) -> dict[str, str]:
        """The texts of all queries, by name."""
        return {name: self.asked(name).text for name in self.order}

    def asked(self, name: str) -> Asked | AloneAsked:
        """A query as it was added."""
        if name in self.alone:
            return self.alone[name]
        return next(q.asked[name] for q in self.windows.values() if name in q.asked)

    @property
    def changes(self) -> tuple[int, ...]:
        """Changes when a query comes, goes, fails, or gets its store."""
        numbers = [queries.numbers.last for queries in self.windows.values()]
        return (*numbers, len(self.order), len(self.failed))

    @property
    def only_stream(self) -> str:
        """The stream of a register of one."""
        if len(self.streams) > 1:
            raise QueryError(
                "questions are for a register of one stream, and this one has "
                f"{', '.join(self.streams)}",
                hint="add a query, or open a register of the stream alone",
            )
        return next(iter(self.streams))

    def windows_key(self, stream: str) -> str:
        """The key of the windows of a stream that share panes."""
        return ALL_STATE if len(self.streams) == 1 else part_key("windows", stream)

    @property
    def sinks(self) -> dict[str, Sink]:
        """The sinks of the queries that have one of their own, by name."""
        return {name: sink for name, sink in self.own_sinks.items() if name in self}

    @property
    def deadlines(self) -> dict[str, int]:
        """How long the answers of a query may take, where that was said, by name."""
        asked = [self.asked(name) for name in self.order]
        return {one.name: one.deadline for one in asked if one.deadline is not None}

    # What streams promise

    def terms(self, stream: str, *, bounded: bool) -> CheckedOptions:
        """What a stream promises, for all windows that share panes alike."""
        queries = self.windows[stream]
        if queries.axis is None:
            raise QueryError(
                "the register has no query, so nothing is stored",
                hint='add one first: reg.add("hot", "...")',
            )
        asked = [one.query for one in queries.asked.values()]
        first = next(iter([*asked, *self.prepared.orderings()]), None)
        query = first or _any_query(stream, queries.axis)
        run = replace(self.run, bounded=bounded)
        return stream_terms(query, (self.streams[stream],), queries.axis, run)[1]

    def terms_alone(self, part: BoundPart, *, bounded: bool) -> CheckedOptions:
        """What the streams of a query alone promise."""
        assert isinstance(part.bound, BoundQuery)
        plan, run = part.bound.plan, replace(part.run(self.run), bounded=bounded)
        return stream_terms(plan.query, part.bound.frames, plan.placing, run)[1]

    # Queries come and go

    def add(
        self, name: str, text: str, deadline: Duration | None = None, sink: Sink | None = None
    ) -> None:
        """One more query; refused before anything changes if it cannot run."""
        require_path_part(name)
        self._add(name, text, deadline)
        if sink is not None:
            self.own_sinks[name] = sink
        self.removed.pop(name, None)

    def set_aside(self, name: str, reason: str) -> None:
        """A query has failed; a restart does not bring it back, and its sink is remembered."""
        asked = self.asked(name)
        self._drop(name)
        self.failed[name] = Failed(asked.text, asked.deadline, reason)

    def put_back(self, name: str) -> None:
        """Answer a query again that was set aside, with the sink it had."""
        if name not in self.failed:
            known = f"set aside: {', '.join(sorted(self.failed)) or 'none'}"
            raise QueryError(f"no query `{name}` was set aside", hint=known)
        failed = self.failed[name]
        deadline = None if failed.deadline is None else dt.timedelta(microseconds=failed.deadline)
        self._add(name, failed.text, deadline)

    def only(self, stream: str, name: str) -> Queries:
        """The windows of a stream with one of their queries."""
        some = Queries(stream, self.aggregates)
        self._bind(some, some.read(name, self.asked(name).text))
        return some

    def remove(self, name: str, *, for_good: bool) -> None:
        """One query less. `for_good`: a restart does not bring it back."""
        text = self._known_texts().get(name)
        if self.failed.pop(name, None) is None:
            self.require_known(name)
            self._drop(name)
        self.own_sinks.pop(name, None)
        self.watched.discard(name)
        if for_good and text is not None:
            self.removed[name] = text

    def _drop(self, name: str) -> None:
        del self.order[name]
        if self.alone.pop(name, None) is None:
            next(q for q in self.windows.values() if name in q.asked).remove(name)

    def require_possible(self, *, remove: Sequence[str], add: Mapping[str, str]) -> None:
        """All that goes is there, and nothing that comes."""
        for name in remove:
            if name not in self._known_texts():
                self.require_known(name)
        for name in add:
            if name not in remove:
                self._require_new(name)

    def require_known(self, name: str) -> None:
        """Refuse a name that no query has."""
        if name not in self:
            names = ", ".join(sorted(self.order)) or "none"
            raise QueryError(f"no query `{name}` is registered", hint=f"queries: {names}")

    def _require_new(self, name: str) -> None:
        if name in self:
            hint = "remove it first, or rename one"
            raise QueryError(f"a query `{name}` is already registered", hint=hint)

    def follow(self, texts: Mapping[str, str]) -> dict[str, str]:
        """Have the queries that the watched place names, and no others that came from there.

        What cannot run is left out, and given back with the reason.
        """
        current, refused = self._known_texts(), {}
        for name in sorted(self.watched):
            if texts.get(name) != current.get(name):
                self.remove(name, for_good=False)
                self.removed.pop(name, None)
        for name, text in texts.items():
            if name in self.watched:
                continue
            try:
                require_path_part(name)
                self._add(name, text, None)
            except (PanesError, AnalysisException) as error:
                refused[name] = str(error)
                LOG.warning("the watched query `%s` is refused: %s", name, error)
                continue
            self.watched.add(name)
        return refused

    def _known_texts(self) -> dict[str, str]:
        """The texts of all queries, those that were set aside among them."""
        return self.texts() | {name: failed.text for name, failed in self.failed.items()}

    # A query finds its place

    def _add(self, name: str, text: str, deadline: Duration | None) -> None:
        ticks = None if deadline is None else parse_duration(deadline, option="deadline")
        self.place(name, text, ticks)
        self.failed.pop(name, None)

    def place(
        self, name: str, text: str, deadline: int | None, entry: QueryEntry | None = None
    ) -> None:
        """Share the panes of a stream if the query can, or has; or give it a part of its own."""
        self._require_new(name)
        graph, key = read_graph(text, self.aggregates), "" if entry is None else entry.key
        shared = None if key else self._shareable(name, text, graph)
        if shared is not None:
            queries, asked = shared
            serial = asked.serial if entry is None else entry.serial
            self._bind(queries, replace(asked, serial=serial, deadline=deadline))
        else:
            self._place_alone(name, text, graph, deadline, key)
        self.order[name] = None

    def _shareable(self, name: str, text: str, graph: QueryGraph) -> tuple[Queries, Asked] | None:
        """The windows that a query shares panes with, if it can."""
        query = graph.asked
        if not graph.is_single or isinstance(query, JoinQuery):
            return None
        queries = self.windows.get(query.streams[0])
        if queries is None or query.window is None or shared_spec(query) is None:
            return None
        column, axis = query.window.column or "", queries.axis
        if axis is not None and column.lower() != (axis.column or "").lower():
            return None
        return queries, queries.asked_as(name, text, query)

    def _place_alone(
        self, name: str, text: str, graph: QueryGraph, deadline: int | None, key: str
    ) -> None:
        streams = frames_read(graph, self.streams)
        parts = bound_parts(graph, key, streams, self.run, self.aggregates)
        asked = AloneAsked(name, text, key, deadline, parts)
        self._require_levels(asked.levels)
        for stream, column in (placed for part in parts for placed in part.placed):
            self._settle_axis(stream, column)
        if not key:
            own = self._key_of(asked)
            parts = (*parts[:-1], replace(parts[-1], key=own))
            asked = replace(asked, key=own, parts=parts)
        self.alone[name] = asked

    def _key_of(self, new: AloneAsked) -> str:
        """The key of a new query; over a join, that of one that differs in nothing but its name."""
        if isinstance(new.bound, BoundQuery):
            number = next(iter(self.windows.values())).numbers.next()
            return part_key("alone", new.name, new.text, str(number))
        same = (one.key for one in self.alone.values() if _said(one) == _said(new))
        return next(same, part_key(new.name, new.text))

    def _require_levels(self, levels: int) -> None:
        """Refuse a query that is deeper than a checkpoint has room for."""
        if self.levels is not None and levels > self.levels:
            raise QueryError(
                f"the query needs {levels} levels of states, and the register has {self.levels}",
                hint=f"panes.register(..., levels={levels}), with a new checkpoint",
            )

    @property
    def needed_levels(self) -> int:
        """How many levels its queries take, and joins that may come to several streams."""
        several = 2 if len(self.streams) > 1 else 1
        return max([several, *(one.levels for one in self.alone.values())])

    def _settle_axis(self, stream: str, column: str | None) -> None:
        """What the first query of a stream runs on is what late rows are told by."""
        schema = arrow_schema(self.streams[stream])
        if self.windows[stream].axis is None and column is not None and column in schema.names:
            self.windows[stream].axis = axis_over(column, schema.field(column).type, stream=stream)

    def _bind(self, queries: Queries, asked: Asked) -> None:
        check_options(asked.query, self.run)
        require_clock(self.run)
        frame = self.streams[queries.stream]
        if queries.stream not in self._comparable:
            self._comparable[queries.stream] = comparable(frame)

        def plan_of(query: Query) -> Plan:
            plan = bind_query(query, (frame,), self.aggregates).plan
            require_lateness(self.run.lateness, plan.axis.kind)
            return plan

        queries.bind(asked, self._comparable[queries.stream], plan_of)
        queries.asked[asked.name] = asked


def _said(asked: AloneAsked) -> object:
    """What a query over a join says, whatever it is called."""
    if not isinstance(asked.bound, BoundJoin):
        return None
    parts = sorted(asked.parts[-1].parts.items())
    return asked.bound.plan.join.identity, " ".join(asked.bound.plan.query.text.split()), parts


def _any_query(stream: str, axis: Axis) -> Query:
    """A query over a stream, where only what the stream promises matters."""
    size = "1 second" if axis.kind == "time" else "1"
    window = f"[TUMBLING {size} WATTR {quoted(axis.column or '')}]"
    return parse(f"SELECT count(*) AS n FROM {quoted(stream)} {window}")
