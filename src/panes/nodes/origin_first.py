"""``ORIGIN FIRST``: rows wait until nothing older can come, for the oldest of them is the origin.

Until then there are no windows: nothing is answered, and no late row counts. Once progress has
passed the oldest row, `settled` gives the sliding pipeline to go on with.
"""

from __future__ import annotations

import pyarrow as pa

from panes.axis import FOREVER
from panes.nodes.arrival import Arrival
from panes.nodes.pipeline import Pipeline
from panes.nodes.sliding import SlidingPipeline
from panes.planning.plan import Plan
from panes.stores.by_name import StoreName
from panes.stores.durations import ArrivalSkew


class OriginFirst(Pipeline):
    """The rows of a query whose windows are not known yet."""

    def __init__(
        self,
        plan: Plan,
        store: StoreName = "panes",
        skew: ArrivalSkew | None = None,
        *,
        revisable: int | None = 0,
    ) -> None:
        super().__init__(plan)
        self._store, self._skew, self._revisable = store, skew, revisable
        self._waiting: list[Arrival] = []
        self._oldest = FOREVER

    def add(self, arrival: Arrival) -> None:
        """Let rows wait."""
        at = arrival.passing_at
        if len(at):
            self._waiting.append(arrival)
            self._oldest = min(self._oldest, int(at.min()))

    def settled(self, progress: int) -> Pipeline:
        """A sliding pipeline with the rows in it, if `progress` has passed the oldest of them."""
        if progress <= self._oldest:
            return self
        started = self.successor(self._oldest)
        for arrival in self._waiting:
            started.add(arrival)
        return started

    def successor(self, origin: int = 0) -> SlidingPipeline:
        """The pipeline to go on with from an origin, without rows yet."""
        return SlidingPipeline(
            self.plan,
            origin=origin,
            store=self._store,
            skew=self._skew,
            revisable=self._revisable,
        )

    def close(self, progress: int, *, in_order: bool = True) -> pa.Table:  # noqa: ARG002
        """No answers: there are no windows yet."""
        return self._nothing()

    def close_all(self, *, in_order: bool = True) -> pa.Table:  # noqa: ARG002
        """No answers: a stream that had rows is settled before it ends."""
        return self._nothing()

    @property
    def open_from(self) -> int:
        """No position has a window, and a late row would move the origin."""
        return FOREVER

    def stored(self) -> dict[str, int]:
        """How much is stored: nothing but rows that wait."""
        waiting = sum(len(arrival.passing_at) for arrival in self._waiting)
        return {
            **dict.fromkeys(("keys", "partials", "bytes", "key_bytes", "rows"), 0),
            "waiting_rows": waiting,
            "waiting_bytes": sum(arrival.nbytes for arrival in self._waiting),
        }
