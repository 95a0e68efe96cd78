"""A query over bounded Spark DataFrames: native fill, then one vectorised roll per partition.

    rows --select--> axis, keys, arguments --groupBy pane, keys--> partials
         --repartition by keys--> mapInArrow: roll --> answers --select--> what was asked

Scalar expressions and filters are Spark's own, before and after. Only partials cross into
Python, so sliding costs what tumbling at the slide costs, whatever the overlap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_type

from panes.aggregates import wire
from panes.aggregates.aggregate import Rows
from panes.arrays.key_numbers import KeyNumbers
from panes.fill.fill import fill
from panes.language.query import KEY
from panes.pipelines.sliding import SlidingPipeline
from panes.planning.plan import Plan
from panes.spark.answers import handed_over, handed_over_schema, selected
from panes.spark.batch.fill import AT, aggregates, is_filled_by_spark, pane_start, partial_of
from panes.spark.bind import BoundQuery, sql, ticks
from panes.windows.cut import cut
from panes.windows.spec import Landmark

PANE, TAG, NEWEST, COUNT = "__pane", "__tag", "__newest", "__count"
Batches = Iterator[pa.RecordBatch]


def answer(bound: BoundQuery) -> DataFrame:
    """The answers to a window query, as a DataFrame that computes them when it is used."""
    plan = bound.plan
    projected = reduce(DataFrame.union, [_project(plan, f) for f in bound.frames])
    if plan.window.origin_first:
        plan = _with_origin(plan, projected)
        bound = replace(bound, plan=plan)
    filled = _fill(plan, projected)
    keys = [F.col(f"{KEY}{i}") for i in range(len(plan.query.keys))]
    placed = _place(filled, keys)
    rolled = placed.mapInArrow(Roll(plan), handed_over_schema(plan))
    return selected(bound, rolled)


def _place(filled: DataFrame, keys: Sequence[Column]) -> DataFrame:
    """All partials of a key in one partition; a fixed number of them, or Spark would merge them."""
    if not keys:
        return filled.coalesce(1)
    partitions = filled.sparkSession.conf.get("spark.sql.shuffle.partitions") or "2"
    return filled.repartition(int(partitions), *keys)


def _project(bound: Plan, frame: DataFrame) -> DataFrame:
    """Axis, keys and arguments of the rows that have a place and pass WHERE."""
    kept = frame if bound.rows.where is None else frame.where(sql(bound.rows.where))
    named = [sql(e).alias(_column(bound, i)) for i, e in enumerate(bound.rows.expressions)]
    placed = kept.select(ticks(frame, bound.axis.column or "").alias(AT), *named)
    return placed.where(F.col(AT).isNotNull())


def _column(bound: Plan, index: int) -> str:
    return f"{KEY}{index}" if index < len(bound.query.keys) else f"__c{index}"


def _columns(bound: Plan) -> list[Column]:
    return [F.col(_column(bound, i)) for i in range(len(bound.rows.expressions))]


def _with_origin(bound: Plan, projected: DataFrame) -> Plan:
    """``ORIGIN FIRST`` needs the smallest position before anything can be cut: one small job."""
    first = projected.agg(F.min(AT)).first()
    shift = 0 if first is None or first[0] is None else first[0]
    spec = replace(bound.spec, origin=bound.spec.origin + shift)
    return replace(bound, window=replace(bound.window, spec=spec))


def _fill(bound: Plan, projected: DataFrame) -> DataFrame:
    """Partials per pane and key, and counted values per multiset, told apart by a tag."""
    columns = _columns(bound)
    keys = [F.col(f"{KEY}{i}") for i in range(len(bound.query.keys))]
    rows = projected.withColumn(PANE, pane_start(cut(bound.spec)))
    if is_native(bound):
        named = [
            column.alias(f"p{i}_{j}")
            for i, piece in enumerate(bound.pieces)
            for j, column in enumerate(aggregates(piece, columns) or [])
        ]
        grouped = rows.groupBy(PANE, *keys)
        partials = grouped.agg(*named) if named else grouped.agg(F.count(F.lit(1)).alias(COUNT))
    else:
        partials = projected.mapInArrow(Fill(bound), _filled_schema(bound))
    parts = [partials if not bound.value_sets else partials.withColumn(TAG, F.lit(-1))]
    for tag, values in enumerate(bound.value_sets):
        kept = reduce(DataFrame.where, [columns[c].isNotNull() for c in values.columns], rows)
        if values.selection.where is not None:
            kept = kept.where(columns[values.selection.where])
        valued = [columns[c].alias(f"v{tag}_{j}") for j, c in enumerate(values.columns)]
        counted = kept.groupBy(PANE, *keys, *valued).agg(F.count(F.lit(1)).alias(COUNT))
        parts.append(counted.withColumn(TAG, F.lit(tag)))
    filled = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), parts)
    if isinstance(bound.spec, Landmark):
        return filled.crossJoin(F.broadcast(projected.agg(F.max(AT).alias(NEWEST))))
    return filled


def is_native(bound: Plan) -> bool:
    """Whether Spark itself can compute every partial of a plan."""
    return all(is_filled_by_spark(p) for p in bound.pieces)


def _filled_schema(bound: Plan) -> T.StructType:
    named = {PANE: pa.int64()}
    named |= {f"{KEY}{i}": t for i, t in enumerate(bound.key_types)}
    for i, piece in enumerate(bound.pieces):
        named |= {f"p{i}_{j}": t for j, t in enumerate(wire.types(piece))}
    return T.StructType([T.StructField(n, from_arrow_type(t)) for n, t in named.items()])


@dataclass(frozen=True, slots=True)
class Fill:
    """Partials of every batch of rows in Python, for aggregates that Spark does not have."""

    plan: Plan

    def __call__(self, batches: Batches) -> Batches:
        with ThreadPoolExecutor(max_workers=1) as executor:
            for batch in batches:
                yield self._fill(batch, executor)

    def _fill(self, batch: pa.RecordBatch, executor: Executor) -> pa.RecordBatch:
        bound = self.plan
        keys = len(bound.key_types)
        columns = tuple(c.cast(t) for c, t in zip(batch.columns[1:], bound.row_types, strict=True))
        groups = KeyNumbers(bound.key_types)
        rows = Rows(batch.column(0).to_numpy(), columns)
        numbers = groups.encode(columns[:keys], len(rows))
        filled = fill(
            rows,
            numbers,
            len(groups),
            cut=cut(bound.spec),
            pieces=bound.pieces,
            executor=executor,
        )
        arrays = [pa.array(filled.starts), *groups.columns(filled.groups)]
        for piece, partial in zip(bound.pieces, filled.partials, strict=True):
            arrays += wire.to_arrow(piece, partial)
        return pa.record_batch(arrays, names=[f.name for f in _filled_schema(bound).fields])


@dataclass(frozen=True, slots=True)
class Roll:
    """What each partition does with the partials of its keys: roll, lower, hand over."""

    plan: Plan

    def __call__(self, batches: Batches) -> Batches:
        held = [b for b in batches if b.num_rows]
        if not held:
            return
        partials = pa.Table.from_batches(held)
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
        sent = handed_over(lowered)
        yield from sent.combine_chunks().to_batches(max_chunksize=1 << 16)

    def _add_partials(self, pipeline: SlidingPipeline, table: pa.Table) -> None:
        lanes = []
        for i, piece in enumerate(self.plan.pieces):
            names = [n for n in table.column_names if n.startswith(f"p{i}_")]
            read = partial_of if is_native(self.plan) else wire.from_arrow
            lanes.append(read(piece, [_array(table, n) for n in names]))
        pipeline.add_partials(_array(table, PANE).to_numpy(), self._keys(table), lanes)

    def _add_values(self, pipeline: SlidingPipeline, tag: int, table: pa.Table) -> None:
        names = [n for n in table.column_names if n.startswith(f"v{tag}_")]
        values = [_array(table, n) for n in names]
        counts = _array(table, COUNT).to_numpy()
        pipeline.panes.add_values(
            tag, _array(table, PANE).to_numpy(), self._keys(table), values, counts
        )

    def _keys(self, table: pa.Table) -> list[pa.Array]:
        types = self.plan.key_types
        return [_array(table, f"{KEY}{i}").cast(t) for i, t in enumerate(types)]


def _tagged(table: pa.Table, tag: int) -> pa.Table:
    """The rows with a tag; all of them where there is nothing to tell apart."""
    if TAG not in table.column_names:
        return table
    return table.filter(pc.equal(table.column(TAG), tag))


def _array(table: pa.Table, name: str) -> pa.Array:
    return table.column(name).combine_chunks()
