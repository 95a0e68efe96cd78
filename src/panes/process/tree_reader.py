"""Objects of a tree: what was written is put into objects that are new."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from panes.aggregates import wire
from panes.aggregates.aggregate import Piece
from panes.axis import FOREVER
from panes.errors import StateError
from panes.process.object_tree import (
    LOG,
    MADE,
    SEQUENCES,
    LastWriting,
    Tree,
    array_of,
    pieces_of,
    written_attributes,
)
from panes.shards.recall import digest
from panes.stores.fragments import Fragments
from panes.stores.state_blocks import FolderBlock
from panes.stores.state_file import StateFile
from panes.stores.state_folder import StateFolder

_IN_BLOCKS = ("array", "piece", "arrow")


class TreeReader:
    """Reads what a `TreeWriter` wrote into objects that are new."""

    def __init__(
        self, blocks: Sequence[FolderBlock], place: StateFolder | StateFile, by: str
    ) -> None:
        """`by` is the version of panes that wrote it, for what is said if it does not fit."""
        self.written = LastWriting()
        self.path = place.path
        self._blocks, self._fetch, self._by = blocks, place.fetch, by
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
                raise self._misfit(f"there is no {said}")
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
                raise self._misfit("partial results of other aggregates are stored")
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
        if is_new and name not in MADE:
            raise self._misfit(f"there is no {name}")
        of = MADE[name] if is_new else type(fresh)
        if not is_new and {*written_attributes(fresh)} != {n for n in tree["has"] if n != LOG}:
            raise self._misfit(f"not the same of {name}")
        # What never changes may be shared with other queries, so it is not filled but made anew.
        one = object.__new__(of) if is_new or _is_frozen(of) else fresh
        if "as" in tree:
            self._objects[tree["as"]] = one
        before, self._pieces = self._pieces, pieces_of(fresh, self._pieces)
        for attribute, said in tree["has"].items():
            if attribute == LOG:
                self._take_log(one, said)
                continue
            found = self.value(said, None if is_new else getattr(fresh, attribute))
            object.__setattr__(one, attribute, found)
        self._pieces = before
        return one

    def _misfit(self, words: str) -> StateError:
        return StateError(
            f"the state was written by panes {self._by}, which remembers other things: {words}",
            hint="go on with the version of panes that wrote it, or name a new folder",
        )

    def _take_log(self, one: Any, said: Tree) -> None:
        """Fragments of a store, or values of a dictionary."""
        if isinstance(one, Fragments):
            fragments = [self.value(fragment) for fragment in said["fragments"]]
            low = said["low"]
            cut = (f if f.starts[0] >= low else f.between(low, FOREVER) for f in fragments)
            one.fragments = [f for f in cut if len(f)]
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
            return MADE[named](*items)
        if isinstance(fresh, list | deque) and type(fresh).__name__ == kind:
            fresh.clear()
            fresh.extend(items)
            return fresh
        return SEQUENCES[kind](items)

    def _in_block(self, kind: str, said: Any, tree: Tree) -> Any:
        place = tree["block"]
        if place not in self._read:
            block = self._blocks[place]
            data = self._fetch(block)
            if kind == "array":
                found = array_of(data, np.dtype(said)).reshape(tree["shape"])
            elif kind == "piece":
                found = wire.from_arrow(self._pieces[said], _unpacked(data).columns)
            else:
                found = _of_table(said, _unpacked(data))
            self._read[place] = found
            self.written.arrays.put(found, block)
        return self._read[place]


def _is_frozen(of: type) -> bool:
    parameters = getattr(of, "__dataclass_params__", None)
    return parameters is not None and parameters.frozen


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
