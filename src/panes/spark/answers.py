"""From what Python hands over, windows' ends, keys and aggregates, to what was selected.

HAVING and the SELECT's expressions are evaluated by Spark.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T  # noqa: N812
from sqlglot import exp

from panes.answers.select import plain_outputs
from panes.language.expressions import quoted
from panes.language.query import AGGREGATE, WINDOW_COLUMNS
from panes.nodes.promised_answers import at_least, promised_by_windows
from panes.planning.answer_columns import AnswerColumn
from panes.planning.plan import Plan
from panes.shards.outcome import Promised
from panes.spark.bind import BoundQuery, row_text, rows_where
from panes.spark.column_names import END, START
from panes.spark.expressions import spark_sql
from panes.spark.internals import spark_type
from panes.windows.extent import ruler
from panes.windows.spec import Landmark, PerRow


def handed_over(lowered: pa.Table) -> pa.Table:
    """Lowered answers as they leave Python: only where their windows end, in ticks.

    Per-row windows give no edges; there the end is 0, which only says that this is an answer.
    """
    if WINDOW_COLUMNS[1] not in lowered.column_names:
        return lowered.add_column(0, END, pa.array(np.zeros(len(lowered), dtype=np.int64)))
    ends = lowered.column(WINDOW_COLUMNS[1]).combine_chunks().view(pa.int64())
    return lowered.drop_columns(list(WINDOW_COLUMNS)).add_column(0, END, ends)


def promised_row(plan: Plan, said: Promised) -> dict[str, pa.Array] | None:
    """What is promised of answers to come, as a row with the first positions that they may have.

    No window that ends before what is `said` will be answered.
    """
    next_end = said["end"]
    promised = promised_by_windows(plan.query, next_end)
    if not promised:
        return None
    if plan.names_windows:
        return {END: pa.array([next_end], pa.int64())}
    outputs = [o for o in plan.query.outputs if o.name.lower() in promised]
    types = {o.expression.name: plan.lowered_schema().field(o.expression.name).type
             for o in outputs}  # fmt: skip
    at = {name: at_least(promised[outputs[0].name.lower()], kind) for name, kind in types.items()}
    return {END: pa.array([0], pa.int64()), **at}


def handed_over_schema(plan: Plan, status_columns: Sequence[str] = ()) -> T.StructType:
    """The columns of `handed_over` in Spark's types, and the status columns."""
    fields = [T.StructField(END, T.LongType())]
    others = [f for f in plan.lowered_schema() if f.name not in WINDOW_COLUMNS]
    calls = {f"{AGGREGATE}{i}": call.name for i, call in enumerate(plan.query.calls)}
    fields += [
        T.StructField(f.name, _spark_type(f.type, is_value=calls.get(f.name) in _VALUES))
        for f in others
    ]
    return T.StructType(fields + [T.StructField(name, T.StringType()) for name in status_columns])


def with_start(handed: T.StructType) -> T.StructType:
    """The same columns, where windows of many sizes say where they start, too."""
    return T.StructType([T.StructField(START, T.LongType()), *handed.fields])


def selected(bound: BoundQuery, handed: DataFrame) -> DataFrame:
    """What was selected of answers that HAVING keeps."""
    return finished(bound.plan, handed, bound.axis_type, start=start_text(bound.plan))


def start_text(plan: Plan) -> str:
    """Where a window starts, in ticks, by its end."""
    if isinstance(plan.window.spec, PerRow | Landmark):
        return "CAST(NULL AS BIGINT)"
    return f"{END} - {ruler(plan.spec).size}L"


def finished(
    plan: Plan,
    handed: DataFrame,
    axis_type: T.DataType | None,
    *before: str,
    start: str = START,
    status: Sequence[str] = (),
    hidden: Sequence[str] = (),
) -> DataFrame:
    """What was selected, of answers that HAVING keeps; `before` come before it.

    `hidden` columns come after it: in rows that are no answers, only these say anything.
    """
    edge_type = axis_type if plan.axis.kind == "time" else None
    edges = edge_texts(start, END, edge_type) if plan.names_windows else []
    chosen = answer_texts(plan, status, if_row=row_text(hidden))
    if plain_outputs(plan) is not None:
        return handed.selectExpr(*before, *edges, *chosen[len(edges) :], *hidden)
    edged = handed.selectExpr("*", *edges) if edges else handed
    return rows_where(edged, plan.query.having, hidden).selectExpr(*before, *chosen, *hidden)


def answer_texts(plan: Plan, status_columns: Sequence[str] = (), *, if_row: str = "") -> list[str]:
    """What was selected, in the order of the contract, and the status columns.

    What is more than a column is evaluated only `if_row` holds.

    As text: Spark reads all of it in one call, where every part of a Column is a call of its own.
    """
    return [*(_text(column, if_row) for column in plan.answer_columns), *status_columns]


def guarded(tree: exp.Expression, if_row: str) -> str:
    """An expression as Spark reads it; what is more than a column only where a condition holds."""
    text = spark_sql(tree)
    is_free = not if_row or isinstance(tree, exp.Column)
    return text if is_free else f"CASE WHEN {if_row} THEN {text} END"


def _text(column: AnswerColumn, if_row: str) -> str:
    if column.expression is not None:
        return named(guarded(column.expression, if_row), column.name)
    assert column.lowered is not None
    return column.name if column.lowered == column.name else named(column.lowered, column.name)


def named(text: str, name: str) -> str:
    """An expression under a name."""
    return f"{text} AS {quoted(name)}"


def edge_texts(start: str, end: str, data_type: T.DataType | None) -> list[str]:
    """Where windows start and end, from ticks, in the type of a time axis; others have none.

    Windows of dates start and end at instants.
    """
    kind = T.TimestampType() if isinstance(data_type, T.DateType) else data_type
    edges = zip((start, end), WINDOW_COLUMNS, strict=True)
    return [named(from_ticks(ticks, kind), name) for ticks, name in edges]


def from_ticks(ticks: str, data_type: T.DataType | None) -> str:
    """A value of a type of time from the number that stands for it; others are as they are."""
    if isinstance(data_type, T.TimestampType):
        return f"timestamp_micros({ticks})"
    if isinstance(data_type, T.TimestampNTZType):
        return f"timestampadd(MICROSECOND, {ticks}, CAST('1970-01-01' AS TIMESTAMP_NTZ))"
    return f"date_from_unix_date({ticks})" if isinstance(data_type, T.DateType) else ticks


_VALUES = (
    *("min", "max", "min_by", "max_by", "mode", "collect_union"),
    *("first", "first_value", "any_value", "last", "last_value"),
)
"""Aggregates whose answers are values of a column, or made of their parts."""


def _spark_type(data_type: pa.DataType, *, is_value: bool) -> T.DataType:
    """Spark's type for an answer; lists that an aggregate makes have no NULL."""
    made = spark_type(data_type)
    if isinstance(made, T.ArrayType) and not is_value:
        return T.ArrayType(made.elementType, containsNull=False)
    return made
