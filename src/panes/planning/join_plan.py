"""A join bound to the columns of its streams: everything decided before the first row.

`panes.planning.bind_join` makes these plans; every host of joins works by them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from panes.axis import Axis
from panes.expressions.projection import Projection
from panes.language.join_query import How, Source
from panes.planning.plan import Plan
from panes.windows.partners import CommonWindows, Partners
from panes.windows.spec import PanedSpec


@dataclass(frozen=True, slots=True)
class SourcePlan:
    """One side that is a stream or a union: how its rows are admitted, and what it delivers.

    `plan` places rows and filters them; its columns are those in `columns`, which is what they are
    called among joined columns.
    """

    source: Source
    plan: Plan
    columns: tuple[str, ...]
    at: str

    @property
    def name(self) -> str:
        """The name of the side."""
        return self.source.name

    @property
    def axis(self) -> Axis:
        """The axis of its positions."""
        return self.plan.axis

    def schema(self) -> pa.Schema:
        """The columns it delivers, with their types."""
        types = [self.plan.row_types[c] for c in self.plan.defining_columns]
        return pa.schema(list(zip(self.columns, types, strict=True)))


@dataclass(frozen=True, slots=True)
class JoinPlan:
    """Two sides and all that decides which of their rows are joined.

    `left_at` and `right_at` are the joined columns that give positions. `keys` are the expressions
    that must be equal, of both sides, and `key_types` the types they are compared in. `rest` is
    what pairs are asked beside that. `columns` are the joined columns that go up.
    """

    left: SidePlan
    right: SourcePlan
    how: How
    as_of: bool
    partners: Partners
    left_at: str
    right_at: str
    axis: Axis
    left_keys: Projection
    right_keys: Projection
    key_types: tuple[pa.DataType, ...]
    rest: Projection | None
    columns: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of the join in messages."""
        return f"{self.left.name} and {self.right.name}"

    @property
    def windows(self) -> PanedSpec | None:
        """The windows that pairs are named by; None for a band."""
        return self.partners.spec if isinstance(self.partners, CommonWindows) else None

    @property
    def sources(self) -> tuple[SourcePlan, ...]:
        """The sides that are no joins, from left to right."""
        left = self.left.sources if isinstance(self.left, JoinPlan) else (self.left,)
        return (*left, self.right)

    @property
    def identity(self) -> tuple[object, ...]:
        """Two joins of the same streams are the same if they agree in this."""
        return (
            self.how,
            self.as_of,
            self.partners,
            (self.left_at, self.right_at),
            *(e.sql() for keys in (self.left_keys, self.right_keys) for e in keys.expressions),
            None if self.rest is None or self.rest.where is None else self.rest.where.sql(),
            *(
                (s.source.names, s.source.streams, s.source.inner, str(s.plan.rows.where))
                for s in self.sources
            ),
            self.left.identity if isinstance(self.left, JoinPlan) else None,
        )

    @property
    def gives_right(self) -> bool:
        """True if joined rows have the columns of the right side."""
        return self.how not in ("semi", "anti")

    @property
    def reach(self) -> int:
        """The greatest distance of rows that end up in one joined row."""
        below = self.left.reach if isinstance(self.left, JoinPlan) else 0
        return self.partners.farthest + below

    def schema(self) -> pa.Schema:
        """The joined columns that go up, with their types."""
        known = [*self.left.schema(), *self.right.schema()]
        types = {f.name: f.type for f in known}
        return pa.schema([(name, types[name]) for name in self.columns])

    def require_types(self) -> None:
        """Refuse what is asked of pairs and cannot be, here rather than at the first pair."""
        if self.rest is not None:
            self.rest.types(pa.schema([*self.left.schema(), *self.right.schema()]))
        if isinstance(self.left, JoinPlan):
            self.left.require_types()


SidePlan: TypeAlias = SourcePlan | JoinPlan
