"""Several states in one: each has a name, and those that nobody asks for any more are dropped.

A host keeps one state for a shard. A shard with parts that come and go gives each part a state of
its own, whose names begin with that of the part.

Invariant: after `write`, the state has exactly the names of the parts that were asked for.
"""

from __future__ import annotations

import pyarrow as pa

from panes.shards.state import State
from panes.stores import codec

LEDGER = "ledger"
"""The name under which a state says which names each part has."""
_PART, _NAME = "part", "name"
_SCHEMA = pa.schema({_PART: pa.string(), _NAME: pa.string()})


class ManyStates:
    """The states of the parts of a shard, for one batch."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._names: dict[str, set[str]] = {}
        self._asked: set[str] = set()
        data = state.get(LEDGER)
        if data is not None:
            for row in codec.unpack(data)[LEDGER].to_pylist():
                self._names.setdefault(row[_PART], set()).add(row[_NAME])
        self._before = self._rows()

    def of(self, part: str) -> State:
        """The state of a part, which stays."""
        self._asked.add(part)
        return _Part(part, self._state, self._names.setdefault(part, set()))

    def write(self) -> None:
        """Drop the parts that were not asked for, and remember the names of the others."""
        for part in [p for p in self._names if p not in self._asked]:
            for name in self._names.pop(part):
                del self._state[_full(part, name)]
        rows = self._rows()
        if rows != self._before:
            self._before = rows
            self._state[LEDGER] = codec.pack({LEDGER: pa.Table.from_pylist(rows, schema=_SCHEMA)})

    def _rows(self) -> list[dict[str, str]]:
        return [
            {_PART: part, _NAME: name}
            for part, names in sorted(self._names.items())
            for name in sorted(names)
        ]


class _Part:
    """The state of one part."""

    def __init__(self, part: str, state: State, names: set[str]) -> None:
        self._part, self._state, self._names = part, state, names

    def get(self, name: str, /) -> bytes | None:
        return self._state.get(_full(self._part, name)) if name in self._names else None

    def __setitem__(self, name: str, data: bytes, /) -> None:
        self._state[_full(self._part, name)] = data
        self._names.add(name)

    def __delitem__(self, name: str, /) -> None:
        del self._state[_full(self._part, name)]
        self._names.discard(name)


def _full(part: str, name: str) -> str:
    return f"{part}/{name}"
