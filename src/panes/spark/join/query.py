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
from panes.nodes.promised_answers import promising_columns_of_join
from panes.planning.join_query_plan import AT, PAIRS, Aggregation, JoinQueryPlan
from panes.planning.terms import StreamOptions, check_options
from panes.shards.join_shard import Placed
from panes.shards.names import HIDDEN
from panes.spark.answers import guarded, named
from panes.spark.batch.answer import answer_bounded
from panes.spark.bind import bind_query, is_row, promising, row_text, sql
from panes.spark.column_names import END, SET_ASIDE, START
from panes.spark.internals import spark_type
from panes.spark.join.batch import joined_rows
from panes.spark.join.bind import BoundJoin, bind_join
from panes.spark.join.columns import axis_type, from_ticks, window_edges
from panes.spark.join.stream import different_sides, emitted, joined_only, lies_on, terms_of
from panes.spark.stream import query as windows
from panes.spark.stream.query import ALONE, NodePlace, rows_apart


def answer_join(
    query: JoinQuery,
    streams: Mapping[str, DataFrame],
    user: Sequence[UserAggregate],
    run: StreamOptions,
    place: NodePlace = ALONE,
) -> DataFrame:
    """The answers, as a DataFrame of the same kind as the streams."""
    bound = bind_join(query, streams, user)
    if bound.is_streaming:
        return _answer_stream(bound, run, place)
    _require_possible(bound, run)
    rows = joined_rows(bound)
    if bound.plan.aggregation is None:
        return selected(bound.plan, rows)
    return _aggregated(bound, bound.plan.aggregation, rows)


def _answer_stream(bound: BoundJoin, run: StreamOptions, place: NodePlace) -> DataFrame:
    """The answers, as a streaming DataFrame in append mode; with promises if others read them."""
    run, terms = terms_of(bound, run)
    bound, terms = different_sides(bound, terms, run, place)
    plan, found = bound.plan, bound.plan.aggregation
    if found is None:
        if place.promises:
            along: list[Placed] = ["window"] if plan.names_windows else ["left", "right"]
            given = emitted(bound, terms, run, along, place)
            return _promising(plan, selected(plan, joined_only(given)), run)
        given = joined_only(emitted(bound, terms, run, place=place))
        return _with_set_aside(bound, given, place) if run.with_late else selected(plan, given)
    given = emitted(bound, terms, run, [lies_on(plan, found)], place)
    placed = joined_only(given)
    if found.by != "positions":  # groups have asked WHERE of their rows
        placed = with_position(plan, found, _passing(plan, placed))
    above = StreamOptions(
        inside=frozenset([PAIRS]), max_ahead=None, shards=run.shards, name=run.name,
        flush=run.flush, why=run.why, with_late=run.with_late, max_answers=run.max_answers,
    )  # fmt: skip
    query = bind_query(found.query, (placed,), bound.user)
    terms = check_options(found.query, above)
    place = NodePlace(place.streams or bound.frames, (), place.promises)
    if place.promises:
        answers = windows.answers_promised(query, terms, above, place)
        return _promising(plan, named_windows(plan, found, answers), run)
    if not run.with_late:
        return named_windows(plan, found, windows.answer(query, terms, above))
    tagged = windows.answers_and_set_aside(query, terms, above, place)
    flat = tagged.select("answer.*", F.col("apart").alias(SET_ASIDE))
    named = named_windows(plan, found, flat)
    is_apart = F.col(SET_ASIDE).isNotNull()
    chosen = [F.col(quoted(name)) for name in named.columns if name != SET_ASIDE]
    answer = F.when(~is_apart, F.struct(*chosen))
    return named.select(answer.alias("answer"), F.col(SET_ASIDE).alias("apart"))


def _promising(plan: JoinQueryPlan, answers: DataFrame, run: StreamOptions) -> DataFrame:
    return promising(answers, promising_columns_of_join(plan), bounded=run.bounded)


def _with_set_aside(bound: BoundJoin, given: DataFrame, place: NodePlace) -> DataFrame:
    """Answers and the rows set apart, late or rejected, as of windows."""
    flat = selected(bound.plan, given)
    chosen = [F.col(quoted(name)) for name in flat.columns if name != SET_ASIDE]
    answer = F.when(F.col(SET_ASIDE).isNull(), F.struct(*chosen))
    apart = rows_apart(place.streams or bound.frames)
    return flat.select(answer.alias("answer"), apart.alias("apart"))


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
    hidden = [name for name in HIDDEN if name in joined.columns]
    texts = selected_texts(plan, row_text(joined))
    return _passing(plan, joined).selectExpr(*texts, *hidden)


def _passing(plan: JoinQueryPlan, joined: DataFrame) -> DataFrame:
    """The joined rows that pass WHERE, and what is no row."""
    where = plan.answers.where
    if where is None:
        return joined
    return joined.where(F.when(is_row(joined), sql(where)).otherwise(F.lit(True)))


def selected_texts(plan: JoinQueryPlan, if_row: str) -> list[str]:
    """The columns of the answers over joined rows, those of the window first."""
    edges = list(WINDOW_COLUMNS) if plan.names_windows else []
    outputs = zip(plan.answers.expressions, plan.names, strict=True)
    return [*edges, *(named(guarded(tree, if_row), name) for tree, name in outputs)]


def _aggregated(bound: BoundJoin, found: Aggregation, joined: DataFrame) -> DataFrame:
    """Joined rows as the rows of one stream, aggregated as any other."""
    plan = bound.plan
    placed = with_position(plan, found, _passing(plan, joined))
    answers = answer_bounded(bind_query(found.query, (placed,), bound.user))
    return named_windows(plan, found, answers)


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
