"""A query over a join of Spark DataFrames: `panes.sql` ends up here with two streams and more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it

from panes.aggregates.custom import UserAggregate
from panes.errors import QueryError
from panes.language.expressions import quoted
from panes.language.join_query import JoinQuery
from panes.language.query import WINDOW_COLUMNS
from panes.nodes.join_stage import WID
from panes.planning.join_query_plan import AT, Aggregation, JoinQueryPlan
from panes.planning.terms import StreamOptions, check_options
from panes.shards.names import PROMISE
from panes.spark.answers import named
from panes.spark.batch.answer import answer_bounded
from panes.spark.bind import bind_query, sql
from panes.spark.column_names import END, SET_ASIDE, START
from panes.spark.expressions import spark_sql
from panes.spark.internals import spark_type
from panes.spark.join.batch import joined_rows
from panes.spark.join.bind import BoundJoin, bind_join
from panes.spark.join.columns import window_edges
from panes.spark.join.stream import emitted, joined_only, lies_on, terms_of, with_promises
from panes.spark.stream import query as windows
from panes.spark.stream.query import rows_apart


def answer_join(
    query: JoinQuery,
    streams: Mapping[str, DataFrame],
    user: Sequence[UserAggregate],
    run: StreamOptions,
) -> DataFrame:
    """The answers, as a DataFrame of the same kind as the streams."""
    bound = bind_join(query, streams, user)
    if bound.is_streaming:
        return _answer_stream(bound, run)
    _require_possible(bound, run)
    rows = joined_rows(bound)
    if bound.plan.aggregation is None:
        return selected(bound.plan, rows)
    return _aggregated(bound, bound.plan.aggregation, rows)


def _answer_stream(bound: BoundJoin, run: StreamOptions) -> DataFrame:
    """The answers, as a streaming DataFrame in append mode."""
    run, terms = terms_of(bound, run)
    plan, found = bound.plan, bound.plan.aggregation
    if found is None:
        given = emitted(bound, terms, run)
        if run.with_late:
            return _with_set_aside(bound, given)
        return selected(plan, joined_only(given))
    by = lies_on(plan, found)
    given = emitted(bound, terms, run, by)
    rows = with_promises(plan, given, of_numbers=found.by in ("window", "positions"))
    placed = rows if by == "positions" else with_position(plan, found, rows)
    above = StreamOptions(
        punctuation=PROMISE, max_ahead=None, shards=run.shards, name=run.name, flush=run.flush,
        why=run.why, max_answers=run.max_answers,
    )  # fmt: skip
    query = bind_query(found.query, (placed,), bound.user)
    if not run.with_late:
        answers = windows.answer(query, check_options(found.query, above), above)
        return named_windows(plan, found, answers)
    tagged = windows.answers_and_set_aside(
        query, check_options(found.query, above), above, bound.frames
    )
    flat = tagged.select("answer.*", F.col("apart").alias(SET_ASIDE))
    named = named_windows(plan, found, flat)
    is_apart = F.col(SET_ASIDE).isNotNull()
    chosen = [F.col(quoted(name)) for name in named.columns if name != SET_ASIDE]
    answer = F.when(~is_apart, F.struct(*chosen))
    return named.select(answer.alias("answer"), F.col(SET_ASIDE).alias("apart"))


def _with_set_aside(bound: BoundJoin, given: DataFrame) -> DataFrame:
    """Answers and the rows set apart, late or rejected, as of windows."""
    plan, is_apart = bound.plan, F.col(SET_ASIDE).isNotNull()
    rows = joined_only(given)
    if plan.join.windows is not None:
        rows = rows.selectExpr("*", *window_edges(plan.join.windows, WID, plan.join.axis))
    if plan.answers.where is not None:
        rows = rows.where(is_apart | sql(plan.answers.where))
    answer = F.when(~is_apart, F.struct(*map(F.expr, selected_texts(plan))))
    return rows.select(answer.alias("answer"), rows_apart(bound.frames).alias("apart"))


def _require_possible(bound: BoundJoin, run: StreamOptions) -> None:
    """Refuse what only a stream can do, before anything runs."""
    if bound.plan.query.emits_early:
        raise QueryError("EMIT EARLY is for streams, and these DataFrames are bounded")
    if run.with_late:
        raise QueryError("these DataFrames are bounded, so no row of them is late")


def selected(plan: JoinQueryPlan, joined: DataFrame) -> DataFrame:
    """What was selected of joined rows, of those that pass WHERE."""
    spec = plan.join.windows
    if spec is not None:
        joined = joined.selectExpr("*", *window_edges(spec, WID, plan.join.axis))
    if plan.answers.where is not None:
        joined = joined.where(sql(plan.answers.where))
    return joined.selectExpr(*selected_texts(plan))


def selected_texts(plan: JoinQueryPlan) -> list[str]:
    """The columns of the answers over joined rows, those of the window first."""
    edges = list(WINDOW_COLUMNS) if plan.names_windows else []
    outputs = zip(plan.answers.expressions, plan.names, strict=True)
    return [*edges, *(named(spark_sql(tree), name) for tree, name in outputs)]


def _aggregated(bound: BoundJoin, found: Aggregation, joined: DataFrame) -> DataFrame:
    """Joined rows as the rows of one stream, aggregated as any other."""
    plan = bound.plan
    if plan.answers.where is not None:
        joined = joined.where(sql(plan.answers.where))
    placed = with_position(plan, found, joined)
    answers = answer_bounded(bind_query(found.query, (placed,), bound.user))
    return named_windows(plan, found, answers)


def with_position(plan: JoinQueryPlan, found: Aggregation, joined: DataFrame) -> DataFrame:
    """Joined rows with the column that they are windowed by.

    Groups by positions lie all in one window of a table.
    """
    if found.by in ("left", "right"):
        return joined
    if found.by == "positions":
        return joined.withColumn(AT, F.lit(0).cast("long"))
    if found.by == "window":
        return joined.withColumnRenamed(WID, AT)
    kind = spark_type(plan.join.axis.type)
    sides = [F.col(quoted(name)).cast(kind) for name in (plan.join.left_at, plan.join.right_at)]
    pick = F.least if found.by == "min" else F.greatest
    return joined.withColumn(AT, pick(*sides))


def named_windows(plan: JoinQueryPlan, found: Aggregation, answers: DataFrame) -> DataFrame:
    """Answers with the edges of the join's windows, where their own are only numbers of these."""
    start, end = WINDOW_COLUMNS
    if found.by == "positions":
        return answers.drop(start, end)
    if found.by != "window":
        return answers
    spec = plan.join.windows
    assert spec is not None
    others = [quoted(name) for name in answers.columns[2:]]
    numbered = answers.selectExpr(named(start, START), named(end, END), *others)
    return numbered.selectExpr(*window_edges(spec, START, plan.join.axis), *others)
