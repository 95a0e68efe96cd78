"""Lowered answers of a register on Spark: windows' edges in ticks, keys and aggregates.

They leave Python in packages. Spark unpacks them and finishes them: HAVING, the SELECT's
expressions, and edges in the type of the axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T  # noqa: N812

from panes.answers.select import plain_outputs
from panes.planning.plan import Plan
from panes.shards.sent_answers import PACKED
from panes.spark.answers import answer_texts, edge_texts, handed_over_schema
from panes.spark.bind import sql
from panes.spark.column_names import END, START
from panes.spark.host import Batches
from panes.stores import codec

_ROWS_AT_ONCE = 1 << 16


def lowered_schema(plan: Plan, status: Sequence[str] = ()) -> T.StructType:
    """Lowered answers in Spark's types, with both edges in ticks, and their status columns."""
    others = handed_over_schema(plan, status).fields
    return T.StructType([T.StructField(START, T.LongType()), *others])


def finished(
    plan: Plan,
    lowered: DataFrame,
    axis_type: T.DataType,
    *before: str,
    status: Sequence[str] = (),
) -> DataFrame:
    """What was selected, of lowered answers that HAVING keeps; `before` come before it."""
    edges: list[str] = []
    if plan.names_windows:
        edges = edge_texts(START, END, axis_type if plan.axis.kind == "time" else None)
    chosen, having = answer_texts(plan, status), plan.query.having
    if plain_outputs(plan) is not None:
        return lowered.selectExpr(*before, *edges, *chosen[len(edges) :])
    edged = lowered.selectExpr("*", *edges)
    passing = edged if having is None else edged.where(sql(having))
    return passing.selectExpr(*before, *chosen)


@dataclass(frozen=True, slots=True)
class Unpack:
    """Packages as rows of a schema."""

    schema: pa.Schema

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            for package in batch.column(0):
                table = self.table(package.as_py())
                yield from table.combine_chunks().to_batches(max_chunksize=_ROWS_AT_ONCE)

    def table(self, package: bytes) -> pa.Table:
        """One package."""
        table = codec.unpack(package)[PACKED]
        columns = [table.column(f.name).cast(f.type) for f in self.schema]
        return pa.table(columns, schema=self.schema)
