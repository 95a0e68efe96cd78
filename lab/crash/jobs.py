"""A register over joins that is killed: started each time in the same way, run to its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

import panes
from panes.crash.jobs import ANSWERS, Frame, Session, Streams, read_stream
from panes.crash.kills import SUNK
from panes.crash.place import JobPlace, answers_in
from panes.crash.trial import StreamTrial
from panes.crash.verdict import Verdict, exact_columns, judge
from panes.spark.host import tried_by
from panes.spark.query import send


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
