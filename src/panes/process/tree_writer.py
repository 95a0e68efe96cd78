"""Objects as a tree, with their arrays in blocks: those that are new, and those that are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from panes.aggregates import wire
from panes.aggregates.aggregate import Piece
from panes.arrays.key_numbers import Dictionary
from panes.axis import FOREVER
from panes.process.object_tree import (
    ARROW,
    ITEM,
    LOG,
    SEQUENCES,
    LastWriting,
    LogEntry,
    Tree,
    array_bytes,
    is_value,
    pieces_of,
    written_attributes,
)
from panes.shards.recall import digest
from panes.stores.contents import Contents
from panes.stores.fragments import Fragments
from panes.stores.state_blocks import FolderBlock

_LZ4 = pa.ipc.IpcWriteOptions(compression="lz4")
_PLAIN = (bool, int, float, str, type(None))


class TreeWriter:
    """Writes objects as a tree; `blocks` are those that it refers to by their place.

    `now` is what is written once the blocks are.
    """

    def __init__(self, written: LastWriting | None) -> None:
        """Without what is `written`, it is written once, and nobody goes on writing from there."""
        self.blocks: list[FolderBlock] = []
        self.now = LastWriting()
        self._written, self._is_once = written or LastWriting(), written is None
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
        if isinstance(one, tuple(ARROW.values())):
            return self._arrow(one)
        if isinstance(one, Contents):
            return {"contents": one.identities}
        if isinstance(one, tuple):
            name = {"named": type(one).__name__} if hasattr(one, "_fields") else {}
            return {"tuple": [self._partial(i, item) for i, item in enumerate(one)], **name}
        if isinstance(one, dict):
            return {"dict": [[self.tree(key), self.tree(value)] for key, value in one.items()]}
        if type(one).__name__ in SEQUENCES:
            return {type(one).__name__: [self.tree(item) for item in one]}
        if is_value(one):
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
        return {**self._fields(one), "as": number}

    def _fields(self, one: Any) -> Tree:
        """An object by itself, whatever else leads to it."""
        before, self._pieces = self._pieces, pieces_of(one, self._pieces)
        if self._pieces is not before:
            for piece in self._pieces:
                wire.types(piece)  # refuses partial results that cannot be written
        said = {name: self._attribute(value) for name, value in written_attributes(one).items()}
        if isinstance(one, Fragments):
            said[LOG] = self._log(one)
        if isinstance(one, Dictionary):
            said[LOG] = self._values(one)
        self._pieces = before
        return {"object": type(one).__name__, "has": said}

    def _log(self, store: Fragments) -> Tree:
        """The fragments of a store: those that were written, and behind them what has come since.

        So a writing takes as long as what was added takes, and not as what is stored. Once most of
        the log is merged or forgotten, it begins anew.
        """
        new = None if self._is_once else store.journal()
        known = self._written.logs.get(store)
        low, _ = store.span() or (FOREVER, FOREVER)
        entries = [entry for entry in known or () if entry.last >= low]
        size = sum(entry.size for entry in entries) + sum(map(len, new or ()))
        if new is None or known is None or size > 2 * len(store):
            new, entries = list(store.fragments), []
        entries += [
            LogEntry(len(f), int(f.starts[-1]), self._with_blocks(self._fields(f)))
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
            entries.append(LogEntry(len(values) - begin, 0, tree))
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
        return {**about, "block": self._place(array, lambda: array_bytes(array))}

    def _arrow(self, one: Any) -> Tree:
        def packed() -> pa.Buffer:
            if isinstance(one, pa.Table):
                return _packed(one)
            scalar = isinstance(one, pa.Scalar)
            return _packed(pa.table([pa.array([one.as_py()], one.type) if scalar else one], [ITEM]))

        kind = next(name for name, of in ARROW.items() if isinstance(one, of))
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


def _replaced(tree: Tree, what: Callable[[Any], Any]) -> Tree:
    """A tree with something else instead of its places of blocks."""
    if isinstance(tree, list):
        return [_replaced(item, what) for item in tree]
    if not isinstance(tree, dict):
        return tree
    return {n: what(of) if n == "block" else _replaced(of, what) for n, of in tree.items()}


def _columns(piece: Piece, partials: Any) -> pa.Table:
    columns = wire.to_arrow(piece, partials)
    return pa.table(columns, names=[str(i) for i in range(len(columns))])


def _packed(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_LZ4) as writer:
        writer.write_table(table)
    return sink.getvalue()
