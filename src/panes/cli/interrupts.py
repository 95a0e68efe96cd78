"""Ctrl-C while Spark runs."""

from __future__ import annotations

import signal
import threading
from types import FrameType


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
