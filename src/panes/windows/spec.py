"""The window kinds, as data.

Sizes, slides and origins are ticks of whatever axis the query names; a spec never knows which.
What a spec *means* is written once, in `panes.windows.extent`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal, TypeAlias

from panes.errors import QueryError


class Category(Enum):
    """The knowledge that a row needs before it can name its windows (thesis 6.1.2)."""

    CONTEXT_FREE = "context free"
    FORWARD_CONTEXT_FREE = "forward-context free"
    FORWARD_CONTEXT_AWARE = "forward-context aware"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sliding:
    """Windows of `size` whose ends lie `slide` apart, at ``origin + (w + 1) * slide``.

    ``size == slide`` tumbles, ``size > slide`` overlaps, ``size < slide`` samples.

    >>> Sliding(size=600, slide=60).overlap
    10
    """

    size: int
    slide: int
    origin: int = 0

    def __post_init__(self) -> None:
        _require_positive("RANGE", self.size, "a sliding window")
        _require_positive("SLIDE", self.slide, "a sliding window")

    @property
    def category(self) -> Category:
        return Category.CONTEXT_FREE

    @property
    def overlap(self) -> int:
        """The most windows one instant can belong to."""
        return -(-self.size // self.slide)


@dataclass(frozen=True, slots=True, kw_only=True)
class Landmark:
    """Windows that hold everything before their end, ends `slide` apart (``RANGE ALL``)."""

    slide: int
    origin: int = 0

    def __post_init__(self) -> None:
        _require_positive("SLIDE", self.slide, "a landmark window")

    @property
    def category(self) -> Category:
        return Category.CONTEXT_FREE


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionedRows:
    """A sliding window over the rank of each row inside its own partition (``PA``)."""

    size: int
    slide: int

    def __post_init__(self) -> None:
        _require_positive("RANGE", self.size, "a partitioned row window")
        _require_positive("SLIDE", self.slide, "a partitioned row window")

    @property
    def category(self) -> Category:
        return Category.FORWARD_CONTEXT_FREE


@dataclass(frozen=True, slots=True, kw_only=True)
class PerRow:
    """Every nth row defines a window that reaches back `size` from the row itself.

    ``every == 1`` is the slide-by-tuple window. Otherwise rows are counted from 1 by arrival
    or by rank (axis order, then arrival).
    """

    size: int
    every: int = 1
    counted_by: Literal["arrival", "rank"] = "arrival"

    def __post_init__(self) -> None:
        _require_positive("RANGE", self.size, "a per-row window")
        _require_positive("SLIDE", self.every, "a per-row window")

    @property
    def category(self) -> Category:
        return Category.FORWARD_CONTEXT_AWARE


Spec: TypeAlias = Sliding | Landmark | PartitionedRows | PerRow
PanedSpec: TypeAlias = Sliding | Landmark


def paned(spec: Spec) -> PanedSpec:
    """The windows over positions that a spec's own are among, whatever gives rows a position.

    Partitioned rows slide over ranks. A per-row window is the one that ends with its row, of
    windows that end everywhere.

    >>> paned(PerRow(size=300))
    Sliding(size=300, slide=1, origin=0)
    """
    if isinstance(spec, PartitionedRows):
        return Sliding(size=spec.size, slide=spec.slide)
    return Sliding(size=spec.size, slide=1) if isinstance(spec, PerRow) else spec


def _require_positive(word: str, ticks: int, what: str) -> None:
    if ticks <= 0:
        raise QueryError(f"{what} needs a positive {word}, got {ticks}")
