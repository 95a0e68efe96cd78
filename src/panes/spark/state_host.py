"""Shards in Spark's state: what Spark calls with the packages of a batch, and at the end.

Spark calls once for each shard that is sent anything, and by timers for shards that wait for the
end of the stream or for Spark's own watermark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from pyspark.sql import types as T  # noqa: N812 - as everyone writes it
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    MapState,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from panes.shards.state import State
from panes.spark.column_names import PACKAGE
from panes.windows.limit import at_most

if TYPE_CHECKING:
    import pandas as pd

STATE_NAME = "panes"
"""What the state of shards is called in Spark's checkpoint."""

# Given as types: Spark would ask its JVM to parse them as text, once per task and batch.
_NAME, _DATA = T.StructType().add("name", "string"), T.StructType().add("data", "binary")


class HostedShard(Protocol):
    """A shard for one batch."""

    def take(self, packages: Sequence[bytes], /) -> Any: ...
    def finish(self) -> Any: ...


class WatermarkedShard(HostedShard, Protocol):
    """A shard that can be told of Spark's own watermark, in ticks."""

    def take(self, packages: Sequence[bytes], watermark: int | None = None, /) -> Any: ...


MakesShard: TypeAlias = Callable[[State], HostedShard]
Emits: TypeAlias = "Callable[[Any], Iterator[pd.DataFrame]]"
"""How what a shard gives leaves Spark's store, as rows."""
Waits: TypeAlias = Literal["end", "watermark"]
"""What a timer tells a shard of: that the stream has ended, or that Spark's watermark has moved."""


class StateHost(StatefulProcessor):
    """Hosts a shard in Spark's state.

    Spark's watermark in a batch is that of the batches before it. A batch without data follows the
    last one with data if the watermark has moved: a timer fires there for every shard that waits.
    """

    def __init__(
        self, shard: MakesShard, emit: Emits, max_answers: int | None, waits: Waits | None
    ) -> None:
        self._shard, self._emit, self._waits = shard, emit, waits
        self._max_answers = max_answers

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called once per task and batch."""
        self._handle = handle
        self._state = _Blobs(handle.getMapState(STATE_NAME, _NAME, _DATA))
        self._fed: set[int] = set()

    # Spark passes these arguments by name.

    def handleInputRows(  # type: ignore[override]  # noqa: N802
        self,
        key: tuple[int],
        rows: Iterator[pd.DataFrame],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        """One batch of one shard."""
        self._fed.add(key[0])
        packages = [package for frame in rows for package in frame[PACKAGE]]
        yield from self._given(packages, timerValues)
        if self._waits is not None:
            self._handle.registerTimer(timerValues.getCurrentWatermarkInMs() + 1)

    def handleExpiredTimer(  # noqa: N802
        self,
        key: tuple[int],
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: ARG002, N803
    ) -> Iterator[pd.DataFrame]:
        """A timer fires in every batch; one that brings rows has told what it tells already."""
        if key[0] not in self._fed:
            yield from self._given(None, timerValues)

    def _given(self, packages: list[bytes] | None, now: TimerValues) -> Iterator[pd.DataFrame]:
        """What a shard gives for packages; None: there are no more, or Spark's watermark moved."""
        shard = self._shard(self._state)
        with at_most(self._max_answers):
            if self._waits == "watermark":
                told: WatermarkedShard = shard  # type: ignore[assignment]
                outcome = told.take(packages or [], now.getCurrentWatermarkInMs() * 1_000)
            else:
                outcome = shard.finish() if packages is None else shard.take(packages)
        yield from self._emit(outcome)

    def close(self) -> None:
        """Nothing is open."""


class _Blobs:
    """Spark's map state, as a shard wants it."""

    def __init__(self, state: MapState) -> None:
        self._map = state

    def get(self, name: str, /) -> bytes | None:
        found = self._map.getValue((name,))
        return None if found is None else bytes(found[0])

    def __setitem__(self, name: str, data: bytes, /) -> None:
        self._map.updateValue((name,), (data,))

    def __delitem__(self, name: str, /) -> None:
        self._map.removeKey((name,))
