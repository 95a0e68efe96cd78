"""The stores by name: what each of them keeps, and a new one of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias, get_args

from panes.stores.adaptive import AdaptivePanes, AdaptWid
from panes.stores.bins import Bins
from panes.stores.contents import Contents
from panes.stores.durations import ArrivalSkew
from panes.stores.keyed_panes import KeyedPanes
from panes.stores.store import Store, WindowStore
from panes.stores.wid import BufferedWid, EagerWid
from panes.windows.spec import PanedSpec

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


def position_store(name: StoreName, contents: Contents, spec: PanedSpec) -> Store:
    """A new store of this name, for per-row windows."""
    return Bins(contents, spec) if name == "bins" else KeyedPanes(contents, spec)
