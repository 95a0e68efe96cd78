"""What is run and killed: a query or a register over streams in files.

A job is started by `run`, each time in the same way, and goes on from its checkpoint as a user's
program would. `wanted` are the answers of a run that nobody disturbs: the oracle's, or where
answers depend on the order of batches, those of a query in one process that is given the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

import panes
from panes.crash.kills import SUNK
from panes.crash.place import JobPlace, answers_in, is_released, read_stream, release
from panes.crash.trial import StreamTrial
from panes.crash.verdict import Verdict, exact_columns, judge
from panes.language.join_query import JoinQuery
from panes.language.query import Query
from panes.language.query_graph import read_graph
from panes.spark.host import tried_by
from panes.spark.query import send
from panes.windows.spec import PerRow

Session = Any  # Spark's session and DataFrame: nothing of PySpark is imported here
Frame = Any
Streams = Mapping[str, Sequence[pa.Table]]
"""The rows of each stream, batch by batch."""

ANSWERS, LATE, REJECTED = "answers", "late", "rejected"
STATUS, EARLY = "status", "early"


class Job(Protocol):
    """Something that runs as a stream and can be started again."""

    @property
    def hidden(self) -> int | None:
        """The first batch that comes only later; None: all are there from the beginning."""

    @property
    def ends(self) -> bool:
        """Whether the stream is told that it has ended."""

    @property
    def changes(self) -> bool:
        """Whether its queries change while it runs."""

    def run(self, spark: Session, place: JobPlace) -> None:
        """Run until nothing is left to do."""

    def judged(self, place: JobPlace, streams: Streams) -> Verdict:
        """What a run has given, against what it should have."""


@dataclass(frozen=True, slots=True)
class QueryJob:
    """One query, whose answers go to a folder for each batch."""

    text: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def hidden(self) -> int | None:
        return None

    @property
    def ends(self) -> bool:
        return bool(self.options.get("bounded"))

    @property
    def changes(self) -> bool:
        return False

    def run(self, spark: Session, place: JobPlace) -> None:
        """One ``availableNow`` run over everything that is there."""
        with tried_by(StreamTrial(place.kills)):
            frames = {f.name: read_stream(spark, f) for f in sorted(place.rows.iterdir())}
            answers: Frame = panes.sql(self.text, **self.asked, **frames)
        writer = self.written(answers, place).option("checkpointLocation", str(place.checkpoint))
        query = writer.trigger(availableNow=True).start()
        place.say(started=True)
        query.awaitTermination()

    @property
    def asked(self) -> Mapping[str, Any]:
        """The options of the stream."""
        return self.options

    def written(self, answers: Frame, place: JobPlace) -> Any:
        """The answers on their way to the sink."""

        def write(frame: Frame, batch: int) -> None:
            send(frame, str(place.out / ANSWERS), batch)
            place.kills.reach(SUNK, batch)

        return answers.writeStream.foreachBatch(write)

    def judged(self, place: JobPlace, streams: Streams) -> Verdict:
        """The answers, against those that should be there."""
        want = self._wanted(streams)
        got = answers_in(place.out / ANSWERS)
        if STATUS in want.column_names and got is not None:
            got, want = _early_once(got), _early_once(want)
        return judge(got, want, self._keys(want))

    def _wanted(self, streams: Streams) -> pa.Table:
        """What should have been given."""
        plain = {"lateness", "bounded", "max_ahead", "flush"}
        if self.ends and self.options.keys() <= plain:
            query = read_graph(self.text).asked
            if not query.emits_early:
                whole = {name: pa.concat_tables(tables) for name, tables in streams.items()}
                return panes.oracle(self.text, **whole)
        return mirrored(self.text, self.options, streams)[0]

    def _keys(self, want: pa.Table) -> list[str]:
        """The columns that say which question an answer is to."""
        query = read_graph(self.text).asked
        if isinstance(query, JoinQuery):
            return exact_columns(want)
        if query.window is not None and isinstance(query.window.spec, PerRow):
            return exact_columns(want)
        status = [STATUS] if STATUS in want.column_names else []
        return want.column_names[: 2 + len(query.shown_keys)] + status


def mirrored(
    text: str, options: Mapping[str, Any], streams: Streams
) -> tuple[pa.Table, dict[str, pa.Table]]:
    """What a query in one process gives and sets apart, if it is given the same batches."""
    chosen = {name: value for name, value in options.items() if name not in ("bounded", "shards")}
    query = panes.open(text, **chosen)
    most = max(map(len, streams.values()))
    given = []
    for number in range(most):
        batch = {name: tables[number] for name, tables in streams.items() if number < len(tables)}
        given.append(query.push(**batch))
    if options.get("bounded"):
        given.append(query.finish())
    return pa.concat_tables(given), {LATE: query.late, REJECTED: query.rejected}


def _early_once(answers: pa.Table) -> pa.Table:
    """Early answers once each: a run that goes on may tell again what is still open."""
    is_early = pc.equal(answers[STATUS], EARLY)
    early = answers.filter(is_early).group_by(answers.column_names).aggregate([])
    return pa.concat_tables([answers.filter(pc.invert(is_early)), early.cast(answers.schema)])


@dataclass(frozen=True, slots=True)
class Change:
    """Queries that come and go before a batch."""

    batch: int
    add: Mapping[str, str] = field(default_factory=dict)
    remove: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class RegisterJob:
    """A register over one stream. Without a change, it is run to its end."""

    stream: str
    queries: Mapping[str, str]
    options: Mapping[str, Any] = field(default_factory=dict)
    change: Change | None = None

    @property
    def hidden(self) -> int | None:
        return None if self.change is None else self.change.batch

    @property
    def ends(self) -> bool:
        return self.change is None

    @property
    def changes(self) -> bool:
        return self.change is not None

    def run(self, spark: Session, place: JobPlace) -> None:
        """Take in what is there; change the queries; take in the rest."""
        with tried_by(StreamTrial(place.kills)):
            register = self._started(spark, place)
        place.say(started=True)
        try:
            if self.change is None:
                register.await_end()
            else:
                register.process_all_available()
                self._apply(self.change, register, place)
                register.process_all_available()
        finally:
            register.stop()

    def _started(self, spark: Session, place: JobPlace) -> Any:
        frame = read_stream(spark, place.rows / self.stream)
        register: Any = panes.register(self.stream, frame, **self.options)
        for name, text in self.queries.items():
            register.add(name, text)
        kills = place.kills

        def last(frame: Frame, batch: int) -> None:
            send(frame, str(place.out / REJECTED), batch)
            kills.reach(SUNK, batch)

        return register.start(
            checkpoint=str(place.checkpoint),
            sink=str(place.out / ANSWERS),
            rejected=last,  # what a register writes last
            bounded=self.ends,
        )

    def _apply(self, change: Change, register: Any, place: JobPlace) -> None:
        """Change the queries, unless that was done before, and let the next batches come."""
        folder = place.rows / self.stream
        if (
            not is_released(folder, change.batch)
            and not change.add.keys() <= register.queries().keys()
        ):
            with tried_by(StreamTrial(place.kills, changing=True)):
                register.change(add=change.add, remove=change.remove)
        for path in sorted(folder.glob("_*.parquet")):
            release(folder, int(path.stem.removeprefix("_")))

    def judged(self, place: JobPlace, streams: Streams) -> Verdict:
        """The answers of every query, against a register in one process that is given the same."""
        found = Verdict()
        for name, want in self._wanted(streams).items():
            got = answers_in(place.out / ANSWERS / f"query={name}")
            query = read_graph(self._text(name)).asked
            assert isinstance(query, Query), "the register is of one stream"
            found += judge(got, want, want.column_names[: 2 + len(query.shown_keys)])
        return found

    def _text(self, name: str) -> str:
        return {**self.queries, **(self.change.add if self.change else {})}[name]

    def _wanted(self, streams: Streams) -> dict[str, pa.Table]:
        [tables] = streams.values()
        register = panes.register(self.stream, schema=tables[0].schema, **self.options)
        for name, text in self.queries.items():
            register.add(name, text)
        given: dict[str, list[pa.Table]] = {}
        for number, table in enumerate(tables):
            if self.change is not None and number == self.change.batch:
                for name in self.change.remove:
                    register.remove(name)
                for name, text in self.change.add.items():
                    register.add(name, text)
            _gather(given, register.push(table))
        if self.ends:
            _gather(given, register.finish())
        return {name: pa.concat_tables(tables) for name, tables in given.items()}


def _gather(given: dict[str, list[pa.Table]], answers: Mapping[str, pa.Table]) -> None:
    for name, table in answers.items():
        given.setdefault(name, []).append(table)
