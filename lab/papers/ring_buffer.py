"""How fast a stream may come before a ring buffer of packets overwrites itself.

Packets come at a constant rate into a ring of fixed size and are taken out one after the other;
each costs its own time and the time of the aggregates that leave with it. The stream is a list of
blocks of equally many packets, so backlogs are exact to one block.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from panes.arrays.compiled import compiled

_EXACT_TO = 0.002


@dataclass(frozen=True, slots=True)
class Work:
    """What a stream costs: seconds a packet, seconds an aggregate, aggregates of each block."""

    packet: float
    aggregate: float
    block: int
    left: NDArray[np.int32]

    @property
    def seconds_per_packet(self) -> float:
        """The mean cost of a packet with the aggregates that leave."""
        return self.packet + self.aggregate * float(self.left.mean()) / self.block

    def busy_share(self, rate: float) -> float:
        """The part of the time that is spent working when packets come at that rate."""
        return rate * self.seconds_per_packet


def highest_rate(work: Work, *, ring: int) -> float:
    """The highest rate, in packets a second, at which nothing is dropped; found by bisection.

    Never more than can be worked off, however short the stream.
    """
    low, high = 0.0, 1 / work.seconds_per_packet
    while high - low > _EXACT_TO * high:
        rate = (low + high) / 2
        if drops(work, rate, ring=ring):
            high = rate
        else:
            low = rate
    return low


def drops(work: Work, rate: float, *, ring: int) -> bool:
    """Whether a packet is dropped at that rate."""
    return bool(_drops(work.left, work.block, work.packet, work.aggregate, rate, ring))


@compiled
def _drops(left, block, packet, aggregate, rate, ring):  # type: ignore[no-untyped-def]
    done = 0.0
    for number in range(left.shape[0]):
        came = (number + 1) * block / rate
        done = max(done, came) + block * packet + left[number] * aggregate
        if rate * done - number * block > ring:
            return True
    return False
