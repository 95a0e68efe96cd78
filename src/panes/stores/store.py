"""The interface of all stores, and which of them a name means.

Every store gives the same answers; they differ in time and memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol, TypeAlias, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.stores.adaptive import AdaptWid
from panes.stores.adaptive_panes import AdaptivePanes
from panes.stores.bins import Bins
from panes.stores.contents import Contents
from panes.stores.durations import ArrivalSkew
from panes.stores.keyed_panes import KeyedPanes
from panes.stores.rolled import AnswerPartials, WindowPartials
from panes.stores.wid import BufferedWid, EagerWid
from panes.windows.cover import Wids
from panes.windows.spec import PanedSpec


class Store(Protocol):
    """Where rows, or partials of them, wait until their windows are answered.

    A store adds rows, rolls windows as often as it is asked, and evicts what no open window needs.
    It knows nothing of progress.
    """

    def __len__(self) -> int:
        """The number of partials that are stored."""
        ...

    @property
    def rows(self) -> int:
        """The number of rows that are buffered."""
        ...

    @property
    def keys(self) -> int:
        """The number of combinations of key values."""
        ...

    @property
    def nbytes(self) -> int:
        """Bytes of all that is stored, keys aside."""
        ...

    @property
    def key_bytes(self) -> int:
        """Bytes that the key values take."""
        ...

    @property
    def key_columns(self) -> list[pa.Array]:
        """The key values of every group, by its number."""
        ...

    def key_values(self, groups: NDArray[np.int64]) -> list[pa.Array]:
        """The key values of some groups."""
        ...

    def number(self, keys: Sequence[pa.Array], rows: int) -> NDArray[np.int32]:
        """The group of each row of key values."""
        ...

    def add(
        self,
        at: NDArray[np.int64],
        columns: Sequence[pa.Array],
        groups: NDArray[np.int32] | None = None,
    ) -> None:
        """Take in rows: positions, the plan's projected columns, and groups if they are known."""
        ...

    def evict(self, first_open: Wids) -> bool:
        """Drop what no open window holds; says whether there was anything."""
        ...

    def forget_keys(self) -> NDArray[np.int64] | None:
        """Drop keys that nothing is stored of, if they are many; gives the new number of each."""
        ...


class WindowStore(Store, Protocol):
    """A store of windows that close in the order of their ends."""

    def roll(
        self, first_due: Wids, end_due: Wids, *, in_order: bool = True
    ) -> WindowPartials | None:
        """The partials of the windows ``[first_due, end_due)``; None if none of them has rows."""
        ...

    def roll_named(
        self, groups: NDArray[np.int64], offsets: NDArray[np.int64], wid: NDArray[np.int64]
    ) -> WindowPartials:
        """The same for windows named one by one, ascending within each of the groups."""
        ...


class PositionStore(Store, Protocol):
    """A store of windows that end where rows are."""

    def roll_at(
        self, groups: NDArray[np.int64], offsets: NDArray[np.int64], wid: NDArray[np.int64]
    ) -> AnswerPartials:
        """The partials of windows named one by one, ascending within each group."""
        ...


StoreName: TypeAlias = Literal["panes", "eager", "buffered", "adaptive", "adaptive-panes", "bins"]
STORES: tuple[StoreName, ...] = get_args(StoreName)

STORED = {
    "panes": "a partial result per pane and key",
    "eager": "a partial result per open window and key, updated by every row",
    "buffered": "rows, read once for every window that holds them",
    "adaptive": "rows of rare keys, a partial result per open window of others",
    "adaptive-panes": "rows or a partial result per pane and key, whichever is smaller",
    "bins": "a running answer at every edge of a row's window",
}
"""The content of each store, in a few words."""


def window_store(
    name: StoreName, contents: Contents, spec: PanedSpec, skew: ArrivalSkew | None = None
) -> WindowStore:
    """A new store of this name, for windows that close in the order of their ends."""
    if name == "adaptive":
        return AdaptWid(contents, spec, skew)
    made: dict[StoreName, Callable[[Contents, PanedSpec], WindowStore]] = {
        "panes": KeyedPanes,
        "eager": EagerWid,
        "buffered": BufferedWid,
        "adaptive-panes": AdaptivePanes,
    }
    return made[name](contents, spec)


def position_store(name: StoreName, contents: Contents, spec: PanedSpec) -> PositionStore:
    """A new store of this name, for per-row windows."""
    return Bins(contents, spec) if name == "bins" else KeyedPanes(contents, spec)
