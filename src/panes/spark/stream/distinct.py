"""SELECT DISTINCT inside FROM, on a stream: a node of its own before what reads the rows.

    rows --select--> position, columns --mapInArrow: combine--> a package per shard of equal rows
         --shuffle by shard--> transformWithState: rows that have come --> rows that are new

Rows that come late are passed on with the others, with the same promise as before: whoever reads
them tells which are late.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it
from pyspark.sql import types as T  # noqa: N812

from panes.axis import BEGINNING
from panes.nodes.distinct import require_comparable
from panes.nodes.inputs import remembered
from panes.nodes.promised_answers import at_least
from panes.planning.terms import CheckedOptions, StreamOptions
from panes.shards.combiner import combiners
from panes.shards.distinct_shard import DistinctShard
from panes.shards.names import HIDDEN, PASSING, PROMISE, ROW, column_name
from panes.shards.outcome import Promised
from panes.shards.sent_rows import rows_of_schema
from panes.spark.bind import BoundQuery, arrow_schema, is_inside, selected_as
from panes.spark.column_names import PASSES, SET_ASIDE
from panes.spark.host import TaskRows, shard_numbers
from panes.spark.observe import DEFAULT
from panes.spark.stream.node import NodePlace, StreamNode, whole_type
from panes.spark.stream.query import placed_columns


def different_rows(
    bound: BoundQuery, terms: CheckedOptions, run: StreamOptions, place: NodePlace
) -> tuple[BoundQuery, CheckedOptions]:
    """The same query, of the different rows of those streams of which FROM takes each row once.

    Where a stream ends depends on the other streams of the query, too.
    """
    frames, found = list(bound.frames), set()
    for number, inner in enumerate(bound.plan.query.inner):
        if inner is not None and inner.distinct:
            others = [f for i, f in enumerate(bound.frames) if i != number and not is_inside(f)]
            elsewhere = (*place.elsewhere, *others)
            alone = replace(place, elsewhere=elsewhere)
            frames[number] = _different(bound, number, terms, run, alone)
            found.add(bound.plan.query.streams[number])
    return replace(bound, frames=tuple(frames)), replace(terms, inside=terms.inside | found)


def _different(
    bound: BoundQuery, number: int, terms: CheckedOptions, run: StreamOptions, place: NodePlace
) -> DataFrame:
    """The rows of one stream that have not come before, and what is promised of those to come."""
    plan, frame = bound.plan, bound.frames[number]
    stream = plan.query.streams[number]
    schema = pa.schema([f for f in arrow_schema(frame) if f.name != PASSES])
    require_comparable(schema)
    whole = place.whole(bound.frames, run)
    columns = placed_columns(bound, number, terms, source=0, row_of=whole)
    if PASSES in frame.columns:
        columns[PASSING] = F.col(PASSES)
    columns |= {column_name(i): F.col(f"`{f.name}`") for i, f in enumerate(schema)}
    position = next(i for i, f in enumerate(schema) if f.name == plan.axis.column)
    shards = shard_numbers(frame.sparkSession, run.shards, is_keyed=True)
    count, own, within = len(shards), terms.of(stream), remembered(plan.query, terms)
    visible = (f for f in frame.schema if f.name not in (*HIDDEN, PASSES))
    given = T.StructType([T.StructField(column_name(i), f.dataType) for i, f in enumerate(visible)])
    filler = partial(rows_of_schema, plan.axis.column, schema)
    node = StreamNode(
        [frame],
        [TaskRows([selected_as(frame, columns)], combiners(filler, count, own, plan.placing))],
        shards,
        lambda state: DistinctShard(schema, within, own, state, shards=count),
        given if whole is None else given.add(ROW, whole_type(whole)),
        lambda rows: rows,
        partial(_promised, position, schema),
        whole,
    )
    told = node.stream(own, run, place, f"{run.name or DEFAULT}_{stream}_distinct")
    names = [F.col(column_name(i)).alias(f.name) for i, f in enumerate(schema)]
    hidden = [name for name in (PROMISE, ROW, SET_ASIDE) if name in told.columns]
    flags = [F.lit(True).alias(PASSES)] if PASSES in frame.columns else []
    return told.select(*names, *hidden, *flags)


def _promised(position: int, schema: pa.Schema, said: Promised) -> dict[str, pa.Array] | None:
    """What is promised of rows to come, as a row with that position."""
    if said["left"] == BEGINNING:
        return None
    return {column_name(position): at_least(said["left"], schema.types[position])}
