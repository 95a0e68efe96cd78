"""A query over bounded Spark DataFrames: native fill, then one vectorised roll per partition.

    rows --select--> axis, keys, arguments --groupBy pane, keys--> partials
         --repartition by keys--> mapInArrow: roll --> answers --select--> what was asked

Scalar expressions and filters are Spark's own, before and after. Only partials cross into
Python, so sliding costs what tumbling at the slide costs, whatever the overlap.
"""

from __future__ import annotations

from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it
from pyspark.sql import types as T  # noqa: N812

from panes.aggregates import wire
from panes.aggregates.aggregate import Rows
from panes.arrays.columns import column_of
from panes.arrays.key_numbers import KeyNumbers
from panes.language.query import KEY
from panes.nodes.sliding import SlidingPipeline
from panes.planning.plan import Plan
from panes.shards.names import AT, column_name
from panes.spark.answers import handed_over, handed_over_schema, selected
from panes.spark.batch.fill import aggregates, is_filled_by_spark, pane_start, partial_of
from panes.spark.batches import Batches, in_batches
from panes.spark.bind import BoundQuery, sql, ticks
from panes.spark.column_names import COUNT, NEWEST, PANE, TAG
from panes.spark.internals import spark_type
from panes.spark.partitions import by_keys
from panes.stores.fill import fill
from panes.windows.cut import cut
from panes.windows.spec import Landmark


def answer(bound: BoundQuery) -> DataFrame:
    """The answers to a window query, as a DataFrame that computes them when it is used."""
    plan = bound.plan
    projected = placed_rows(bound)
    if plan.window.origin_first:
        plan = _with_origin(plan, projected)
        bound = replace(bound, plan=plan)
    filled = _fill(plan, projected)
    keys = [F.col(f"{KEY}{i}") for i in range(len(plan.query.keys))]
    rolled = by_keys(filled, keys).mapInArrow(Roll(plan), handed_over_schema(plan))
    return selected(bound, rolled)


def placed_rows(bound: BoundQuery) -> DataFrame:
    """What the plan reads of the rows of all streams that have a place and pass WHERE."""
    return reduce(DataFrame.union, [_project(bound.plan, f) for f in bound.frames])


def _project(plan: Plan, frame: DataFrame) -> DataFrame:
    """Axis, keys and arguments of the rows that have a place and pass WHERE."""
    passing = frame if plan.rows.where is None else frame.where(sql(plan.rows.where))
    named = [sql(e).alias(_column(plan, i)) for i, e in enumerate(plan.rows.evaluated)]
    placed = passing.select(ticks(frame, plan.axis.column or "").alias(AT), *named)
    return placed.where(F.col(AT).isNotNull())


def _column(plan: Plan, index: int) -> str:
    return f"{KEY}{index}" if index < len(plan.query.keys) else column_name(index)


def _columns(plan: Plan) -> list[Column]:
    return [F.col(_column(plan, i)) for i in range(len(plan.rows.expressions))]


def _with_origin(plan: Plan, projected: DataFrame) -> Plan:
    """``ORIGIN FIRST`` needs the smallest position before anything can be cut: one small job."""
    first = projected.agg(F.min(AT)).first()
    shift = 0 if first is None or first[0] is None else first[0]
    spec = replace(plan.spec, origin=plan.spec.origin + shift)
    return replace(plan, window=replace(plan.window, spec=spec))


def _fill(plan: Plan, projected: DataFrame) -> DataFrame:
    """Partials per pane and key, and counted values per multiset, told apart by a tag."""
    columns = _columns(plan)
    keys = [F.col(f"{KEY}{i}") for i in range(len(plan.query.keys))]
    rows = projected.withColumn(PANE, pane_start(cut(plan.spec)))
    if is_native(plan):
        named = [
            column.alias(f"p{i}_{j}")
            for i, piece in enumerate(plan.pieces)
            for j, column in enumerate(aggregates(piece, columns) or [])
        ]
        grouped = rows.groupBy(PANE, *keys)
        partials = grouped.agg(*named) if named else grouped.agg(F.count(F.lit(1)).alias(COUNT))
    else:
        partials = projected.mapInArrow(Fill(plan), _filled_schema(plan))
    parts = [partials if not plan.value_sets else partials.withColumn(TAG, F.lit(-1))]
    for tag, values in enumerate(plan.value_sets):
        present = [columns[c].isNotNull() for c in values.selection.present]
        passing = reduce(DataFrame.where, present, rows)
        if values.selection.where is not None:
            passing = passing.where(columns[values.selection.where])
        valued = [columns[c].alias(f"v{tag}_{j}") for j, c in enumerate(values.columns)]
        counted = passing.groupBy(PANE, *keys, *valued).agg(F.count(F.lit(1)).alias(COUNT))
        parts.append(counted.withColumn(TAG, F.lit(tag)))
    filled = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), parts)
    if isinstance(plan.spec, Landmark):
        return filled.crossJoin(F.broadcast(projected.agg(F.max(AT).alias(NEWEST))))
    return filled


