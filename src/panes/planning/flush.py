"""How answers of windows with very many keys are spread over batches (thesis 8.3.3).

These are options. `panes.nodes.release` does what they say.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from panes.axis import Duration, parse_duration
from panes.errors import OptionError


@dataclass(frozen=True, slots=True)
class SlowFlush:
    """At most so many answers with each batch; none later than `within` after its window's end.

    At most a million answers wait: if more become final than batches release, the oldest beyond a
    million are released with the next batch.

    >>> SlowFlush(at_most=1000, within="2 minutes").at_most
    1000
    """

    at_most: int
    within: Duration | None = None

    def __post_init__(self) -> None:
        if self.at_most <= 0:
            raise OptionError(f"a batch needs to release some answers, got {self.at_most}")
        ticks_of(self.within)


@dataclass(frozen=True, slots=True)
class LazyFlush:
    """Answers of a key when the key comes up again; none later than `within` after its window."""

    within: Duration

    def __post_init__(self) -> None:
        ticks_of(self.within)


Flush: TypeAlias = SlowFlush | LazyFlush


def shared_by(flush: Flush, shards: int) -> Flush:
    """The same for one of several shards: a key is in one of them, a number is divided."""
    if isinstance(flush, LazyFlush):
        return flush
    return replace(flush, at_most=-(-flush.at_most // shards))


def ticks_of(within: Duration | None) -> int:
    """The time that an answer may wait after the end of its window."""
    return 0 if within is None else parse_duration(within, option="within")
