"""Failures at any point of a step: the library's own functions are made to raise when called."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import CO_GENERATOR
from pathlib import Path
from types import FrameType

import panes

SOURCE = str(Path(panes.__file__).parent)
GUARDS = ("all_or_nothing.py", "in_turn.py", "limit.py", "step.py", "workers.py")


class Bomb(BaseException):
    """Not an error that any code expects."""


@contextmanager
def calls(explode_at: int | None = None) -> Iterator[list[int]]:
    """Counts the calls of the library's functions; raises a `Bomb` at one of them."""
    counted = [0]

    def note(frame: FrameType, event: str, _: object) -> None:
        file = frame.f_code.co_filename
        if frame.f_code.co_flags & CO_GENERATOR:  # closing one is a call too, and cannot raise
            return
        if event == "call" and file.startswith(SOURCE) and not file.endswith(GUARDS):
            counted[0] += 1
            if counted[0] == explode_at:
                raise Bomb

    sys.setprofile(note)
    try:
        yield counted
    finally:
        sys.setprofile(None)
