"""How many answers one step may give: more are refused before memory is asked for them.

Windows that overlap a million times, or a row that is centuries ahead, make more answers than any
memory takes. Whoever runs a step says how many it may give; where windows are listed, it is asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from panes.errors import LimitError

MOST_ANSWERS = 100_000_000
_STEPS = 100
"""How many full steps may follow each other where a table is answered in steps."""
_most: ContextVar[int | None] = ContextVar("most", default=MOST_ANSWERS)


@contextmanager
def at_most(answers: int | None) -> Iterator[None]:
    """A step that may give so many answers; None: as many as there are."""
    before = _most.set(answers)
    try:
        yield
    finally:
        _most.reset(before)


def fitting(answers: int) -> int:
    """So many answers, or half of what a step may give if that is less: they are guessed."""
    most = _most.get()
    return answers if most is None else max(min(answers, most // 2), 1)


def require_room_in_steps(answers: float) -> None:
    """The same for answers that are given step by step: a hundred full steps may follow each other.

    They take no memory, but would fill a disk.
    """
    most = _most.get()
    if most is not None and answers > _STEPS * most:
        raise LimitError(
            f"all steps together would give up to {int(answers):,} answers, and max_answers allows "
            f"{_STEPS} steps of {most:,}",
            hint="use a longer SLIDE, a shorter RANGE or fewer keys; "
            "with max_answers=None all are given",
        )


def require_room(answers: float) -> None:
    """Refuse to list more windows than a step may give answers.

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
            hint="use a longer SLIDE, a shorter RANGE or fewer keys; "
            "with max_answers=None all are given",
        )
