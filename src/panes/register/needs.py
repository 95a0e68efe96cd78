"""What a store has for its queries, each thing from some position on.

A query needs pieces, multisets and filters. A filter is named by the number of its column. Each
has an identity, by which a state is recognised (`panes.aggregates.identity`).
"""

from __future__ import annotations

from typing import TypeAlias

from panes.aggregates.aggregate import Piece
from panes.aggregates.identity import identity
from panes.register.columns import SharedRows
from panes.stores.contents import ValueSet

Stored: TypeAlias = Piece | ValueSet | int
"""Something that is stored for queries: a piece, a multiset, or a filter by its column."""

_FILTER_VERSION = 1


def identity_of(stored: Stored, rows: SharedRows) -> str:
    """What names something stored in a state; columns are named by their numbers in `rows`."""
    if isinstance(stored, int):
        return identity("filter", _FILTER_VERSION, f"{stored} {rows.text(stored)}")
    if isinstance(stored, ValueSet):
        return stored.identity([rows.types[c] for c in stored.columns])
    return stored.identity
