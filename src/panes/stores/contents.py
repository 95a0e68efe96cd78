"""The contents of a store: what it keeps for a query, and nothing else of the query.

A store knows pieces, multisets and the types of rows. It does not know texts, windows' names or
SELECT lists: so stores stand below planning, and one store can serve many queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from panes.aggregates.aggregate import Argument, Piece, Selection
from panes.aggregates.identity import identity


@dataclass(frozen=True, slots=True)
class ValueSet:
    """An argument stored as a multiset, for all holistic aggregates that ask for it.

    Of several columns it stores tuples; `ordered` ones are read in their order.
    """

    columns: tuple[int, ...]
    selection: Selection
    ordered: bool = False
    VERSION: ClassVar[int] = 1

    def identity(self, types: Sequence[pa.DataType]) -> str:
        """Its identity in a state; `types` are those of its columns, in their order."""
        arguments = (Argument(*given) for given in zip(self.columns, types, strict=True))
        values = ", ".join(a.identity for a in arguments)
        form = "in order" if self.ordered else ""
        return identity("multiset", self.VERSION, values, self.selection.identity, form)


@dataclass(frozen=True, slots=True)
class Contents:
    """The partials in a store, and the columns of the rows they are filled from.

    Columns are numbers of a row's projected columns. `group_columns` make a group,
    `argument_columns` are what pieces and multisets read.
    """

    pieces: tuple[Piece, ...]
    value_sets: tuple[ValueSet, ...]
    row_types: tuple[pa.DataType, ...]
    group_columns: tuple[int, ...]
    argument_columns: tuple[int, ...]

    @property
    def key_types(self) -> list[pa.DataType]:
        """The types of the columns that make a group."""
        return [self.row_types[c] for c in self.group_columns]

    @property
    def identities(self) -> list[str]:
        """The identities of the partials in a state: pieces and then multisets, in their order."""
        sets = self.value_sets
        return [p.identity for p in self.pieces] + [
            v.identity([self.row_types[c] for c in v.columns]) for v in sets
        ]
