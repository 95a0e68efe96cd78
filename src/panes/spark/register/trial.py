"""Which queries make a batch of a register fail on Spark.

A failure may arise in three places. In a shard, or while answers are finished and delivered, the
error itself names the queries at fault (`panes.sharing.failures.QueriesFailed`). Where Spark
evaluates the expressions of all queries together, before the shuffle, nothing does. Then a trial
runs the same micro-batch once more on the same checkpoint, only to get hold of its rows, and the
expressions of each query are evaluated over them by themselves.

Invariant: no trial commits a micro-batch, so the next run of the register begins with the same one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias
from uuid import uuid4

from pyspark.sql import Column, DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from panes.sharing.failures import QueriesFailed, failing, reasons_in
from panes.spark.internals import without_snapshots
from panes.spark.register.deliver import Deliver, SinkError, work_out
from panes.spark.register.planned_parts import PlannedParts, expressions_read
from panes.spark.register.registered_queries import RegisteredQueries

Expressions: TypeAlias = Mapping[str, Mapping[tuple[str, ...], Sequence[Column]]]
"""What Spark evaluates of each stream before the shuffle, by the names of the queries it is for."""
OnBatch: TypeAlias = Callable[[DataFrame, int], None]
StartTrial: TypeAlias = Callable[[Callable[[Deliver], OnBatch]], StreamingQuery]


class TrialPassed(Exception):  # noqa: N818 - not for users: a trial always ends with an error
    """Nothing has failed, and the micro-batch must not be committed."""


def failing_queries(
    registered: RegisteredQueries, failure: BaseException, start: StartTrial
) -> dict[str, str]:
    """The queries that cannot take the batch that has failed, and why; none if it is not theirs."""
    text = str(failure)
    reasons = reasons_in(text)
    if not reasons and SinkError.__name__ not in text:
        reasons = reasons_in(_error_of_trial(registered, start))
    return {name: why for name, why in reasons.items() if name in registered}


def _error_of_trial(registered: RegisteredQueries, start: StartTrial) -> str:
    """What a trial of the expressions of all queries ends with."""
    reads = PlannedParts.of(registered, 1, bounded=True, rows=False).reads
    found = {stream: expressions_read(registered, reads[stream], stream) for stream in reads}
    try_out = TryExpressions(found, uuid4().hex)
    session = next(iter(registered.streams.values())).sparkSession
    with without_snapshots(session):
        query = start(lambda deliver: TryBatch(deliver, try_out))
    try:
        query.awaitTermination()
    except Exception as error:
        return str(error)
    return ""  # there was no batch


@dataclass(frozen=True, slots=True)
class TryExpressions:
    """Evaluates expressions over rows, and raises whatever comes of it."""

    expressions: Expressions
    token: str

    def __call__(self, streams: Mapping[str, DataFrame]) -> None:
        failed: dict[str, str] = {}
        for stream, rows in streams.items():
            failed |= self._failed(rows, self.expressions[stream])
        if failed:
            raise QueriesFailed(failed)
        raise TrialPassed(self.token)

    def _failed(
        self, rows: DataFrame, expressions: Mapping[tuple[str, ...], Sequence[Column]]
    ) -> dict[str, str]:
        """The queries whose expressions cannot be evaluated over rows of a stream, and why."""

        def fails(some: Sequence[tuple[str, ...]]) -> str | None:
            columns = [column for names in some for column in expressions[names]]
            named = (column.alias(f"c{i}") for i, column in enumerate(columns))
            return work_out(rows.select(*named)) if columns else None

        found = failing(list(expressions), fails)
        return {name: why for names, why in found.items() for name in names}


@dataclass(frozen=True, slots=True)
class TryBatch:
    """What a trial does with a batch that holds nothing but rows."""

    deliver: Deliver
    try_rows: TryExpressions

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        with self.deliver.rows_of(batch, batch_id) as rows:
            self.try_rows(rows)
