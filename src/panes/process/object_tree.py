"""The state of a query as plain data: a tree of names and numbers over blocks of bytes.

What a query remembers is a graph of small objects over large arrays, which are replaced and never
written to (`panes.process.all_or_nothing`). It is written as it is, attribute by attribute, so no
kind of window, store or join has to say what its state is, and none can forget a part of it.
An array that was written once is known by its identity, and is not written again.

It is read into a query that was opened anew, whose objects have their plans, functions and threads
already: these are not written. Objects that come and go with the rows (`MADE`) are made anew; no
other class is ever looked up by a name that was read.
"""

from __future__ import annotations

import struct
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from threading import RLock
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.aggregates.aggregate import Piece
from panes.join.rule import Progress
from panes.join.sorted_rows import SortedRows
from panes.nodes.arrival import Arrival
from panes.nodes.key_promises import KeyPromises
from panes.nodes.promises import Promised
from panes.process.all_or_nothing import is_unchanging, names_of
from panes.progress.bounds import Unbounded, WithinLateness, WithinRows
from panes.progress.describe import Describe
from panes.sharing.classed_panes import ClassedPanes
from panes.stores.contents import Contents
from panes.stores.durations import Durations
from panes.stores.fragment import Fragment
from panes.stores.row_buffer import BufferedRows
from panes.stores.state_blocks import FolderBlock
from panes.stores.waiting_rows import Waiting
from panes.windows.cut import Cut, Edges
from panes.windows.spec import Landmark, Sliding

Tree: TypeAlias = Any
"""What JSON can hold."""

MADE: Mapping[str, type] = {
    made.__name__: made
    for made in (
        Arrival, BufferedRows, Cut, Describe, Durations, Edges, Fragment, KeyPromises, Landmark,
        Progress, Promised, Sliding, SortedRows, Waiting, WithinRows,
    )
}  # fmt: skip
"""Objects that come and go with rows, by the names of their classes."""
ARROW = {"array": pa.Array, "chunked": pa.ChunkedArray, "table": pa.Table, "scalar": pa.Scalar}
SEQUENCES = {of.__name__: of for of in (list, tuple, deque, set, frozenset)}
ITEM, LOG = "item", "log"
_KEPT = (pa.DataType, pa.Schema, Executor, Unbounded, WithinLateness, type(RLock()))
_WIDTHS = [(8 * size, np.dtype(f"<u{size}")) for size in (1, 2, 4, 8)]
_ABOVE = struct.Struct("<Bq")
Thing = TypeVar("Thing")


class Known(Generic[Thing]):
    """What is known of objects by their identity, for as long as they live."""

    def __init__(self) -> None:
        self._things: dict[int, tuple[Callable[[], Any], Thing]] = {}

    def get(self, one: object) -> Thing | None:
        """What is known of an object."""
        of, thing = self._things.get(id(one), (None, None))
        return thing if of is not None and of() is one else None

    def put(self, one: object, thing: Thing) -> None:
        """Something is known of an object."""
        self._things[id(one)] = weakref.ref(one), thing


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A part of a log: how much it has, where it ends, and its blocks."""

    size: int
    last: int
    tree: Tree


class LastWriting:
    """What the last writing has put into a folder: blocks of arrays, and logs of fragments."""

    def __init__(self) -> None:
        self.arrays: Known[FolderBlock] = Known()
        self.logs: Known[Sequence[LogEntry]] = Known()
        self.named: dict[str, tuple[bytes, FolderBlock]] = {}


def written_attributes(one: object) -> dict[str, Any]:
    """The attributes that are written one by one; a log and what is recomputed are none of them.

    A class that writes to its arrays has a method `written`, which gives copies.
    """
    if hasattr(one, "written"):
        found: dict[str, Any] = one.written()
        return found
    left_out: frozenset[str] = getattr(type(one), "RECOMPUTED", frozenset())
    return {name: getattr(one, name) for name in names_of(one) if name not in left_out}


def is_value(one: object) -> bool:
    """Whether an object is as it was when the query was opened: it is not written."""
    of = type(one)
    if of.__name__ in MADE or hasattr(of, "written"):
        return False
    return is_unchanging(of) or isinstance(one, _KEPT) or of.__module__.startswith("sqlglot.")


def pieces_of(one: Any, before: Sequence[Piece]) -> Sequence[Piece]:
    """What the partial results in an object are of, and in all that it leads to."""
    if isinstance(one, ClassedPanes):
        return one.pieces
    contents = getattr(one, "contents", None)
    return contents.pieces if isinstance(contents, Contents) else before


def array_bytes(array: NDArray[Any]) -> bytes | memoryview:
    """An array as bytes; whole numbers as what they are above the least, in as few as they need.

    >>> len(array_bytes(np.arange(10**15, 10**15 + 100)))
    109
    """
    plain = np.ascontiguousarray(array)
    if array.dtype != np.int64 or not array.size:
        return plain.data
    low, high = int(array.min()), int(array.max())
    width = next(kind for bits, kind in _WIDTHS if high - low < 1 << bits)
    narrow = (plain.view(np.uint64) - np.uint64(low % 2**64)).astype(width)
    return _ABOVE.pack(width.itemsize, low) + narrow.tobytes()


def array_of(data: bytes, kind: np.dtype[Any]) -> NDArray[Any]:
    """What `array_bytes` was given, in one dimension."""
    if kind != np.int64 or not data:
        return np.frombuffer(bytearray(data), dtype=kind)
    size, low = _ABOVE.unpack_from(data)
    above = np.frombuffer(data, dtype=f"<u{size}", offset=_ABOVE.size)
    found: NDArray[Any] = (above.astype(np.uint64) + np.uint64(low % 2**64)).view(np.int64)
    return found
