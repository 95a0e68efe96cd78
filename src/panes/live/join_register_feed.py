"""Snapshots of a register over joins in this process: its streams, and what its queries cost.

The cost of a query is how many joined rows it was given. Queries that share a join are given the
same rows, which are joined once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from panes.live.feed import Look
from panes.live.followed import FollowedAnswers
from panes.live.joins_shown import joins_axis, joins_shown, joins_text
from panes.live.process_feed import ProcessFeed
from panes.live.recorder import Where
from panes.live.register_shown import keys_of
from panes.live.snapshot import Snapshot
from panes.process.register import Register
from panes.sharing.join_view import JoinsView

_COST = "joined rows that it was given; of a fold, which makes no pairs, its answers"


class JoinRegisterFeed(ProcessFeed):
    """A register over joins that is watched from now on."""

    def __init__(self, register: Register, title: str = "", *, can_edit: bool = False) -> None:
        super().__init__(register, title or " + ".join(register.streams))
        self._register, self.can_edit = register, can_edit
        self._given: Counter[str] = Counter()
        self._followed = FollowedAnswers()
        self._explained: tuple[object, str] = None, ""
        self._followed.follow_first(keys_of(_view(register).queries))
        self.attach()

    def add(self, name: str, text: str) -> None:
        """Answer one more query."""
        self._register.add(name, text)

    def remove(self, name: str) -> None:
        """Answer a query no longer."""
        self._register.remove(name)
        self._given.pop(name, None)

    def _filled(self, shown: Snapshot, look: Look) -> Snapshot:
        view, costs = _view(self._register), self._register.joined_rows
        dearest = sorted(view.queries, key=lambda q: (-costs.get(q.name, 0), q.name))
        return replace(
            shown,
            text=joins_text(view),
            axis=joins_axis(view),
            answers=self._followed.shown(keys_of(dearest), look),
            register=joins_shown(
                view,
                dearest,
                self._given,
                costs,
                look.queries,
                cost=_COST,
                can_edit=self.can_edit and not self._register.is_finished,
            ),
            explain=self._explain(view),
        )

    # Asked in the thread that pushes

    def _where(self) -> Where:
        if not self._followed.names:
            self._followed.follow_first(keys_of(_view(self._register).queries))
        return Where(self._register.progress)

    def _keep(self, answers: object) -> int:
        """Count whose answers came; those of a few queries are kept to be shown."""
        if not isinstance(answers, Mapping):
            return 0
        followed = self._followed.names
        for name, table in answers.items():
            assert isinstance(table, pa.Table)
            self._given[name] += len(table)
            if name in followed:
                self._followed.give(name, table)
        return sum(map(len, answers.values()))

    # Asked by whoever looks

    def _explain(self, view: JoinsView) -> str:
        """How the joins are run, in words; said anew only when the queries change."""
        said_of, said = self._explained
        now = [(query.name, query.join) for query in view.queries]
        if said_of != now and not self._register.is_finished:
            said = self._register.explain()
            self._explained = now, said
        return said


def _view(register: Register) -> JoinsView:
    """What there is to see of a register of several streams."""
    view = register.view()
    assert isinstance(view, JoinsView)
    return view
