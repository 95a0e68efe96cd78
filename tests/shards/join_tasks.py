"""What tasks over the sides of a join are given, without Spark."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from panes.expressions.projection import Projection
from panes.planning.join_plan import JoinPlan
from panes.shards.names import AT, PASSING, ROW, SOURCE, column_name


def rows_of_task(join: JoinPlan, number: int, source: int, table: pa.Table) -> pa.Table:
    """What Spark's projection would hand to a task."""
    plan = join.sources[number].plan
    at, missing = plan.placing.ticks(table.column(plan.placing.column).combine_chunks())
    _, columns = Projection(plan.rows.expressions, None)(table)
    kept, _ = plan.rows(table)
    passes = np.ones(len(table), dtype=bool)
    if kept is not None:
        passes = np.isin(np.arange(len(table)), kept)
    whole = [c.combine_chunks() for c in table.columns]
    named = {
        SOURCE: pa.array([source] * len(table), pa.int32()),
        AT: pa.array(at, mask=missing),
        PASSING: pa.array(passes),
        ROW: pa.StructArray.from_arrays(whole, names=table.column_names),
    }
    return pa.table(named | {column_name(i): c for i, c in enumerate(columns)})
