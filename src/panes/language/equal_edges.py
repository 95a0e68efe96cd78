"""Joins of windows that begin or end together: equal edges say how far apart two answers may be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlglot import exp

from panes.language.join_query import Join, Source
from panes.language.query import WINDOW_COLUMNS, WINDOW_TIME


def in_same_windows(join: Join) -> Join:
    """A join in which equal edges of windows are a band without width.

    ``a.window_end = b.window_end`` is what says how far apart two answers may be. Of several edges
    one says it, and the others are keys.
    """
    left = in_same_windows(join.left) if isinstance(join.left, Join) else join.left
    clauses = [join.clause, *(side.clause for side in join.sources)]
    if join.as_of or any(clauses):
        return replace(join, left=left)
    condition = None if join.condition is None else join.condition.copy()
    equal = {_edge_of(tree): tree for tree in _asked_together(condition)}
    if isinstance(left, Source):
        sides = left.name, join.right.name
        equal |= {name.lower(): _equal(name, *sides) for name in join.using}
    edge = next((edge for edge in _EDGES if edge in equal), None)
    if edge is None:
        return replace(join, left=left)
    band = _band(equal[edge])
    if condition is not None and condition is not equal[edge]:
        equal[edge].replace(band)
        band = condition
    return replace(join, left=left, condition=band)


_EDGES = (WINDOW_COLUMNS[1], WINDOW_TIME, WINDOW_COLUMNS[0])
"""The edges of windows that may say how far apart answers are, the best one first."""


def _asked_together(tree: exp.Expression | None) -> Iterator[exp.Expression]:
    """The conditions of which all have to hold."""
    if isinstance(tree, exp.And):
        yield from _asked_together(tree.this)
        yield from _asked_together(tree.expression)
    elif isinstance(tree, exp.Paren):
        yield from _asked_together(tree.this)
    elif tree is not None:
        yield tree


def _edge_of(tree: exp.Expression) -> str:
    """The column of both sides that a condition says is equal; nothing if there is none."""
    if not isinstance(tree, exp.EQ):
        return ""
    sides = tree.this, tree.expression
    names = {side.name.lower() if isinstance(side, exp.Column) else "" for side in sides}
    return names.pop() if len(names) == 1 else ""


def _equal(name: str, *sides: str) -> exp.Expression:
    left, right = (exp.column(name, table=side, quoted=True) for side in sides)
    return exp.EQ(this=left, expression=right)


def _band(equal: exp.Expression) -> exp.Expression:
    left, right = equal.this, equal.expression
    least = exp.GTE(this=left.copy(), expression=right.copy())
    return exp.And(this=least, expression=exp.LTE(this=left.copy(), expression=right.copy()))
