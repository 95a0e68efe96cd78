"""From lowered answers to what was selected: HAVING, the SELECT's expressions, columns in order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from panes.language.query import WINDOW_COLUMNS
from panes.planning.plan import Plan
from panes.windows.spec import PerRow


def projected(plan: Plan, table: pa.Table) -> pa.Table:
    """What was selected, of the answers that HAVING keeps."""
    return selected(plan, table)[1]


def selected(plan: Plan, table: pa.Table) -> tuple[NDArray[np.int64] | None, pa.Table]:
    """Which answers HAVING keeps, None for all of them, and what was selected of those."""
    if not len(table):
        return None, plan.schema().empty_table()
    query = plan.query
    kept, outputs = plan.answers(table)
    if isinstance(plan.window.spec, PerRow):
        return kept, pa.table(outputs, names=[o.name for o in query.outputs])
    given = [table.column(i) for i in range(2)]
    given += [table.column(2 + i) for i in query.shown_keys]
    if kept is not None:
        given = [column.take(pa.array(kept)) for column in given]
    titles = [*WINDOW_COLUMNS, *(query.keys[i].name for i in query.shown_keys)]
    titles += [o.name for o in query.outputs]
    return kept, pa.table([*given, *outputs], names=titles)


def plain_outputs(plan: Plan) -> tuple[list[int], list[str]] | None:
    """What `selected` gives of lowered answers where it is columns of these: which, and titles.

    None if anything is computed or left out.
    """
    query, given = plan.query, plan.lowered_schema().names
    trees = plan.answers.expressions
    if plan.answers.where is not None or isinstance(plan.window.spec, PerRow):
        return None
    if not all(isinstance(tree, exp.Column) for tree in trees):
        return None
    places = [0, 1, *(2 + i for i in query.shown_keys), *(given.index(t.name) for t in trees)]
    titles = [*WINDOW_COLUMNS, *(query.keys[i].name for i in query.shown_keys)]
    return places, [*titles, *(o.name for o in query.outputs)]
