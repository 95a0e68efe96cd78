"""Interrupts at any line of a step, each delivered by CPython just as one from the keyboard is."""

from __future__ import annotations

import _thread
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import panes

SOURCE = str(Path(panes.__file__).parent)
OUTER = ("step.py", "in_turn.py", "rounds.py", "watched.py")


@contextmanager
def lines(interrupt_at: int | None = None) -> Iterator[list[str]]:
    """Notes the file of every line of the library that is run; at one, Ctrl-C is pressed.

    The signal is pending then, and CPython raises it where it raises signals: not at any line.
    """
    seen: list[str] = []

    def trace(frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        if not frame.f_code.co_filename.startswith(SOURCE):
            return None
        if event == "line":
            seen.append(frame.f_code.co_filename)
            if len(seen) == interrupt_at:
                sys.settrace(None)
                for _ in iter(_thread.interrupt_main, None):  # nothing comes between it and return
                    pass
        return trace

    sys.settrace(trace)
    try:
        yield seen
    finally:
        sys.settrace(None)


def places(files: list[str], some: int) -> list[int]:
    """Which lines to interrupt: all that begin and end a step, and so many of the others."""
    others = range(0, len(files), max(1, len(files) // some))
    outer = (n for n, file in enumerate(files) if file.endswith(OUTER))
    return [n + 1 for n in sorted({*others, *outer})]
