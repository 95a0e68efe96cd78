"""A query over streaming DataFrames: combine before the shuffle, one pane store per shard.

    rows --select--> position, keys, arguments --mapInArrow: combine--> a package per shard
         --shuffle by shard--> transformWithState: pane store --> answers, late rows, status
         --mapInArrow: unpack--> typed rows --select--> what was asked

`panes.spark.host` has the part between `combine` and the pane store.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it
from pyspark.sql import types as T  # noqa: N812

from panes.errors import QueryError
from panes.language.expressions import quoted
from panes.nodes.gate import promise_column
from panes.nodes.promised_columns import promising_columns
from panes.nodes.status import STATUS as STATUS_OF_ANSWER
from panes.nodes.status import require_flushable, status_columns
from panes.planning.plan import Plan
from panes.planning.terms import CheckedOptions, StreamOptions, require_streamable
from panes.shards.combiner import Combiner
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
from panes.shards.query_filler import PlanFiller
from panes.shards.query_shard import Outcome, QueryShard
from panes.spark.answers import (
    answer_texts,
    handed_over,
    handed_over_schema,
    promise_row,
    selected,
    with_edges,
)
from panes.spark.bind import (
    BoundQuery,
    arrow_schema,
    is_inside,
    is_row,
    of_rows,
    promising,
    row_text,
    sql,
    ticks,
)
from panes.spark.column_names import END, PACKAGE, PASSES, SET_ASIDE, STATUS
from panes.spark.emit import KIND, REASON, WHOLE, Emit, survives_pandas, with_status
from panes.spark.host import REPLACED, Hosted, host, require_progress, shard_numbers
from panes.spark.internals import to_arrow_schema
from panes.spark.observe import DEFAULT, observed

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, slots=True)
class NodePlace:
    """Where a query stands among those of a text: which of its own streams are read where.

    `streams` are those of the whole text, whose rows may be set aside. A bounded one has not ended
    while streams that are read `elsewhere` have data. What others read is a node: it `promises`.
    """

    streams: tuple[DataFrame, ...] = ()
    elsewhere: tuple[DataFrame, ...] = ()
    promises: bool = False


ALONE = NodePlace()


def answer(
    bound: BoundQuery, terms: CheckedOptions, run: StreamOptions, place: NodePlace = ALONE
) -> DataFrame:
    """The answers, as a streaming DataFrame in append mode."""
    tagged = _tagged(bound, terms, run, place)
    said = status_columns(bound.plan, terms)
    answers = selected(bound, tagged.where(F.col(END).isNotNull()), said)
    is_replaced = STATUS_OF_ANSWER in said
    return answers.withMetadata(STATUS_OF_ANSWER, {REPLACED: True}) if is_replaced else answers


def answers_promised(
    bound: BoundQuery, terms: CheckedOptions, run: StreamOptions, place: NodePlace
) -> DataFrame:
    """Answers as another query reads them, with what is promised of those to come.

    A promise is a row with the first positions that answers may still have. Rows that were set
    apart are there, too, if they are wanted: whoever reads the answers passes them on.
    """
    tagged = _tagged(bound, terms, run, place)
    edged = with_edges(bound, tagged.where(F.col(STATUS).isNull()))
    having = bound.plan.query.having
    if having is not None:
        edged = edged.where(F.when(is_row(edged), sql(having)).otherwise(F.lit(True)))
    hidden = [name for name in HIDDEN if name in edged.columns]
    answers = edged.selectExpr(*answer_texts(bound.plan, if_row=row_text(edged)), *hidden)
    return promising(answers, promising_columns(bound.plan.query), bounded=run.bounded)


def answers_and_set_aside(
    bound: BoundQuery, terms: CheckedOptions, run: StreamOptions, place: NodePlace = ALONE
) -> DataFrame:
    """Answers and the rows set apart, late or rejected, in one streaming DataFrame.

    Column ``answer`` is a struct of what was selected, NULL in rows that are none. Column
    ``apart`` is a struct of ``kind``, ``reason`` and ``row``, NULL in answers.
    """
    edged = with_edges(bound, _tagged(bound, terms, run, place))
    is_answer, is_set_aside = F.col(END).isNotNull(), F.col(SET_ASIDE).isNotNull()
    having = bound.plan.query.having
    passes = is_answer if having is None else is_answer & sql(having)
    wanted = edged.where(passes | is_set_aside)
    answer = F.when(
        is_answer,
        F.struct(*map(F.expr, answer_texts(bound.plan, status_columns(bound.plan, terms)))),
    )
    return wanted.select(
        answer.alias("answer"), rows_apart(place.streams or bound.frames).alias("apart")
    )


def rows_apart(frames: Sequence[DataFrame]) -> Column:
    """Rows that were set apart, with the kind and the reason; NULL in others."""
    apart = F.col(SET_ASIDE)
    row = apart[WHOLE].cast(row_type(frames)).alias(WHOLE)
    return F.when(apart.isNotNull(), F.struct(apart[KIND], apart[REASON], row))


def _tagged(
    bound: BoundQuery, terms: CheckedOptions, run: StreamOptions, place: NodePlace = ALONE
) -> DataFrame:
    """Everything the store emits: answers before the SELECT, rows set apart, and status.

    If the query `promises`, also what is promised of answers to come.
    """
    plan, streams = bound.plan, bound.plan.query.streams
    require_progress(terms, streams, bounded=run.bounded)
    require_streamable(plan)
    if terms.flush is not None:
        require_flushable(plan)
    if plan.window.origin_first:
        raise QueryError(
            "ORIGIN FIRST over a stream on Spark: where panes begin would be known only later",
            hint="give the origin itself: ORIGIN '2026-01-01'",
        )
    keyed = bool(plan.shard_columns)
    shards = shard_numbers(bound.frames[0].sparkSession, run.shards, is_keyed=keyed)
    own = [i for i, frame in enumerate(bound.frames) if not is_inside(frame)]
    several = (len(bound.frames), len(own)) != (1, 1) or terms.heartbeat is not None or run.bounded
    whole = place.streams or bound.frames if run.with_late else None
    projected = [
        project(bound, number, terms, source=number if several else None, row_of=whole)
        for number in range(len(bound.frames))
    ]
    row = None if whole is None else whole_type(whole)
    emitted = _emitted_schema(plan, row, status_columns(plan, terms))
    emitted = emitted.add(PROMISE, "long") if place.promises else emitted
    emit = Emit(
        to_arrow_schema(emitted), not survives_pandas(emitted), _Shown(plan, place.promises)
    )
    count, keep_rows = len(shards), terms.drops_late
    step = terms.step_on(plan.placing.kind)
    hosted = Hosted(
        combiner=lambda: Combiner(PlanFiller(plan, keep_rows), count, max_step=step),
        shard=lambda state: QueryShard(plan, terms, state, shards=count),
        emit=emit,
        output=T.StructType().add(PACKAGE, "binary") if emit.packed else emitted,
    )
    stored = host(
        projected,
        hosted,
        shards,
        terms if own else replace(terms, heartbeat=None),
        bounded=run.bounded and len(own) == len(projected),
        elsewhere=place.elsewhere,
        beating=[EVERY_SOURCE] if len(own) == len(projected) else own,
    )
    typed = stored.mapInArrow(emit.unpack, emitted) if emit.packed else stored
    return observed(typed, run.name or DEFAULT, STATUS)


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
) -> dict[str, Column]:
    """The columns of `project`, over the DataFrame of that number."""
    plan, frame = bound.plan, bound.frames[number]
    columns = placed_columns(bound, number, terms, source=source, row_of=row_of)
    expressions = [of_rows(frame, sql(e)) for e in plan.rows.evaluated]
    if plan.rows.where is not None:
        passing = F.coalesce(of_rows(frame, sql(plan.rows.where)), F.lit(False))
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
) -> dict[str, Column]:
    """Where the rows of a stream lie, what is promised of them, and the whole rows."""
    plan, frame, stream = bound.plan, bound.frames[number], bound.plan.query.streams[number]
    at, own = ticks(frame, plan.axis.column or ""), terms.of(stream)
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
        columns[PROMISE] = ticks(
            frame, promise_column(plan.placing, schema, own.punctuation, stream)
        )
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


def whole_type(frames: Sequence[DataFrame]) -> T.StructType:
    """The type of a whole row: the columns of all streams, under numbers.

    A name may hold what Arrow cuts off.
    """
    fields = enumerate(row_type(frames))
    return T.StructType([T.StructField(f"c{i}", f.dataType) for i, f in fields])


def whole_row(frames: Sequence[DataFrame], frame: DataFrame) -> Column:
    """A row of one of these streams with the columns of all."""
    own = set(frame.columns)
    values = (F.col(quoted(f.name)) if f.name in own else F.lit(None) for f in row_type(frames))
    types = whole_type(frames)
    return F.struct(*(v.cast(f.dataType).alias(f.name) for v, f in zip(values, types, strict=True)))


def row_type(frames: Sequence[DataFrame]) -> T.StructType:
    """The columns that a query reads of all streams; text where their types differ."""
    types: dict[str, T.DataType] = {}
    for frame in frames:
        for f in frame.drop(PASSES, *HIDDEN).schema.fields:
            same = types.get(f.name, f.dataType) == f.dataType
            types[f.name] = f.dataType if same else T.StringType()
    return T.StructType([T.StructField(name, kind) for name, kind in types.items()])


@dataclass(frozen=True, slots=True)
class _Shown:
    """What leaves a store of windows: answers, and what is promised of those to come if wanted."""

    plan: Plan
    promises: bool

    def __call__(self, outcome: Outcome) -> list[pa.Table]:
        answers = [handed_over(outcome.answers)]
        if not self.promises:
            return answers
        if outcome.next_end == ENDED:
            return [*answers, pa.table({PROMISE: [ENDED]})]
        return [*answers, promise_row(self.plan, outcome.next_end)]


def _emitted_schema(plan: Plan, row: T.DataType | None, status: Sequence[str]) -> T.StructType:
    return with_status(handed_over_schema(plan, status), row)
