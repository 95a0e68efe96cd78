"""What each part of a register has missed, as a shard remembers it.

A query may come when rows have gone by, and its join may be new then, too. What it missed is worked
out in the first batch that has it, from how far rows had come before, and stays. All shards are
told the same marks, so all of them work out the same.

How far the rows of a stream have come is known as long as some query reads them, on the column that
orders them there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from panes.axis import BEGINNING
from panes.errors import QueryError
from panes.nodes.missed_rows import Missed, Whole
from panes.shards.names import ENDED
from panes.shards.packages import Packages
from panes.shards.shared_joins import SharedJoin, SharedQuery, Source
from panes.shards.state import State
from panes.stores import codec

_MISSED, _NEWEST = "missed", "newest"
_OF_MISSED = pa.schema({"key": pa.string(), "upto": pa.list_(pa.int64())})
_OF_NEWEST = pa.schema({"stream": pa.string(), "column": pa.string(), "at": pa.int64()})
Upto = Sequence[int]
"""A position for each source of a part."""


class MissedQueries:
    """The parts and queries that are known, for one batch; a new one is known once it is met.

    Of a join it is known which rows are not stored, of a query over it which were joined before it
    came. `before` is how far rows had come that something else than this has noted.
    """

    def __init__(self, state: State, before: Mapping[Source, int] = {}) -> None:
        self._state = state
        self._upto: dict[str, Upto] = {}
        self._newest: dict[Source, int] = {}  # before this batch
        self._met: dict[str, Upto] = {}
        self._newest_now: dict[Source, int] = {}
        self._data = state.get(_MISSED)
        if self._data is not None:
            tables = codec.unpack(self._data)
            self._upto = {row["key"]: _each(row["upto"]) for row in tables[_MISSED].to_pylist()}
            newest = tables[_NEWEST].to_pylist()
            self._newest = {(row["stream"], row.get("column")): row["at"] for row in newest}
        self._newest = {**before, **self._newest}

    def meet(self, shared: SharedJoin, query: SharedQuery) -> Whole | None:
        """What is whole of a query over a join; None if it has missed nothing."""
        unstored = self.unstored(shared)
        if query.key not in self._met:
            is_new = shared.key not in self._upto
            joined = self._upto.get(query.key)
            if joined is None:
                joined = [BEGINNING] * len(unstored) if is_new else self._came(_sources(shared))
            self._met[query.key] = joined
        missed = Missed(tuple(unstored), tuple(_for(len(unstored), self._met[query.key])))
        return None if missed.is_nothing else Whole(query.plan, missed)

    def is_new(self, key: str) -> bool:
        """Whether this is the first batch of a part or query."""
        return key not in self._upto

    def unstored(self, shared: SharedJoin) -> Upto:
        """Up to where rows of each source of a join came before the join."""
        return self.upto(shared.key, _sources(shared))

    def upto(self, key: str, sources: Sequence[Sequence[Source]]) -> Upto:
        """Up to where rows of each source of a part came before it; a source may be several."""
        if key not in self._met:
            known = self._upto.get(key)
            self._met[key] = self._came(sources) if known is None else known
        return _for(len(sources), self._met[key])

    def know(self, key: str, sources: Sequence[Source], packages: Packages) -> None:
        """Know what packages tell: up to where rows of the sources of a part had come before."""
        told = packages.highest("before")
        if self.is_new(key) and ENDED in told.values():
            raise QueryError(
                "rows have come before this query, and nobody knows which of the answers that it "
                "reads came before",
                hint="add it before the first batch",
            )
        known = dict.fromkeys(sources, BEGINNING)
        for number, at in told.items():
            known[sources[number]] = max(known[sources[number]], at)
        self._newest |= known

    def newest(self, source: Source) -> int | None:
        """Where the newest row of a source lay before this batch; None if nobody knows."""
        try:
            return self._at(source)
        except QueryError:
            return None

    def came(self, newest: Mapping[Source, int]) -> None:
        """Rows of streams have come, as far as these."""
        for stream, at in newest.items():
            before = [known.get(stream, at) for known in (self._newest, self._newest_now)]
            self._newest_now[stream] = max(at, *before)

    def write(self) -> None:
        """Remember the parts and queries that were met, and forget the others."""
        if self._data is None and not self._met and not self._newest_now:
            return
        upto = [{"key": key, "upto": list(at)} for key, at in self._met.items()]
        newest = [
            {"stream": stream, "column": column, "at": at}
            for (stream, column), at in self._newest_now.items()
        ]
        tables = {
            _MISSED: pa.Table.from_pylist(upto, schema=_OF_MISSED),
            _NEWEST: pa.Table.from_pylist(newest, schema=_OF_NEWEST),
        }
        data = codec.pack(tables)
        if data != self._data:
            self._state[_MISSED] = data

    def _came(self, sources: Sequence[Sequence[Source]]) -> Upto:
        """Where the newest row of each source lay before this batch."""
        return [max(self._at(one) for one in source) for source in sources]

    def _at(self, source: Source) -> int:
        stream, column = source
        known = self._newest.get(source, self._newest.get((stream, None)))
        if known is not None:
            return known
        of_stream = [at for (name, _), at in self._newest.items() if name == stream]
        if not self._newest or (of_stream and max(of_stream) == BEGINNING):
            return BEGINNING  # nothing has come
        raise QueryError(
            f"rows of `{stream}` may have gone by that no query read, so it cannot be known "
            f"up to which `{column}` this one has missed them",
            hint=f"start on a new checkpoint, or add it while a query reads `{stream}` by "
            f"`{column}`",
        )


def _sources(shared: SharedJoin) -> list[list[Source]]:
    """The streams or parts of each side of a join, and what orders them."""
    return [[shared.source(side, s) for s in side.source.streams] for side in shared.join.sources]


def _each(upto: int | Upto | None) -> Upto:
    """What is remembered; before there was a position for each source, it was one for all."""
    return upto if isinstance(upto, list) else [BEGINNING if upto is None else int(str(upto))]


def _for(count: int, upto: Upto) -> Upto:
    return upto if len(upto) == count else [max(upto)] * count
