"""Heartbeats: during a lull, the clock says how far a stream is (thesis 8.1).

Data time runs with the clock, some slack behind it. When rows stop coming it stands still and the
two drift apart; once they are further apart than the slack, data time is advanced to it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """How far data time may drift behind the clock.

    >>> Heartbeat(slack=20).promise(now=150)
    130
    """

    slack: int

    def promise(self, now: int) -> int:
        """What the clock promises; it says nothing new while data time keeps up with it."""
        return now - self.slack
