"""Snapshots of a register in this process: its stream, and all its queries by what they cost.

Which queries there are is read anew only when one comes or goes. Of ten thousand, the costliest are
shown, or those that hold a text somebody looks for.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import replace
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from panes.answers.portions import QueryAnswers
from panes.axis import BEGINNING, FOREVER
from panes.live.feed import Look
from panes.live.followed import FollowedAnswers
from panes.live.pane_counts import PaneCounts
from panes.live.process_feed import ProcessFeed
from panes.live.recorder import Where
from panes.live.register_shown import (
    axis_shown,
    cost_of,
    keys_of,
    register_shown,
    so_many,
    specs_of,
)
from panes.live.snapshot import PanesShown, Snapshot, WindowsShown
from panes.live.windows_near import windows_of
from panes.process.register import Register
from panes.sharing.view import RegisteredQuery, RegisterView

_MOST_WAITING = 64
_ORDER_EVERY = 1.0
MOST_LOOKED = 200
"""Of so many of the costliest queries windows are looked for that differ."""


class RegisterFeed(ProcessFeed):
    """A register that is watched from now on."""

    def __init__(self, register: Register, title: str = "", *, can_edit: bool = False) -> None:
        super().__init__(register, title or register.stream)
        self._register, self.can_edit = register, can_edit
        self._dearest: Sequence[RegisteredQuery] = ()
        self._ordered_at = 0.0
        self._lock = Lock()
        self._view: RegisterView | None = None
        self._cut_for: tuple[int, ...] = ()
        self._explained: tuple[tuple[int, ...], str] = (), ""
        self._given: Counter[str] = Counter()
        self._waiting: deque[tuple[Sequence[str], NDArray[np.int64]]] = deque()
        self._followed = FollowedAnswers()
        self._followed.follow_first(keys_of(self._looked().queries))
        self.attach()

    def add(self, name: str, text: str) -> None:
        """Answer one more query."""
        self._register.add(name, text)

    def remove(self, name: str) -> None:
        """Answer a query no longer."""
        self._register.remove(name)

    def _filled(self, shown: Snapshot, look: Look) -> Snapshot:
        with self._lock:
            view = self._looked()
            self._count()
            dearest = self._by_cost(view)
            queries = register_shown(
                view, dearest, self._given, look.queries, can_edit=self._may_edit
            )
        return replace(
            shown,
            text=f"{so_many(len(view.queries), 'query', 'queries')} over {view.stream}",
            axis=axis_shown(view),
            windows=self._windows(dearest, shown.panes),
            answers=self._followed.shown(keys_of(dearest), look),
            register=queries,
            explain=self._explain(view),
        )

    # Asked in the thread that pushes. It never takes the lock: whoever looks may hold that while it
    # waits for its turn at the register.

    def _where(self) -> Where:
        register, recorder = self._register, self.recorder
        if self._cut_for != register.version:
            view = _view(register)
            self._cut_for = view.version
            self._followed.follow_first(keys_of(view.queries))
            if view.cut is not None and (recorder.panes is None or recorder.panes.cut != view.cut):
                recorder.panes = PaneCounts(view.cut)
        return Where(*register.reached)

    def _keep(self, answers: object) -> int:
        """Note whose answers came; those of a few queries are kept to be shown."""
        if not isinstance(answers, QueryAnswers):
            return 0
        followed = self._followed.names
        for portion in answers.portions:
            self._waiting.append((portion.names, np.diff(portion.bounds)))
            for name in followed:
                if name in portion.names:
                    self._followed.give(name, portion.cut_out(portion.names.index(name)))
        if len(self._waiting) > _MOST_WAITING:
            self._count()
        return answers.rows

    # Asked by whoever looks

    def _count(self) -> None:
        while self._waiting:
            try:
                names, counts = self._waiting.popleft()
            except IndexError:  # the other thread was quicker
                return
            given = self._given
            for name, count in zip(names, counts.tolist(), strict=True):
                given[name] += count

    def _looked(self) -> RegisterView:
        """The queries; they are read anew if one came, went, or got its store."""
        register = self._register
        if self._view is None or self._view.version != register.version:
            self._view = _view(register)
            self._ordered_at = 0.0
        return self._view

    def _explain(self, view: RegisterView) -> str:
        """What the queries share, in words; said anew only when they change."""
        said_of, said = self._explained
        if said_of != view.version and not self._register.is_finished:
            said = self._register.explain()
            self._explained = view.version, said
        return said

    def _by_cost(self, view: RegisterView) -> Sequence[RegisteredQuery]:
        """All queries, the costliest first, as it was a moment ago."""
        now = time.monotonic()
        if now - self._ordered_at > _ORDER_EVERY:
            self._dearest = sorted(view.queries, key=lambda q: (-cost_of(q, self._given), q.name))
            self._ordered_at = now
        return self._dearest

    @property
    def _may_edit(self) -> bool:
        return self.can_edit and not self._register.is_finished

    def _windows(self, dearest: Sequence[RegisteredQuery], panes: PanesShown) -> WindowsShown:
        """Windows of the costliest queries, one for each size and slide."""
        progress = self.recorder.where.progress
        if progress == FOREVER:
            progress = panes.end[-1] if panes.end else BEGINNING
        oldest = panes.start[0] if panes.start else self.recorder.newest
        return windows_of(specs_of(dearest[:MOST_LOOKED]), progress, oldest, self.recorder.newest)


def _view(register: Register) -> RegisterView:
    """What there is to see of a register of one stream."""
    view = register.view()
    assert isinstance(view, RegisterView)
    return view
