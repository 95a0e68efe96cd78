"""Streams with skew: few groups that hold most rows, and links that carry most of the traffic.

*(thesis 6.3.5)* The data sets DS1 to DS5 of Table 6-2 differ in the share of the rows that groups
of a single row hold. The links Main1 and Main2 are busy and on time, Control is almost empty and
late. Same seed, same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lab.papers.disorder import SECOND, packet_table
from panes.sample_streams import START

SMALL_SHARE = {"DS1": 0.01, "DS2": 0.03, "DS3": 0.05, "DS4": 0.07, "DS5": 0.09}
MEDIUM_SHARE = 0.20
MEDIUM_ROWS = 15
LARGE_ROWS = 300


@dataclass(frozen=True, slots=True)
class GroupCounts:
    """How many groups of each kind a data set has."""

    small: int
    medium: int
    large: int

    @property
    def shares(self) -> tuple[float, float, float]:
        """Small, medium and large groups as parts of all groups."""
        total = self.small + self.medium + self.large
        return self.small / total, self.medium / total, self.large / total


def group_counts(rows: int, small_share: float) -> GroupCounts:
    """The groups over which so many rows are spread; at least one of each kind."""
    large_share = 1 - small_share - MEDIUM_SHARE
    return GroupCounts(
        small=max(round(rows * small_share), 1),
        medium=max(round(rows * MEDIUM_SHARE / MEDIUM_ROWS), 1),
        large=max(round(rows * large_share / LARGE_ROWS), 1),
    )


def dataset(name: str, rows: int, *, seconds: float, seed: int = 1) -> pa.Table:
    """DS1 to DS5 in time order: packets whose srcIP is the number of their group."""
    rng = np.random.default_rng(seed)
    at = START + np.sort(rng.integers(0, int(seconds * SECOND), rows))
    return packet_table(at, rng, _skewed_groups(rng, rows, SMALL_SHARE[name]))


def _skewed_groups(rng: np.random.Generator, rows: int, small_share: float) -> NDArray[np.int64]:
    """The group of each row. Small groups have the lowest numbers, large ones the highest."""
    counts = group_counts(rows, small_share)
    medium_rows = round(rows * MEDIUM_SHARE)
    small = np.arange(counts.small)
    medium = counts.small + rng.integers(0, counts.medium, medium_rows)
    large_rows = rows - counts.small - medium_rows
    large = counts.small + counts.medium + rng.integers(0, counts.large, large_rows)
    return rng.permutation(np.concatenate([small, medium, large]))


@dataclass(frozen=True, slots=True)
class Link:
    """Packets of one link in arrival order, and when each arrives."""

    rows: pa.Table
    arrival: NDArray[np.int64]


def skewed_links(
    *,
    seconds: float,
    delay: float,
    rate: float = 4_000,
    control_rate: float = 0.5,
    small_share: float = 0.05,
    seed: int = 1,
) -> dict[str, Link]:
    """Main1 and Main2 at `rate` packets a second, Control at `control_rate`, `delay` seconds late.

    The text says "almost empty" (6.3.5) and "less than a tuple per second" (8.4.2) of Control. All
    links are in time order, and each spreads its packets over groups as the data sets do.
    """
    rng = np.random.default_rng(seed)
    rates = {"Main1": (rate, 0.0), "Main2": (rate, 0.0), "Control": (control_rate, delay)}
    links = {}
    for name, (per_second, late) in rates.items():
        count = max(round(per_second * seconds), 3)
        at = START + np.sort(rng.integers(0, int(seconds * SECOND), count))
        groups = _skewed_groups(rng, count, small_share)
        links[name] = Link(packet_table(at, rng, groups), at + int(late * SECOND))
    return links


def arrivals_of(
    links: Mapping[str, Link], *, every: float
) -> Iterator[tuple[int, dict[str, pa.Table]]]:
    """The clock every so many seconds, and the packets that came since, link by link."""
    step = int(every * SECOND)
    first = min(int(link.arrival[0]) for link in links.values())
    last = max(int(link.arrival[-1]) for link in links.values())
    begin = dict.fromkeys(links, 0)
    for now in range(first + step, last + step + 1, step):
        came = {}
        for name, link in links.items():
            end = int(np.searchsorted(link.arrival, now))
            came[name] = link.rows.slice(begin[name], end - begin[name])
            begin[name] = end
        yield now, came
