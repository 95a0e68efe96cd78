"""The queries of a register on Spark, and what belongs to each: its plan, its sink, its origin.

A query is there because the program added it, because the watched place names it, or because the
checkpoint's manifest had it. One rule holds for all three: a query that was removed while the
register ran stays removed, unless it is added again or its text has changed.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Container, Mapping, Sequence
from copy import copy
from dataclasses import replace

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame

from panes.aggregates.custom import UserAggregate
from panes.axis import Duration
from panes.errors import OptionError, PanesError, QueryError
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
from panes.sharing.manifest import (
    FailedEntry,
    Manifest,
    QueryEntry,
    failed_entries,
    store_entries,
    take_up_queries,
)
from panes.sharing.queries import Asked, Queries
from panes.spark.bind import bind_query, comparable
from panes.spark.host import require_progress, with_watermark
from panes.spark.query import Sink
from panes.spark.register.prepared_rows import PreparedStreamRows
from panes.spark.register.watched_queries import LOG

_REFUSALS = (PanesError, PySparkException, RecursionError)
"""What says that a query cannot be planned, and nothing of the others."""


class RegisteredQueries:
    """The queries over one streaming DataFrame, in the order in which they came."""

    def __init__(
        self,
        stream: str,
        frame: DataFrame,
        run: StreamOptions,
        aggregates: tuple[UserAggregate, ...],
    ) -> None:
        self.stream, self.frame, self.run, self.aggregates = stream, frame, run, aggregates
        self.queries = Queries(stream, aggregates)
        self._comparable = comparable(frame)
        self._sinks: dict[str, Sink] = {}
        self._watched: set[str] = set()
        self.version = 0
        self._removed: dict[str, str] = {}
        self.prepared = PreparedStreamRows(stream, frame, run, aggregates)

    def copied(self) -> RegisteredQueries:
        """The same queries, to try a change on."""
        found = copy(self)
        found.queries, found.prepared = self.queries.copied(), self.prepared.copied()
        found._sinks, found._watched = dict(self._sinks), set(self._watched)
        found._removed = dict(self._removed)
        return found

    def __bool__(self) -> bool:
        """Whether there is any query, or any question that rows are kept for."""
        return bool(self.queries.asked or self.prepared)

    def texts(self) -> dict[str, str]:
        """The texts of all queries, by name."""
        return {name: asked.text for name, asked in self.queries.asked.items()}

    @property
    def sinks(self) -> dict[str, Sink]:
        """The sinks of the queries that have one of their own, by name."""
        return {name: sink for name, sink in self._sinks.items() if name in self.queries.asked}

    @property
    def deadlines(self) -> dict[str, int]:
        """How long the answers of a query may take, where that was said, by name."""
        asked = self.queries.asked.values()
        return {one.name: one.deadline for one in asked if one.deadline is not None}

    def terms(self, *, bounded: bool) -> CheckedOptions:
        """What the stream promises, for all queries alike."""
        axis, asked = self.queries.axis, [one.query for one in self.queries.asked.values()]
        first = next(iter([*asked, *self.prepared.orderings()]), None)
        if axis is None or first is None:
            raise QueryError(
                "the register has no query, so nothing is stored",
                hint='add one first: reg.add("hot", "...")',
            )
        run = replace(self.run, bounded=bounded)
        run = with_watermark([self.frame], axis.column or "", run)
        terms = check_options(first, run)
        require_progress(terms, first.streams, bounded=bounded)
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
        self.queries.set_aside(name, reason)

    def put_back(self, name: str) -> None:
        """Answer a query again that was set aside, with the sink it had."""
        failed = self.queries.require_failed(name)
        deadline = None if failed.deadline is None else dt.timedelta(microseconds=failed.deadline)
        self._add(name, failed.text, deadline)

    def only(self, names: Container[str]) -> RegisteredQueries:
        """The same register with some of its queries, under the numbers that they have."""
        some = RegisteredQueries(self.stream, self.frame, self.run, self.aggregates)
        manifest = replace(self.manifest(shards=0, version=0), failed=())
        entries = [entry for entry in manifest.queries if entry.name in names]
        take_up_queries(
            manifest, some.queries, entries, lambda asked: some._plan(some.queries, asked)
        )
        return some

    def remove(self, name: str, *, for_good: bool) -> None:
        """One query less. `for_good`: a restart does not bring it back."""
        text = self._known_texts().get(name)
        self.queries.remove(name)
        self._sinks.pop(name, None)
        self._watched.discard(name)
        if for_good and text is not None:
            self._removed[name] = text

    def require_possible(self, *, remove: Sequence[str], add: Mapping[str, str]) -> None:
        """All that goes is there, and nothing that comes."""
        known = self.queries.asked
        missing = [name for name in remove if name not in self._known_texts()]
        taken = [name for name in add if name in known and name not in remove]
        if missing:
            names = ", ".join(sorted(known)) or "none"
            raise QueryError(f"no query `{missing[0]}` is registered", hint=f"queries: {names}")
        if taken:
            hint = "remove it first, or rename one"
            raise QueryError(f"a query `{taken[0]}` is already registered", hint=hint)

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
        return self.texts() | {name: failed.text for name, failed in self.queries.failed.items()}

    def _add(self, name: str, text: str, deadline: Duration | None) -> None:
        self._plan(self.queries, self.queries.read(name, text, deadline))
        self.queries.failed.pop(name, None)

    def _plan(self, queries: Queries, asked: Asked) -> None:
        check_options(asked.query, self.run)
        require_clock(self.run)

        def plan_of(query: Query) -> Plan:
            plan = bind_query(query, (self.frame,), self.aggregates).plan
            require_lateness(self.run.lateness, plan.axis.kind)
            return plan

        queries.bind(asked, self._comparable, plan_of)
        queries.asked[asked.name] = asked

    # The manifest

    def manifest(self, *, shards: int, version: int) -> Manifest:
        """The queries as the checkpoint has them, of which this is the version from now on."""
        self.version = version
        return Manifest(
            stream=self.stream,
            shards=shards,
            last=self.queries.numbers.last,
            queries=[
                QueryEntry(
                    name=name,
                    text=one.text,
                    serial=one.serial,
                    deadline=one.deadline,
                    sink=self._sink_folder(name),
                    watched=name in self._watched,
                )
                for name, one in self.queries.asked.items()
            ],
            stores=store_entries(self.queries),
            removed=self._removed,
            failed=[
                replace(one, sink=self._sink_folder(one.name), watched=one.name in self._watched)
                for one in failed_entries(self.queries)
            ],
            version=version,
            prepared=self.prepared.texts,
        )

    def _sink_folder(self, name: str) -> str | None:
        """The folder that a query's answers go to, if it has one of its own."""
        sink = self._sinks.get(name)
        return None if sink is None or callable(sink) else str(sink)

    def take_up(self, manifest: Manifest) -> None:
        """Go on with the queries of a manifest, and those that were added and it never had.

        So it is with questions that rows are kept for. A query of the manifest that cannot be
        planned any more, or never could, is set aside.
        """
        self._require_own(manifest)
        added, sinks = self.queries.asked, self._sinks
        queries = Queries(self.stream, self.aggregates)
        again = [
            replace(q, deadline=added[q.name].deadline) if q.name in added else q
            for q in manifest.queries
            if q.name not in added or added[q.name].text == q.text
        ]
        known: list[QueryEntry | FailedEntry] = [*manifest.queries, *manifest.failed]
        self._sinks = {q.name: q.sink for q in known if q.sink is not None}
        self._watched = {q.name for q in known if q.watched}
        take_up_queries(
            manifest, queries, again, lambda asked: self._plan(queries, asked), _REFUSALS
        )
        gone = {**manifest.removed, **{q.name: q.text for q in manifest.failed}}
        for name, new in added.items():
            if name not in queries.asked and gone.get(name) != new.text:
                self._plan(queries, replace(new, serial=queries.numbers.next()))
                queries.failed.pop(name, None)
        still = queries.asked.keys() | queries.failed
        self._sinks |= {name: sink for name, sink in sinks.items() if name in still}
        self._removed = {n: t for n, t in manifest.removed.items() if n not in queries.asked}
        self.prepared = self.prepared.taken_up(queries, manifest.prepared)
        self.queries = queries

    def _require_own(self, manifest: Manifest) -> None:
        if manifest.stream != self.stream:
            raise OptionError(
                f"the checkpoint is that of a register of `{manifest.stream}`, "
                f"not of `{self.stream}`"
            )
        if self.run.shards not in (None, manifest.shards):
            raise OptionError(
                f"the register's state has {manifest.shards} shards, and not {self.run.shards}",
                hint="leave out shards=, or start with a new checkpoint",
            )
