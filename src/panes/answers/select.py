"""From lowered answers to what was selected: HAVING, the SELECT's expressions, columns in order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from panes.planning.answer_columns import AnswerColumn
from panes.planning.plan import Plan


def projected(plan: Plan, table: pa.Table) -> pa.Table:
    """The selected columns of the answers that pass HAVING."""
    return selected(plan, table)[1]


def selected(plan: Plan, table: pa.Table) -> tuple[NDArray[np.int64] | None, pa.Table]:
    """The answers that pass HAVING (None for all of them), and their selected columns."""
    if not len(table):
        return None, plan.schema().empty_table()
    passing, computed = plan.answers(table)
    taken, outputs = None if passing is None else pa.array(passing), iter(computed)

    def column_of(answer: AnswerColumn) -> pa.Array | pa.ChunkedArray:
        if answer.lowered is None:
            return next(outputs)
        column = table.column(answer.lowered)
        return column if taken is None else column.take(taken)

    columns = plan.answer_columns
    return passing, pa.table([column_of(c) for c in columns], names=[c.name for c in columns])


def plain_outputs(plan: Plan) -> tuple[list[int], list[str]] | None:
    """The lowered columns that `selected` would give, by index, and their names in the answers.

    None if anything is computed or left out.
    """
    if plan.answers.where is not None or not plan.names_windows:
        return None
    lowered, indexes = plan.lowered_schema().names, []
    for column in plan.answer_columns:
        source = column.lowered
        if isinstance(column.expression, exp.Column):
            source = column.expression.name
        if source is None:
            return None
        indexes.append(lowered.index(source))
    return indexes, [column.name for column in plan.answer_columns]
