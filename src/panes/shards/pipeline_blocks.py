"""The panes of a pipeline, fetched block by block as they are needed, and put back.

Invariant: a block that was fetched is in the pipeline and fetched no second time. A block that a
batch adds to is fetched before it is put back, so nothing that it had is lost.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from panes.nodes.pipeline import StorePipeline
from panes.planning.plan import Plan
from panes.shards.blocks import MOST_BLOCKS, Blocks
from panes.shards.state import State
from panes.stores.parcel import Parcel
from panes.windows.spec import Landmark


class PipelineBlocks:
    """The blocks of a state, and the pipeline that works on them for one batch."""

    def __init__(self, plan: Plan, pipeline: StorePipeline, blocks: Blocks, state: State) -> None:
        self._plan, self._pipeline, self._blocks, self._state = plan, pipeline, blocks, state
        self._fetched: set[int] = set()
        self._rewrites_all = isinstance(plan.spec, Landmark) or plan.order is not None

    def touched(self) -> set[int]:
        """Blocks that this batch adds to; all of them, where closing windows rewrites panes."""
        starts = self._pipeline.panes.pane_starts()
        touched = set(np.unique(self._blocks.of(starts)).tolist())
        return touched | self._blocks.numbers if self._rewrites_all else touched

    def fetch(self, numbers: Iterable[int]) -> None:
        """Take these blocks into the pipeline, as far as there are any."""
        wanted = (self._blocks.numbers & set(numbers)) - self._fetched
        pieces = self._plan.pieces
        parcels = [self._blocks.fetch(self._state, b, pieces) for b in sorted(wanted)]
        self._fetched |= wanted
        if parcels:
            self._pipeline.take(parcels)

    def fetch_all(self) -> None:
        """Take all blocks into the pipeline."""
        self.fetch(self._blocks.numbers)

    def fetch_before(self, at: int) -> None:
        """Take in the blocks of all panes before a position."""
        last = None if self._rewrites_all else self._blocks.number(at)
        self.fetch(b for b in self._blocks.numbers if last is None or b <= last)

    def put_back(self, touched: set[int]) -> None:
        """Write the blocks that changed, and drop those without an open window."""
        parcels: dict[int, Parcel] = {}
        if touched or self._rewrites_all:
            parcels = self._split()
        if self._rewrites_all:
            touched = touched | parcels.keys()
        for block in touched:
            self._put(block, parcels.get(block))
        self._fetched |= touched
        for block in self._blocks.numbers - touched:
            last = np.array([self._blocks.start(block + 1) - 1])
            if not self._pipeline.has_open_window(last)[0]:
                self._blocks.drop(self._state, block)
        if len(self._blocks) > MOST_BLOCKS:
            self._widen()

    def _widen(self) -> None:
        """Fewer, longer blocks: a state is a handful of them, however much waits."""
        self.fetch_all()
        self._blocks.drop_all(self._state)
        self._blocks.span *= 2
        while len(parcels := self._split()) > MOST_BLOCKS // 2:
            self._blocks.span *= 2
        for block, parcel in parcels.items():
            self._put(block, parcel)

    def _split(self) -> dict[int, Parcel]:
        return self._pipeline.split(lambda starts, _: self._blocks.of(starts))

    def _put(self, block: int, parcel: Parcel | None) -> None:
        self._blocks.put(self._state, block, self._plan.pieces, parcel)
