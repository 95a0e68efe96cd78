"""One thread at a time: methods of an object that threads share take turns.

A push reads and replaces many things. If two threads pushed into one query at once, rows would be
lost without a word. So whoever comes second waits. A thread may come back in while it is inside, as
a function does that is handed answers and asks the register something.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from threading import RLock
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from panes.windows.limit import at_most

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Turn(AbstractContextManager[None]):
    """The turn of one thread, in which a step gives at most so many answers."""

    def __init__(self, max_answers: int | None) -> None:
        self._max_answers = max_answers
        self._lock = RLock()
        self._limits: list[AbstractContextManager[None]] = []

    def __enter__(self) -> None:
        self._lock.acquire()
        self._limits.append(at_most(self._max_answers))
        self._limits[-1].__enter__()

    def __exit__(self, *error: object) -> None:
        try:
            self._limits.pop().__exit__(None, None, None)
        finally:
            self._lock.release()


class Shared(Protocol):
    """An object that threads may share."""

    @property
    def _turn(self) -> AbstractContextManager[object]:
        """A `Turn`, or just a lock where answers are not limited."""
        ...


Self = TypeVar("Self", bound=Shared)


def in_turn(
    method: Callable[Concatenate[Self, Arguments], Result],
) -> Callable[Concatenate[Self, Arguments], Result]:
    """A method that no two threads run at the same time, of all that are marked so."""

    @wraps(method)
    def taking_turns(self: Self, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        with self._turn:
            return method(self, *args, **kwargs)

    return taking_turns
