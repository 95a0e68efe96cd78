"""A query over streaming DataFrames: tasks fill panes, each shard has a pane store.

rows --select--> position, keys, arguments --node of pane stores--> answers before the SELECT,
     promises, rows set apart --select--> what was selected
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it

from panes.errors import QueryError
from panes.language.query import Query
from panes.nodes.gate import promise_column
from panes.nodes.status import STATUS as STATUS_OF_ANSWER
from panes.nodes.status import require_flushable, status_columns
from panes.planning.terms import CheckedOptions, StreamOptions, require_streamable
from panes.shards.combiner import combiners
from panes.shards.names import (
    AT,
    ENDED,
    EVERY_SOURCE,
    HIDDEN,
    PASSING,
    PROMISE,
    ROW,
    SOURCE,
    TOO_FAR_AHEAD,
    column_name,
)
from panes.shards.query_filler import filler_of
from panes.shards.query_shard import QueryShard
from panes.spark.answers import (
    finished,
    handed_over,
    handed_over_schema,
    promised_row,
    start_text,
)
from panes.spark.bind import (
    AS_THEY_ARE,
    BoundQuery,
    Made,
    arrow_schema,
    is_inside,
    of_rows,
    sql,
    ticks,
)
from panes.spark.column_names import END, SET_ASIDE, STATUS
from panes.spark.emit import Emit, with_status
from panes.spark.host import REPLACED, TaskRows, require_progress, shard_numbers
from panes.spark.observe import DEFAULT
from panes.spark.stream.node import NodePlace, StreamNode, whole_row, whole_type


def answers(
    bound: BoundQuery, terms: CheckedOptions, run: StreamOptions, place: NodePlace
) -> DataFrame:
    """What was selected, as a streaming DataFrame in append mode.

    If others read it, promises are among its rows, with the first positions that answers may still
    have. So are rows that were set apart, if they are wanted: whoever reads answers passes them on.
    """
    plan, said = bound.plan, status_columns(bound.plan, terms)
    given = _node(bound, terms, run, place).rows(terms, run, place, run.name or DEFAULT)
    hidden = [name for name in HIDDEN if name in given.columns]
    rows = given.where(F.col(STATUS).isNull() if hidden else F.col(END).isNotNull())
    start = start_text(plan)
    selected = finished(plan, rows, bound.axis_type, start=start, status=said, hidden=hidden)
    is_replaced = STATUS_OF_ANSWER in said
    return selected.withMetadata(STATUS_OF_ANSWER, {REPLACED: True}) if is_replaced else selected


def _node(
    bound: BoundQuery, terms: CheckedOptions, run: StreamOptions, place: NodePlace
) -> StreamNode:
    """The pane stores, which give answers before the SELECT.

    If the query `promises`, also what is promised of answers to come.
    """
    plan, streams = bound.plan, bound.plan.query.streams
    require_progress(terms, streams, bounded=run.bounded)
    require_streamable(plan)
    if terms.flush is not None:
        require_flushable(plan)
    require_fixed_origin(plan.query)
    keyed = bool(plan.shard_columns)
    shards = shard_numbers(bound.frames[0].sparkSession, run.shards, is_keyed=keyed)
    own = [frame for frame in bound.frames if not is_inside(frame)]
    several = (len(bound.frames), len(own)) != (1, 1) or terms.heartbeat is not None or run.bounded
    whole = place.streams or bound.frames if run.with_late else None
    projected = [
        project(bound, number, terms, source=number if several else None, row_of=whole)
        for number in range(len(bound.frames))
    ]
    given = handed_over_schema(plan, status_columns(plan, terms))
    given = with_status(given, None if whole is None else whole_type(whole))
    given = given.add(PROMISE, "long") if place.promises else given
    count, filler = len(shards), partial(filler_of, plan, keep_rows=terms.drops_late)
    combiner = combiners(filler, count, terms, plan.placing, notes_positions=True)
    return StreamNode(
        bound.frames,
        [TaskRows(projected, combiner)],
        shards,
        lambda state: QueryShard(plan, terms, state, shards=count),
        Emit.of(given, handed_over, partial(promised_row, plan) if place.promises else None),
        given,
    )


def require_fixed_origin(query: Query) -> None:
    """Refuse windows whose panes begin where the first row is."""
    if query.window is not None and query.window.origin_first:
        raise QueryError(
            "ORIGIN FIRST over a stream on Spark: where panes begin would be known only later",
            hint="give the origin itself: ORIGIN '2026-01-01'",
        )


def project(
    bound: BoundQuery,
    number: int,
    terms: CheckedOptions,
    *,
    source: int | None = None,
    row_of: Sequence[DataFrame] | None = None,
) -> DataFrame:
    """What the combiner needs of a stream: no row is left out, since each one makes progress.

    Rows are those of the `source` of that number, if it is given. With `row_of`, each has its whole
    row too, with the columns of all these DataFrames.
    """
    columns = projected_columns(bound, number, terms, source=source, row_of=row_of)
    return bound.frames[number].select(*(c.alias(name) for name, c in columns.items()))


def projected_columns(
    bound: BoundQuery,
    number: int,
    terms: CheckedOptions,
    *,
    source: int | None = None,
    row_of: Sequence[DataFrame] | None = None,
    made: Made = AS_THEY_ARE,
) -> dict[str, Column]:
    """The columns of `project`, over the DataFrame of that number, or what that is `made` of."""
    plan, frame = bound.plan, bound.frames[number]
    columns = placed_columns(bound, number, terms, source=source, row_of=row_of, made=made)
    expressions = [of_rows(frame, sql(e, made)) for e in plan.rows.evaluated]
    if plan.rows.where is not None:
        passing = F.coalesce(of_rows(frame, sql(plan.rows.where, made)), F.lit(False))
        columns[PASSING] = passing
        counted = plan.partition_columns if plan.counts_rows else ()
        expressions = [
            e if i in counted else F.when(passing, e)  # no other row is to be evaluated
            for i, e in enumerate(expressions)
        ]
    return columns | {column_name(i): e for i, e in enumerate(expressions)}


def placed_columns(
    bound: BoundQuery,
    number: int,
    terms: CheckedOptions,
    *,
    source: int | None = None,
    row_of: Sequence[DataFrame] | None = None,
    made: Made = AS_THEY_ARE,
) -> dict[str, Column]:
    """Where the rows of a stream lie, what is promised of them, and the whole rows."""
    plan, frame, stream = bound.plan, bound.frames[number], bound.plan.query.streams[number]
    at, own = ticks(frame, plan.axis.column or "", made), terms.of(stream)
    if is_inside(frame):
        columns = _promised_columns(at, source or 0)
    else:
        columns = {AT: at}
        if source is not None:
            columns[SOURCE] = F.lit(source)
    if plan.placing.kind == "time" and own.lateness is not None and own.max_ahead is not None:
        latest = F.unix_micros(F.current_timestamp()) + F.lit(own.max_ahead)
        columns[AT] = F.when(at > latest, F.lit(TOO_FAR_AHEAD)).otherwise(at)
    if own.punctuation is not None:
        schema = arrow_schema(frame)
        name = promise_column(plan.placing, schema, own.punctuation, stream)
        columns[PROMISE] = ticks(frame, name, made)
    if row_of is not None and (ROW in frame.columns or not is_inside(frame)):
        columns[ROW] = F.col(ROW) if ROW in frame.columns else whole_row(row_of, frame)
    if SET_ASIDE in frame.columns:
        columns[SET_ASIDE] = F.col(SET_ASIDE)
    return columns


def _promised_columns(at: Column, source: int) -> dict[str, Column]:
    """Where the rows of a node lie, and its promises, which have a position as rows have.

    A promise of columns of which none is the position says nothing, and is no row of the source.
    """
    said = F.when(F.col(PROMISE) == ENDED, F.lit(ENDED)).when(F.col(PROMISE).isNotNull(), at)
    is_silent = F.col(PROMISE).isNotNull() & said.isNull()
    return {
        AT: F.when(F.col(PROMISE).isNull(), at),
        PROMISE: said,
        SOURCE: F.when(is_silent, F.lit(EVERY_SOURCE)).otherwise(F.lit(source)),
    }
