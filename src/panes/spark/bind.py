"""A query bound to Spark DataFrames: types, positions and expressions are Spark's own."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeAlias

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it
from pyspark.sql import types as T  # noqa: N812
from sqlglot import exp

from panes.aggregates.custom import UserAggregate
from panes.axis import DAY, LIMIT
from panes.errors import QueryError
from panes.expressions.projection import Projection, resolve
from panes.frames import require_streams
from panes.language.expressions import quoted
from panes.language.parse import parse
from panes.language.query import Inner, Query
from panes.nodes.inner import chain_of
from panes.nodes.promised_answers import column_read
from panes.nodes.promised_columns import require_promise
from panes.planning.plan import Plan, plan
from panes.shards.names import HIDDEN, PASSING, PROMISE, column_name
from panes.spark.column_names import PASSES, SET_ASIDE
from panes.spark.expressions import spark_sql
from panes.spark.internals import to_arrow_schema
from panes.spark.refusals import in_our_words
from panes.windows.spec import PerRow

Made: TypeAlias = Mapping[str, exp.Expression]
"""Columns that a SELECT inside FROM makes, by name, each as an expression over those of the stream.
"""


AS_THEY_ARE: Made = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """A plan, and the DataFrames it reads in the order of its streams."""

    plan: Plan
    frames: tuple[DataFrame, ...]
    user: tuple[UserAggregate, ...] = ()

    @property
    def is_streaming(self) -> bool:
        """Whether the DataFrames are streams."""
        return self.frames[0].isStreaming

    @property
    def axis_type(self) -> T.DataType:
        """The type of the column that rows lie on."""
        return self.frames[0].schema[self.plan.axis.column or ""].dataType


def bind(
    text: str | Query, streams: Mapping[str, DataFrame], user: Sequence[UserAggregate] = ()
) -> BoundQuery:
    """Check a query against the DataFrames, which are looked at for columns only."""
    query = parse(text, user) if isinstance(text, str) else text
    require_streams(query.streams, streams)
    if len({streams[name].isStreaming for name in query.streams}) > 1:
        raise QueryError(
            "some of the streams are streaming DataFrames and some are not",
            hint="read all of them with spark.readStream, or all with spark.read",
        )
    query, frames = derived(query, tuple(streams[name] for name in query.streams))
    bound = bind_query(query, frames, tuple(user))
    _require_order(bound.plan)
    return bound


def require_alike(streams: Mapping[str, DataFrame]) -> None:
    """Refuse a join of streams with tables: Spark itself joins a stream with a table."""
    found = {
        kind: [name for name, frame in streams.items() if frame.isStreaming == kind]
        for kind in (True, False)
    }
    if not (found[True] and found[False]):
        return
    stream, table = found[True][0], found[False][0]
    both = [n for n in streams[table].columns if n in streams[stream].columns]
    keys = [n for n in both if not isinstance(streams[table].schema[n].dataType, _TIMES)]
    on = (keys or both or ["key"])[0]
    raise QueryError(
        f"`{stream}` is a streaming DataFrame and `{table}` is a table",
        hint="join it with Spark first, and ask the result: "
        f'{stream} = {stream}.join({table}, "{on}"); panes.sql(..., {stream}={stream})',
    )


_TIMES = (T.TimestampType, T.TimestampNTZType, T.DateType)


def bind_query(
    query: Query, frames: tuple[DataFrame, ...], user: tuple[UserAggregate, ...]
) -> BoundQuery:
    """A query that has been read, bound to DataFrames in the order of its streams."""
    schemas = {n: arrow_schema(f) for n, f in zip(query.streams, frames, strict=True)}
    bound = plan(query, schemas, user, types_of=lambda rows: _types(frames[0], rows))
    return BoundQuery(bound, frames, user)


def derived(query: Query, frames: tuple[DataFrame, ...]) -> tuple[Query, tuple[DataFrame, ...]]:
    """What SELECTs inside FROM make of DataFrames: Spark's own filter, projection and distinct.

    On streams rows that are filtered out make progress, so there the filter becomes a column and
    one more condition of the query, except where rows are counted. What is promised of answers has
    to be promised of what is made of them.
    """
    for name, frame in zip(query.streams, frames, strict=True):
        if not _needs_promises(frame) or query.window is None or query.window.column is None:
            continue
        chain_of(query, name, arrow_schema(frame), needs_order=True)
        column = column_read(query, name)
        if column is not None:
            require_promise(column, promised_columns(frame))
    if not any(query.inner):
        return query, frames
    window = query.window
    by_flag = frames[0].isStreaming and window is not None and window.measure != "rows"
    by_flag = by_flag and not isinstance(None if window is None else window.spec, PerRow)
    given = zip(query.streams, frames, query.inner, strict=True)
    made = tuple(selected_from(f, i, n, by_flag=by_flag) for n, f, i in given)
    if by_flag:
        flag: exp.Expression = exp.column(PASSES, quoted=True)
        if query.where is not None:
            flag = exp.And(this=exp.Paren(this=query.where), expression=flag)
        query = replace(query, where=flag)
    return query, made


def selected_from(
    frame: DataFrame, inner: Inner | None, stream: str, *, by_flag: bool = False
) -> DataFrame:
    """What a SELECT inside FROM makes of a DataFrame; with a flag, all rows are still there.

    A stream still has all duplicates, which a node of their own leaves out.
    """
    passes = F.lit(True)
    if inner is not None:
        schema = arrow_schema(frame)
        if inner.where is not None:
            where = resolve(inner.where, schema, stream=stream)
            condition = sql(where)
            with in_our_words([where]):
                arrow_schema(frame.where(condition))
            passes = F.coalesce(of_rows(frame, condition), F.lit(False))
            frame = frame if by_flag else frame.where(passes | ~is_row(frame))
        hidden = [F.col(name) for name in frame.columns if name in HIDDEN]
        columns = [F.col(quoted(name)) for name in frame.columns if name not in HIDDEN]
        if inner.columns is not None:
            trees = [(resolve(o.expression, schema, stream=stream), o.name) for o in inner.columns]
            _selected_types(frame, [tree for tree, _ in trees])
            columns = [_selected(frame, tree).alias(name) for tree, name in trees]
        flags = [passes.alias(PASSES)] if by_flag else []
        frame = frame.select(*columns, *hidden, *flags)
        return frame.distinct() if inner.distinct and not frame.isStreaming else frame
    return frame.withColumn(PASSES, passes) if by_flag else frame


def _selected(frame: DataFrame, tree: exp.Expression) -> Column:
    """An expression over the rows, and over promises where it moves what they are about."""
    names = {column.name.lower() for column in tree.find_all(exp.Column)}
    moves = bool(names) and names.issubset(promised_columns(frame))
    return sql(tree) if moves else of_rows(frame, sql(tree))


def _require_order(bound: Plan) -> None:
    """Rows of a DataFrame come in no order, so a window that counts them says which is meant."""
    window = bound.window
    if bound.axis.kind == "rows":
        if window.column is None:
            raise QueryError(
                "rows of a DataFrame have no order of their own",
                hint="name the column that orders them: [RANGE 1000 ROWS SLIDE 10 ROWS WATTR seq]",
            )
        if len(bound.query.streams) > 1:
            raise QueryError("a ROWS window over a union cannot be ordered by a column")
    spec = window.spec
    if isinstance(spec, PerRow) and spec.every > 1 and spec.counted_by == "arrival":
        raise QueryError(
            f"rows of a DataFrame do not arrive in an order, so there is no {spec.every}th",
            hint=f"count them by rank: SATTR rank({window.column})",
        )


def arrow_schema(frame: DataFrame) -> pa.Schema:
    """The columns of a DataFrame in Arrow's types, without those that are no user's."""
    return to_arrow_schema(T.StructType([f for f in frame.schema if f.name not in HIDDEN]))


def is_inside(frame: DataFrame) -> bool:
    """Whether a DataFrame is what a node gives to another: rows, and what is promised of them."""
    return PROMISE in frame.columns


def promising(answers: DataFrame, columns: Collection[str], *, bounded: bool) -> DataFrame:
    """Answers that are known to promise something of some columns, and of no others.

    Nothing needs to be promised of what is `bounded`: it ends.
    """
    return answers.withMetadata(PROMISE, {_PROMISED: sorted(columns), _BOUNDED: bounded})


def promised_columns(frame: DataFrame) -> Collection[str]:
    """The columns of a DataFrame that something is promised of, as far as is known."""
    known: dict[str, list[str]] = frame.schema[PROMISE].metadata if is_inside(frame) else {}
    return known.get(_PROMISED, ())


def _needs_promises(frame: DataFrame) -> bool:
    """Whether windows over a DataFrame close by what is promised of it alone."""
    return is_inside(frame) and not frame.schema[PROMISE].metadata.get(_BOUNDED, True)


_PROMISED, _BOUNDED = "panes.promised", "panes.bounded"


def is_row(frame: DataFrame) -> Column:
    """Which rows of a DataFrame are rows: no promises, and not set aside."""
    return F.expr(row_text(frame.columns) or "TRUE")


def row_text(hidden: Collection[str]) -> str:
    """The same as text, by the hidden columns; nothing if all rows are."""
    return " AND ".join(f"{name} IS NULL" for name in (PROMISE, SET_ASIDE) if name in hidden)


def rows_where(
    frame: DataFrame, condition: exp.Expression | None, hidden: Collection[str]
) -> DataFrame:
    """The rows that pass a condition, and what is no row."""
    if condition is None:
        return frame
    is_row = row_text(hidden)
    passes = sql(condition)
    return frame.where(F.when(F.expr(is_row), passes).otherwise(F.lit(True)) if is_row else passes)


def of_rows(frame: DataFrame, value: Column) -> Column:
    """An expression over the rows of a DataFrame; of anything else nothing is to be evaluated."""
    return F.when(is_row(frame), value) if is_inside(frame) else value


def row_columns(plan: Plan, frame: DataFrame, made: Made = AS_THEY_ARE) -> dict[str, Column]:
    """What a plan reads of the rows of a DataFrame, and which of them pass WHERE.

    Of rows that do not, nothing is evaluated but what partitions them where they count.
    """
    expressions, found = [of_rows(frame, sql(e, made)) for e in plan.rows.evaluated], {}
    if plan.rows.where is not None:
        passing = F.coalesce(of_rows(frame, sql(plan.rows.where, made)), F.lit(False))
        found[PASSING] = passing
        counted = plan.partition_columns if plan.counts_rows else ()
        expressions = [e if i in counted else F.when(passing, e) for i, e in enumerate(expressions)]
    return found | {column_name(i): e for i, e in enumerate(expressions)}


def selected_as(frame: DataFrame, columns: Mapping[str, Column]) -> DataFrame:
    """Columns of a DataFrame by their names."""
    return frame.select(*(column.alias(name) for name, column in columns.items()))


def comparable(frame: DataFrame) -> pa.Schema:
    """The columns that compare in Python as they do in Spark: text only without a collation."""
    is_text = [isinstance(f.dataType, T.StringType) for f in frame.schema]
    fields = zip(frame.schema, is_text, strict=True)
    same = [f for f, text in fields if not text or f.dataType == T.StringType()]
    return to_arrow_schema(T.StructType(same))


def columns_made(inner: Inner | None, schema: pa.Schema, stream: str) -> Made:
    """What a SELECT inside FROM makes of a stream with these columns, and `PASSES`."""
    made: dict[str, exp.Expression] = {PASSES: exp.true()}
    for output in () if inner is None else inner.columns or ():
        made[output.name] = resolve(output.expression, schema, stream=stream)
    if inner is not None and inner.where is not None:
        where = resolve(inner.where, schema, stream=stream)
        made[PASSES] = exp.Coalesce(this=exp.Paren(this=where), expressions=[exp.false()])
    return made


def sql(tree: exp.Expression, made: Made = AS_THEY_ARE) -> Column:
    """A scalar expression as Spark reads it, over columns that may be `made` of others."""
    return F.expr(spark_sql(tree.transform(_written_out, made) if made else tree))


def _written_out(node: exp.Expression, made: Made) -> exp.Expression:
    is_made = isinstance(node, exp.Column) and node.name in made
    return exp.Paren(this=made[node.name].copy()) if is_made else node


def ticks(frame: DataFrame, name: str, made: Made = AS_THEY_ARE) -> Column:
    """Where each row lies on the axis, by a column; NULL if it lies nowhere."""
    column, data_type = sql(exp.column(name, quoted=True), made), frame.schema[name].dataType
    at = column.cast("long")
    if isinstance(data_type, T.DateType):
        at = F.unix_date(column) * F.lit(DAY)  # midnight UTC, whatever the session's zone
    elif isinstance(data_type, T.TimestampType):
        at = F.unix_micros(column)
    elif isinstance(data_type, T.TimestampNTZType):
        at = F.timestamp_diff("MICROSECOND", F.lit("1970-01-01").cast("timestamp_ntz"), column)
    return F.when(at.between(-LIMIT, LIMIT), at)


def _types(frame: DataFrame, rows: Projection) -> list[pa.DataType]:
    """What Spark says the expressions are; it refuses here what it does not understand."""
    selected = frame
    if rows.where is not None:
        with in_our_words([rows.where]):
            selected = frame.where(sql(rows.where))
            arrow_schema(selected)
    return _selected_types(selected, rows.expressions)


def _selected_types(frame: DataFrame, trees: Sequence[exp.Expression]) -> list[pa.DataType]:
    """The types of all expressions; the one that Spark does not understand is refused by name."""
    try:
        named = [sql(e).alias(f"c{i}") for i, e in enumerate(trees)]
        return list(arrow_schema(frame.select(*named)).types)
    except AnalysisException:
        for tree in trees:
            with in_our_words([tree]):
                arrow_schema(frame.select(sql(tree)))
        raise
