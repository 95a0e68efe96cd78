"""The state of a query as plain data: a tree of names and numbers over blocks of bytes.

What a query remembers is a graph of small objects over large arrays, which are replaced and never
written to (`panes.process.all_or_nothing`). It is written as it is, attribute by attribute, so no
kind of window, store or join has to say what its state is, and none can forget a part of it.
An array that was written once is known by its identity, and is not written again.

It is read into a query that was opened anew, whose objects have their plans, functions and threads
already: these are not written. Objects that come and go with the rows (`_MADE`) are made anew; no
other class is ever looked up by a name that was read.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from threading import RLock
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from panes.aggregates import wire
from panes.aggregates.aggregate import Piece
from panes.arrays.key_numbers import Dictionary
from panes.axis import FOREVER
from panes.errors import StateError
from panes.join.rule import Progress
from panes.join.sorted_rows import SortedRows
from panes.nodes.arrival import Arrival
from panes.nodes.key_promises import KeyPromises
from panes.nodes.promises import Promised
from panes.process.all_or_nothing import is_unchanging, names_of
from panes.progress.describe import Describe
from panes.shards.recall import digest
from panes.stores.contents import Contents
from panes.stores.durations import Durations
from panes.stores.fragment import Fragment
from panes.stores.fragments import Fragments
from panes.stores.row_buffer import BufferedRows
from panes.stores.state_folder import FolderBlock
from panes.stores.waiting_rows import Waiting
from panes.windows.cut import Cut, Edges
from panes.windows.spec import Landmark, Sliding

Tree: TypeAlias = Any
"""What JSON can hold."""

_MADE: Mapping[str, type] = {
    made.__name__: made
    for made in (
        Arrival, BufferedRows, Cut, Describe, Durations, Edges, Fragment, KeyPromises, Landmark,
        Progress, Promised, Sliding, SortedRows, Waiting,
    )
}  # fmt: skip
_ARROW = {"array": pa.Array, "chunked": pa.ChunkedArray, "table": pa.Table, "scalar": pa.Scalar}
_PLAIN = (bool, int, float, str, type(None))
_SEQUENCES = {of.__name__: of for of in (list, tuple, deque, set, frozenset)}
_IN_BLOCKS = ("array", "piece", "arrow")
_KEPT = (pa.DataType, pa.Schema, Executor, type(RLock()))
_ITEM, _LOG = "item", "log"
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
class _Entry:
    """A part of a log: how much it has, where it ends, and its blocks."""

    size: int
    last: int
    tree: Tree


class LastWriting:
    """What the last writing has put into a folder: blocks of arrays, and logs of fragments."""

    def __init__(self) -> None:
        self.arrays: Known[FolderBlock] = Known()
        self.logs: Known[Sequence[_Entry]] = Known()
        self.named: dict[str, tuple[bytes, FolderBlock]] = {}


class TreeWriter:
    """Writes objects as a tree; `blocks` are those that it refers to by their place.

    `now` is what is written once the blocks are.
    """

    def __init__(self, written: LastWriting) -> None:
        self.blocks: list[FolderBlock] = []
        self.now = LastWriting()
        self._written = written
        self._numbers: dict[int, int] = {}
        self._places: dict[int, int] = {}
        self._pieces: Sequence[Piece] = ()

    def tree(self, one: Any) -> Tree:
        """One value."""
        if isinstance(one, np.generic):
            return {"number": one.item(), "of": str(one.dtype)}
        if isinstance(one, _PLAIN):
            return one
        if isinstance(one, np.ndarray):
            return self._array(one)
        if isinstance(one, tuple(_ARROW.values())):
            return self._arrow(one)
        if isinstance(one, Contents):
            for piece in one.pieces:
                wire.types(piece)  # refuses partial results that cannot be written
            return {"contents": one.identities}
        if isinstance(one, tuple):
            name = {"named": type(one).__name__} if hasattr(one, "_fields") else {}
            return {"tuple": [self._partial(i, item) for i, item in enumerate(one)], **name}
        if isinstance(one, dict):
            return {"dict": [[self.tree(key), self.tree(value)] for key, value in one.items()]}
        if type(one).__name__ in _SEQUENCES:
            return {type(one).__name__: [self.tree(item) for item in one]}
        if _is_value(one):
            return {"kept": type(one).__name__}
        if type(one).__module__.startswith("panes."):
            return self._object(one)
        raise TypeError(f"a state with {type(one).__qualname__} cannot be written")

    def named(self, name: str, data: bytes) -> int:
        """Bytes that are known by a name; they are written if they have changed."""
        its_digest = digest(data)
        of, block = self._written.named.get(name, (b"", None))
        if block is None or of != its_digest:
            block = FolderBlock.of(data)
        self.now.named[name] = its_digest, block
        return self._place_of(block)

    def _object(self, one: Any) -> Tree:
        number = self._numbers.get(id(one))
        if number is not None:
            return {"again": number}
        number = self._numbers[id(one)] = len(self._numbers)
        before, self._pieces = self._pieces, _pieces_of(one, self._pieces)
        said = {name: self._attribute(getattr(one, name)) for name in _written_names(one)}
        if isinstance(one, Fragments):
            said[_LOG] = self._log(one)
        if isinstance(one, Dictionary):
            said[_LOG] = self._values(one)
        self._pieces = before
        return {"object": type(one).__name__, "as": number, "has": said}

    def _log(self, store: Fragments) -> Tree:
        """The fragments of a store: those that were written, and behind them what has come since.

        So a writing takes as long as what was added takes, and not as what is stored. Once most of
        the log is merged or forgotten, it begins anew.
        """
        new, known = store.journal(), self._written.logs.get(store)
        low, _ = store.span() or (FOREVER, FOREVER)
        entries = [entry for entry in known or () if entry.last >= low]
        size = sum(entry.size for entry in entries) + sum(map(len, new or ()))
        if new is None or known is None or size > 2 * len(store):
            new, entries = list(store.fragments), []
        entries += [
            _Entry(len(f), int(f.starts[-1]), self._with_blocks(self.tree(f)))
            for f in new
            if len(f)
        ]
        self.now.logs.put(store, entries)
        return {"low": low, "fragments": [self._with_places(entry.tree) for entry in entries]}

    def _values(self, dictionary: Dictionary) -> Tree:
        """The values of a dictionary, which are only added to, as a few arrays."""
        entries = list(self._written.logs.get(dictionary) or ())
        values, begin = dictionary.values, sum(entry.size for entry in entries)
        if begin < len(values):
            while entries and entries[-1].size <= 2 * (len(values) - begin):
                begin -= entries.pop().size
            tree = self._with_blocks(self.tree(values.slice(begin)))
            entries.append(_Entry(len(values) - begin, 0, tree))
        self.now.logs.put(dictionary, entries)
        return [self._with_places(entry.tree) for entry in entries]

    def _with_blocks(self, tree: Tree) -> Tree:
        """A tree that outlives this writing: with blocks instead of their places."""
        return _replaced(tree, lambda place: self.blocks[place])

    def _with_places(self, tree: Tree) -> Tree:
        """The same, as it is written."""
        return _replaced(tree, self._place_of)

    def _attribute(self, one: Any) -> Tree:
        """Functions are those of the query, and never stand among what rows have brought."""
        return {"kept": "function"} if callable(one) else self.tree(one)

    def _partial(self, place: int, one: Any) -> Tree:
        """An item of a tuple; partial results that are objects stand in the order of pieces."""
        if not (isinstance(one, np.ndarray) and one.dtype == object):
            return self.tree(one)
        return {
            "piece": place,
            "block": self._place(one, lambda: _packed(_columns(self._pieces[place], one))),
        }

    def _array(self, array: Any) -> Tree:
        if array.dtype == object:
            raise TypeError("an array of objects cannot be written")
        about = {"array": str(array.dtype), "shape": list(array.shape)}
        return {**about, "block": self._place(array, lambda: np.ascontiguousarray(array).data)}

    def _arrow(self, one: Any) -> Tree:
        def packed() -> pa.Buffer:
            if isinstance(one, pa.Table):
                return _packed(one)
            scalar = isinstance(one, pa.Scalar)
            return _packed(
                pa.table([pa.array([one.as_py()], one.type) if scalar else one], [_ITEM])
            )

        kind = next(name for name, of in _ARROW.items() if isinstance(one, of))
        return {"arrow": kind, "block": self._place(one, packed)}

    def _place(self, one: object, data: Callable[[], Any]) -> int:
        """Where the block of an array stands among all; it is written if it is not yet."""
        block = self.now.arrays.get(one) or self._written.arrays.get(one) or FolderBlock.of(data())
        self.now.arrays.put(one, block)
        return self._place_of(block)

    def _place_of(self, block: FolderBlock) -> int:
        if id(block) not in self._places:
            self._places[id(block)] = len(self.blocks)
            self.blocks.append(block)
        return self._places[id(block)]


class TreeReader:
    """Reads what a `TreeWriter` wrote into objects that are new."""

    def __init__(
        self, blocks: Sequence[FolderBlock], fetch: Callable[[FolderBlock], bytes]
    ) -> None:
        self.written = LastWriting()
        self._blocks, self._fetch = blocks, fetch
        self._objects: dict[int, Any] = {}
        self._read: dict[int, Any] = {}
        self._pieces: Sequence[Piece] = ()

    def value(self, tree: Tree, fresh: Any = None) -> Any:
        """A value as it was written; `fresh` is what stands in its place, and is used again."""
        if not isinstance(tree, dict):
            return tree
        kind = next(iter(tree))
        said = tree[kind]
        if kind == "kept":
            if fresh is None:
                raise _other_version(f"there is no {said}")
            return fresh
        if kind == "object":
            return self._object(tree, fresh)
        if kind == "again":
            return self._objects[said]
        if kind in _IN_BLOCKS:
            return self._in_block(kind, said, tree)
        if kind == "number":
            return np.dtype(tree["of"]).type(said)
        if kind == "contents":
            if fresh is None or fresh.identities != said:
                raise _other_version("partial results of other aggregates are stored")
            return fresh
        if kind == "dict":
            return self._dict(said, fresh)
        return self._sequence(kind, said, fresh, tree.get("named"))

    def named(self, name: str, place: int) -> bytes:
        """The bytes of a name."""
        data = self._fetch(self._blocks[place])
        self.written.named[name] = digest(data), self._blocks[place]
        return data

    def _object(self, tree: Tree, fresh: Any) -> Any:
        name = tree["object"]
        if type(fresh).__name__ != name and hasattr(fresh, "successor"):
            fresh = fresh.successor()
        is_new = type(fresh).__name__ != name
        if is_new and name not in _MADE:
            raise _other_version(f"there is no {name}")
        of = _MADE[name] if is_new else type(fresh)
        if not is_new and {*_written_names(fresh)} != {n for n in tree["has"] if n != _LOG}:
            raise _other_version(f"{name} remembers other things")
        # What never changes may be shared with other queries, so it is not filled but made anew.
        one = object.__new__(of) if is_new or _is_frozen(of) else fresh
        self._objects[tree["as"]] = one
        before, self._pieces = self._pieces, _pieces_of(fresh, self._pieces)
        for attribute, said in tree["has"].items():
            if attribute == _LOG:
                self._take_log(one, said)
                continue
            found = self.value(said, None if is_new else getattr(fresh, attribute))
            object.__setattr__(one, attribute, found)
        self._pieces = before
        return one

    def _take_log(self, one: Any, said: Tree) -> None:
        """Fragments of a store, or values of a dictionary."""
        if isinstance(one, Fragments):
            fragments = [self.value(fragment) for fragment in said["fragments"]]
            one.fragments = [f.between(said["low"], FOREVER) for f in fragments]
        elif said:
            one.values = pa.concat_arrays([self.value(values) for values in said])

    def _dict(self, said: Tree, fresh: Any) -> dict[Any, Any]:
        before = fresh if isinstance(fresh, Mapping) else {}
        keys = [self.value(key) for key, _ in said]
        found = {k: self.value(v, before.get(k)) for k, (_, v) in zip(keys, said, strict=True)}
        if type(fresh) is not dict:
            return found
        fresh.clear()  # whoever shares it goes on sharing it
        fresh.update(found)
        return fresh

    def _sequence(self, kind: str, said: Tree, fresh: Any, named: str | None) -> Any:
        before = list(fresh) if isinstance(fresh, list | tuple | deque) else []
        before += [None] * (len(said) - len(before))
        items = [self.value(item, one) for item, one in zip(said, before, strict=False)]
        if named is not None:
            return _MADE[named](*items)
        if isinstance(fresh, list | deque) and type(fresh).__name__ == kind:
            fresh.clear()
            fresh.extend(items)
            return fresh
        return _SEQUENCES[kind](items)

    def _in_block(self, kind: str, said: Any, tree: Tree) -> Any:
        place = tree["block"]
        if place not in self._read:
            block = self._blocks[place]
            data = self._fetch(block)
            if kind == "array":
                found = np.frombuffer(bytearray(data), dtype=said).reshape(tree["shape"])
            elif kind == "piece":
                found = wire.from_arrow(self._pieces[said], _unpacked(data).columns)
            else:
                found = _of_table(said, _unpacked(data))
            self._read[place] = found
            self.written.arrays.put(found, block)
        return self._read[place]


def _written_names(one: object) -> list[str]:
    """The attributes that are written one by one; a log and what is recomputed are none of them."""
    left_out: frozenset[str] = getattr(type(one), "RECOMPUTED", frozenset())
    return [name for name in names_of(one) if name not in left_out]


def _replaced(tree: Tree, what: Callable[[Any], Any]) -> Tree:
    """A tree with something else instead of its places of blocks."""
    if isinstance(tree, list):
        return [_replaced(item, what) for item in tree]
    if not isinstance(tree, dict):
        return tree
    return {n: what(of) if n == "block" else _replaced(of, what) for n, of in tree.items()}


def _is_value(one: object) -> bool:
    """Whether an object is as it was when the query was opened: it is not written."""
    of = type(one)
    if of.__name__ in _MADE:
        return False
    return is_unchanging(of) or isinstance(one, _KEPT) or of.__module__.startswith("sqlglot.")


def _pieces_of(one: Any, before: Sequence[Piece]) -> Sequence[Piece]:
    """What the partial results in an object are of, and in all that it leads to."""
    contents = getattr(one, "contents", None)
    return contents.pieces if isinstance(contents, Contents) else before


def _is_frozen(of: type) -> bool:
    parameters = getattr(of, "__dataclass_params__", None)
    return parameters is not None and parameters.frozen


def _columns(piece: Piece, partials: Any) -> pa.Table:
    columns = wire.to_arrow(piece, partials)
    return pa.table(columns, names=[str(i) for i in range(len(columns))])


def _packed(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _unpacked(data: bytes) -> pa.Table:
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()


def _of_table(kind: str, table: pa.Table) -> Any:
    if kind == "table":
        return table
    column = table.column(0)
    if kind == "chunked":
        return column
    return column[0] if kind == "scalar" else column.combine_chunks()


def _other_version(words: str) -> StateError:
    return StateError(
        f"the state was written by another version of panes: {words}",
        hint="go on with the version of panes that wrote it, or name a new folder",
    )
