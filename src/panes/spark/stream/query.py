"""A query over streaming DataFrames: combine before the shuffle, one pane store per shard.

    rows --select--> position, keys, arguments --mapInArrow: combine--> a package per shard
         --shuffle by shard--> transformWithState: pane store --> answers, late rows, status
         --mapInArrow: unpack--> typed rows --select--> what was asked

`panes.spark.host` has the part between `combine` and the pane store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it
from pyspark.sql import types as T  # noqa: N812

from panes.errors import QueryError
from panes.language.expressions import quoted
from panes.nodes.gate import promise_column
from panes.nodes.status import STATUS as STATUS_OF_ANSWER
from panes.nodes.status import require_flushable, status_columns
from panes.planning.plan import Plan
from panes.planning.terms import CheckedOptions, StreamOptions, require_streamable
from panes.shards.combiner import Combiner
from panes.shards.names import AT, PASSING, PROMISE, ROW, SOURCE, TOO_FAR_AHEAD, column_name
from panes.shards.query_filler import PlanFiller
from panes.shards.query_shard import QueryShard
from panes.spark.answers import (
    answer_texts,
    handed_over,
    handed_over_schema,
    selected,
    with_edges,
)
from panes.spark.bind import BoundQuery, arrow_schema, sql, ticks
from panes.spark.column_names import END, PACKAGE, PASSES, SET_ASIDE, STATUS
from panes.spark.host import REPLACED, Batches, Hosted, host, require_progress, shard_numbers
from panes.spark.internals import to_arrow_schema
from panes.spark.observe import DEFAULT, observed, status_of
from panes.stores import codec

if TYPE_CHECKING:
    import pandas as pd

ANSWERS = "answers"
KIND, REASON, WHOLE = "kind", "reason", "row"
LATE: Final = "late"
REJECTED: Final = "rejected"

_EMITTED_AT_ONCE = 1 << 16


def answer(bound: BoundQuery, terms: CheckedOptions, run: StreamOptions) -> DataFrame:
    """The answers, as a streaming DataFrame in append mode."""
    tagged = _tagged(bound, terms, run, rows=False)
    said = status_columns(bound.plan, terms)
    answers = selected(bound, tagged.where(F.col(END).isNotNull()), said)
    is_replaced = STATUS_OF_ANSWER in said
    return answers.withMetadata(STATUS_OF_ANSWER, {REPLACED: True}) if is_replaced else answers


def answers_and_set_aside(
    bound: BoundQuery,
    terms: CheckedOptions,
    run: StreamOptions,
    row_of: Sequence[DataFrame] | None = None,
) -> DataFrame:
    """Answers and the rows set apart, late or rejected, in one streaming DataFrame.

    Column ``answer`` is a struct of what was selected, NULL in rows that are none. Column
    ``apart`` is a struct of ``kind``, ``reason`` and ``row``, NULL in answers. With `row_of`, the
    DataFrame has rows that were set apart already, with the columns of all these.
    """
    edged = with_edges(bound, _tagged(bound, terms, run, rows=True))
    is_answer, is_set_aside = F.col(END).isNotNull(), F.col(SET_ASIDE).isNotNull()
    having = bound.plan.query.having
    passes = is_answer if having is None else is_answer & sql(having)
    wanted = edged.where(passes | is_set_aside)
    answer = F.when(
        is_answer,
        F.struct(*map(F.expr, answer_texts(bound.plan, status_columns(bound.plan, terms)))),
    )
    return wanted.select(answer.alias("answer"), rows_apart(row_of or bound.frames).alias("apart"))


def rows_apart(frames: Sequence[DataFrame]) -> Column:
    """Rows that were set apart, with the kind and the reason; NULL in others."""
    apart = F.col(SET_ASIDE)
    row = apart[WHOLE].cast(row_type(frames)).alias(WHOLE)
    return F.when(apart.isNotNull(), F.struct(apart[KIND], apart[REASON], row))


def _tagged(
    bound: BoundQuery, terms: CheckedOptions, run: StreamOptions, *, rows: bool
) -> DataFrame:
    """Everything the store emits: answers before the SELECT, rows set apart, and status."""
    plan = bound.plan
    require_progress(terms, bounded=run.bounded)
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
    several = len(bound.frames) > 1 or terms.heartbeat is not None or run.bounded
    carried = SET_ASIDE in bound.frames[0].columns
    projected = [
        project(
            bound,
            number,
            terms,
            source=number if several else None,
            row_of=bound.frames if rows and not carried else None,
        )
        for number in range(len(bound.frames))
    ]
    row = _row_type(projected[0], carried=carried) if rows else None
    emitted = _emitted_schema(plan, row, status_columns(plan, terms))
    emit = Emit(to_arrow_schema(emitted), packed=not survives_pandas(emitted))
    count, keep_rows = len(shards), terms.drops_late
    step = terms.step_on(plan.placing.kind)
    hosted = Hosted(
        combiner=lambda: Combiner(PlanFiller(plan, keep_rows), count, max_step=step),
        shard=lambda state: QueryShard(plan, terms, state, shards=count),
        emit=emit,
        output=T.StructType().add(PACKAGE, "binary") if emit.packed else emitted,
    )
    stored = host(projected, hosted, shards, terms, bounded=run.bounded)
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
    at = ticks(frame, plan.axis.column or "")
    if plan.placing.kind == "time" and terms.lateness is not None and terms.max_ahead is not None:
        latest = F.unix_micros(F.current_timestamp()) + F.lit(terms.max_ahead)
        at = F.when(at > latest, F.lit(TOO_FAR_AHEAD)).otherwise(at)
    columns = {AT: at}
    if source is not None:
        columns[SOURCE] = F.lit(source)
    if terms.punctuation is not None:
        schema = arrow_schema(frame)
        stream = plan.query.streams[number]
        columns[PROMISE] = ticks(
            frame, promise_column(plan.placing, schema, terms.punctuation, stream)
        )
    if row_of is not None:
        columns[ROW] = _whole_row(row_of, frame)
    if SET_ASIDE in frame.columns:
        columns[SET_ASIDE] = F.col(SET_ASIDE)
    expressions = [sql(e) for e in plan.rows.evaluated]
    if plan.rows.where is not None:
        passing = F.coalesce(sql(plan.rows.where), F.lit(False))
        columns[PASSING] = passing
        counted = plan.partition_columns if plan.counts_rows else ()
        expressions = [
            e if i in counted else F.when(passing, e)  # no other row is to be evaluated
            for i, e in enumerate(expressions)
        ]
    return columns | {column_name(i): e for i, e in enumerate(expressions)}


def _row_type(projected: DataFrame, *, carried: bool) -> T.DataType:
    """The type of a whole row, as it is sent, or as it was set apart before."""
    if not carried:
        return projected.schema[ROW].dataType
    apart = projected.schema[SET_ASIDE].dataType
    assert isinstance(apart, T.StructType)
    return apart[WHOLE].dataType


def _whole_row(frames: Sequence[DataFrame], frame: DataFrame) -> Column:
    """A row with the columns of all streams, under numbers: a name may hold what Arrow cuts off."""
    own = set(frame.columns)
    values = (F.col(quoted(f.name)) if f.name in own else F.lit(None) for f in row_type(frames))
    types = [f.dataType for f in row_type(frames)]
    return F.struct(
        *(
            v.cast(kind).alias(f"c{i}")
            for i, (v, kind) in enumerate(zip(values, types, strict=True))
        )
    )


def row_type(frames: Sequence[DataFrame]) -> T.StructType:
    """The columns that a query reads of all streams; text where their types differ."""
    types: dict[str, T.DataType] = {}
    for frame in frames:
        for f in frame.drop(PASSES).schema.fields:
            same = types.get(f.name, f.dataType) == f.dataType
            types[f.name] = f.dataType if same else T.StringType()
    return T.StructType([T.StructField(name, kind) for name, kind in types.items()])


@dataclass(frozen=True, slots=True)
class Emit:
    """What leaves the store: rows that are an answer, a status, or were set apart.

    Spark takes pandas frames from a store. Columns backed by Arrow go through them unchanged but
    for timestamps and nested values; where there are any, the rows leave `packed`, as bytes.
    `shown` are the tables of rows that an outcome has beside its status.
    """

    schema: pa.Schema
    packed: bool
    shown: Callable[[Any], Sequence[pa.Table]] = lambda outcome: [handed_over(outcome.answers)]

    def __call__(self, outcome: Any) -> Iterator[pd.DataFrame]:
        import pandas as pd

        counts = {name: len(getattr(outcome, name)) for name in (ANSWERS, LATE, REJECTED)}
        status = pa.table({STATUS: [status_of(outcome, **counts)]})
        parts = [*self.shown(outcome), status]
        if SET_ASIDE in self.schema.names:
            parts += [set_aside_rows(getattr(outcome, kind), kind) for kind in (LATE, REJECTED)]
            parts += getattr(outcome, "aside", ())
        rows = pa.concat_tables([self._filled(part) for part in parts if len(part)])
        if self.packed:
            yield pd.DataFrame({PACKAGE: [codec.pack({ANSWERS: rows})]})
            return
        for batch in rows.combine_chunks().to_batches(max_chunksize=_EMITTED_AT_ONCE):
            yield batch.to_pandas(types_mapper=pd.ArrowDtype)

    def unpack(self, batches: Batches) -> Batches:
        """Packed rows, as rows again."""
        for batch in batches:
            for package in batch.column(0):
                rows = codec.unpack(package.as_py())[ANSWERS]
                yield from rows.combine_chunks().to_batches(max_chunksize=_EMITTED_AT_ONCE)

    def _filled(self, table: pa.Table) -> pa.Table:
        """A table's rows, with NULL in the columns that it does not have."""
        columns = [
            table.column(f.name).cast(f.type)
            if f.name in table.column_names
            else pa.nulls(len(table), f.type)
            for f in self.schema
        ]
        return pa.table(columns, schema=self.schema)


def set_aside_rows(table: pa.Table, kind: str) -> pa.Table:
    if not len(table) or ROW not in table.column_names:  # joined rows are no rows of a stream
        return pa.table({SET_ASIDE: pa.nulls(0)})
    each = pa.array([kind] * len(table))
    columns = [each, *(table.column(n).combine_chunks() for n in (REASON, ROW))]
    return pa.table({SET_ASIDE: pa.StructArray.from_arrays(columns, names=[KIND, REASON, WHOLE])})


def _emitted_schema(plan: Plan, row: T.DataType | None, status: Sequence[str]) -> T.StructType:
    return with_status(handed_over_schema(plan, status), row)


def with_status(schema: T.StructType, row: T.DataType | None) -> T.StructType:
    """The columns of what a store emits: also its status, and rows set apart if wanted."""
    schema = schema.add(STATUS, "string")
    if row is not None:
        apart = T.StructType().add(KIND, "string").add(REASON, "string").add(WHOLE, row)
        schema = schema.add(SET_ASIDE, apart)
    return schema


def survives_pandas(schema: T.StructType) -> bool:
    plain = (T.NumericType, T.StringType, T.BooleanType, T.BinaryType)
    return all(isinstance(f.dataType, plain) for f in schema.fields)
