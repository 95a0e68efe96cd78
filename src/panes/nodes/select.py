"""Select, Project and Apply: a row at a time, so nothing is held and nothing waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from panes.axis import Axis
from panes.errors import QueryError
from panes.expressions.projection import Projection
from panes.nodes.operator import Operator


@dataclass(frozen=True, slots=True)
class Select(Operator):
    """Rows for which a condition holds. Promises pass as they are: none comes earlier."""

    where: exp.Expression

    def push(self, rows: pa.Table) -> pa.Table:
        """The rows that pass."""
        passing, _ = Projection((), self.where)(rows)
        return rows if passing is None else rows.take(pa.array(passing))


@dataclass(frozen=True, slots=True)
class Project(Operator):
    """Expressions over each row, under names; Apply where they compute anything.

    `axis` is the position of rows that go in, and `position` the output column that has the
    position of those that come out. Where no later row comes out before an earlier one, a promise
    is moved as the rows are. Where rows go in with no position of the same kind (`axis` is None: it
    is read from text, or a number becomes a moment), promises are about those that come out.
    """

    columns: Sequence[tuple[str, exp.Expression]]
    axis: Axis | None
    position: str
    after: Axis | None = None

    def push(self, rows: pa.Table) -> pa.Table:
        """The expressions over the rows."""
        _, columns = Projection(tuple(e for _, e in self.columns), None)(rows)
        return pa.table(columns, names=[name for name, _ in self.columns])

    def punctuate(self, at: int) -> int:
        """The promise, moved as far as a row at `at` would be."""
        if self.axis is None:
            return at
        require_order(self)
        here = np.array([at])
        return int(self.moved(pa.table({self.axis.column: self.axis.label(here)}), here)[0])

    def moved(self, rows: pa.Table, at: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where rows come out that lie at these positions."""
        tree = dict(self.columns).get(self.position)
        if tree is None or self.axis is None or isinstance(tree, exp.Column):
            return at
        ticks, missing = (self.after or self.axis).ticks(self.placed(rows))
        moved: NDArray[np.int64] = ticks if missing is None else ticks[~missing]
        return moved

    def placed(self, rows: pa.Table) -> pa.Array:
        """What has the positions of these rows."""
        _, (column,) = Projection((dict(self.columns)[self.position],), None)(rows)
        return column


def require_order(project: Project) -> None:
    """Refuse positions that could put rows in another order, where promises are to be carried."""
    moved = dict(project.columns).get(project.position)
    if moved is None or project.axis is None or keeps_order(moved, project.axis.column):
        return
    written = moved.sql(dialect="spark", identify=False).replace("`", "")
    raise QueryError(
        f"`{written}` AS {project.position} could put rows in another order, so nothing "
        f"promised of `{project.axis.column}` holds for it",
        hint='let progress follow from rows, with lateness="10 seconds", or window over the column '
        "itself",
    )


def keeps_order(tree: exp.Expression, column: str | None) -> bool:
    """Whether no larger value of a column makes an expression smaller."""
    if isinstance(tree, exp.Paren):
        return keeps_order(tree.this, column)
    if isinstance(tree, exp.Add):
        sides = (tree.this, tree.expression)
        return any(keeps_order(a, column) and _is_constant(b) for a, b in (sides, sides[::-1]))
    if isinstance(tree, exp.Sub):
        return keeps_order(tree.this, column) and _is_constant(tree.expression)
    if isinstance(tree, exp.Cast):
        is_ordered = tree.to.this in _ORDERED_TYPES
        return is_ordered and keeps_order(tree.this, column)
    if isinstance(tree, exp.Anonymous) and tree.expressions:
        name, (*first, last) = tree.name.lower(), tree.expressions
        is_ordered = (name in _ORDERED and not first) or name == "date_trunc"
        return is_ordered and keeps_order(last, column)
    return isinstance(tree, exp.Column) and not tree.table and tree.name == column


_ORDERED_TYPES = {
    *exp.DataType.TEMPORAL_TYPES, exp.DataType.Type.BIGINT, exp.DataType.Type.INT,
}  # fmt: skip
_ORDERED = frozenset({
    "timestamp_millis", "timestamp_seconds", "timestamp_micros", "timestamp", "to_timestamp",
    "date", "to_date", "date_from_unix_date", "unix_date", "unix_seconds", "unix_millis",
    "unix_micros", "bigint", "int",
})  # fmt: skip


def _is_constant(tree: exp.Expression) -> bool:
    return tree.find(exp.Column, exp.Func) is None
