"""Shards in Spark's state: what Spark calls with the packages of a batch, and at the end.

Spark calls once for each shard that is sent anything, and by timers for shards that wait for the
end of the stream or for Spark's own watermark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

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


class StateHost(StatefulProcessor):
    """Hosts a shard in Spark's state."""

    def __init__(
        self, shard: MakesShard, emit: Emits, max_answers: int | None, *, bounded: bool
    ) -> None:
        self._shard, self._emit, self._bounded = shard, emit, bounded
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
        with at_most(self._max_answers):
            outcome = self._shard(self._state).take(packages)
        yield from self._emit(outcome)
        if self._bounded:
            self._handle.registerTimer(timerValues.getCurrentWatermarkInMs() + 1)

    def handleExpiredTimer(  # noqa: N802
        self,
        key: tuple[int],
        timerValues: TimerValues,  # noqa: ARG002, N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: ARG002, N803
    ) -> Iterator[pd.DataFrame]:
        """A timer fires in every batch; in one that brings no rows, the stream has ended."""
        if key[0] not in self._fed:
            with at_most(self._max_answers):
                outcome = self._shard(self._state).finish()
            yield from self._emit(outcome)

    def close(self) -> None:
        """Nothing is open."""


class WatermarkHost(StateHost):
    """Hosts a shard that closes windows by Spark's own watermark.

    Spark's watermark in a batch is that of the batches before it. A batch without data follows the
    last one with data if the watermark has moved: a timer fires there for every shard.
    """

    def __init__(self, shard: MakesShard, emit: Emits, max_answers: int | None) -> None:
        super().__init__(shard, emit, max_answers, bounded=False)

    def handleInputRows(  # type: ignore[override]  # noqa: N802
        self,
        key: tuple[int],
        rows: Iterator[pd.DataFrame],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        """One batch of one shard."""
        self._fed.add(key[0])
        packages = [package for frame in rows for package in frame[PACKAGE]]
        yield from self._take(packages, timerValues)
        self._handle.registerTimer(timerValues.getCurrentWatermarkInMs() + 1)

    def handleExpiredTimer(  # noqa: N802
        self,
        key: tuple[int],
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: ARG002, N803
    ) -> Iterator[pd.DataFrame]:
        """The watermark has moved; in a batch that brings rows, these have told it already."""
        if key[0] not in self._fed:
            yield from self._take([], timerValues)

    def _take(self, packages: list[bytes], now: TimerValues) -> Iterator[pd.DataFrame]:
        shard: WatermarkedShard = self._shard(self._state)  # type: ignore[assignment]
        with at_most(self._max_answers):
            outcome = shard.take(packages, now.getCurrentWatermarkInMs() * 1_000)
        yield from self._emit(outcome)


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
