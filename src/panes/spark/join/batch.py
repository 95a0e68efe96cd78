"""A query over a join of bounded DataFrames, compiled to plain Spark.

    a band          buckets of time are part of the key: one side is in exactly one bucket, the
                    other in the two that it can reach, so each pair meets once, a key with very
                    many rows is no cross product, and a band without keys runs in parallel
    windows         the number of the window is part of the key
    as of           a running last row over both sides, in buckets of time too

Rows that may be given without a partner are those that are in one bucket only.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it

from panes.language.expressions import quoted
from panes.nodes.join_stage import WID
from panes.planning.join_plan import JoinPlan
from panes.shards.names import AT, column_name
from panes.spark.answers import named
from panes.spark.batch.sliding import placed_rows
from panes.spark.bind import BoundQuery, ticks
from panes.spark.join.as_of import as_of_join
from panes.spark.join.bind import BoundJoin
from panes.spark.join.columns import (
    LEFT_AT,
    LEFT_SLOT,
    RIGHT_AT,
    RIGHT_SLOT,
    first_window,
    in_one,
    keyed,
    last_window,
    matching,
    reaching,
    within,
)
from panes.windows.partners import Band
from panes.windows.spec import Landmark, PanedSpec

_KINDS = {"inner": "inner", "left": "left", "right": "right", "semi": "left_semi",
          "anti": "left_anti"}  # fmt: skip


def joined_rows(bound: BoundJoin) -> DataFrame:
    """All joined rows: the columns that go up, and the window's number of a join by windows."""
    return _joined(bound.plan.join, iter(bound.sides))


def _joined(join: JoinPlan, sides: Iterator[BoundQuery]) -> DataFrame:
    left = _left(join, sides)
    right = _placed(next(sides), join.right.columns)
    if not isinstance(join.partners, Band):
        found = _window_join(join, join.partners.spec, _with_place(left), right)
        return found.select(*(F.col(quoted(name)) for name in join.columns), WID)
    matched = as_of_join if join.as_of else _band_join
    found = matched(join, join.partners, _with_place(left), right)
    if isinstance(join.left, JoinPlan) and join.how in ("left", "full", "anti"):
        nowhere = left.where(F.col(AT).isNull()).drop(AT)
        found = found.unionByName(nowhere, allowMissingColumns=True)
    return found.select(*(F.col(quoted(name)) for name in join.columns))


def _left(join: JoinPlan, sides: Iterator[BoundQuery]) -> DataFrame:
    """The left side; joined rows without a partner below may have no position here."""
    if not isinstance(join.left, JoinPlan):
        return _placed(next(sides), join.left.columns)
    below = _joined(join.left, sides).drop(WID)
    return below.withColumn(AT, ticks(below, join.left_at))


def _with_place(side: DataFrame) -> DataFrame:
    """The rows that have a position."""
    return side.where(F.col(AT).isNotNull())


def _placed(side: BoundQuery, columns: tuple[str, ...]) -> DataFrame:
    """The rows of a side that have a position and pass its filter, under joined names."""
    given = [named(column_name(i), name) for i, name in enumerate(columns)]
    return placed_rows(side).selectExpr(AT, *given)


def _band_join(join: JoinPlan, band: Band, left: DataFrame, right: DataFrame) -> DataFrame:
    left, right = keyed(left, join, is_left=True), keyed(right, join, is_left=False)
    near = within(band)
    if join.how == "right":
        one, other = reaching(left, band, is_left=True), in_one(right, band, is_left=False)
        return one.join(other, matching(join, near), "right")
    one, other = in_one(left, band, is_left=True), reaching(right, band, is_left=False)
    if join.how != "full":
        return one.join(other, matching(join, near), _KINDS[join.how])
    pairs = one.join(other, matching(join, near), "left")
    alone = in_one(right, band, is_left=False).join(
        reaching(left, band, is_left=True), matching(join, near), "left_anti"
    )
    return pairs.unionByName(alone, allowMissingColumns=True)


def _window_join(join: JoinPlan, spec: PanedSpec, left: DataFrame, right: DataFrame) -> DataFrame:
    """Both sides once for each window that holds them, joined window by window."""
    left, right = keyed(left, join, is_left=True), keyed(right, join, is_left=False)
    if isinstance(spec, Landmark):
        newest = _newest(left, right)
        left, right = (side.crossJoin(F.broadcast(newest)) for side in (left, right))
    one = _in_windows(left, spec, LEFT_AT, LEFT_SLOT)
    other = _in_windows(right, spec, RIGHT_AT, RIGHT_SLOT)
    condition = matching(join, [])
    found = one.join(other, condition, "full" if join.how == "full" else _KINDS[join.how])
    if not join.gives_right:
        return found.withColumnRenamed(LEFT_SLOT, WID)
    return found.withColumn(WID, F.coalesce(F.col(LEFT_SLOT), F.col(RIGHT_SLOT)))


_NEWEST = "__newest"


def _newest(left: DataFrame, right: DataFrame) -> DataFrame:
    """The newest position of both sides: the last landmark window is the one that holds it."""
    ats = left.select(LEFT_AT).union(right.select(RIGHT_AT))
    return ats.agg(F.max(LEFT_AT).alias(_NEWEST))


def _in_windows(side: DataFrame, spec: PanedSpec, at: str, slot: str) -> DataFrame:
    first = first_window(spec, at)
    landmark = isinstance(spec, Landmark)
    last = first_window(spec, _NEWEST) if landmark else last_window(spec, at)  # type: ignore[arg-type]
    held = side if landmark else side.where(f"{last} >= {first}")
    return held.selectExpr("*", named(f"explode(sequence({first}, {last}))", slot)).drop(_NEWEST)
