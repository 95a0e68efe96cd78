"""From what Python hands over, windows' ends, keys and aggregates, to what was selected.

HAVING and the SELECT's expressions are evaluated by Spark.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_type

from panes.language.query import KEY, WINDOW_COLUMNS
from panes.planning.plan import Plan
from panes.spark.bind import BoundQuery, sql
from panes.windows.extent import ruler
from panes.windows.spec import Landmark, PerRow

END = "__end"


def handed_over(lowered: pa.Table) -> pa.Table:
    """Lowered answers as they leave Python: only where their windows end, in ticks.

    Per-row windows give no edges; there the end is 0, which only says that this is an answer.
    """
    if WINDOW_COLUMNS[1] not in lowered.column_names:
        return lowered.add_column(0, END, pa.array(np.zeros(len(lowered), dtype=np.int64)))
    ends = lowered.column(WINDOW_COLUMNS[1]).combine_chunks().view(pa.int64())
    return lowered.drop_columns(list(WINDOW_COLUMNS)).add_column(0, END, ends)


def handed_over_schema(plan: Plan, told: Sequence[str] = ()) -> T.StructType:
    """The columns of `handed_over` in Spark's types, and what is told beside them."""
    fields = [T.StructField(END, T.LongType())]
    others = [f for f in plan.lowered_schema() if f.name not in WINDOW_COLUMNS]
    fields += [T.StructField(f.name, _spark_type(f.type)) for f in others]
    return T.StructType(fields + [T.StructField(name, T.StringType()) for name in told])


def selected(bound: BoundQuery, handed: DataFrame, told: Sequence[str] = ()) -> DataFrame:
    """What was selected, of the answers that HAVING keeps."""
    query = bound.plan.query
    edged = with_edges(bound, handed)
    kept = edged if query.having is None else edged.where(sql(query.having))
    return kept.select(*answer_columns(bound.plan, told))


def answer_columns(plan: Plan, told: Sequence[str] = ()) -> list[Column]:
    """What was selected, in the order of the contract, and what is told beside it."""
    query = plan.query
    outputs = [sql(o.expression).alias(o.name) for o in query.outputs]
    outputs += [F.col(name) for name in told]
    if isinstance(plan.window.spec, PerRow):
        return outputs
    given = [F.col(name) for name in WINDOW_COLUMNS]
    given += [F.col(f"{KEY}{i}").alias(query.keys[i].name) for i in query.shown_keys]
    return [*given, *outputs]


def with_edges(bound: BoundQuery, handed: DataFrame) -> DataFrame:
    """Where windows start and end, in the type of their column; per-row windows do not say."""
    if isinstance(bound.plan.window.spec, PerRow):
        return handed
    spec, axis = bound.plan.spec, bound.plan.axis
    kind = bound.frames[0].schema[axis.column or ""].dataType if axis.kind == "time" else None
    end = F.col(END)
    no_start = F.lit(None).cast("long")
    start = no_start if isinstance(spec, Landmark) else end - F.lit(ruler(spec).size)
    edges = [edge(t, kind).alias(n) for t, n in zip((start, end), WINDOW_COLUMNS, strict=True)]
    return handed.select("*", *edges)


def edge(ticks: Column, kind: T.DataType | None) -> Column:
    """Where a window starts or ends, in the type of a time axis; other axes have no type."""
    if kind is None:
        return ticks
    if isinstance(kind, T.TimestampNTZType):
        return F.timestamp_add("MICROSECOND", ticks, F.lit("1970-01-01").cast("timestamp_ntz"))
    return F.timestamp_micros(ticks)


def _spark_type(kind: pa.DataType) -> T.DataType:
    """Spark's type for an answer; lists of answers hold no NULL."""
    made = from_arrow_type(kind)
    if isinstance(made, T.ArrayType):
        return T.ArrayType(made.elementType, containsNull=False)
    return made
