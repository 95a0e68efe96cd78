"""As-of join of bounded DataFrames: the last row on the right that is not after the left one.

Rows of both sides are sorted together, in buckets of time as long as the range: a row on the left
is in one bucket, a row on the right also in the next one. The last row on the right before it in
that order is the one, the greatest in the order of its columns if there are several at a position.
Conditions beside keys are asked of pairs, so there all candidates are joined first.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it
from pyspark.sql import types as T  # noqa: N812

from panes.axis import BEGINNING
from panes.language.expressions import quoted
from panes.planning.join_plan import JoinPlan
from panes.spark.join.columns import (
    LEFT_AT,
    LEFT_SLOT,
    RIGHT_AT,
    RIGHT_SLOT,
    in_one,
    key_names,
    keyed,
    matching,
    reaching,
    within,
)
from panes.windows.partners import Band

_FOUND, _ROW, _IS_LEFT, _ID = "__found", "__row", "__is_left", "__id"


def as_of_join(join: JoinPlan, band: Band, left: DataFrame, right: DataFrame) -> DataFrame:
    """Rows on the left with their last partner: the columns that go up."""
    one = in_one(keyed(left, join, is_left=True), band, is_left=True)
    other = reaching(keyed(right, join, is_left=False), band, is_left=False)
    if join.rest is None:
        found = _running(join, band, one, other)
    else:
        found = _greatest_of_candidates(join, band, one, other)
    if join.how == "inner":
        found = found.where(F.col(_FOUND).isNotNull())
    mine = set(join.left.schema().names)
    columns = [
        F.col(quoted(name)) if name in mine else F.col(_FOUND)[name].alias(name)
        for name in join.columns
    ]
    return found.select(*columns)


def _running(join: JoinPlan, band: Band, left: DataFrame, right: DataFrame) -> DataFrame:
    """Both sides in one order, and behind each row the last row on the right up to there."""
    keys = key_names(join, is_left=True)
    renamed = dict(zip(key_names(join, is_left=False), keys, strict=True))
    renamed |= {RIGHT_AT: LEFT_AT, RIGHT_SLOT: LEFT_SLOT}
    row = F.struct(*(F.col(quoted(n)) for n in [RIGHT_AT, *join.right.columns]))
    candidates = right.select(row.alias(_ROW), F.lit(False).alias(_IS_LEFT),
                              *(F.col(n).alias(as_) for n, as_ in renamed.items()))  # fmt: skip
    if keys:
        candidates = candidates.where(reduce(Column.__and__, (F.col(k).isNotNull() for k in keys)))
    # A row on the left stands where the last row on the right is that it may find.
    asking = left.withColumn(_IS_LEFT, F.lit(True))
    asking = asking.withColumn(LEFT_AT, F.col(LEFT_AT) + F.lit(band.high))
    together = asking.unionByName(candidates, allowMissingColumns=True)
    order = [F.col(LEFT_AT), F.col(_IS_LEFT)]
    order += [F.col(_ROW)[name].asc_nulls_first() for name in _ordered(join, right)]
    over = Window.partitionBy(LEFT_SLOT, *keys).orderBy(*order)
    last = F.last(F.col(_ROW), ignorenulls=True).over(
        over.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    answered = together.withColumn(_FOUND, last).where(_IS_LEFT)
    if band.low <= BEGINNING:
        return answered
    is_near = F.col(LEFT_AT) - F.col(_FOUND)[RIGHT_AT] <= F.lit(band.high - band.low)
    return answered.withColumn(_FOUND, F.when(is_near, F.col(_FOUND)))


def _greatest_of_candidates(
    join: JoinPlan, band: Band, left: DataFrame, right: DataFrame
) -> DataFrame:
    """Every candidate that passes the conditions, and of these the greatest for each left row."""
    numbered = left.withColumn(_ID, F.monotonically_increasing_id())
    pairs = numbered.join(right, matching(join, within(band)), "left")
    row = F.struct(*(F.col(quoted(n)) for n in [RIGHT_AT, *join.right.columns]))
    order = F.struct(F.col(RIGHT_AT), *(F.col(quoted(n)) for n in _ordered(join, right)))
    is_pair = F.col(RIGHT_AT).isNotNull()
    mine = [F.first(quoted(name)).alias(name) for name in join.left.schema().names]
    best = F.max_by(F.when(is_pair, row), F.when(is_pair, order)).alias(_FOUND)
    return pairs.groupBy(_ID).agg(*mine, best)


def _ordered(join: JoinPlan, right: DataFrame) -> list[str]:
    """The columns that decide between rows at one position: those that have an order."""
    unordered = (T.ArrayType, T.StructType, T.MapType, T.NullType)
    types = {f.name: f.dataType for f in right.schema.fields}
    return [name for name in join.right.columns if not isinstance(types[name], unordered)]
