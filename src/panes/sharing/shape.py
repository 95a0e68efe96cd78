"""A shape: queries that differ in nothing but their windows.

They need the same partials under the same filters, so they are planned once, answered together in
one pass, and separated at the end. Their windows stand in columns (`panes.windows.many`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from panes.aggregates.aggregate import Aggregate, Piece
from panes.aggregates.calls import Call
from panes.aggregates.monoid import Lanes
from panes.answers.select import plain_outputs
from panes.axis import BEGINNING
from panes.planning.plan import Plan
from panes.stores.contents import ValueSet
from panes.stores.fill import ALL_ROWS
from panes.windows.many import Rulers
from panes.windows.spec import Sliding


@dataclass(frozen=True, slots=True)
class Wanted:
    """A piece over the rows that satisfy a filter, which is named by its column; None: all rows.

    It is looked up far more often than made, so it knows its hash.
    """

    piece: Piece
    where: int | None
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.piece, self.where)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[Wanted], tuple[Piece, int | None]]:
        """Text has another hash in another process."""
        return Wanted, (self.piece, self.where)


@dataclass(frozen=True, slots=True)
class Computed:
    """What an expression gives of the rows that satisfy a filter; None: of all rows.

    Both are named by their columns. Only what can fail is computed of some rows, and not of others.
    """

    column: int
    where: int | None


@dataclass(frozen=True, slots=True)
class Need:
    """What one aggregate, the meaning of a `call`, is lowered from: pieces, or a multiset.

    It reads `columns`, of the rows that satisfy the filter `where`; None: of all rows.
    """

    call: Call
    aggregate: Aggregate
    pieces: tuple[Wanted, ...]
    values: ValueSet | None
    columns: tuple[int, ...]
    where: int | None


@dataclass(slots=True)
class Member:
    """One query of a shape. `first_open` is its oldest window that is still to be answered."""

    name: str
    spec: Sliding
    deadline: int | None
    first_open: int


class Shape:
    """Queries that differ in nothing but their windows, and what they need of a store."""

    # Rows and promises change none of these.
    UNCHANGED = frozenset(
        {"members", "needs", "pieces", "value_sets", "wanted", "computed", "_index"}
    )

    def __init__(
        self,
        plan: Plan,
        where: int | None,
        needs: tuple[Need, ...],
        columns: frozenset[int],
        computed: frozenset[Computed],
    ) -> None:
        """`where` is the filter of all its rows; `columns` are those that its pieces read.

        `computed` are the expressions that these are, and its keys, of the rows they are read of.

        `pieces` and `value_sets` are those of all its aggregates, each once. If all of them are
        numbers, it `is_compiled`: tables answer many windows at a time. `wanted` are its pieces
        behind one that tells whether a window holds a row; `indexes_of_needs` are, for each
        aggregate, the indexes of its pieces among these.
        """
        self.plan, self.where, self.needs, self.columns = plan, where, needs, columns
        self.computed = computed
        self.answer_columns = 0  # a number for answers with the same columns, at a host
        self.pieces = list(dict.fromkeys(w for need in needs for w in need.pieces))
        self.value_sets = list(dict.fromkeys(n.values for n in needs if n.values is not None))
        self.is_compiled = not self.value_sets and all(
            isinstance(w.piece.monoid, Lanes) for w in self.pieces
        )
        self.wanted = list(dict.fromkeys([Wanted(ALL_ROWS, where), *self.pieces]))
        self.indexes_of_needs = tuple(
            tuple(self.wanted.index(w) for w in need.pieces) for need in needs
        )
        self.outputs = plain_outputs(plan)
        self.alike = -1  # a number for shapes that differ in nothing but filters, in their store
        self.members: list[Member] = []
        self._index: dict[str, int] = {}
        self._rulers: Rulers | None = None
        self._first_open = np.empty(0, dtype=np.int64)
        self._least_deadline: int | None = None
        self._needed_from: int | None = None

    def __len__(self) -> int:
        return len(self.members)

    def likeness(self) -> object:
        """What it has in common with shapes whose answers are lowered and named as its own are.

        They differ in nothing but filters. What is computed of answers is computed by itself.
        """
        if self.outputs is None:
            return id(self)
        indexes, titles = self.outputs
        calls = tuple(need.call for need in self.needs)
        return calls, self.indexes_of_needs, tuple(indexes), tuple(titles)

    @property
    def rulers(self) -> Rulers:
        """The windows of all its queries, in their order."""
        if self._rulers is None:
            self._first_open = np.array([m.first_open for m in self.members], dtype=np.int64)
            given = (m.deadline for m in self.members if m.deadline is not None)
            self._least_deadline = min(given, default=None)
            self._rulers = Rulers.of([m.spec for m in self.members])  # last: now all is known
        return self._rulers

    @property
    def least_deadline(self) -> int | None:
        """The shortest deadline of its queries; None if there is none."""
        return self._least_deadline if len(self.rulers) else None

    def first_open(self, which: NDArray[np.int64]) -> NDArray[np.int64]:
        """The oldest window of some queries that is still to be answered; `BEGINNING` at first."""
        return self._first_open[which] if len(self.rulers) else which

    def close_before(self, which: NDArray[np.int64], wid: NDArray[np.int64]) -> None:
        """Windows of some queries have been answered."""
        before = self.first_open(which)
        first_open = self._first_open.copy()
        first_open[which] = np.maximum(before, wid)
        self._first_open, self._needed_from = first_open, None

    def add(self, member: Member) -> None:
        """Answer one more query."""
        self._write_back()
        self._index[member.name] = len(self.members)
        self.members.append(member)

    def remove(self, name: str) -> Member:
        """Answer a query no longer; the last one moves to where it was."""
        self._write_back()
        index, last = self._index.pop(name), self.members.pop()
        if last.name == name:
            return last
        member, self.members[index] = self.members[index], last
        self._index[last.name] = index
        return member

    def indexes(self, names: Sequence[str]) -> NDArray[np.int64]:
        """The indexes of queries among the members, by their names."""
        return np.array([self._index[n] for n in names], dtype=np.int64)

    def names(self, which: NDArray[np.int64]) -> list[str]:
        """The names of some queries."""
        return [self.members[i].name for i in which.tolist()]

    def first_windows(self) -> dict[str, int]:
        """The oldest window of each query that is still to be answered, by name."""
        return dict(zip(self._index, self.first_open(self.indexes(list(self._index))), strict=True))

    def resume(self, first_open: Mapping[str, int]) -> None:
        """Go on with these windows, by the names of the queries."""
        self._write_back()
        for member in self.members:
            member.first_open = first_open[member.name]

    def needed_from(self) -> int:
        """The oldest position that a window yet to be answered holds; `BEGINNING` if unknown.

        Asked with every batch, and found anew only after windows have been answered.
        """
        if self._needed_from is None:
            rulers, first = self.rulers, self._first_open
            is_unknown = (first == BEGINNING).any()
            self._needed_from = BEGINNING if is_unknown else int(rulers.starts(first).min())
        return self._needed_from

    def _write_back(self) -> None:
        """Write back what the columns know better, before the queries change."""
        if self._rulers is not None:
            for member, first in zip(self.members, self._first_open.tolist(), strict=True):
                member.first_open = first
        self._rulers = self._needed_from = None
