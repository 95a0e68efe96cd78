"""The keys of a join: expressions of both sides that ON says are equal, and the type of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import pyarrow as pa
from sqlglot import exp

from panes.expressions.projection import Projection
from panes.planning.joined_columns import JoinedColumns, operands

Pair: TypeAlias = tuple[exp.Expression, exp.Expression]
"""The expressions that are compared: of the left side, and of the right."""


def key_pair(columns: JoinedColumns, condition: exp.Expression, right: int) -> Pair | None:
    """The expressions of both sides that an equality compares; None if it is no such thing."""
    if not isinstance(condition, exp.EQ):
        return None
    one, other = operands(condition)
    sides = columns.sides_of(one), columns.sides_of(other)
    if sides[0] and right not in sides[0] and sides[1] == {right}:
        return one, other
    if sides[1] and right not in sides[1] and sides[0] == {right}:
        return other, one
    return None


def keys_of(
    columns: JoinedColumns, pairs: Sequence[Pair]
) -> tuple[list[Pair], tuple[pa.DataType, ...], list[exp.Expression]]:
    """Pairs that are compared as keys, their types, and pairs of unlike types as conditions."""
    schema = columns.schema()
    keys: list[Pair] = []
    types: list[pa.DataType] = []
    unlike: list[exp.Expression] = []
    for one, other in pairs:
        found = Projection((one, other), None).types(schema)
        common = _common_type(*found)
        if common is None:
            unlike.append(exp.EQ(this=one.copy(), expression=other.copy()))
        else:
            keys.append((one, other))
            types.append(common)
    return keys, tuple(types), unlike


def _common_type(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """The type in which values of both are compared; None if that takes more than a cast."""
    if any(pa.types.is_nested(t) or pa.types.is_interval(t) for t in (one, other)):
        return None
    if one == other:
        return one
    both = (one, other)
    if pa.uint64() in both:
        return None
    if all(pa.types.is_integer(t) for t in both):
        return pa.int64()
    if all(pa.types.is_integer(t) or pa.types.is_floating(t) for t in both):
        return pa.float64()
    if all(pa.types.is_string(t) or pa.types.is_large_string(t) for t in both):
        return pa.large_string()
    if all(pa.types.is_timestamp(t) for t in both) and bool(one.tz) == bool(other.tz):
        return pa.timestamp("us", one.tz)
    return None
