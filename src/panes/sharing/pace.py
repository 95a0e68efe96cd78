"""How fast answers come, and which of those that are due will be late.

A deadline is a budget from the moment a window's end is passed to the moment its answer is handed
over. What answering costs is learnt from what it did cost, so the first round of answers
predicts nothing; from then on lateness is foreseen.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

_MEMORY = 0.7
_MICROSECOND = 1e-6


@dataclass(frozen=True, slots=True)
class Behind:
    """A query that will be answered later than its deadline, and by how many seconds."""

    name: str
    late_by: float


@dataclass(slots=True)
class Pace:
    """Seconds per answer, as last seen; None before anything was."""

    seconds: float | None = None

    def saw(self, answers: int, seconds: float) -> None:
        """A round of so many answers took so long."""
        if answers:
            now = seconds / answers
            before = now if self.seconds is None else self.seconds
            self.seconds = _MEMORY * before + (1 - _MEMORY) * now

    def behind(
        self, due: Iterable[tuple[int, list[tuple[str, int]]]], *, each: bool
    ) -> list[Behind]:
        """Who will be late, of steps in order: how many answers, and the deadlines (ticks) then.

        Answers are handed over after `each` step, or all of them after the last one.

        >>> Pace(seconds=0.5).behind([(2, [("a", 1_500_000)]), (4, [("b", 2_000_000)])], each=True)
        [Behind(name='b', late_by=1.0)]
        """
        if self.seconds is None:
            return []
        steps = list(due)
        after, total = 0.0, sum(answers for answers, _ in steps) * self.seconds
        late = []
        for answers, deadlines in steps:
            after += answers * self.seconds
            handed = after if each else total
            late += [
                Behind(name, round(handed - ticks * _MICROSECOND, 6))
                for name, ticks in deadlines
                if handed > ticks * _MICROSECOND
            ]
        return late
