"""Queries over a join, as data.

As a `Query`, a `JoinQuery` is what the text says and nothing else. Which columns are meant, which
conditions are keys and which are the band is decided when the columns of the streams are known
(`panes.planning.join_plan`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from sqlglot import exp

from panes.language.clause import Parts
from panes.language.query import Early, Inner

How: TypeAlias = Literal["inner", "left", "right", "full", "semi", "anti"]


@dataclass(frozen=True, slots=True)
class Source:
    """One side of a join: a stream or a union of streams, and the names that columns go by.

    `names` are its alias, if it has one, and the names of its streams. `clause` is the window
    clause that stands right behind it; `again` is as in a `Query`.
    """

    names: tuple[str, ...]
    streams: tuple[str, ...]
    inner: tuple[Inner | None, ...]
    clause: Parts | None = None
    again: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """The name of the side: its alias, or the name of its only stream."""
        return self.names[0]

    @property
    def sources(self) -> tuple[Source, ...]:
        """Itself: a side that is no join."""
        return (self,)


@dataclass(frozen=True, slots=True)
class Join:
    """Two sides and how they are joined; the left one may itself be a join.

    `condition` is what ON says, `using` the columns of USING. `clause` is the one window clause
    that is meant for both sides. With `as_of`, a row on the left is joined with the last row on the
    right that is not after it.
    """

    left: Side
    right: Source
    how: How
    condition: exp.Expression | None = None
    using: tuple[str, ...] = ()
    clause: Parts | None = None
    as_of: bool = False

    @property
    def name(self) -> str:
        """The name of the join in messages."""
        return f"{self.left.name} and {self.right.name}"

    @property
    def sources(self) -> tuple[Source, ...]:
        """The sides that are no joins, from left to right."""
        return (*self.left.sources, self.right)


Side: TypeAlias = Source | Join


@dataclass(frozen=True, slots=True)
class JoinQuery:
    """One SELECT over a join of streams.

    `select` is the SELECT without its streams and window clauses. `above` is the clause of the
    windows that joined rows are aggregated in, where it is not that of the join itself.
    """

    text: str
    join: Join
    select: exp.Select
    above: Parts | None = None
    early: Early | None = None

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that are read, each once."""
        return tuple(dict.fromkeys(s for side in self.join.sources for s in side.streams))

    @property
    def again(self) -> tuple[tuple[str, str], ...]:
        """The names that later places of a stream go by, each with its stream."""
        return tuple(dict.fromkeys(one for side in self.join.sources for one in side.again))

    @property
    def emits_early(self) -> bool:
        """True if open windows are answered too."""
        return self.early is not None
