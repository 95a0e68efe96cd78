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
from panes.planning.scalar import Projection


@dataclass(frozen=True, slots=True)
class Select:
    """Rows for which a condition holds. Promises pass as they are."""

    where: exp.Expression

    @property
    def nbytes(self) -> int:
        """Nothing is remembered."""
        return 0

    def push(self, rows: pa.Table) -> pa.Table:
        """The rows that pass."""
        passing, _ = Projection((), self.where)(rows)
        return rows if passing is None else rows.take(pa.array(passing))

    def punctuate(self, at: int) -> int:
        """The same promise: fewer rows come, none of them earlier."""
        return at

    def settle(self) -> None:
        """Nothing is held."""

    def forget(self, progress: int) -> None:
        """Nothing is held."""


@dataclass(frozen=True, slots=True)
class Project:
    """Expressions over each row, under names; Apply where they compute anything.

    `axis` is the position of rows that go in, and `position` the output column that has the
    position of those that come out. Where that is the column itself, or a fixed distance from it
    (`require_order`), a promise is moved as the rows are.
    """

    columns: Sequence[tuple[str, exp.Expression]]
    axis: Axis | None
    position: str

    @property
    def nbytes(self) -> int:
        """Nothing is remembered."""
        return 0

    def push(self, rows: pa.Table) -> pa.Table:
        """The expressions over the rows."""
        _, columns = Projection(tuple(e for _, e in self.columns), None)(rows)
        return pa.table(columns, names=[name for name, _ in self.columns])

    def punctuate(self, at: int) -> int:
        """The promise, moved as far as a row at `at` would be."""
        if self.axis is None:
            return at
        here = np.array([at])
        return int(self.moved(pa.table({self.axis.column: self.axis.label(here)}), here)[0])

    def moved(self, rows: pa.Table, at: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where rows come out that lie at these positions."""
        tree = dict(self.columns).get(self.position)
        if tree is None or self.axis is None or isinstance(tree, exp.Column):
            return at
        _, (column,) = Projection((tree,), None)(rows)
        ticks, missing = self.axis.ticks(column)
        moved: NDArray[np.int64] = ticks if missing is None else ticks[~missing]
        return moved

    def settle(self) -> None:
        """Nothing is held."""

    def forget(self, progress: int) -> None:
        """Nothing is held."""


def require_order(project: Project) -> None:
    """Refuse positions that could put rows in another order, where promises are to be carried."""
    moved = dict(project.columns).get(project.position)
    if moved is not None and not _keeps_order(
        moved, None if project.axis is None else project.axis.column
    ):
        written = moved.sql(dialect="spark")
        raise QueryError(
            f"`{written}` AS {project.position} could put rows in another order, so nothing "
            "promised of the stream holds for it",
            hint="window over the column itself, or one that adds a constant to it",
        )


def _keeps_order(tree: exp.Expression, column: str | None) -> bool:
    """Whether an expression is a column, or a constant added to it or taken from it."""
    if isinstance(tree, exp.Paren):
        return _keeps_order(tree.this, column)
    if isinstance(tree, exp.Add):
        sides = (tree.this, tree.expression)
        return any(_keeps_order(a, column) and _is_constant(b) for a, b in (sides, sides[::-1]))
    if isinstance(tree, exp.Sub):
        return _keeps_order(tree.this, column) and _is_constant(tree.expression)
    return isinstance(tree, exp.Column) and tree.name == column


def _is_constant(tree: exp.Expression) -> bool:
    return tree.find(exp.Column, exp.Func) is None
