"""A join of streaming DataFrames: rows to the shards of their keys, one OA-Join per shard.

    rows of each side --select--> position, columns --mapInArrow: combine--> a package per shard
         --shuffle by shard--> transformWithState: the stored rows of a shard --> joined rows
         --select--> what was asked, or --> windows above, in the same streaming query

Shards also give what is promised of joined rows to come, each the same, in every batch. To the
windows above that is a punctuation like any other, so they close in the batch that proves it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import types as T  # noqa: N812

from panes.errors import QueryError
from panes.nodes.join_stage import WID
from panes.nodes.promised_answers import at_least
from panes.planning.join_plan import JoinPlan
from panes.planning.join_query_plan import AT, Aggregation, JoinQueryPlan
from panes.planning.join_terms import require_join_options, require_streamable_join
from panes.planning.terms import (
    CheckedOptions,
    StreamOptions,
    check_options,
    require_clock,
    require_terms,
)
from panes.shards.combiner import Combiners, combiners
from panes.shards.join_keys import shard_keys
from panes.shards.join_shard import JoinShard
from panes.shards.names import PROMISE, column_name
from panes.shards.outcome import Placed, Promised
from panes.shards.sent_rows import rows_of_side
from panes.spark.answers import from_ticks, named
from panes.spark.bind import AS_THEY_ARE, Made, is_inside, selected_as
from panes.spark.column_names import SET_ASIDE
from panes.spark.host import TaskRows, require_progress, shard_numbers, with_watermark
from panes.spark.join.bind import BoundJoin
from panes.spark.observe import DEFAULT, JOIN
from panes.spark.refusals import require_not_of_process
from panes.spark.stream.distinct import different_rows
from panes.spark.stream.node import NodePlace, StreamNode
from panes.spark.stream.query import projected_columns

_TICKS: dict[type[T.DataType], T.DataType] = {
    T.TimestampType: T.LongType(),
    T.TimestampNTZType: T.LongType(),
    T.DateType: T.IntegerType(),
}
"""Types that do not go through pandas unchanged, and the numbers that stand for them there."""


def terms_of(bound: BoundJoin, run: StreamOptions) -> tuple[StreamOptions, CheckedOptions]:
    """The terms of the joined streams; lateness may come from their own watermarks.

    Sides that are answers of a query inside keep their promises, whatever is said of streams.
    """
    plan = bound.plan
    require_join_options(plan.query, run)
    require_streamable_join(plan)
    require_not_of_process(run)
    placed = [(frame, s.plan.axis.column or "") for s in bound.sides for frame in s.frames]
    run = with_watermark(placed, run)
    asked = plan.join.right.plan.query
    require_terms(run, asked, plan.join.axis.kind)
    terms = check_options(asked, replace(run, flush=None, why=False, store=None))
    require_clock(run)
    require_progress(
        terms, plan.query.streams, bounded=run.bounded, otherwise="every row would be kept for ever"
    )
    return run, terms


def joined_stream(
    bound: BoundJoin,
    terms: CheckedOptions,
    run: StreamOptions,
    place: NodePlace,
    along: Sequence[Placed],
) -> DataFrame:
    """What the shards give, under joined names: joined rows, promises, rows set apart.

    A promise is a row with the first positions, of those that readers lie `along`, that joined rows
    may still have. Groups by positions close by joint punctuation, one by one.
    """
    join = bound.plan.join
    groups = bound.plan if "positions" in along else None
    sides = [by for by in along if by != "positions"]
    keys = shard_keys(join)
    shards = shard_numbers(bound.frames[0].sparkSession, run.shards, is_keyed=bool(keys[0]))
    count = len(shards)
    whole = place.whole(bound.frames, run)
    node = StreamNode(
        bound.frames,
        [
            TaskRows(list(map(selected_as, side.frames, side.columns)), side.combiner)
            for side in read_sides(bound, terms, count, whole)
        ],
        shards,
        lambda state: JoinShard(join, terms, state, shards=count, along=sides, groups=groups),
        _joined_schema(bound, along),
        _numbered,
        partial(_promised, join) if along else None,
        whole,
    )
    name = (run.name or DEFAULT) + ("" if bound.plan.aggregation is None else JOIN)
    return _under_joined_names(bound, node.stream(terms, run, place, name))


@dataclass(frozen=True, slots=True)
class ReadSide:
    """What tasks read of one side of a join: columns of each of its streams, by its name."""

    names: tuple[str, ...]
    frames: tuple[DataFrame, ...]
    columns: tuple[Mapping[str, Column], ...]
    combiner: Combiners


def read_sides(
    bound: BoundJoin,
    terms: CheckedOptions,
    shards: int,
    whole: Sequence[DataFrame] | None = None,
    made: Mapping[str, Made] = MappingProxyType({}),
) -> Iterator[ReadSide]:
    """What tasks read of the streams of each side, which are numbered through.

    What a register reads is `made` of the rows of streams as they are.
    """
    keys, source = shard_keys(bound.plan.join), 0
    for number, (side, of) in enumerate(zip(bound.plan.join.sources, bound.sides, strict=True)):
        columns = tuple(
            projected_columns(
                of,
                place,
                terms,
                source=source + place,
                row_of=whole,
                made=made.get(name, AS_THEY_ARE),
            )
            for place, name in enumerate(side.source.streams)
        )
        source += len(columns)
        filler = partial(rows_of_side, side, number, keys[number])
        combiner = combiners(filler, shards, terms, side.plan.placing)
        yield ReadSide(side.source.streams, of.frames, columns, combiner)


def _numbered(joined: pa.Table) -> pa.Table:
    """Joined rows under numbers."""
    names = [n if n in (WID, AT) else column_name(i) for i, n in enumerate(joined.column_names)]
    return joined.rename_columns(names)


def _promised(join: JoinPlan, said: Promised) -> dict[str, pa.Array] | None:
    """A row that has promised positions where rows have theirs."""
    types, found = {f.name: f.type for f in join.schema()}, {}
    for by, at in said.items():
        own = {"left": join.left_at, "right": join.right_at}.get(by)
        if own is None:
            found[WID if by == "window" else AT] = pa.array([at])
        elif own in join.columns:
            first = at_least(at, types[own])
            found[column_name(join.columns.index(own))] = _as_number(first)
    return found if said else None


def _as_number(values: pa.Array) -> pa.Array:
    """Values as they leave a shard: those of a type of time as numbers."""
    if pa.types.is_date32(values.type):
        return values.view(pa.int32())
    return values.view(pa.int64()) if pa.types.is_timestamp(values.type) else values


def _types(bound: BoundJoin) -> dict[str, T.DataType]:
    """Spark's types of all joined columns."""
    found: dict[str, T.DataType] = {}
    for side, of in zip(bound.plan.join.sources, bound.sides, strict=True):
        for name in side.columns:
            own = name.removeprefix(f"{side.name}.")
            found[name] = of.frames[0].schema[own].dataType
    return found


