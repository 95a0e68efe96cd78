"""Ctrl-C while Spark runs."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType

from panes.errors import PanesError

_GLANCE = 1


def interrupts() -> threading.Event:
    """Whether Ctrl-C was pressed; a second one stops at once.

    An interrupt in the middle of a call to the JVM would leave the connection unusable, and the
    queries could not be stopped. So it waits for the next look at them.
    """
    interrupted = threading.Event()

    def note(number: int, frame: FrameType | None) -> None:
        if interrupted.is_set():
            signal.default_int_handler(number, frame)
        interrupted.set()

    signal.signal(signal.SIGINT, note)
    return interrupted


def ends(await_end: Callable[[int], bool | None], interrupted: threading.Event) -> bool:
    """Wait for what says whether it has ended after so many seconds; False after Ctrl-C."""
    while not interrupted.is_set():
        if await_end(_GLANCE):
            return True
    return False


def stopped(output: object, checkpoint: object | None) -> PanesError:
    """What to say after Ctrl-C of a job that writes batch by batch."""
    again = "it starts from the beginning" if checkpoint is None else "it continues from there"
    return PanesError(
        f"stopped before the end; answers of finished batches are in {output}",
        hint=f"run the same command again: {again}",
    )
