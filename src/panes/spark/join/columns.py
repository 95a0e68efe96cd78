"""Columns of joined DataFrames that only Panes sees, and window arithmetic as Spark SQL text.

A side of a join has its position in `AT`, its keys in columns of their own, and its own columns
under their joined names, ``l.ts``, which no internal name has: those have no dot.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it
from pyspark.sql import types as T  # noqa: N812

from panes.axis import BEGINNING, FOREVER, Axis
from panes.language.expressions import quoted
from panes.planning.join_plan import JoinPlan
from panes.shards.names import AT
from panes.spark.answers import edge_texts, named
from panes.spark.expressions import spark_sql
from panes.spark.internals import spark_type
from panes.windows.partners import Band
from panes.windows.spec import Landmark, PanedSpec, Sliding

LEFT_AT, RIGHT_AT = "__left_at", "__right_at"
LEFT_KEY, RIGHT_KEY = "__left_key", "__right_key"
LEFT_SLOT, RIGHT_SLOT = "__left_slot", "__right_slot"
"""Position, keys, and the bucket of time or the window, of rows of each side."""


def side_columns(side: DataFrame) -> list[str]:
    """The texts of a side's own columns."""
    return [quoted(name) for name in side.columns if name != AT]


def keyed(side: DataFrame, join: JoinPlan, *, is_left: bool) -> DataFrame:
    """A side with its position and keys under the names of this side."""
    keys = [spark_sql(e) for e in (join.left_keys if is_left else join.right_keys).expressions]
    names = key_names(join, is_left=is_left)
    position = named(AT, LEFT_AT if is_left else RIGHT_AT)
    return side.selectExpr(position, *map(named, keys, names), *side_columns(side))


def key_names(join: JoinPlan, *, is_left: bool) -> list[str]:
    """What the columns of keys are called."""
    name = LEFT_KEY if is_left else RIGHT_KEY
    return [f"{name}{i}" for i in range(len(join.key_types))]


def multiple_of(at: str, step: int, phase: int = 0) -> str:
    """How many whole steps from `phase` to a position: rounded down, for negative ones too."""
    moved = at if not phase else f"({at} - {phase}L)"
    return f"(({moved} - pmod({moved}, {step}L)) div {step}L)"


def first_window(spec: PanedSpec, at: str) -> str:
    """The oldest window that holds a position."""
    return multiple_of(at, spec.slide, spec.origin)


def last_window(spec: Sliding, at: str) -> str:
    """The newest window that holds a position; one before the oldest if none does."""
    return f"({multiple_of(at, spec.slide, spec.origin - spec.size)} - 1L)"


def window_edges(spec: PanedSpec, wid: str, axis: Axis) -> list[str]:
    """Where windows start and end, from their numbers, in the type of the axis."""
    end = f"({spec.origin}L + ({wid} + 1L) * {spec.slide}L)"
    start = "CAST(NULL AS BIGINT)" if isinstance(spec, Landmark) else f"({end} - {spec.size}L)"
    return edge_texts(start, end, axis_type(axis))


def axis_type(axis: Axis) -> T.DataType | None:
    """The type of positions on a time axis; others have none."""
    return spark_type(axis.type) if axis.kind == "time" else None


def matching(join: JoinPlan, near: Sequence[str]) -> Column:
    """What pairs are asked; the rest only of those that have the same key and lie within reach."""
    names = key_names(join, is_left=True), key_names(join, is_left=False)
    equal = [f"{one} = {other}" for one, other in zip(*names, strict=True)]
    asked = [*equal, f"{LEFT_SLOT} = {RIGHT_SLOT}", *near]
    if join.rest is not None and join.rest.where is not None:
        rest = spark_sql(join.rest.where)
        asked.append(f"CASE WHEN {' AND '.join(asked)} THEN ({rest}) ELSE FALSE END")
    return F.expr(" AND ".join(asked))


def in_one(side: DataFrame, band: Band, *, is_left: bool) -> DataFrame:
    """A side in buckets of time as long as the band is wide; of an open band there is only one."""
    at, slot = (LEFT_AT, LEFT_SLOT) if is_left else (RIGHT_AT, RIGHT_SLOT)
    return side.selectExpr("*", named("0L" if band.is_open else _bucket(at, band), slot))


def reaching(side: DataFrame, band: Band, *, is_left: bool) -> DataFrame:
    """A side in all buckets of the other side that its rows can reach: at most two each."""
    at, slot = (LEFT_AT, LEFT_SLOT) if is_left else (RIGHT_AT, RIGHT_SLOT)
    if band.is_open or not band.width:
        return in_one(side, band, is_left=is_left)
    low, high = (band.low, band.high) if is_left else (-band.high, -band.low)
    first, last = _bucket(f"({at} + {low}L)", band), _bucket(f"({at} + {high}L)", band)
    return side.selectExpr("*", named(f"explode(sequence({first}, {last}, {band.width}L))", slot))


def _bucket(at: str, band: Band) -> str:
    """Where the bucket of a position begins."""
    return f"({at} - pmod({at}, {max(band.width, 1)}L))"


def within(band: Band) -> list[str]:
    """How far apart the rows of a pair may be."""
    distance = f"{RIGHT_AT} - {LEFT_AT}"
    found = [f"{distance} >= {band.low}L"] * (band.low > BEGINNING)
    return found + [f"{distance} <= {band.high}L"] * (band.high < FOREVER)
