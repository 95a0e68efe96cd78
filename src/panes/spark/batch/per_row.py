"""Per-row windows over bounded DataFrames: one pass over the rows of each partition.

    rows --select--> position, columns --repartition by PA, sort by position-->
         mapInArrow: panes --> lowered aggregates --select--> what was asked

Spark sorts, so that a task has no more than the panes and rows of one window length.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it

from panes.nodes.per_row import PerRowPipeline
from panes.planning.plan import Plan
from panes.shards.names import AT, column_name
from panes.shards.sent_rows import arrival_of
from panes.spark.answers import handed_over, handed_over_schema, selected
from panes.spark.batches import Batches, in_batches
from panes.spark.bind import BoundQuery, row_columns, selected_as, ticks
from panes.spark.partitions import by_keys

ROWS_AT_ONCE = 1 << 17


def answer(bound: BoundQuery) -> DataFrame:
    """The answers, as a DataFrame that computes them when it is used."""
    plan = bound.plan
    projected = reduce(DataFrame.union, [_project(plan, f) for f in bound.frames])
    partition = [F.col(column_name(c)) for c in plan.partition_columns]
    placed = by_keys(projected, partition).sortWithinPartitions(AT)
    rolled = placed.mapInArrow(BinTask(plan), handed_over_schema(plan))
    return selected(bound, rolled)


def _project(plan: Plan, frame: DataFrame) -> DataFrame:
    """Position, partition and columns of every row that has a place: all of them count."""
    at = {AT: ticks(frame, plan.axis.column or "")}
    return selected_as(frame, at | row_columns(plan, frame)).where(F.col(AT).isNotNull())


@dataclass(frozen=True, slots=True)
class BinTask:
    """What each task does with rows that come in the order of their positions."""

    plan: Plan

    def __call__(self, batches: Batches) -> Batches:
        pipeline = PerRowPipeline(self.plan)
        for table in _in_portions(batches):
            pipeline.add(arrival_of(self.plan, table))
            yield from in_batches(handed_over(pipeline.close(table.column(AT)[-1].as_py())))
        yield from in_batches(handed_over(pipeline.close_all()))


def _in_portions(batches: Batches) -> Iterator[pa.Table]:
    """Batches put together until they are worth a pass over the bins."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        if batch.num_rows:
            waiting.append(batch)
        if sum(b.num_rows for b in waiting) >= ROWS_AT_ONCE:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)
