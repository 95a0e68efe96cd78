"""Per-row windows over bounded DataFrames: one pass over the rows of each partition.

    rows --select--> position, columns --repartition by PA, sort by position-->
         mapInArrow: panes --> lowered aggregates --select--> what was asked

Spark sorts, so that a task has no more than the panes and rows of one window length.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it

from panes.arrays.columns import column_of
from panes.nodes.arrival import Arrival
from panes.nodes.per_row import PerRowPipeline
from panes.planning.plan import Plan
from panes.shards.names import AT, PASSING, column_name
from panes.spark.answers import handed_over, handed_over_schema, selected
from panes.spark.bind import BoundQuery, sql, ticks
from panes.spark.column_names import PARTITION

ROWS_AT_ONCE = 1 << 17
Batches = Iterator[pa.RecordBatch]


def answer(bound: BoundQuery) -> DataFrame:
    """The answers, as a DataFrame that computes them when it is used."""
    plan = bound.plan
    projected = reduce(DataFrame.union, [_project(plan, f) for f in bound.frames])
    partition = [F.col(f"{PARTITION}{i}") for i in range(len(plan.partition_columns))]
    placed = projected.coalesce(1)
    if partition:
        tasks = projected.sparkSession.conf.get("spark.sql.shuffle.partitions") or "2"
        placed = projected.repartition(int(tasks), *partition)
    rolled = placed.sortWithinPartitions(AT).mapInArrow(BinTask(plan), handed_over_schema(plan))
    return selected(bound, rolled)


def _project(plan: Plan, frame: DataFrame) -> DataFrame:
    """Position, partition and columns of every row that has a place: all of them count."""
    where = plan.rows.where
    passing = F.lit(True) if where is None else F.coalesce(sql(where), F.lit(False))
    at = ticks(frame, plan.axis.column or "")
    partition = [
        sql(plan.rows.expressions[c]).alias(f"{PARTITION}{i}")
        for i, c in enumerate(plan.partition_columns)
    ]
    columns = [
        F.when(passing, sql(e)).alias(column_name(i)) for i, e in enumerate(plan.rows.evaluated)
    ]
    placed = frame.select(at.alias(AT), passing.alias(PASSING), *partition, *columns)
    return placed.where(F.col(AT).isNotNull())


@dataclass(frozen=True, slots=True)
class BinTask:
    """What each task does with rows that come in the order of their positions."""

    plan: Plan

    def __call__(self, batches: Batches) -> Batches:
        pipeline = PerRowPipeline(self.plan)
        for table in _in_portions(batches):
            pipeline.add(self._arrival(table))
            yield from _sent(pipeline.close(table.column(AT)[-1].as_py()))
        yield from _sent(pipeline.close_all())

    def _arrival(self, table: pa.Table) -> Arrival:
        passing = np.flatnonzero(table.column(PASSING).to_numpy())
        types = self.plan.row_types
        names = [column_name(i) for i in range(len(types))]
        columns = [column_of(table, n).cast(t) for n, t in zip(names, types, strict=True)]
        partition = [
            column_of(table, f"{PARTITION}{i}").cast(types[c])
            for i, c in enumerate(self.plan.partition_columns)
        ]
        if len(passing) < len(table):
            columns = [c.take(pa.array(passing)) for c in columns]
        return Arrival(column_of(table, AT).to_numpy(), columns, passing, partition)


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


def _sent(lowered: pa.Table) -> Batches:
    yield from handed_over(lowered).combine_chunks().to_batches(max_chunksize=1 << 16)
