"""Jobs of the tests: registers over joins, and queries whose answers go to other sinks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

import panes
from panes.crash.jobs import (
    ANSWERS,
    LATE,
    REJECTED,
    Frame,
    QueryJob,
    Session,
    Streams,
    mirrored,
)
from panes.crash.kills import SUNK
from panes.crash.place import JobPlace, answers_in, read_stream
from panes.crash.trial import StreamTrial
from panes.crash.verdict import Verdict, exact_columns, judge
from panes.spark.host import tried_by
from panes.spark.query import send, split


@dataclass(frozen=True, slots=True)
class JoinRegisterJob:
    """Queries over joins of all streams, which end."""

    queries: Mapping[str, str]
    options: Mapping[str, Any] = field(default_factory=dict)
    ends: bool = True
    changes: bool = False
    hidden: int | None = None

    def run(self, spark: Session, place: JobPlace) -> None:
        """One run over everything that is there."""
        frames = {f.name: read_stream(spark, f) for f in sorted(place.rows.iterdir())}
        register = panes.register(tuple(frames), frames, **self.options)
        for name, text in self.queries.items():
            register.add(name, text)

        def write(name: str, frame: Frame, batch: int) -> None:
            send(frame, str(place.out / ANSWERS / name), batch)
            place.kills.reach(SUNK, batch)

        with tried_by(StreamTrial(place.kills)):
            register.start(checkpoint=str(place.checkpoint), sink=write, bounded=True)
        place.say(started=True)
        register.await_end()

    def judged(self, place: JobPlace, streams: Streams) -> Verdict:
        """The answers of every query, against the oracle's."""
        whole = {name: pa.concat_tables(tables) for name, tables in streams.items()}
        found = Verdict()
        for name, text in self.queries.items():
            want = panes.oracle(text, **whole)
            found += judge(answers_in(place.out / ANSWERS / name), want, exact_columns(want))
        return found


@dataclass(frozen=True, slots=True)
class FileSinkJob(QueryJob):
    """One query, whose answers go to Spark's own sink of files."""

    def written(self, answers: Frame, place: JobPlace) -> Any:
        """The answers on their way to the sink."""
        return answers.writeStream.format("parquet").option("path", str(place.out / ANSWERS))


@dataclass(frozen=True, slots=True)
class SplitJob(QueryJob):
    """One query, whose late and rejected rows go to sinks of their own."""

    @property
    def asked(self) -> Mapping[str, Any]:
        """The options of the stream."""
        return {**self.options, "with_late": True}

    def written(self, answers: Frame, place: JobPlace) -> Any:
        """Answers, late rows and rejected ones on their way to their sinks."""
        splits = split(**{kind: str(place.out / kind) for kind in (ANSWERS, LATE, REJECTED)})

        def write(frame: Frame, batch: int) -> None:
            splits(frame, batch)
            place.kills.reach(SUNK, batch)

        return answers.writeStream.foreachBatch(write)

    def judged(self, place: JobPlace, streams: Streams) -> Verdict:
        """The answers, and the rows that were set apart."""
        found = QueryJob.judged(self, place, streams)
        _, apart = mirrored(self.text, self.options, streams)
        for kind, rows in apart.items():
            given = answers_in(place.out / kind)
            if len(rows):
                found += judge(given, rows, exact_columns(rows))
            else:
                found += Verdict(wrong=0 if given is None else len(given))
        return found


KINDS: Mapping[str, Any] = {
    "register over joins": JoinRegisterJob,
    "query to files": FileSinkJob,
    "query that is split": SplitJob,
}
