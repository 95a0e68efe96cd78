"""Ctrl-C while Spark runs is noted, and looked at between two calls to the JVM."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from panes.cli.interrupts import ends, interrupts


@pytest.fixture(autouse=True)
def _handler() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


class Running:
    """A query that never ends; Ctrl-C is pressed at the third look."""

    looks = 0

    def await_end(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.looks += 1
        if self.looks == 3:
            signal.raise_signal(signal.SIGINT)
        return False


def test_what_would_never_end_does_at_the_next_look() -> None:
    running = Running()
    assert not ends(running.await_end, interrupts())
    assert running.looks == 3


def test_what_ends_by_itself_has_ended() -> None:
    looks = iter([False, None, True])
    assert ends(lambda seconds: next(looks), interrupts())
    assert not list(looks)


def test_a_second_interrupt_stops_at_once() -> None:
    interrupted = interrupts()
    signal.raise_signal(signal.SIGINT)
    assert interrupted.is_set()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