def is_native(plan: Plan) -> bool:
    """Whether Spark itself can compute every partial of a plan."""
    return all(is_filled_by_spark(p) for p in plan.pieces)


def _filled_schema(plan: Plan) -> T.StructType:
    named = {PANE: pa.int64()}
    named |= {f"{KEY}{i}": t for i, t in enumerate(plan.key_types)}
    for i, piece in enumerate(plan.pieces):
        named |= {f"p{i}_{j}": t for j, t in enumerate(wire.types(piece))}
    return T.StructType([T.StructField(n, spark_type(t)) for n, t in named.items()])


@dataclass(frozen=True, slots=True)
class Fill:
    """Partials of every batch of rows in Python, for aggregates that Spark does not have."""

    plan: Plan

    def __call__(self, batches: Batches) -> Batches:
        with ThreadPoolExecutor(max_workers=1) as executor:
            for batch in batches:
                yield self._fill(batch, executor)

    def _fill(self, batch: pa.RecordBatch, executor: Executor) -> pa.RecordBatch:
        plan = self.plan
        keys = len(plan.key_types)
        columns = tuple(c.cast(t) for c, t in zip(batch.columns[1:], plan.row_types, strict=True))
        groups = KeyNumbers(plan.key_types)
        rows = Rows(batch.column(0).to_numpy(), columns)
        numbers = groups.encode(columns[:keys], len(rows))
        filled = fill(
            rows,
            numbers,
            len(groups),
            cut=cut(plan.spec),
            pieces=plan.pieces,
            executor=executor,
        )
        arrays = [pa.array(filled.starts), *groups.columns(filled.groups)]
        for piece, partial in zip(plan.pieces, filled.partials, strict=True):
            arrays += wire.to_arrow(piece, partial)
        return pa.record_batch(arrays, names=[f.name for f in _filled_schema(plan).fields])


@dataclass(frozen=True, slots=True)
class Roll:
    """What each partition does with the partials of its keys: roll, lower, hand over."""

    plan: Plan

    def __call__(self, batches: Batches) -> Batches:
        waiting = [b for b in batches if b.num_rows]
        if not waiting:
            return
        partials = pa.Table.from_batches(waiting)
        pipeline = SlidingPipeline(self.plan)
        self._add_partials(pipeline, _tagged(partials, -1))
        for tag in range(len(self.plan.value_sets)):
            self._add_values(pipeline, tag, _tagged(partials, tag))
        panes = partials.column(PANE).to_numpy()
        newest = int(panes.max())
        if NEWEST in partials.column_names:
            newest = partials.column(NEWEST)[0].as_py()
        pipeline.reach(newest)
        lowered = pipeline.close_all(in_order=False)
        yield from in_batches(handed_over(lowered))

    def _add_partials(self, pipeline: SlidingPipeline, table: pa.Table) -> None:
        lanes = []
        for i, piece in enumerate(self.plan.pieces):
            names = [n for n in table.column_names if n.startswith(f"p{i}_")]
            read = partial_of if is_native(self.plan) else wire.from_arrow
            lanes.append(read(piece, [column_of(table, n) for n in names]))
        pipeline.add_partials(column_of(table, PANE).to_numpy(), self._keys(table), lanes)

    def _add_values(self, pipeline: SlidingPipeline, tag: int, table: pa.Table) -> None:
        names = [n for n in table.column_names if n.startswith(f"v{tag}_")]
        values = [column_of(table, n) for n in names]
        counts = column_of(table, COUNT).to_numpy()
        pipeline.panes.add_values(
            tag, column_of(table, PANE).to_numpy(), self._keys(table), values, counts
        )

    def _keys(self, table: pa.Table) -> list[pa.Array]:
        types = self.plan.key_types
        return [column_of(table, f"{KEY}{i}").cast(t) for i, t in enumerate(types)]


def _tagged(table: pa.Table, tag: int) -> pa.Table:
    """The rows with a tag; all of them where there is nothing to tell apart."""
    if TAG not in table.column_names:
        return table
    return table.filter(pc.equal(table.column(TAG), tag))
