"""One thread at a time: steps of an object that threads share take turns.

Every step of a query or register is such a turn, so here is also said what memory cannot take: what
Arrow or NumPy say of it becomes a `LimitError`, whatever the step was.

A push reads and replaces many things. If two threads pushed into one query at once, rows would be
lost without a word. So whoever comes second waits. A thread may come back in while it is inside, as
a function does that is handed answers and asks the register something.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from panes.errors import LimitError, PanesError
from panes.process.all_or_nothing import Undo
from panes.windows.limit import at_most

if TYPE_CHECKING:
    from panes.process.keeper import Keeper


class Turn:
    """The turn of one thread, in which a step gives at most so many answers.

    `undo` is what a step that has the turn can put back. A `keeper` writes what steps have changed.
    """

    UNCHANGED = frozenset({"undo", "keeper", "max_answers"})

    def __init__(self, max_answers: int | None) -> None:
        self.max_answers = max_answers
        self._lock = RLock()
        self.undo = Undo()
        self.keeper: Keeper | None = None

    def begin(self) -> None:
        """Wait for the turn, and have it; or be interrupted, and not have it."""
        for _ in iter(self._lock.acquire, None):  # after a step of a loop comes no interrupt
            return

    def end(self, undo: Undo) -> None:
        """Another thread may have the turn; no interrupt comes after that in here."""
        release: Iterator[None] = iter(self._lock.release, None)
        self.undo = undo
        for _ in release:
            return

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Have the turn for a part of what is no step: answers in steps, or two objects."""
        with self._lock, at_most(self.max_answers):
            try:
                yield
            except Exception as error:
                refusal = too_large(error)
                if refusal is not None:
                    raise refusal from error
                raise


def too_large(error: BaseException) -> LimitError | None:
    """What to say where memory, or a column of 2 GB, was too small for a step."""
    said = (str(error).splitlines() or [""])[0]
    if isinstance(error, PanesError):
        return None
    if isinstance(error, MemoryError):
        return LimitError(
            f"there is not enough memory for this step: {said or 'nothing more is known'}",
            hint="push smaller batches, or ask with batches=True for answers piece by piece",
        )
    if isinstance(error, pa.ArrowException) and any(word in said for word in _CAPACITY):
        return LimitError(
            f"a column would be larger than the 2 GB that its type can hold: {said}",
            hint="cast it to large_string or large_binary, or push smaller batches; "
            "for answers, ask with batches=True",
        )
    return None


_CAPACITY = ("overflow", "capacity", "more than 2147483646", "cannot contain more than")


class Shared(Protocol):
    """An object that threads may share."""

    _turn: Turn
