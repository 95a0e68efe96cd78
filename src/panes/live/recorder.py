"""What is remembered of a run while it goes on: bounded, and cheap for whoever pushes.

A recorder watches one query (`panes.process.watched`). In the thread that pushes it counts, takes
a few positions, and keeps references; everything else waits until a snapshot is asked for. How much
is kept, and what a batch costs, does not depend on rows, keys or windows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.axis import BEGINNING, FOREVER
from panes.live.answer_history import AnswerHistory
from panes.live.apart import Apart
from panes.live.pane_counts import PaneCounts
from panes.live.scatter import Scatter
from panes.live.snapshot import Counts
from panes.live.timeline import Timeline
from panes.nodes.gate import Admitted

_STATE_EVERY = 0.25
"""Seconds between two looks at how much is stored."""


@dataclass(frozen=True, slots=True)
class Where:
    """How far a query is: what is promised, and by whom."""

    progress: int
    by: str = ""


class Recorder:
    """The recent past of one run. `where` and `state` are asked in the thread that pushes."""

    def __init__(
        self,
        where: Callable[[], Where],
        state: Callable[[], Mapping[str, int]],
        keep: Callable[[object], int],
        now: Callable[[], float] = time.time,
    ) -> None:
        """`keep` takes answers, keeps what is shown of them, and says how many there are."""
        self._where, self._state, self._keep, self._now = where, state, keep, now
        self.begun = now()
        self.timeline, self.scatter = Timeline(self.begun), Scatter(self.begun)
        self.apart, self.answers = Apart(), AnswerHistory()
        self.panes: PaneCounts | None = None
        self.counts = Counts()
        self.where = Where(BEGINNING)
        self.newest = BEGINNING
        self.state: Mapping[str, int] = {}
        self.steps = 0
        self.failure = ""
        self._looked = 0.0
        self._before: list[tuple[object, dict[str, object]]] = []
        self._taken: list[Admitted] = []
        self._given = 0

    # A step of the query

    def began(self) -> None:
        """A step begins: what an earlier attempt took in is not taken in."""
        self._taken, self._before = [], []

    def took(self, batches: Sequence[Admitted]) -> None:
        """Batches have come."""
        self._taken = [*self._taken, *batches]

    def gave(self, answers: object) -> None:
        """Answers were given."""
        self._given += self._keep(answers)

    def stepped(self, answers: object, seconds: float) -> None:
        """The step is over; it may still fail before its answers are with the caller."""
        counting = [one for one in (self, self.timeline, self.panes) if one is not None]
        self._before = [(one, dict(vars(one))) for one in counting]
        self.failure = ""
        now, promised = self._now(), self.where.progress
        if answers is not None:
            self.gave(answers)
        self.where = self._where()
        taken, self._taken = self._taken, []
        before = self.counts
        rows = late = rejected = 0
        for batch in taken:
            self._place(batch, before.rows + rows, promised, now)
            apart = sum(map(len, batch.rejected))
            rows += len(batch.placed) + apart
            late += sum(map(len, batch.late))
            rejected += apart
        self.counts = Counts(
            rows=before.rows + rows,
            batches=before.batches + len(taken),
            answers=before.answers + self._given,
            late=before.late + late,
            rejected=before.rejected + rejected,
        )
        self._given = 0
        self.steps += 1
        if BEGINNING < self.where.progress < FOREVER:
            self.scatter.promise(self.counts.rows, self.where.progress)
        self.timeline.note(rows, seconds)
        if self.timeline.is_due(now):
            self._sample(now)

    def failed(self, error: BaseException, *, was_told: bool) -> None:
        """The step has failed: that is told until one succeeds, and it is not counted."""
        for one, before in self._before if was_told else ():
            vars(one).update(before)
        self._before = []
        self._taken, self._given = [], 0
        self.failure = (str(error).strip() or type(error).__name__).splitlines()[0]

    def sample(self) -> None:
        """One more sample, whatever the time: at the end, or when nothing has been seen yet."""
        self._sample(self._now())

    def _sample(self, now: float) -> None:
        if now - self._looked >= _STATE_EVERY:
            self._looked, self.state = now, dict(self._state())
        state = self.state
        stored = state.get("total_bytes", state.get("bytes", 0))
        self.timeline.sample(
            now,
            nbytes=stored - state.get("set_aside_bytes", 0),
            stored=state.get("partials", 0) + state.get("rows", 0),
            progress=position(self.where.progress),
            newest=position(self.newest),
        )

    def _place(self, batch: Admitted, first: int, promised: int, now: float) -> None:
        """Remember where some rows of a batch lie, and when they came."""
        self.apart.add("late", batch.late)
        self.apart.add("rejected", batch.rejected)
        at = batch.placed
        if not len(at):
            return
        self.newest = max(self.newest, int(at.max()))
        late: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        if len(batch.behind.at) and promised > BEGINNING:
            late = np.flatnonzero(at < promised)
        self.scatter.add(first, at, late, now)
        if self.panes is not None:
            self.panes.add(at)


def position(at: int) -> int | None:
    """A position, unless nothing or everything is promised."""
    return at if BEGINNING < at < FOREVER else None


def kept_table(history: AnswerHistory, answers: object) -> int:
    """Keep a table of answers; says how many there are."""
    if not isinstance(answers, pa.Table):
        return 0
    history.give(answers)
    return len(answers)
