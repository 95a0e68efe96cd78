"""Per-row windows over bounded DataFrames: one pass over the rows of each partition.

    rows --select--> position, columns --repartition by PA, sort by position-->
         mapInArrow: bins --> lowered aggregates --select--> what was asked

Spark sorts, so that a task holds no more than the bins and rows of one window length.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it

from panes.admit.arrival import Arrival
from panes.pipelines.per_row import PerRowPipeline
from panes.planning.plan import Plan
from panes.spark.answers import handed_over, handed_over_schema, selected
from panes.spark.bind import BoundQuery, sql, ticks

AT, KEPT, PARTITION, COLUMN = "__at", "__kept", "__p", "__c"
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
    rolled = placed.sortWithinPartitions(AT).mapInArrow(Bins(plan), handed_over_schema(plan))
    return selected(bound, rolled)


def _project(plan: Plan, frame: DataFrame) -> DataFrame:
    """Position, partition and columns of every row that has a place: all of them count."""
    where = plan.rows.where
    kept = F.lit(True) if where is None else F.coalesce(sql(where), F.lit(False))
    at = ticks(frame, plan.axis.column or "")
    partition = [
        sql(plan.rows.expressions[c]).alias(f"{PARTITION}{i}")
        for i, c in enumerate(plan.partition_columns)
    ]
    columns = [
        F.when(kept, sql(e)).alias(f"{COLUMN}{i}") for i, e in enumerate(plan.rows.expressions)
    ]
    placed = frame.select(at.alias(AT), kept.alias(KEPT), *partition, *columns)
    return placed.where(F.col(AT).isNotNull())


@dataclass(frozen=True, slots=True)
class Bins:
    """What each task does with rows that come in the order of their positions."""

    plan: Plan

    def __call__(self, batches: Batches) -> Batches:
        pipeline = PerRowPipeline(self.plan)
        for table in _in_portions(batches):
            pipeline.add(self._arrival(table))
            yield from _sent(pipeline.close(table.column(AT)[-1].as_py()))
        yield from _sent(pipeline.close_all())

    def _arrival(self, table: pa.Table) -> Arrival:
        kept = np.flatnonzero(table.column(KEPT).to_numpy())
        kinds = self.plan.row_types
        names = [f"{COLUMN}{i}" for i in range(len(kinds))]
        columns = [_array(table, n).cast(t) for n, t in zip(names, kinds, strict=True)]
        partition = [
            _array(table, f"{PARTITION}{i}").cast(kinds[c])
            for i, c in enumerate(self.plan.partition_columns)
        ]
        if len(kept) < len(table):
            columns = [c.take(pa.array(kept)) for c in columns]
        return Arrival(_array(table, AT).to_numpy(), columns, kept, partition)


def _in_portions(batches: Batches) -> Iterator[pa.Table]:
    """Batches put together until they are worth a pass over the bins."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
        if sum(b.num_rows for b in held) >= ROWS_AT_ONCE:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


def _sent(lowered: pa.Table) -> Batches:
    yield from handed_over(lowered).combine_chunks().to_batches(max_chunksize=1 << 16)


def _array(table: pa.Table, name: str) -> pa.Array:
    return table.column(name).combine_chunks()
