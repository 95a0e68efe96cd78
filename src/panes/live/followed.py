"""Answers of a few queries of a register: those that somebody looks at.

A page names the query whose answers it wants to see. Without a name it sees those of the query that
was costliest when it began to look, as long as that is there. Answers are kept of the last
`MOST_FOLLOWED` queries that were looked at, from then on; of all others nothing is kept.
"""

from __future__ import annotations

from collections.abc import KeysView, Mapping
from dataclasses import replace
from threading import Lock

import pyarrow as pa

from panes.live.answer_history import AnswerHistory
from panes.live.feed import Look
from panes.live.snapshot import AnswersShown

MOST_FOLLOWED = 8
_CHOSEN_NOW = "answers are shown from the next window on that closes"


class FollowedAnswers:
    """Answers by query. Whoever pushes reads `names` and gives; whoever looks chooses."""

    def __init__(self) -> None:
        self._histories: dict[str, AnswerHistory] = {}  # replaced, never changed: two threads
        self._first, self._lock = "", Lock()  # held for a moment only

    @property
    def names(self) -> KeysView[str]:
        """The queries whose answers are kept."""
        return self._histories.keys()

    def give(self, name: str, answers: pa.Table) -> None:
        """Answers of a query have come; they are kept if it is followed."""
        history = self._histories.get(name)
        if history is not None:
            history.give(answers)

    def follow(self, name: str, keys: int) -> AnswerHistory:
        """The answers of a query, kept from now on; `keys` columns of them are its key."""
        with self._lock:
            others = dict(self._histories)
            history = others.pop(name, None) or AnswerHistory(keys)
            others[name] = history
            self._histories = dict(list(others.items())[-MOST_FOLLOWED:])
        return history

    def follow_first(self, keys: Mapping[str, int]) -> str:
        """Follow the query that is shown unless another is asked for; `keys` has all of them."""
        if self._first not in keys:
            self._first = next(iter(keys), "")
            if self._first:
                self.follow(self._first, keys[self._first])
        return self._first

    def shown(self, keys: Mapping[str, int], look: Look) -> AnswersShown:
        """The answers of the query that is looked at; `keys` has all queries, costliest first."""
        first = self.follow_first(keys)
        name = look.of if look.of in keys else first
        if not name:
            return AnswersShown(note="there is no query yet")
        is_new = name not in self._histories
        shown = self.follow(name, keys[name]).shown(look.answers)
        note = _CHOSEN_NOW if is_new or (name != first and not shown.columns) else shown.note
        return replace(shown, of=name, note=note)
