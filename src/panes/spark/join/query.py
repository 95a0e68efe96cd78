"""A query over a join of Spark DataFrames: `panes.sql` ends up here with two streams and more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it

from panes.aggregates.custom import UserAggregate
from panes.language.expressions import quoted
from panes.language.join_query import JoinQuery
from panes.language.query import WINDOW_COLUMNS
from panes.nodes.join_stage import WID
from panes.nodes.promised_answers import promising_columns_of_join
from panes.planning.join_query_plan import AT, PAIRS, Aggregation, JoinQueryPlan
from panes.planning.terms import StreamOptions, check_options
from panes.shards.names import HIDDEN
from panes.shards.outcome import Placed
from panes.spark.answers import from_ticks, guarded, named
from panes.spark.batch.answer import answer_bounded
from panes.spark.bind import bind_query, row_text, rows_where
from panes.spark.column_names import END, START
from panes.spark.internals import spark_type
from panes.spark.join.batch import joined_rows
from panes.spark.join.bind import BoundJoin, bind_join
from panes.spark.join.columns import axis_type, window_edges
from panes.spark.join.stream import different_sides, joined_stream, lies_on, terms_of
from panes.spark.refusals import require_bounded
from panes.spark.stream.node import NodePlace, as_read
from panes.spark.stream.query import answers


def answer_join(
    query: JoinQuery,
    streams: Mapping[str, DataFrame],
    user: Sequence[UserAggregate],
    run: StreamOptions,
    place: NodePlace,
) -> DataFrame:
    """The answers, as a DataFrame of the same kind as the streams."""
    bound = bind_join(query, streams, user)
    if bound.is_streaming:
        return _answer_stream(bound, run, place)
    require_bounded(bound.plan.query, run)
    rows = joined_rows(bound)
    if bound.plan.aggregation is None:
        return selected(bound.plan, rows)
    return _aggregated(bound, bound.plan.aggregation, rows)


def _answer_stream(bound: BoundJoin, run: StreamOptions, place: NodePlace) -> DataFrame:
    """The answers, as a streaming DataFrame in append mode, as they are read."""
    run, terms = terms_of(bound, run)
    bound, terms = different_sides(bound, terms, run, place)
    plan, found = bound.plan, bound.plan.aggregation
    promised = promising_columns_of_join(plan)
    if found is None:
        along: list[Placed] = ["window"] if plan.names_windows else ["left", "right"]
        given = joined_stream(bound, terms, run, place, along if place.promises else [])
        return as_read(selected(plan, given), run, place, bound.frames, promised)
    placed = joined_stream(bound, terms, run, place, [lies_on(plan, found)])
    if found.by != "positions":  # groups have asked WHERE of their rows
        placed = with_position(plan, found, rows_where(placed, plan.answers.where, placed.columns))
    above = StreamOptions(
        inside=frozenset([PAIRS]), max_ahead=None, shards=run.shards, name=run.name,
        flush=run.flush, why=run.why, with_late=run.with_late, max_answers=run.max_answers,
    )  # fmt: skip
    query, of = bind_query(found.query, (placed,), bound.user), place.streams or bound.frames
    above_join = NodePlace(of, (), place.promises)
    found_rows = answers(query, check_options(found.query, above), above, above_join)
    return as_read(named_windows(plan, found, found_rows), run, place, bound.frames, promised)


def selected(plan: JoinQueryPlan, joined: DataFrame) -> DataFrame:
    """What was selected of joined rows, of those that pass WHERE."""
    spec = plan.join.windows
    if spec is not None:
        joined = joined.selectExpr("*", *window_edges(spec, WID, plan.join.axis))
    hidden = [name for name in HIDDEN if name in joined.columns]
    texts = selected_texts(plan, row_text(hidden))
    return rows_where(joined, plan.answers.where, hidden).selectExpr(*texts, *hidden)


def selected_texts(plan: JoinQueryPlan, if_row: str) -> list[str]:
    """The columns of the answers over joined rows, those of the window first."""
    edges = list(WINDOW_COLUMNS) if plan.names_windows else []
    outputs = zip(plan.answers.expressions, plan.names, strict=True)
    return [*edges, *(named(guarded(tree, if_row), name) for tree, name in outputs)]


def _aggregated(bound: BoundJoin, found: Aggregation, joined: DataFrame) -> DataFrame:
    """Joined rows as the rows of one stream, aggregated as any other."""
    plan = bound.plan
    placed = with_position(plan, found, rows_where(joined, plan.answers.where, ()))
    answered = answer_bounded(bind_query(found.query, (placed,), bound.user))
    return named_windows(plan, found, answered)


def with_position(plan: JoinQueryPlan, found: Aggregation, joined: DataFrame) -> DataFrame:
    """Joined rows with the column that they are windowed by.

    Groups by positions lie all in one window of a table. A promise has a position already.
    """
    if found.by in ("left", "right"):
        return joined
    if found.by == "positions":
        return joined.withColumn(AT, F.lit(0).cast("long"))
    if found.by == "window":
        return joined.withColumnRenamed(WID, AT)
    kind = spark_type(plan.join.axis.type)
    sides = [F.col(quoted(name)).cast(kind) for name in (plan.join.left_at, plan.join.right_at)]
    at = (F.least if found.by == "min" else F.greatest)(*sides)
    if AT in joined.columns:
        at = F.coalesce(F.expr(from_ticks(AT, axis_type(plan.join.axis))), at)
    return joined.withColumn(AT, at)


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
