"""A query over streaming DataFrames: tasks fill panes, each shard has a pane store.

rows --select--> position, keys, arguments --node of pane stores--> answers before the SELECT,
     promises, rows set apart --select--> what was selected
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it

from panes.axis import Axis
from panes.errors import QueryError
from panes.nodes.gate import promise_column
from panes.nodes.status import STATUS as STATUS_OF_ANSWER
from panes.nodes.status import require_flushable, status_columns
from panes.planning.plan import Plan
from panes.planning.terms import CheckedOptions, StreamOptions, require_streamable
from panes.shards.combiner import combiners
from panes.shards.names import (
    AT,
    ENDED,
    EVERY_SOURCE,
    HIDDEN,
    PROMISE,
    ROW,
    SOURCE,
    TOO_FAR_AHEAD,
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
    row_columns,
    selected_as,
    ticks,
)
from panes.spark.column_names import END, SET_ASIDE
from panes.spark.host import REPLACED, TaskRows, shard_numbers
from panes.spark.observe import DEFAULT
from panes.spark.stream.node import NodePlace, StreamNode, whole_row


def answers(
    bound: BoundQuery, terms: CheckedOptions, run: StreamOptions, place: NodePlace
) -> DataFrame:
    """What was selected, as a streaming DataFrame in append mode.

    If others read it, promises are among its rows, with the first positions that answers may still
    have. So are rows that were set apart, if they are wanted: whoever reads answers passes them on.
    """
    plan, said = bound.plan, status_columns(bound.plan, terms)
    given = _node(bound, terms, run, place).stream(terms, run, place, run.name or DEFAULT)
    hidden = [name for name in HIDDEN if name in given.columns]
    rows = given if hidden else given.where(F.col(END).isNotNull())
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
    plan = bound.plan
    require_hosted(plan)
    if terms.flush is not None:
        require_flushable(plan)
    keyed = bool(plan.shard_columns)
    shards = shard_numbers(bound.frames[0].sparkSession, run.shards, is_keyed=keyed)
    own = [frame for frame in bound.frames if not is_inside(frame)]
    several = (len(bound.frames), len(own)) != (1, 1) or terms.heartbeat is not None or run.bounded
    whole = place.whole(bound.frames, run)
    columns = (
        projected_columns(bound, n, terms, source=n if several else None, row_of=whole)
        for n in range(len(bound.frames))
    )
    count, filler = len(shards), partial(filler_of, plan, keep_rows=terms.drops_late)
    combiner = combiners(filler, count, terms, plan.placing, notes_positions=True)
    return StreamNode(
        bound.frames,
        [TaskRows(list(map(selected_as, bound.frames, columns)), combiner)],
        shards,
        lambda state: QueryShard(plan, terms, state, shards=count),
        handed_over_schema(plan, status_columns(plan, terms)),
        handed_over,
        partial(promised_row, plan) if place.promises else None,
        whole,
    )


def require_hosted(plan: Plan) -> None:
    """Refuse windows that would keep every value, or whose panes begin where the first row is."""
    require_streamable(plan)
    if plan.window.origin_first:
        raise QueryError(
            "ORIGIN FIRST over a stream on Spark: where panes begin would be known only later",
            hint="give the origin itself: ORIGIN '2026-01-01'",
        )


def projected_columns(
    bound: BoundQuery,
    number: int,
    terms: CheckedOptions,
    *,
    source: int | None = None,
    row_of: Sequence[DataFrame] | None = None,
    made: Made = AS_THEY_ARE,
) -> dict[str, Column]:
    """What the combiner needs of a stream: no row is left out, since each one makes progress.

    Rows are those of the `source` of that number, if it is given. With `row_of`, each has its whole
    row too, with the columns of all these DataFrames. What a register reads is `made` of the rows
    of a stream as they are.
    """
    columns = placed_columns(bound, number, terms, source=source, row_of=row_of, made=made)
    return columns | row_columns(bound.plan, bound.frames[number], made)


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
    frame, stream = bound.frames[number], bound.plan.query.streams[number]
    columns = positions(frame, bound.plan.placing, terms.of(stream), stream, made)
    if is_inside(frame):
        columns = _promised_columns(columns[AT], source or 0)
    elif source is not None:
        columns[SOURCE] = F.lit(source)
    if row_of is not None and (ROW in frame.columns or not is_inside(frame)):
        columns[ROW] = F.col(ROW) if ROW in frame.columns else whole_row(row_of, frame)
    if SET_ASIDE in frame.columns:
        columns[SET_ASIDE] = F.col(SET_ASIDE)
    return columns


def positions(
    frame: DataFrame, axis: Axis, terms: CheckedOptions, stream: str, made: Made = AS_THEY_ARE
) -> dict[str, Column]:
    """Where the rows of a stream lie, and what they promise."""
    at = ticks(frame, axis.column or "", made)
    if axis.kind == "time" and terms.lateness is not None and terms.max_ahead is not None:
        latest = F.unix_micros(F.current_timestamp()) + F.lit(terms.max_ahead)
        at = F.when(at > latest, F.lit(TOO_FAR_AHEAD)).otherwise(at)
    if terms.punctuation is None:
        return {AT: at}
    promised = promise_column(axis, arrow_schema(frame), terms.punctuation, stream)
    return {AT: at, PROMISE: ticks(frame, promised, made)}


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
