"""Who watches a query while it runs: told of batches as they are admitted, and of every step.

A watcher is told in the thread that pushes, and changes nothing: answers are the same whether
anyone watches or not. Without one, a step costs one look at an attribute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from panes.nodes.gate import Admitted


class Watcher(Protocol):
    """What is told of a running query or register."""

    def began(self) -> None:
        """A step begins, or begins again because a query was set aside in it."""

    def took(self, batches: Sequence[Admitted]) -> None:
        """These batches have been taken in; if the step fails, they have not."""

    def gave(self, answers: object) -> None:
        """The step has given answers, and may give more."""

    def stepped(self, answers: object, seconds: float) -> None:
        """The step has succeeded, took so long, and gave these answers; None: nothing more."""

    def failed(self, error: BaseException, *, was_told: bool) -> None:
        """The step has failed, maybe when its answers were told already; it has not happened."""


class Watchable(Protocol):
    """What can be watched."""

    watcher: Watcher | None


@dataclass(frozen=True, slots=True)
class _Several:
    """Several watchers, told one after the other."""

    each: tuple[Watcher, ...]

    def began(self) -> None:
        for watcher in self.each:
            watcher.began()

    def took(self, batches: Sequence[Admitted]) -> None:
        for watcher in self.each:
            watcher.took(batches)

    def gave(self, answers: object) -> None:
        for watcher in self.each:
            watcher.gave(answers)

    def stepped(self, answers: object, seconds: float) -> None:
        for watcher in self.each:
            watcher.stepped(answers, seconds)

    def failed(self, error: BaseException, *, was_told: bool) -> None:
        for watcher in self.each:
            watcher.failed(error, was_told=was_told)


def add_watcher(query: Watchable, watcher: Watcher) -> None:
    """Tell one more watcher from now on, beside those that are told already."""
    each = (*_each(query.watcher), watcher)
    query.watcher = watcher if len(each) == 1 else _Several(each)


def remove_watcher(query: Watchable, watcher: Watcher) -> None:
    """Tell a watcher no longer; nothing happens if it was not told."""
    each = tuple(w for w in _each(query.watcher) if w is not watcher)
    query.watcher = _Several(each) if len(each) > 1 else next(iter(each), None)


def _each(watcher: Watcher | None) -> tuple[Watcher, ...]:
    if watcher is None:
        return ()
    return watcher.each if isinstance(watcher, _Several) else (watcher,)
