"""Snapshots of a register in this process: its streams, and all its queries by what they cost.

Which queries there are is read anew only when one comes or goes. Of ten thousand, the costliest are
shown, or those that hold a text somebody looks for. Over one stream the cost of a query is counted
in partials; over several, where queries share joins, in the joined rows that it was given.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from panes.answers.portions import QueryAnswers
from panes.live.feed import Look
from panes.live.followed import FollowedAnswers
from panes.live.pane_counts import PaneCounts
from panes.live.process_feed import ProcessFeed
from panes.live.recorder import Where
from panes.live.register_shown import (
    CostOf,
    as_counted,
    axis_shown,
    by_cost,
    in_partials,
    keys_of,
    register_shown,
    register_text,
    specs_of,
)
from panes.live.snapshot import Snapshot, WindowsShown
from panes.process.register import Register
from panes.sharing.view import RegisteredQuery, RegisterView

_MOST_WAITING = 64
_ORDER_EVERY = 1.0
MOST_LOOKED = 200
"""Of so many of the costliest queries windows are looked for that differ."""
COST = "partials that its answers were made of"
_JOINS_COST = "joined rows that it was given; of a fold, which makes no pairs, its answers"


class RegisterFeed(ProcessFeed):
    """A register that is watched from now on."""

    def __init__(self, register: Register, title: str = "", *, can_edit: bool = False) -> None:
        super().__init__(register, title or " + ".join(register.streams))
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
        self._given.pop(name, None)

    def _filled(self, shown: Snapshot, look: Look) -> Snapshot:
        with self._lock:
            view = self._looked()
            self._count()
            cost_of = in_partials(self._given)
            if view.of_joins:
                cost_of = as_counted(self._register.joined_rows)
            dearest = self._by_cost(view, cost_of)
            queries = register_shown(
                view,
                dearest,
                self._given,
                cost_of,
                look.queries,
                cost=_JOINS_COST if view.of_joins else COST,
                can_edit=self.can_edit and not self._register.is_finished,
            )
        specs = specs_of(dearest[:MOST_LOOKED])
        return replace(
            shown,
            text=register_text(view),
            axis=axis_shown(view),
            windows=WindowsShown() if view.of_joins else self.windows(specs, shown),
            answers=self._followed.shown(keys_of(dearest), look),
            register=queries,
            explain=self._explain(view),
        )

    # Asked in the thread that pushes. It never takes the lock: whoever looks may hold that while it
    # waits for its turn at the register.

    def _where(self) -> Where:
        register, recorder = self._register, self.recorder
        if self._cut_for != register.version:
            view = register.view()
            self._cut_for = view.version
            self._followed.follow_first(keys_of(view.queries))
            if view.cut is not None and (recorder.panes is None or recorder.panes.cut != view.cut):
                recorder.panes = PaneCounts(view.cut)
        return Where(*register.reached) if register.is_of_one else Where(register.progress)

    def _keep(self, answers: object) -> int:
        """Note whose answers came; those of a few queries are kept to be shown."""
        if isinstance(answers, QueryAnswers):
            return self._keep_portions(answers)
        if not isinstance(answers, Mapping):
            return 0
        counts = {name: len(table) for name, table in answers.items()}
        self._given.update(counts)
        for name in self._followed.names & answers.keys():
            self._followed.give(name, answers[name])
        return sum(counts.values())

    def _keep_portions(self, answers: QueryAnswers) -> int:
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
            self._view = register.view()
            self._ordered_at = 0.0
        return self._view

    def _explain(self, view: RegisterView) -> str:
        """What the queries share, in words; said anew only when they change."""
        said_of, said = self._explained
        if said_of != view.version and not self._register.is_finished:
            said = self._register.explain()
            self._explained = view.version, said
        return said

    def _by_cost(self, view: RegisterView, cost_of: CostOf) -> Sequence[RegisteredQuery]:
        """All queries, the costliest first, as it was a moment ago."""
        now = time.monotonic()
        if now - self._ordered_at > _ORDER_EVERY:
            self._dearest, self._ordered_at = by_cost(view, cost_of), now
        return self._dearest
