"""By which keys the rows of a join are spread over shards: rows that may be joined meet in one.

A join is spread by its keys. Several joins are spread by what all of them compare: a key of the
upper one that is also a key of the one below. If there is no such key, there is one shard.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from panes.expressions.projection import Projection
from panes.planning.join_plan import JoinPlan


@dataclass(frozen=True, slots=True)
class ShardKeys:
    """What is hashed of the rows of one side, in these types."""

    keys: Projection
    types: tuple[pa.DataType, ...]

    def __bool__(self) -> bool:
        return bool(self.types)

    def of(self, table: pa.Table) -> list[pa.Array]:
        """The keys of rows, whose columns have joined names."""
        _, values = self.keys(table)
        pairs = zip(values, self.types, strict=True)
        return [v if v.type == kind else v.cast(kind) for v, kind in pairs]


def shard_keys(join: JoinPlan) -> tuple[ShardKeys, ...]:
    """The keys of each side, from left to right; of all sides the same number."""
    common = _common(join)
    types = tuple(kind for _, kind in common)
    return tuple(
        ShardKeys(Projection(tuple(key[side] for key, _ in common), None), types)
        for side in range(len(join.sources))
    )


_Common = list[tuple[tuple[exp.Expression, ...], pa.DataType]]


def _common(join: JoinPlan) -> _Common:
    """What all joins compare: for each such key its expression on every side, and its type."""
    pairs = zip(
        join.left_keys.expressions, join.right_keys.expressions, join.key_types, strict=True
    )
    if not isinstance(join.left, JoinPlan):
        return [((one, other), kind) for one, other, kind in pairs]
    below = _common(join.left)
    found: _Common = []
    for one, other, kind in pairs:
        for known, known_kind in below:
            if kind == known_kind and one in known:
                found.append(((*known, other), kind))
                break
    return found
