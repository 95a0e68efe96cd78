"""Streams whose rows do not come in time order, with the punctuation their source sends.

*(thesis 6.1.5.1)* Two patterns seen in network flows. In band disorder every row is delayed a
little, up to a bound:

    axis      1 2 3 4 5 6 7 8 9
    arrival   1 3 2 5 4 6 9 7 8

In block-sorted disorder a router empties its cache now and then: blocks in order, rows of a block
in none:

    arrival   3 1 2 | 6 4 5 | 9 8 7 |

Same seed, same rows. Every punctuation holds: no row after it lies before its promise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.sample_streams import START

SECOND = 1_000_000
_HOSTS = 1_000


@dataclass(frozen=True, slots=True)
class Punctuation:
    """A promise made once `after` rows have come: nothing before `at` will follow."""

    after: int
    at: int


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Rows (ts, srcIP, len) in arrival order and the punctuation between them."""

    rows: pa.Table
    punctuation: tuple[Punctuation, ...]

    def steps(self) -> Iterator[tuple[pa.Table, int | None]]:
        """The rows up to each punctuation with its promise; the rest with none."""
        begin = 0
        for promise in self.punctuation:
            yield self.rows.slice(begin, promise.after - begin), promise.at
            begin = promise.after
        if begin < len(self.rows):
            yield self.rows.slice(begin), None


def band(
    rows: int, *, seconds: float, max_disorder: float, every: float, seed: int = 1
) -> Arrivals:
    """Band disorder: each row delayed by less than `max_disorder` seconds, most by far less.

    Delays are `max_disorder` times a beta(1, 4) variable; the text gives the bound only.
    Punctuation comes for each multiple of `every` seconds as soon as the last row before it is in.
    """
    rng = np.random.default_rng(seed)
    at = _instants(rng, rows, seconds)
    arrival = at + (rng.beta(1, 4, rows) * max_disorder * SECOND).astype(np.int64)
    at = at[np.argsort(arrival, kind="stable")]
    return Arrivals(packet_table(at, rng), _earliest(at, int(every * SECOND)))


def block_sorted(rows: int, *, seconds: float, block: float, seed: int = 1) -> Arrivals:
    """Block-sorted disorder: blocks of so many seconds, rows shuffled inside, punctuation after."""
    rng = np.random.default_rng(seed)
    at = _instants(rng, rows, seconds)
    length = int(block * SECOND)
    number = (at - START) // length
    at = at[np.lexsort((rng.random(rows), number))]
    ends = np.unique(number) + 1
    after = np.searchsorted(number, ends)
    promises = START + ends * length
    return Arrivals(packet_table(at, rng), _punctuation(after, promises))


def max_disorder(at: NDArray[np.int64]) -> int:
    """How far, at most, a row lies behind the newest that came before it.

    >>> max_disorder(np.array([1, 5, 3, 2, 6]))
    3
    """
    return int((np.maximum.accumulate(at) - at).max(initial=0))


def packet_table(
    at: NDArray[np.int64],
    rng: np.random.Generator,
    hosts: NDArray[np.int64] | None = None,
) -> pa.Table:
    """Packets at these instants: ts, srcIP (a number) and len (bytes)."""
    source = rng.integers(0, _HOSTS, len(at)) if hosts is None else hosts
    return pa.table(
        {
            "ts": pa.array(at, pa.timestamp("us", "UTC")),
            "srcIP": pa.array(source, pa.int64()),
            "len": pa.array(rng.integers(40, 1_500, len(at)), pa.int64()),
        }
    )


def _instants(rng: np.random.Generator, rows: int, seconds: float) -> NDArray[np.int64]:
    return START + np.sort(rng.integers(0, int(seconds * SECOND), rows))


def _earliest(at: NDArray[np.int64], every: int) -> tuple[Punctuation, ...]:
    """For each multiple of `every`, the place right after the last row that lies before it."""
    least_to_come = np.minimum.accumulate(at[::-1])[::-1]
    multiples = np.arange(at.min() // every + 1, at.max() // every + 1) * every
    return _punctuation(np.searchsorted(least_to_come, multiples), multiples)


def _punctuation(after: NDArray[np.int64], promises: NDArray[np.int64]) -> tuple[Punctuation, ...]:
    return tuple(map(Punctuation, after.tolist(), promises.tolist()))
