"""One thread at a time: methods of an object that threads share take turns.

Every step of a query or register is such a turn, so here also ends what memory cannot take: what
Arrow or NumPy say of it becomes a `LimitError`, whatever the step was.

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

import pyarrow as pa

from panes.errors import LimitError, PanesError
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

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            self._limits.pop().__exit__(None, None, None)
        finally:
            self._lock.release()
        refusal = None if error is None else _too_large(error)
        if refusal is not None:
            raise refusal from error


def _too_large(error: BaseException) -> LimitError | None:
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
