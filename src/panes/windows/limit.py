"""The limit of answers in one step: more are refused before memory is asked for them.

Windows that overlap a million times, or a row that is centuries ahead, make more answers than any
memory takes. Whoever runs a step says how many it may give; where windows are listed, it is asked.
Unless there is no limit, those that the machine has no memory for are refused, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from panes.arrays.memory import usable_memory
from panes.errors import LimitError

MOST_ANSWERS = 100_000_000
_BYTES_EACH = 256
"""What an answer takes while a step works on it: with one key and very many windows, 230 to 270
bytes were measured, with more keys less."""
_SHARE = 2
"""One step may take half of the memory."""
_HINT = "use a longer SLIDE, a shorter RANGE or fewer keys; with max_answers=None all are given"
_STEPS = 100
"""The number of full steps that may follow each other where a table is answered in steps."""
_most: ContextVar[int | None] = ContextVar("most", default=MOST_ANSWERS)


@contextmanager
def at_most(answers: int | None) -> Iterator[None]:
    """A step that may give so many answers; None: as many as there are."""
    before = _most.get()
    try:
        limit_to(answers)
        yield
    finally:
        limit_to(before)


def limit_to(answers: int | None) -> None:
    """Let steps of this thread give so many answers from now on; None: as many as there are."""
    _most.set(answers)


def limit() -> int | None:
    """The limit of answers for a step of this thread."""
    return _most.get()


def fitting(answers: int) -> int:
    """So many answers, or half of what a step may give if that is less: they are guessed."""
    most = _most.get()
    return answers if most is None else max(min(answers, most // 2, _room() // 2), 1)


def require_room_in_steps(answers: float) -> None:
    """The same for answers that are given step by step: a hundred full steps may follow each other.

    They take no memory, but would fill a disk.
    """
    most = _most.get()
    if most is not None and answers > _STEPS * most:
        raise LimitError(
            f"all steps together would give up to {int(answers):,} answers, and max_answers allows "
            f"{_STEPS} steps of {most:,}",
            hint=_HINT,
        )


def require_room(answers: float) -> None:
    """Refuse to list more windows than a step may give answers, or the memory takes.

    >>> require_room(1e15)
    Traceback (most recent call last):
    panes.errors.LimitError: one step would give up to 1,000,000,000,000,000 answers, and \
max_answers is 100,000,000
    <BLANKLINE>
    Hint: use a longer SLIDE, a shorter RANGE or fewer keys; with max_answers=None all are given
    """
    most = _most.get()
    if most is not None and answers > most:
        raise LimitError(
            f"one step would give up to {int(answers):,} answers, and max_answers is {most:,}",
            hint=_HINT,
        )
    if most is not None and answers > _room():
        raise LimitError(
            f"one step would give up to {int(answers):,} answers, which take up to "
            f"{answers * _BYTES_EACH / 1e9:.1f} GB while it works, and a step may use half of "
            f"{usable_memory() / 1e9:.1f} GB of memory",
            hint=_HINT,
        )


def _room() -> int:
    """The number of answers that fit into what one step may take of the memory."""
    return usable_memory() // (_SHARE * _BYTES_EACH)
