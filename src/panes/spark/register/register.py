"""A register on Spark: many queries over streaming DataFrames, in one streaming query.

A changed set of queries restarts the streaming query on the same checkpoint: Spark's plan and the
variables of its state stay as they are, only the queries that tasks and shards are given change.
That is a pause of seconds; nothing is read again, nothing is lost. The queries themselves are in
the checkpoint too (`panes.spark.register.manifest_file`), written before Spark starts with them.

`SparkRegister` is what users call. Its parts are `registered_queries` (which queries there are),
`prepared_rows` (questions that rows are kept for), `run` (the streaming query), `ask` and
`ask_rows` (answers from the state) and `watched_queries` (queries that are named from outside).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from pyspark.sql import DataFrame

from panes.aggregates.custom import UserAggregate
from panes.axis import SECOND, Duration, parse_duration
from panes.errors import QueryError
from panes.html import facts_line
from panes.planning.terms import StreamOptions
from panes.process.added import Added
from panes.sharing.view import RegisterView
from panes.spark.bind import require_alike
from panes.spark.host import shard_numbers
from panes.spark.internals import runs_here
from panes.spark.observe import DEFAULT
from panes.spark.query import Sink
from panes.spark.register import manifest_file
from panes.spark.register.alone import require_possible
from panes.spark.register.checkpointed import manifest_of, taken_up
from panes.spark.register.deliver import RegisterSink
from panes.spark.register.exactness import exact_from
from panes.spark.register.questions import ask_register
from panes.spark.register.registered_queries import RegisteredQueries
from panes.spark.register.run import Planned, Start, planned_query, require_trigger
from panes.spark.register.running import RunningRegister
from panes.spark.register.shown import explain_registered, view_of_registered
from panes.spark.register.tap import Tap
from panes.spark.register.trial import failing_queries
from panes.spark.register.watched_queries import FolderWatcher, Watched, wanted
from panes.spark.uncommitted import can_run_again


class SparkRegister(RunningRegister):
    """Queries over streaming DataFrames, run together. See `panes.register`."""

    def __init__(
        self,
        streams: Mapping[str, DataFrame],
        run: StreamOptions,
        aggregates: Sequence[UserAggregate] = (),
    ) -> None:
        super().__init__()
        require_alike(streams)
        require_possible(streams, run)
        self.streams, self.refused = dict(streams), dict[str, str]()
        self._session = next(iter(streams.values())).sparkSession
        self._registered = RegisteredQueries(streams, run, tuple(aggregates))
        self._watcher: FolderWatcher | None = None
        self._version = 0
        self.tap = Tap()

    # Queries

    def add(
        self, name: str, text: str, *, deadline: Duration | None = None, sink: Sink | None = None
    ) -> Added:
        """Answer one more query from now on; says from where its answers are exact.

        A register that runs is restarted on its checkpoint, which takes seconds. `sink` is where
        the answers of this query go: a folder, or a function of a DataFrame and its batch's
        number; without it they go where the register's answers go.
        """
        with self._changing() as registered:
            registered.add(name, text, deadline, sink)
        return Added(self, name)

    def remove(self, name: str) -> None:
        """Answer a query no longer, and forget what only it needed."""
        self.change(remove=[name])

    @property
    def failed(self) -> dict[str, str]:
        """The queries that were set aside because they could not be answered, and why."""
        with self._lock:
            return {name: one.reason for name, one in self._registered.failed.items()}

    def put_back(self, name: str) -> Added:
        """Answer a query again that was set aside, from its next window that can be answered."""
        with self._changing() as registered:
            registered.put_back(name)
        return Added(self, name)

    def change(self, *, add: Mapping[str, str] = {}, remove: Iterable[str] = ()) -> None:
        """Remove some queries and add others, with one restart for all of them, or nothing."""
        gone = list(remove)
        with self._changing(several=True) as registered:
            registered.require_possible(remove=gone, add=add)
            for name in gone:
                registered.remove(name, for_good=self._run.start is not None)
            for name, text in add.items():
                registered.add(name, text)
        for name in gone:
            self.tap.forget(name)

    def queries(self) -> dict[str, str]:
        """The texts of all queries, by name, in the order in which they came."""
        return self._registered.texts()

    def view(self) -> RegisterView:
        """Which queries there are and what they share, as plain data."""
        with self._lock:
            return view_of_registered(self._registered)

    @property
    def version(self) -> tuple[int, ...]:
        """Changes when a query comes, goes, fails, or gets its store."""
        return self._registered.changes

    @property
    def metrics_name(self) -> str:
        """The name of its metrics in Spark's progress reports."""
        return self._registered.run.name or DEFAULT

    def __repr__(self) -> str:
        registered = self._registered
        counts = f"queries={len(registered.texts())}", f"failed={len(registered.failed)}"
        return facts_line("SparkRegister", f"of {', '.join(self.streams)}", self._how(), *counts)

    def explain(self, *, details: bool = False) -> str:
        """What the queries share, and how much is stored; see `panes.explain` for `details`."""
        return explain_registered(self._registered, details=details)

    def exact_from(self, name: str) -> object | None:
        """Where the first answered window of a query starts; None: at the stream's beginning."""
        self._registered.require_known(name)
        with self._lock:
            start = self._run.start
            checkpoint = None if start is None else start.checkpoint
            return exact_from(self._registered, name, self._session, checkpoint)

    def ask(self, text: str) -> DataFrame:
        """An answer now, from what the last batch left in the checkpoint.

        ``[RANGE 10 minutes WATTR ts]`` ends with the pane of the newest row. It is exact where it
        begins with a pane, and refused elsewhere. The stream goes on meanwhile, and `window_end` is
        the moment the answer holds for. ``SELECT DISTINCT``, and a WHERE about nothing but the
        GROUP BY, are looked up among the panes of any query with that GROUP BY.

        A question without an aggregate asks for rows, of the window that ends just after the
        newest row. They are there once the question is prepared, or one with a longer window and
        the same columns.
        """
        with self._lock:
            return ask_register(self._registered, self._started, text)

    def _started(self) -> Start:
        """How the register was started, if it was."""
        if self._run.start is None:
            raise QueryError("the register has not been started, so nothing is stored")
        return self._run.start

    def prepare(self, text: str) -> None:
        """Keep the rows that a question asks for, so that `ask` can answer it.

        Rows are kept as long as the longest window of such a question needs them, with the columns
        that these questions read. A register that runs is restarted on its checkpoint; the question
        is answered from the rows to come. It is in the checkpoint, and stays until `forget`.
        """
        with self._lock:
            if text in self._registered.prepared:
                return
            with self._changing() as registered:
                queries = registered.windows[registered.only_stream]
                registered.prepared.add(queries, text)

    def forget(self, text: str) -> None:
        """Keep no longer what only this prepared question needs."""
        with self._changing() as registered:
            queries = registered.windows[registered.only_stream]
            registered.prepared.forget(queries, text)

    def prepared(self) -> list[str]:
        """The questions that rows are kept for, in the order in which they came."""
        return self._registered.prepared.texts

    # The stream

    def start(
        self,
        *,
        checkpoint: str,
        sink: RegisterSink,
        late: Sink | None = None,
        rejected: Sink | None = None,
        bounded: bool = False,
        trigger: Mapping[str, str] | None = None,
        watch: Watched | None = None,
        watch_every: Duration = "10 seconds",
    ) -> SparkRegister:
        """Run all queries in one streaming query; a checkpoint with a register is taken up again.

        Then those queries run that ran last, and those added before `start` that the checkpoint
        has never had, or has under another text. One that was removed while the register ran stays
        removed.

        Parameters
        ----------
        checkpoint
            A folder for Spark's checkpoint, and the register's.
        sink
            A folder, which gets ``query=NAME/batch=N``; or a function, called with the name of a
            query, a DataFrame of its answers and the batch's number. `panes.spark.Together` takes
            the answers of all queries at once.
        late, rejected
            Sinks for rows that came late or have no place, with the reason.
        bounded
            Read what is there, answer every window, and end (``availableNow``).
        trigger
            As of Spark's ``trigger``: ``{"processingTime": "10 seconds"}``.
        watch, watch_every
            A folder with a ``.sql`` file for each query, or a function that gives a DataFrame of
            ``name`` and ``sql``: what is there runs, what is gone does not.
        """
        require_trigger(trigger)
        with self._lock:
            if self._run.start is not None:
                raise QueryError("the register runs already", hint="stop it first")
            is_one = len(self.streams) == 1
            manifest = manifest_file.read(self._session, str(checkpoint), may_lack=not is_one)
            registered = self._registered.copied()
            shards = registered.run.shards
            if manifest is not None:
                registered = taken_up(registered, manifest)
                self._version, shards = manifest.version, manifest.shards
            numbers = shard_numbers(self._session, shards, is_keyed=True)
            seen = None if watch is None else wanted(self._session, watch)
            refused = {} if seen is None else registered.follow(seen)
            if not registered and watch is None:
                raise QueryError(
                    "the register has no query yet", hint='add one first: reg.add("hot", "...")'
                )
            if registered.levels is None:
                registered.levels = registered.needed_levels
            tap = self.tap if runs_here(next(iter(self.streams.values()))) else None
            start = Start(
                str(checkpoint), sink, late, rejected, bounded, dict(trigger or {}), numbers, tap
            )
            planned = self._planned(registered, start)
            self._registered, self.refused = registered, refused
            self._write(start)
            self.tap.begin(start.checkpoint, is_new=manifest is None)
            self._run.begin(start)
            self._run.replace(planned)
            known = () if manifest is None else [one.name for one in manifest.failed]
            for name, reason in self.failed.items():
                if name not in known:
                    self._tell(name, reason)
            if watch is not None and seen is not None:
                self._watch(watch, seen, watch_every)
        return self

    @property
    def counted(self) -> Mapping[str, int]:
        """Answers, late and rejected rows of streaming queries that have ended, in this process."""
        with self._lock:
            return dict(self._run.counted)

    # Queries that fail

    def _recover(self, failure: BaseException) -> bool:
        """A batch has failed: set aside the queries at fault, if any, and go on with the others."""
        start = self._run.start
        assert start is not None
        registered = self._registered
        if not can_run_again(self._session, start.checkpoint):
            return False
        reasons = failing_queries(
            registered, failure, lambda instead: planned_query(registered, start, instead).start()
        )
        for name, reason in reasons.items():
            self._registered.set_aside(name, reason)
            self._tell(name, reason)
        if not reasons:
            return False
        self._write(start)
        if start.bounded and not self._registered:
            self._run.end()
        else:
            self._run.replace(self._planned(self._registered, start))
        return True

    @contextmanager
    def _changing(self, *, several: bool = False) -> Iterator[RegisteredQueries]:
        """Change the queries, all of it or nothing: what the block changes becomes what runs.

        A single query is refused before it changes anything; `several` are tried on a copy.
        """
        with self._lock:
            if self._run.start is not None:
                self._run.require_healthy()
            if self._run.start is None and not several:
                yield self._registered
                return
            after = self._registered.copied()
            yield after
            self._become(after)

    def _become(self, after: RegisteredQueries) -> None:
        """Have other queries from now on.

        If the register runs, the list in the checkpoint is replaced once Spark has planned what is
        to run, and then the streaming query. If that cannot be started, the one before goes on.
        """
        start, before = self._run.start, self._registered
        if start is None:
            self._registered = after
            return

        def as_before() -> Planned | None:
            self._registered = before
            planned = self._planned(before, start)
            self._write(start)
            return planned

        planned, self._registered = self._planned(after, start), after
        try:
            self._write(start)
        except Exception:
            self._registered = before
            raise
        self._run.replace(planned, as_before)

    def _planned(self, registered: RegisteredQueries, start: Start) -> Planned | None:
        """What would run with some queries, if anything would."""
        if not registered:
            return None
        registered.version = self._version + 1
        return planned_query(registered, start)

    def _write(self, start: Start) -> None:
        """Write the queries into the checkpoint."""
        self._version += 1
        shards = len(start.shards)
        manifest = manifest_of(self._registered, shards=shards, version=self._version)
        manifest_file.write(self._session, start.checkpoint, manifest)

    # The watched place

    def look(self) -> None:
        """Look at the watched place now, and not only when it is time to."""
        if self._watcher is not None:
            self._watcher.look()

    def _watch(self, place: Watched, seen: Mapping[str, str], every: Duration) -> None:
        seconds = parse_duration(every, option="watch_every") / SECOND
        self._watcher = FolderWatcher(lambda: wanted(self._session, place), self._follow, seconds)
        self._watcher.start(seen)

    def _at_end(self) -> None:
        if self._watcher is not None:
            self._watcher.stop()
        self._watcher = None

    def _follow(self, texts: Mapping[str, str]) -> None:
        """Run what the watched place says; what cannot run is refused, the rest goes on."""
        with self._lock:
            if self._run.start is None:
                return
            after = self._registered.copied()
            self.refused = after.follow(texts)
            if after.texts() != self.queries():
                self._become(after)
