"""What a live page is shown of the batches of a register on Spark, noted in the driver.

How many answers each query gave is noted of every batch: shards tell it beside their packages. Rows
are fetched only while a page is open: answers of the few queries that are looked at, and rows set
aside, so many of each batch at most, after everything has been delivered.

Invariant: a batch that runs again is noted once, and nothing that fails here fails the stream.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from threading import Lock

import pyarrow as pa

from panes.live.apart import Apart, Kind
from panes.live.followed import FollowedAnswers
from panes.spark.register.watched_queries import LOG

MOST_ROWS = 5_000
"""Answers of one query that are shown of a batch."""


class Tap:
    """What one register has delivered, and who looks. Pages share it.

    `given` counts the answers of each query, before HAVING, since the register began in this
    process.
    """

    def __init__(self) -> None:
        self.given: Counter[str] = Counter()
        self.followed, self.apart = FollowedAnswers(), Apart()
        self._pages, self._lock = 0, Lock()
        self._checkpoint, self._last = "", -1

    def open(self) -> None:
        """One more page looks."""
        with self._lock:
            self._pages += 1

    def close(self) -> None:
        """A page looks no longer."""
        with self._lock:
            self._pages -= 1

    def begin(self, checkpoint: str, *, is_new: bool = False) -> None:
        """The register starts; on another checkpoint, or a new one, batches are numbered anew."""
        if is_new or checkpoint != self._checkpoint:
            self._checkpoint, self._last = checkpoint, -1

    def forget(self, name: str) -> None:
        """A query is gone."""
        self.given.pop(name, None)

    def note(
        self,
        batch_id: int,
        given: Mapping[str, int],
        answers: Callable[[str], pa.Table | None],
        set_aside: Callable[[], Iterable[tuple[Kind, pa.Table]]],
    ) -> None:
        """A batch has been delivered; rows of it are asked for only if somebody looks."""
        if batch_id <= self._last:
            return
        self._last = batch_id
        self.given.update(given)
        if not self._pages:
            return
        try:
            for name in self.followed.names:
                found = answers(name) if name in given else None
                if found is not None:
                    self.followed.give(name, found)
            for kind, rows in set_aside():
                self.apart.add(kind, [rows])
        except Exception as error:
            LOG.warning("the live page lacks rows of batch %d: %s", batch_id, error)