def _joined_schema(bound: BoundJoin, along: Sequence[Placed]) -> T.StructType:
    """The columns of joined rows as they leave a shard."""
    types, schema = _types(bound), T.StructType()
    for i, name in enumerate(bound.plan.join.columns):
        schema = schema.add(column_name(i), _TICKS.get(type(types[name]), types[name]))
    if bound.plan.join.windows is not None:
        schema = schema.add(WID, "long")
    if not {"positions", "max", "min"}.isdisjoint(along):
        schema = schema.add(AT, "long")
    return schema


def _under_joined_names(bound: BoundJoin, given: DataFrame) -> DataFrame:
    """Joined rows, promises and rows set apart; columns under their own names, in their types."""
    types = _types(bound)
    columns = [
        named(from_ticks(column_name(i), types[name]), name)
        for i, name in enumerate(bound.plan.join.columns)
    ]
    others = [n for n in (WID, AT, PROMISE, SET_ASIDE) if n in given.columns]
    return given.selectExpr(*columns, *others)


def lies_on(plan: JoinQueryPlan, found: Aggregation) -> Placed:
    """What the windows above lie on; groups that would never close are refused."""
    by_left, by_right = found.grouped
    if found.by != "positions" or (by_left and by_right):
        return found.by
    may_lack = ("right", "full") if by_left else ("left", "full")
    if plan.join.how in may_lack:
        at = plan.join.left_at if by_left else plan.join.right_at
        raise QueryError(
            f"on streams, joined rows without `{at}` would be kept for ever in one group",
            hint="group by the positions of both sides, or give a window: "
            f"count(*) [TUMBLING 1 minute WATTR {at}]",
        )
    return found.by


def different_sides(
    bound: BoundJoin, terms: CheckedOptions, run: StreamOptions, place: NodePlace
) -> tuple[BoundJoin, CheckedOptions]:
    """The same join, of different rows where FROM takes each row of a stream once."""
    sides = []
    for side in bound.sides:
        others = (frame for other in bound.sides if other is not side for frame in other.frames)
        elsewhere = (*place.elsewhere, *(frame for frame in others if not is_inside(frame)))
        alone, terms = different_rows(side, terms, run, replace(place, elsewhere=elsewhere))
        sides.append(alone)
    return replace(bound, sides=tuple(sides)), terms
