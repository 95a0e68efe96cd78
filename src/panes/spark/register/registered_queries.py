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
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame

from panes.aggregates.custom import UserAggregate
from panes.axis import Axis, Duration, axis_over, parse_duration
from panes.errors import OptionError, PanesError, QueryError
from panes.language.expressions import quoted
from panes.language.join_text import is_join
from panes.language.parse import parse
from panes.language.query import Query
from panes.path_part import require_path_part
from panes.planning.plan import Plan
from panes.planning.terms import (
    CheckedOptions,
    StreamOptions,
    check_options,
    require_clock,
    require_lateness,
)
from panes.shards.register_parts import ALL_STATE, AloneQuery
from panes.shards.shared_joins import part_key
from panes.sharing.columns import Numbering
from panes.sharing.manifest import (
    FailedEntry,
    Manifest,
    QueryEntry,
    StreamEntry,
    store_entries,
)
from panes.sharing.queries import Asked, Failed, Queries, StateNumbers
from panes.sharing.shareable import shared_spec
from panes.spark.bind import BoundQuery, arrow_schema, bind_query, comparable
from panes.spark.host import require_progress, with_watermark
from panes.spark.join.bind import BoundJoin
from panes.spark.query import Sink
from panes.spark.register.alone import bind_alone
from panes.spark.register.prepared_rows import PreparedStreamRows
from panes.spark.register.watched_queries import LOG

_REFUSALS = (PanesError, PySparkException, RecursionError)
"""What says that a query cannot be planned, and nothing of the others."""


