"""The one interface of all stores, and which of them a name means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.planning.choose_store import StoreName
from panes.planning.plan import Plan
from panes.stores.adaptive import Adaptive, Sources
from panes.stores.adaptive_panes import AdaptivePanes
from panes.stores.bins import Bins
from panes.stores.keyed_panes import KeyedPanes
from panes.stores.wid import Buffered, Eager
from panes.windows.cover import Wids
from panes.windows.spec import PanedSpec


class Store(Protocol):
    """What is kept of rows until their windows are answered.

    A store adds rows, answers windows that are due as often as it is asked, and evicts what no
    open window needs. It knows nothing of progress.
    """

    def __len__(self) -> int:
        """How many partials are stored."""
        ...

    @property
    def rows(self) -> int:
        """How many rows are kept."""
        ...

    @property
    def keys(self) -> int:
        """How many combinations of key values have a number."""
        ...

    @property
    def nbytes(self) -> int:
        """Bytes of all that is stored, keys aside."""
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

    def answer(self, first_due: Wids, end_due: Wids, *, in_order: bool = True) -> pa.Table:
        """Windows, keys and lowered aggregates of the due windows, under their numbers."""
        ...

    def answer_named(
        self, groups: NDArray[np.int64], offsets: NDArray[np.int64], wid: NDArray[np.int64]
    ) -> pa.Table:
        """The same for windows named one by one, ascending within each of the groups."""
        ...


class PositionStore(Store, Protocol):
    """A store of windows that end where rows are."""

    def answer_at(
        self, groups: NDArray[np.int64], offsets: NDArray[np.int64], wid: NDArray[np.int64]
    ) -> list[pa.Array]:
        """Lowered aggregates of windows named one by one, ascending within each group."""
        ...


Hold: TypeAlias = Callable[[Plan, PanedSpec], WindowStore]


def windows_held_in(name: StoreName, sources: Sources) -> Hold:
    """How the named store is made, for windows that close in order."""
    by_name: dict[str, Hold] = {
        "panes": KeyedPanes,
        "eager": Eager,
        "buffered": Buffered,
        "adaptive": partial(Adaptive, sources=sources),
        "adaptive-panes": AdaptivePanes,
    }
    return by_name[name]


def positions_held_in(name: StoreName) -> Callable[[Plan, PanedSpec], PositionStore]:
    """How the named store is made, for per-row windows."""
    return Bins if name == "bins" else KeyedPanes
