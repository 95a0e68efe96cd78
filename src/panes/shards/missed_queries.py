"""What each query of a register over joins has missed, as a shard remembers it.

A query may come when rows have gone by, and its join may be new then, too. What it missed is worked
out in the first batch that has it, from how far rows had come before, and stays. All shards are
told the same marks, so all of them work out the same.
"""

from __future__ import annotations

import pyarrow as pa

from panes.axis import BEGINNING
from panes.pipelines.missed_rows import Whole, newest_missed
from panes.shards.shared_joins import SharedJoin, SharedQuery
from panes.shards.state import State
from panes.stores import codec

_MISSED, _NEWEST = "missed", "newest"
_OF_MISSED = pa.schema({"key": pa.string(), "upto": pa.int64()})
_OF_NEWEST = pa.schema({"stream": pa.string(), "at": pa.int64()})


class MissedQueries:
    """The joins and queries that are known, for one batch; a new one is known once it is met."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._upto: dict[str, int | None] = {}
        self._newest: dict[str, int] = {}  # before this batch
        self._met: dict[str, int | None] = {}
        data = state.get(_MISSED)
        if data is not None:
            tables = codec.unpack(data)
            self._upto = {row["key"]: row["upto"] for row in tables[_MISSED].to_pylist()}
            self._newest = {row["stream"]: row["at"] for row in tables[_NEWEST].to_pylist()}
        self._newest_now = dict(self._newest)

    def meet(self, shared: SharedJoin, query: SharedQuery) -> Whole | None:
        """What is whole of a query; None if it has missed nothing."""
        is_new = shared.key not in self._upto
        of_join = self._of(shared.key, query, joins_anew=True)
        of_query = self._of(query.key, query, joins_anew=is_new)
        upto = max((at for at in (of_join, of_query) if at is not None), default=None)
        return None if upto is None else Whole(query.plan, upto)

    def came(self, shared: SharedJoin, newest: int) -> None:
        """Rows of a join have come, as far as the newest one."""
        if newest == BEGINNING:
            return
        for side in shared.join.sources:
            for stream in side.source.streams:
                self._newest_now[stream] = max(newest, self._newest_now.get(stream, newest))

    def write(self) -> None:
        """Remember the joins and queries that were met, and forget the others."""
        upto = [{"key": key, "upto": at} for key, at in self._met.items()]
        newest = [{"stream": stream, "at": at} for stream, at in self._newest_now.items()]
        tables = {
            _MISSED: pa.Table.from_pylist(upto, schema=_OF_MISSED),
            _NEWEST: pa.Table.from_pylist(newest, schema=_OF_NEWEST),
        }
        self._state[_MISSED] = codec.pack(tables)

    def _of(self, key: str, query: SharedQuery, *, joins_anew: bool) -> int | None:
        if key not in self._met:
            known = key in self._upto
            self._met[key] = (
                self._upto[key]
                if known
                else newest_missed(query.plan, self._newest, joins_anew=joins_anew)
            )
        return self._met[key]
