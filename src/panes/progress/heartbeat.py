"""Heartbeats: during a lull, the clock says how far a stream is (thesis 8.1).

Data time runs with the clock, some slack behind it. When rows stop coming it stands still and the
two drift apart; once they are further apart than the slack, data time is advanced to it.
"""

from __future__ import annotations

from dataclasses import dataclass

from panes.progress.promise import Promise


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """How far data time may drift behind the clock.

    >>> source = Promise(at=100)
    >>> beat = Heartbeat(slack=20)
    >>> beat.advance(source, now=110), source.at
    (False, 100)
    >>> beat.advance(source, now=150), source.at, source.why
    (True, 130, 'heartbeat')
    """

    slack: int

    def advance(self, promise: Promise, now: int) -> bool:
        """Advance a source that has drifted; says whether it had."""
        has_drifted = now - self.slack > promise.at
        if has_drifted:
            promise.punctuate(now - self.slack, "heartbeat")
        return has_drifted
