"""What a pipeline is: rows go in, and progress makes answers of them.

A pipeline owns the state of one query over one (united) stream. It knows nothing of streams,
lateness or clocks: whoever drives it says how far the stream is. Every kind of window has a
pipeline of its own, all of them with the verbs of `Pipeline`; `panes.nodes.choose` tells which.

Answers leave a pipeline before the SELECT's expressions: windows, keys and lowered aggregates, as
`Plan.lowered_schema` names them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.answers.lower import lowered_windows
from panes.axis import BEGINNING, FOREVER
from panes.nodes.arrival import Arrival
from panes.nodes.promises import Promised
from panes.nodes.steps import pauses
from panes.planning.plan import Plan
from panes.stores.handover import PartOf
from panes.stores.keyed_panes import KeyedPanes
from panes.stores.parcel import Parcel
from panes.stores.rolled import WindowPartials
from panes.stores.store import Store
from panes.windows.spec import PanedSpec, Sliding


class Pipeline(ABC):
    """What a query asks of its pipeline, whatever its windows are.

    `first_open` is where open windows begin, as each kind counts them; `newest` is the greatest
    position of any row that has been given a window. What only some kinds have is nothing here: no
    windows to show before they close, none to revise, no groups that close alone.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.first_open = BEGINNING
        self.newest = BEGINNING

    @abstractmethod
    def add(self, arrival: Arrival) -> None:
        """Take in rows. If that fails, nothing has changed."""

    @abstractmethod
    def close(self, progress: int, *, in_order: bool = True) -> pa.Table:
        """Answer what is complete at `progress`, and forget what only that needed.

        Unless `in_order`, answers come as they are found.
        """

    @abstractmethod
    def close_all(self, *, in_order: bool = True) -> pa.Table:
        """The same at the end of the stream."""

    def close_in_steps(self, progress: int) -> Iterator[pa.Table]:
        """As `close`, the answers in the same order, a part of them with each step.

        Whoever takes a part and no more has closed just its windows.
        """
        yield self.close(progress)

    def close_all_in_steps(self) -> Iterator[pa.Table]:
        """The same at the end of the stream."""
        yield self.close_all()

    def close_each(self, before: Promised, now: Promised) -> pa.Table:  # noqa: ARG002
        """As `close`, where each group has its own progress: what it was, and what it is now.

        Where groups do not close alone, only what is promised of all of them counts.
        """
        return self.close(now.progress)

    def open_windows(self) -> pa.Table:
        """The windows that are still open, as they are now."""
        return self._nothing()

    def revised(self, at: NDArray[np.int64], keys: Sequence[pa.Array]) -> pa.Table:  # noqa: ARG002
        """The closed windows that hold rows at these positions, as they are now.

        The rows have been taken in; `keys` are their grouping columns.
        """
        return self._nothing()

    def settled(self, progress: int) -> Pipeline:  # noqa: ARG002
        """The pipeline to go on with, now that no row before `progress` will come: mostly this."""
        return self

    @property
    @abstractmethod
    def open_from(self) -> int:
        """The first position that an open window holds, or one that can still be revised."""

    @property
    def next_end(self) -> int:
        """No window that is yet to be answered ends before; `BEGINNING` if that is not known."""
        return BEGINNING

    @property
    def counts_late(self) -> bool:
        """Whether a row behind progress can count in a window that is still open."""
        return self.open_from < FOREVER

    @property
    def closing_at_ends(self) -> Sliding | None:
        """The windows, if progress closes them at their ends and does nothing between two ends."""
        return None

    @abstractmethod
    def stored(self) -> dict[str, int]:
        """How much is stored: keys, partials, rows and waiting rows, and the bytes of each."""

    def _nothing(self) -> pa.Table:
        """No answers, with their columns."""
        return self.plan.lowered_schema().empty_table()


class StorePipeline(Pipeline):
    """A pipeline over one store, which can be handed from host to host."""

    store: Store

    def __init__(self, plan: Plan, spec: PanedSpec) -> None:
        super().__init__(plan)
        self.spec = spec

    @property
    @abstractmethod
    def ended(self) -> int:
        """The progress that is needed for the answers given so far."""

    @abstractmethod
    def closes_any(self, progress: int) -> bool:
        """Whether `progress` may give an answer."""

    def has_open_window(self, at: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which positions an open window holds."""
        return at >= self.open_from

    def reach(self, newest: int) -> None:
        """Note that a row at `newest` has come somewhere in the stream, here or at another host."""
        self.newest = max(self.newest, newest)

    def _pauses(self, store: KeyedPanes, first: int, end: int) -> Iterator[int]:
        """Windows to pause before, on the way from one window to another."""
        return pauses(
            self.spec,
            store.partial_starts(),
            first,
            end,
            keys=store.keys,
            key_bytes=store.key_bytes,
        )

    def _lowered(self, found: WindowPartials | None) -> pa.Table:
        """Windows, keys and lowered aggregates, under their numbers."""
        return lowered_windows(self.plan, self.spec, found)

    @property
    def waiting(self) -> int:
        """How many rows wait beside the store."""
        return 0

    @property
    def waiting_bytes(self) -> int:
        """Bytes of what waits beside the store, and of what says which rows are next."""
        return 0

    def stored(self) -> dict[str, int]:
        """How much is stored: keys, partials, rows and waiting rows, and the bytes of each."""
        return {
            "keys": self.store.keys,
            "partials": len(self.store),
            "bytes": self.store.nbytes,
            "key_bytes": self.store.key_bytes,
            "rows": self.store.rows,
            "waiting_rows": self.waiting,
            "waiting_bytes": self.waiting_bytes,
        }

    # From host to host

    @property
    def panes(self) -> KeyedPanes:
        """The pane store: the only one that is handed over."""
        assert isinstance(self.store, KeyedPanes)
        return self.store

    @property
    def first_needed(self) -> int:
        """Where the windows begin of which anything is needed, counted as `first_open` is."""
        return self.first_open

    def resume(
        self,
        first_open: int,
        newest: int,
        first_needed: int = BEGINNING,  # noqa: ARG002
    ) -> None:
        """Go on where another pipeline of this plan stopped; its parcels are to be taken in."""
        self.first_open, self.newest = first_open, newest

    @abstractmethod
    def take(self, parcels: Sequence[Parcel]) -> None:
        """Take in what other pipelines of this plan handed over, as far as it is still needed."""

    def split(self, part_of: PartOf) -> dict[int, Parcel]:
        """Everything in the panes, part by part, as `part_of` tells of each pane and group."""
        return self.panes.split(part_of)

    def tables(self) -> dict[str, pa.Table]:
        """What is stored beside the panes."""
        return {}

    def put_back(self, tables: Mapping[str, pa.Table]) -> None:
        """Take in what `tables` gave, in a pipeline that is still empty."""
