"""A query over a join of Spark DataFrames: `panes.sql` ends up here with two streams and more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it

from panes.aggregates.custom import UserAggregate
from panes.errors import QueryError
from panes.language.expressions import quoted, to_sql
from panes.language.join_query import JoinQuery
from panes.language.query import WINDOW_COLUMNS
from panes.planning.join_query_plan import AT, Aggregation, JoinQueryPlan
from panes.planning.terms import Run
from panes.spark.answers import named
from panes.spark.batch.answer import answer_bounded
from panes.spark.bind import bind_query, sql
from panes.spark.column_names import END, START
from panes.spark.internals import spark_type
from panes.spark.join.batch import joined_rows
from panes.spark.join.bind import BoundJoin, bind_join
from panes.spark.join.columns import WID, window_edges


def answer_join(
    query: JoinQuery, streams: Mapping[str, DataFrame], user: Sequence[UserAggregate], run: Run
) -> DataFrame:
    """The answers, as a DataFrame of the same kind as the streams."""
    bound = bind_join(query, streams, user)
    require_possible(bound, run)
    rows = joined_rows(bound)
    if bound.plan.aggregation is None:
        return selected(bound.plan, rows)
    return _aggregated(bound, bound.plan.aggregation, rows)


def require_possible(bound: BoundJoin, run: Run) -> None:
    """Refuse what only a query in one process can do, or only a stream, before anything runs."""
    if bound.is_streaming:
        return
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
    return [*edges, *(named(to_sql(tree, "spark"), name) for tree, name in outputs)]


def _aggregated(bound: BoundJoin, found: Aggregation, joined: DataFrame) -> DataFrame:
    """Joined rows as the rows of one stream, aggregated as any other."""
    plan = bound.plan
    placed = with_position(plan, found, joined)
    answers = answer_bounded(bind_query(found.query, (placed,), bound.user))
    return named_windows(plan, found, answers)


def with_position(plan: JoinQueryPlan, found: Aggregation, joined: DataFrame) -> DataFrame:
    """Joined rows that pass WHERE, with the column that they are windowed by."""
    if plan.answers.where is not None:
        joined = joined.where(sql(plan.answers.where))
    if found.by in ("left", "right"):
        return joined
    if found.by == "positions":
        return joined.withColumn(AT, F.lit(0).cast("long"))
    if found.by == "window":
        return joined.withColumnRenamed(WID, AT)
    kind = spark_type(plan.join.axis.type)
    sides = [F.col(quoted(n)).cast(kind) for n in (plan.join.left_at, plan.join.right_at)]
    pick = F.greatest if found.by == "max" else F.least
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
