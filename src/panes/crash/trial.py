"""The points of a stream at which it can be killed, as `panes.spark.host` lets them be reached.

    combine --> shard: its blocks written | BLOCK, all written | STATE, at the end | END
            --> Spark commits the state --> all rows of the task have been seen | STORED
            --> sink | SUNK --> Spark commits the batch

Spark commits a shard's state when the last of its rows has been asked for. So a function over the
rows that the store gives has seen the commit once no row is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from panes.crash.kills import BLOCK, CHANGE, END, STATE, STORED, Kills
from panes.shards.state import State
from panes.spark.host import Hosted
from panes.spark.internals import batch_number
from panes.spark.state_host import HostedShard

Frame = Any  # Spark's DataFrame: nothing of PySpark is imported here


@dataclass(frozen=True, slots=True)
class StreamTrial:
    """Stands around the shards of a stream. `changing`: its queries are being changed."""

    kills: Kills
    changing: bool = False

    def hosted(self, hosted: Hosted, /) -> Hosted:
        """The same shards, which may die."""
        if self.changing:
            self.kills.reach(CHANGE, 0)
        shard, kills = hosted.shard, self.kills
        return replace(hosted, shard=lambda state: MortalShard(shard, state, kills))

    def given(self, frame: Frame, /) -> Frame:
        """The same rows, of a task that may die once the state is committed."""
        return frame.mapInArrow(AfterCommit(self.kills), frame.schema)


@dataclass(frozen=True, slots=True)
class AfterCommit:
    """Passes rows on; after the last one, the state has been committed."""

    kills: Kills

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        self.kills.reach(STORED, batch_number() - 1)


class MortalShard:
    """A shard for one batch that may die while it writes, or when it has written everything."""

    def __init__(self, shard: Any, state: State, kills: Kills) -> None:
        self._batch, self._kills = batch_number() - 1, kills
        self._shard: HostedShard = shard(MortalState(state, kills, self._batch))

    def take(self, packages: Sequence[bytes], /) -> Any:
        """One batch."""
        outcome = self._shard.take(packages)
        self._kills.reach(STATE, self._batch)
        return outcome

    def finish(self) -> Any:
        """The end of the stream."""
        outcome = self._shard.finish()
        self._kills.reach(END, self._batch)
        return outcome


class MortalState:
    """A state of which only the first part may be written."""

    def __init__(self, state: State, kills: Kills, batch: int) -> None:
        self._state, self._kills, self._batch = state, kills, batch

    def get(self, name: str, /) -> bytes | None:
        return self._state.get(name)

    def __setitem__(self, name: str, data: bytes, /) -> None:
        self._state[name] = data
        self._kills.reach(BLOCK, self._batch)

    def __delitem__(self, name: str, /) -> None:
        del self._state[name]
