"""The streaming DataFrame of a register: every stream is read once, and all queries are answered.

    rows --select--> a column for each part that reads them --combine--> shuffle by shard
         --> all parts --> packages of answers, in one streaming query
         --foreachBatch--> rows with the same columns --select--> what was asked --> sinks

Parts that read the answers of others, or joined rows, are in shards of a level further up. There
what shards give is shuffled once more, level by level:

         --> all parts --> rows, promises, answers --> shuffle by shard --> parts that read these

So the sources and the states of Spark's plan are the same whatever the queries are, as long as they
take no more levels, and other queries may go on from its checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it
from pyspark.sql import types as T  # noqa: N812

from panes.axis import parse_duration
from panes.planning.terms import CheckedOptions, StreamOptions
from panes.progress.heartbeat import Heartbeat
from panes.shards.names import AT, SOURCE
from panes.shards.outcome import PartsOutcome
from panes.shards.part_combiners import Uses, use_column
from panes.shards.parts_shard import PartsShard
from panes.shards.register_parts import SentParts
from panes.shards.state import State
from panes.spark.column_names import PACKAGE, SHARD, STATUS
from panes.spark.host import Hosted, TaskRows, host
from panes.spark.internals import dumps
from panes.spark.observe import below, observed, status_of
from panes.spark.register.planned_parts import PlannedParts, Read

if TYPE_CHECKING:
    import pandas as pd

CONTENT, NAMES = "content", "names"
"""Columns of what is emitted: the number of a package's columns, how many answers of which
queries."""
_UP = T.StructType().add(SHARD, "integer").add(PACKAGE, "binary").add(STATUS, "string")
_OUT = T.StructType().add(CONTENT, "integer").add(PACKAGE, "binary").add(NAMES, "string")
_OUT = _OUT.add(STATUS, "string")


def emitted(
    planned: PlannedParts,
    streams: dict[str, DataFrame],
    run: StreamOptions,
    shards: tuple[int, ...],
    *,
    name: str,
    failed: int,
    levels: int,
) -> DataFrame:
    """What a register gives in every batch: packages of answers and of rows set aside, status."""
    sent, count = SentParts.of(planned.parts, dumps), len(shards)
    terms = _host_terms(run)
    read = [
        TaskRows([_read_once(frame, planned.reads[stream])],
                 Uses(tuple(read.use for read in planned.reads[stream]), count))
        for stream, frame in streams.items()
    ]  # fmt: skip
    given = read
    for level in range(1, levels + 1):
        is_last = level == levels
        at_level = partial(_shard, sent, count, level, levels)
        hosted = Hosted(
            shard=at_level,
            emit=_emit_out if is_last else _emit_up,
            output=_OUT if is_last else _UP,
        )
        told = observed(
            host(given, hosted, shards, terms, bounded=run.bounded and level == 1),
            name if is_last else below(name, level),
            STATUS,
            **({"failed": failed} if is_last else {}),
        )
        if is_last:
            return told
        packages = told.where(F.col(STATUS).isNull()).select(SHARD, PACKAGE)
        given = [TaskRows([packages], _Forward)]
        terms = CheckedOptions(max_ahead=None, max_answers=run.max_answers)
    raise AssertionError("there is a level at least")


def _shard(sent: SentParts, shards: int, level: int, levels: int, state: State) -> PartsShard:
    return PartsShard(sent.parts(), state, shards=shards, level=level, levels=levels)


def _host_terms(run: StreamOptions) -> CheckedOptions:
    """What is said of all streams together: a promise by the clock, and how much may leave."""
    beat = None
    if run.heartbeat is not None:
        beat = Heartbeat(parse_duration(run.heartbeat, option="heartbeat"))
    return CheckedOptions(heartbeat=beat, max_answers=run.max_answers)


def _read_once(stream: DataFrame, reads: Sequence[Read]) -> DataFrame:
    """A stream with a column of structs for each part that reads it."""
    structs = [read.struct.alias(use_column(i)) for i, read in enumerate(reads)]
    nothing = [F.lit(None).cast("int").alias(SOURCE), F.lit(None).cast("long").alias(AT)]
    return stream.select(*structs, *nothing)


@dataclass(slots=True)
class _Forward:
    """Sends packages to the shards that they are for, as they are."""

    _sent: list[tuple[int, bytes]] = field(default_factory=list)

    def add(self, batch: pa.RecordBatch) -> None:
        """Take in some packages."""
        self._sent += zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True)

    def packages(self, *, always: bool = False) -> Iterator[tuple[int, bytes]]:  # noqa: ARG002
        """What each shard is sent."""
        yield from self._sent


def _emit_up(outcome: PartsOutcome) -> Iterator[pd.DataFrame]:
    rows = [(shard, package, None) for shard, package in outcome.packages]
    yield _frame([*rows, (None, None, _status(outcome))], _UP, SHARD)


def _emit_out(outcome: PartsOutcome) -> Iterator[pd.DataFrame]:
    rows = [(*sent, None) for sent in outcome.sent]
    yield _frame([*rows, (None, None, None, _status(outcome))], _OUT, CONTENT)


def _status(outcome: PartsOutcome) -> str:
    return status_of(outcome, answers=outcome.answers, late=outcome.late, rejected=outcome.rejected)


def _frame(rows: Sequence[tuple[object, ...]], schema: T.StructType, number: str) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(list(rows), columns=schema.names).astype({number: "Int32"})
