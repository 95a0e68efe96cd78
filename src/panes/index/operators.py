"""The questions to a window, by what answers them (paper, 3.2): values and counts, or rows.

The first are cheap with a set-valued index, the others with an attribute-valued one. What follows
from the answer before and from the basic windows that come and go, as a sum, needs no index.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class IndexOperator:
    """A question: whether rows answer it, and whether it needs values by size."""

    by_rows: bool = False
    in_order: bool = False


_BY_SIZE = ("values", "histogram", "quantiles", "rank", "nearest", "top")
_OF_TWO = ("intersection", "difference")

OPERATORS: dict[str, IndexOperator] = {
    "count": IndexOperator(),
    **dict.fromkeys((*_BY_SIZE, *_OF_TWO), IndexOperator(in_order=True)),
    "semi_join": IndexOperator(),
    "rows": IndexOperator(by_rows=True),
    **dict.fromkeys(("between", "sorted"), IndexOperator(by_rows=True, in_order=True)),
}
"""By the names of the methods of a window index."""
