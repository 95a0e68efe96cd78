"""The time limit of one batch's expressions: more is interrupted, by a thread that waits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Timer

import duckdb

SECONDS = 60.0
SECONDS_EACH = 0.000_1
"""For each row: the largest batches have more time, and a row has ten times what is usual for
expressions that are slow."""


@dataclass(slots=True)
class TimeLimit:
    """The seconds that a batch has, and whether they are over."""

    seconds: float
    is_over: bool = False


@contextmanager
def time_limit(connection: duckdb.DuckDBPyConnection, rows: int) -> Iterator[TimeLimit]:
    """Interrupt what runs in a connection when a batch of so many rows takes too long."""
    limit = TimeLimit(SECONDS + SECONDS_EACH * rows)

    def stop() -> None:
        limit.is_over = True
        connection.interrupt()

    timer = Timer(limit.seconds, stop)
    timer.daemon = True
    timer.start()
    try:
        yield limit
    finally:
        timer.cancel()