@dataclass(frozen=True, slots=True)
class AloneAsked:
    """A query with a part of its own, or with a join that others may share."""

    name: str
    text: str
    key: str
    deadline: int | None
    bound: BoundQuery | BoundJoin


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
        self.failed: dict[str, Failed] = {}
        self.version = 0
        self._order: dict[str, None] = {}
        self._comparable: dict[str, pa.Schema] = {}
        self._sinks: dict[str, Sink] = {}
        self._watched: set[str] = set()
        self._removed: dict[str, str] = {}
        stream, frame = next(iter(streams.items()))
        self.prepared = PreparedStreamRows(stream, frame, run, aggregates)

    def copied(self) -> RegisteredQueries:
        """The same queries, to try a change on."""
        found = copy(self)
        found.windows = {name: queries.copied() for name, queries in self.windows.items()}
        found.prepared = self.prepared.copied()
        for name in ("alone", "failed", "_order", "_sinks", "_watched", "_removed"):
            setattr(found, name, copy(getattr(self, name)))
        return found

    def __bool__(self) -> bool:
        """Whether there is any query, or any question that rows are kept for."""
        return bool(self._order or self.prepared)

    def __contains__(self, name: str) -> bool:
        return name in self._order

    def texts(self) -> dict[str, str]:
        """The texts of all queries, by name."""
        return {name: self._asked(name).text for name in self._order}

    def _asked(self, name: str) -> Asked | AloneAsked:
        if name in self.alone:
            return self.alone[name]
        return next(q.asked[name] for q in self.windows.values() if name in q.asked)

    @property
    def changes(self) -> tuple[int, ...]:
        """Changes when a query comes, goes, fails, or gets its store."""
        numbers = [queries.numbers.last for queries in self.windows.values()]
        return (*numbers, len(self._order), len(self.failed))

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
        return {name: sink for name, sink in self._sinks.items() if name in self}

    @property
    def deadlines(self) -> dict[str, int]:
        """How long the answers of a query may take, where that was said, by name."""
        asked = [self._asked(name) for name in self._order]
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
        return self._agreed(
            first or _any_query(stream, queries.axis),
            (self.streams[stream],),
            queries.axis.column,
            bounded=bounded,
        )

    def terms_alone(self, bound: BoundQuery, *, bounded: bool) -> CheckedOptions:
        """What the streams of a query alone promise."""
        plan = bound.plan
        return self._agreed(plan.query, bound.frames, plan.axis.column, bounded=bounded)

    def _agreed(
        self, query: Query, frames: Sequence[DataFrame], column: str | None, *, bounded: bool
    ) -> CheckedOptions:
        run = with_watermark(frames, column or "", replace(self.run, bounded=bounded))
        terms = check_options(query, run)
        require_progress(terms, query.streams, bounded=bounded)
        return terms

    # Queries come and go

    def add(
        self, name: str, text: str, deadline: Duration | None = None, sink: Sink | None = None
    ) -> None:
        """One more query; refused before anything changes if it cannot run."""
        require_path_part(name)
        self._add(name, text, deadline)
        if sink is not None:
            self._sinks[name] = sink
        self._removed.pop(name, None)

    def set_aside(self, name: str, reason: str) -> None:
        """A query has failed; a restart does not bring it back, and its sink is remembered."""
        asked = self._asked(name)
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
        self._bind(some, some.read(name, self._asked(name).text))
        return some

    def remove(self, name: str, *, for_good: bool) -> None:
        """One query less. `for_good`: a restart does not bring it back."""
        text = self._known_texts().get(name)
        if self.failed.pop(name, None) is None:
            self.require_known(name)
            self._drop(name)
        self._sinks.pop(name, None)
        self._watched.discard(name)
        if for_good and text is not None:
            self._removed[name] = text

    def _drop(self, name: str) -> None:
        del self._order[name]
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
            names = ", ".join(sorted(self._order)) or "none"
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
        for name in sorted(self._watched):
            if texts.get(name) != current.get(name):
                self.remove(name, for_good=False)
                self._removed.pop(name, None)
        for name, text in texts.items():
            if name in self._watched:
                continue
            try:
                require_path_part(name)
                self._add(name, text, None)
            except (PanesError, AnalysisException) as error:
                refused[name] = str(error)
                LOG.warning("the watched query `%s` is refused: %s", name, error)
                continue
            self._watched.add(name)
        return refused

    def _known_texts(self) -> dict[str, str]:
        """The texts of all queries, those that were set aside among them."""
        return self.texts() | {name: failed.text for name, failed in self.failed.items()}

    # A query finds its place

    def _add(self, name: str, text: str, deadline: Duration | None) -> None:
        ticks = None if deadline is None else parse_duration(deadline, option="deadline")
        self._place(name, text, ticks)
        self.failed.pop(name, None)

    def _place(
        self, name: str, text: str, deadline: int | None, entry: QueryEntry | None = None
    ) -> None:
        """Share the panes of a stream if the query can, or has; or give it a part of its own."""
        self._require_new(name)
        key = "" if entry is None else entry.key
        shared = None if key else self._shareable(name, text)
        if shared is not None:
            queries, asked = shared
            serial = asked.serial if entry is None else entry.serial
            self._bind(queries, replace(asked, serial=serial, deadline=deadline))
        else:
            self._place_alone(name, text, deadline, key)
        self._order[name] = None

    def _shareable(self, name: str, text: str) -> tuple[Queries, Asked] | None:
        """The windows that a query shares panes with, if it can."""
        if is_join(text):
            return None
        query = parse(text, self.aggregates)
        queries = self.windows.get(query.streams[0])
        if queries is None or query.window is None or shared_spec(query) is None:
            return None
        column, axis = query.window.column or "", queries.axis
        if axis is not None and column.lower() != (axis.column or "").lower():
            return None
        return queries, queries.asked_as(name, text, query)

    def _place_alone(self, name: str, text: str, deadline: int | None, key: str) -> None:
        bound = bind_alone(text, self.streams, self.run, self.aggregates)
        if isinstance(bound, BoundQuery):
            for stream in AloneQuery("", name, bound.plan, CheckedOptions()).streams:
                self._settle_axis(stream, bound.plan.placing)
            windows = self.windows[bound.plan.query.streams[0]]
            key = key or part_key("alone", name, text, str(windows.numbers.next()))
        else:
            key = key or self._key_of_twin(bound) or part_key(name, text)
        self.alone[name] = AloneAsked(name, text, key, deadline, bound)

    def _key_of_twin(self, bound: BoundJoin) -> str | None:
        """The key of a query that differs in nothing but its name."""
        for one in self.alone.values():
            other = one.bound
            if isinstance(other, BoundJoin) and _said(other) == _said(bound):
                return one.key
        return None

    def _settle_axis(self, stream: str, axis: Axis) -> None:
        """What the first query of a stream runs on is what late rows are told by."""
        if self.windows[stream].axis is None:
            self.windows[stream].axis = axis

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

    # The manifest

    def manifest(self, *, shards: int, version: int) -> Manifest:
        """The queries as the checkpoint has them, of which this is the version from now on."""
        self.version = version
        first = next(iter(self.windows.values()))
        return Manifest(
            stream=", ".join(self.streams),
            shards=shards,
            last=first.numbers.last,
            queries=[self._entry(name) for name in self._order],
            stores=store_entries(first),
            removed=self._removed,
            failed=[
                FailedEntry(n, f.text, f.deadline, f.reason, self._sink_folder(n),
                            n in self._watched)
                for n, f in self.failed.items()
            ],
            version=version,
            prepared=self.prepared.texts,
            streams={
                name: StreamEntry(queries.axis.column or "", queries.numbers.last,
                                  store_entries(queries))
                for name, queries in self.windows.items() if queries.axis is not None
            },
        )  # fmt: skip

    def _entry(self, name: str) -> QueryEntry:
        one = self._asked(name)
        key, serial = (one.key, 0) if isinstance(one, AloneAsked) else ("", one.serial)
        folder = self._sink_folder(name)
        return QueryEntry(name, one.text, serial, one.deadline, folder, name in self._watched, key)

    def _sink_folder(self, name: str) -> str | None:
        """The folder that a query's answers go to, if it has one of its own."""
        sink = self._sinks.get(name)
        return None if sink is None or callable(sink) else str(sink)

    def taken_up(self, manifest: Manifest) -> RegisteredQueries:
        """The queries of a manifest, and those that were added here and it never had.

        So it is with questions that rows are kept for. A query of the manifest that cannot be
        planned any more, or never could, is set aside.
        """
        self._require_own(manifest)
        found = RegisteredQueries(self.streams, self.run, self.aggregates)
        found._begin(manifest)
        known: list[QueryEntry | FailedEntry] = [*manifest.queries, *manifest.failed]
        found._sinks = {q.name: q.sink for q in known if q.sink is not None}
        found._watched = {q.name for q in known if q.watched}
        added = {name: self._asked(name) for name in self._order}
        for q in manifest.queries:
            again = added.get(q.name)
            if again is not None and again.text != q.text:
                continue
            deadline = q.deadline if again is None else again.deadline
            try:
                found._place(q.name, q.text, deadline, q)
            except _REFUSALS as error:
                found.failed[q.name] = Failed(q.text, q.deadline, str(error))
        gone = {**manifest.removed, **{q.name: q.text for q in manifest.failed}}
        for name, new in added.items():
            if name not in found and gone.get(name) != new.text:
                found._place(name, new.text, new.deadline)
                found.failed.pop(name, None)
        still = found._order.keys() | found.failed
        found._sinks |= {name: sink for name, sink in self._sinks.items() if name in still}
        found._removed = {n: t for n, t in manifest.removed.items() if n not in found}
        first = next(iter(found.windows.values()))
        found.prepared = self.prepared.taken_up(first, manifest.prepared)
        return found

    def _begin(self, manifest: Manifest) -> None:
        """Go on with the numbers and columns that the streams of a manifest have."""
        self.failed = {f.name: Failed(f.text, f.deadline, f.reason) for f in manifest.failed}
        first = next(iter(self.streams))
        entries = dict(manifest.streams)
        if len(self.streams) == 1 and first not in entries:
            entries = {first: StreamEntry("", manifest.last, manifest.stores)}
        for name, entry in entries.items():
            stores = {t: (s.serial, Numbering(s.columns, s.end)) for t, s in entry.stores.items()}
            queries, schema = self.windows[name], arrow_schema(self.streams[name])
            queries.numbers = StateNumbers(entry.last, stores)
            if entry.column:
                if entry.column not in schema.names:
                    raise OptionError(
                        f"the register ran on column `{entry.column}` of `{name}`, which is gone",
                        hint="start with a new checkpoint",
                    )
                data_type = schema.field(entry.column).type
                queries.axis = axis_over(entry.column, data_type, stream=name)

    def _require_own(self, manifest: Manifest) -> None:
        streams = ", ".join(self.streams)
        if manifest.stream != streams:
            raise OptionError(
                f"the checkpoint is that of a register of `{manifest.stream}`, not of `{streams}`"
            )
        if self.run.shards not in (None, manifest.shards):
            raise OptionError(
                f"the register's state has {manifest.shards} shards, and not {self.run.shards}",
                hint="leave out shards=, or start with a new checkpoint",
            )


def _said(bound: BoundJoin) -> tuple[object, str]:
    """What a query over a join says, whatever it is called."""
    return bound.plan.join.identity, " ".join(bound.plan.query.text.split())


def _any_query(stream: str, axis: Axis) -> Query:
    """A query over a stream, where only what the stream promises matters."""
    size = "1 second" if axis.kind == "time" else "1"
    window = f"[TUMBLING {size} WATTR {quoted(axis.column or '')}]"
    return parse(f"SELECT count(*) AS n FROM {quoted(stream)} {window}")
