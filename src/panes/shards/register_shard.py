"""One shard of a register: all its queries over some of the keys, at a host that keeps its state.

Between batches a shard is nothing but bytes under names: one `about`, and the panes of each store
in blocks. The queries come with each batch, and may be others than those the state was written
with (`panes.shards.register_state`). A host often runs a shard in the same process again: what it
holds then is still there, under the name of the state it belongs to.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import uuid4

import numpy as np
import pyarrow as pa

from panes.admit.set_aside import late_reasons
from panes.answers.portions import Portion
from panes.axis import BEGINNING
from panes.errors import StateError
from panes.planning.plan import Plan
from panes.planning.terms import Terms
from panes.progress.promise import Promise
from panes.register.parcels import split, take
from panes.register.queries import Queries
from panes.register.shared_store import SharedStore
from panes.shards.blocks import MOST_BLOCKS
from panes.shards.combiner import AT, MARKS, REJECTED, ROW, ROWS, WATCH, Combiner
from panes.shards.query_shard import ABOUT, State
from panes.shards.recall import Recall
from panes.shards.register_filler import RegisterFiller, columns_of_rows, tables_of
from panes.shards.register_state import Written, take_up, to_tables
from panes.stores import codec
from panes.stores.parcel import Parcel, from_tables, widened
from panes.stores.parcel import to_tables as parcel_tables

_VERSION, BLOCKS = "version", "blocks"
_PER_WINDOW = 8


@dataclass(frozen=True, slots=True)
class Definition:
    """The queries of a register as other processes get them, and a name for just these.

    It goes with a job's functions, as they do, and is never kept: states and files are Arrow.
    Compressed: Spark sends what is larger than a megabyte in a way that its stateful processors
    cannot read.
    """

    data: bytes
    name: str

    @classmethod
    def of(cls, queries: Queries, dumps: Callable[[Queries], bytes]) -> Definition:
        """What a register has now; the cuts are chosen here, once for all.

        `dumps` is how the host sends objects: a user's functions are among them.
        """
        for store in queries.stores.values():
            store.cut  # noqa: B018 - found here, and sent with the rest
        return cls(zlib.compress(dumps(queries)), uuid4().hex)

    def queries(self) -> Queries:
        """The queries, with nothing stored."""
        found: Queries = pickle.loads(zlib.decompress(self.data))
        return found


@dataclass(frozen=True, slots=True)
class RegisterOutcome:
    """What a batch gave: lowered answers, rows set apart, and sizes."""

    answers: list[Portion]
    late: list[pa.Table]
    rejected: list[pa.Table]
    progress: int
    partials: int
    nbytes: int


@dataclass(slots=True)
class _Held:
    """A shard as it is in this process: its queries with their panes, and the blocks at rest."""

    queries: Queries
    definition: str
    spans: dict[int, int] = field(default_factory=dict)
    blocks: dict[tuple[int, int], _Block] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Block:
    """What is known of a block without fetching it."""

    partials: int
    nbytes: int


LIVE: Recall[_Held] = Recall()
"""Shards that this process has had lately, by the version of the state they belong to."""
FILLED: Recall[Queries] = Recall()
"""Queries that tasks of this process fill panes for, by their definition."""


def combiner(definition: Definition, shards: int, *, keep_rows: bool) -> Combiner:
    """What a task does with its rows before the shuffle."""
    queries = FILLED.get(definition.name)
    if queries is None:
        queries = definition.queries()
        FILLED.put(definition.name, queries, len(definition.data))
    return Combiner(RegisterFiller(queries, keep_rows=keep_rows), shards)


class RegisterShard:
    """A shard's part of a register, for one batch."""

    def __init__(self, definition: Definition, terms: Terms, state: State) -> None:
        self._definition, self._terms, self._state = definition, terms, state
        self._stored = self._remembered()
        self._queries = self._stored.queries

    def take(self, packages: Sequence[bytes]) -> RegisterOutcome:
        """Take in one batch; gives the answers that are final from now on."""
        opened = [codec.unpack(data) for data in packages]
        late = [found for tables in opened for found in self._late(tables)]
        rejected = [tables[REJECTED] for tables in opened if REJECTED in tables]
        for tables in opened:
            for store in self._queries.stores.values():
                self._add(store, tables_of(store, tables))
        for tables in opened:
            self._note(tables[MARKS])
        return self._outcome(late, rejected)

    def finish(self) -> RegisterOutcome:
        """The stream has ended: every window that holds a row is answered."""
        self._queries.promise.punctuate(self._queries.last_end(), "the end of the stream")
        return self._outcome([], [])

    def _outcome(self, late: list[pa.Table], rejected: list[pa.Table]) -> RegisterOutcome:
        answers = list(self._queries.answers(as_lowered))
        self._keep()
        blocks = self._stored.blocks.values()
        return RegisterOutcome(
            answers=answers,
            late=late,
            rejected=rejected,
            progress=self._queries.promise.at,
            partials=sum(b.partials for b in blocks),
            nbytes=sum(b.nbytes for b in blocks),
        )

    def _add(self, store: SharedStore, tables: Mapping[str, pa.Table]) -> None:
        """What a task sends a store: partials, or the rows themselves."""
        parcel = from_tables(store.pieces, tables)
        if parcel is not None:
            store.touch(parcel.starts, *(c.starts for c in parcel.values))
            take(store, parcel, store.pieces, list(store.values))
        if ROWS in tables:
            at = tables[ROWS].column(AT).combine_chunks().to_numpy()
            on_time = np.flatnonzero(at >= self._queries.promise.at)
            rows = tables[ROWS].take(pa.array(on_time)).combine_chunks()
            filled = store.fill_columns(at[on_time], columns_of_rows(store, rows))
            store.touch(filled.partials.starts, *(f.starts for f in filled.counted.values()))
            store.add(filled)

    def _late(self, tables: Mapping[str, pa.Table]) -> Iterator[pa.Table]:
        """Rows that break a promise made before this batch."""
        queries = self._queries
        watched = tables.get(f"{WATCH}0")
        if watched is None or queries.promise.at == BEGINNING or queries.axis is None:
            return
        [low] = tables[MARKS].filter(_is_stream(tables[MARKS])).column("low").to_pylist()
        at = low + widened(watched.column(AT).combine_chunks())
        which = np.flatnonzero(at < queries.promise.at)
        if not len(which):
            return
        is_open = at[which] >= queries.open_from()
        promised, late = queries.promise.at, self._terms.late
        columns = {"reason": pa.array(late_reasons(queries.axis, promised, is_open, late=late))}
        if ROW in watched.column_names:
            columns[ROW] = watched.column(ROW).take(pa.array(which))
        yield pa.table(columns)

    def _note(self, marks: pa.Table) -> None:
        """What a task says of how far its rows reach."""
        queries = self._queries
        for mark in marks.to_pylist():
            if mark["high"] is not None:
                queries.promise.observe(np.array([mark["high"]]))
                queries.newest = max(queries.newest, mark["high"])
            if mark["promise"] is not None:
                queries.promise.punctuate(mark["promise"])

    # The state

    def _remembered(self) -> _Held:
        data = self._state.get(ABOUT)
        if data is None:
            queries = self._definition.queries()
            queries.promise = Promise(self._terms.bound())
            return self._watched(_Held(queries, self._definition.name))
        tables = codec.unpack(data)
        about = tables[_VERSION].to_pylist()[0]
        stored = LIVE.take(about["version"])
        if stored is not None and stored.definition == self._definition.name:
            return stored
        return self._taken_up(tables, about["definition"])

    def _taken_up(self, tables: Mapping[str, pa.Table], definition: str) -> _Held:
        """From its bytes, for the queries of now."""
        stored = resumed(self._definition.queries(), self._terms, self._state, tables)
        stored.definition = self._definition.name
        self._watched(stored)
        if definition != self._definition.name:
            for store in stored.queries.stores.values():
                store.touch(
                    *(
                        np.array([b * stored.spans[s]])
                        for s, b in stored.blocks
                        if s == store.serial
                    )
                )
                store.evict(stored.queries.newest)
        return stored

    def _watched(self, stored: _Held) -> _Held:
        """Panes that change from now on are noted."""
        for store in stored.queries.stores.values():
            store.touched = []
        return stored

    def _keep(self) -> None:
        """Put back the blocks that changed, drop those that no window needs, and remember."""
        stored = self._stored
        gone = {s for s, _ in stored.blocks} - {s.serial for s in self._queries.stores.values()}
        for key in [k for k in stored.blocks if k[0] in gone]:
            self._put(key, None, None)
        for store in self._queries.stores.values():
            self._keep_store(store)
        version = uuid4().hex
        self._state[ABOUT] = codec.pack(
            {
                _VERSION: pa.table({"version": [version], "definition": [stored.definition]}),
                BLOCKS: self._block_table(),
                **to_tables(self._queries),
            }
        )
        size = sum(store.nbytes for store in self._queries.stores.values())
        LIVE.put(version, stored, size + len(self._definition.data))

    def _keep_store(self, store: SharedStore) -> None:
        stored, serial = self._stored, store.serial
        span = stored.spans.setdefault(serial, _span(store))
        changed = {b for starts in store.touched or () for b in np.unique(starts // span).tolist()}
        store.touched = []
        own = [b for s, b in stored.blocks if s == serial]
        needed_from = store.needed_from()
        over = {b for b in {*own, *changed} if (b + 1) * span <= needed_from}
        if len({*own, *changed} - over) > MOST_BLOCKS:
            stored.spans[serial], changed = 2 * span, set(own)
            for block in own:
                self._put((serial, block), store, None)
            store.touched = [store.fragments.everything().starts]
            store.touched += [v.store.everything().starts for v in store.values.values()]
            self._keep_store(store)
            return
        parcels = split(store, lambda starts, _: starts // span, changed) if changed else {}
        for block in changed | over:
            self._put((serial, block), store, parcels.get(block) if block not in over else None)

    def _put(self, key: tuple[int, int], store: SharedStore | None, parcel: Parcel | None) -> None:
        blocks = self._stored.blocks
        if parcel is not None and store is not None and len(parcel):
            data = codec.pack(parcel_tables(store.pieces, parcel))
            self._state[block_name(key)] = data
            blocks[key] = _Block(len(parcel), len(data))
        elif blocks.pop(key, None) is not None:
            del self._state[block_name(key)]

    def _block_table(self) -> pa.Table:
        stored = self._stored
        rows = [
            {
                "store": s,
                "block": b,
                "span": stored.spans[s],
                "partials": k.partials,
                "bytes": k.nbytes,
            }
            for (s, b), k in stored.blocks.items()
        ]
        return pa.Table.from_pylist(rows, schema=BLOCK_SCHEMA)


def resumed(
    queries: Queries, terms: Terms, state: State, about: Mapping[str, pa.Table] | None = None
) -> _Held:
    """Queries with the panes that a state holds for them."""
    if about is None:
        data = state.get(ABOUT)
        if data is None:
            raise StateError("the state of the register is missing")
        about = codec.unpack(data)
    queries.promise = Promise(terms.bound())
    written = take_up(queries, about)
    stored = _Held(queries, "")
    stores = {store.serial: store for store in queries.stores.values()}
    for row in about[BLOCKS].to_pylist():
        key = row["store"], row["block"]
        stored.spans[row["store"]] = row["span"]
        stored.blocks[key] = _Block(row["partials"], row["bytes"])
        store = stores.get(row["store"])
        if store is not None:
            _read_block(store, written[store.serial], state.get(block_name(key)), key)
    return stored


def _read_block(
    store: SharedStore, written: Written, data: bytes | None, key: tuple[int, int]
) -> None:
    if data is None:
        raise StateError(f"block {key[1]} of store {key[0]} is missing from the state")
    pieces, values = written.known_to(store)
    parcel = from_tables(pieces, codec.unpack(data))
    if parcel is not None:
        take(store, parcel, pieces, values)


def as_lowered(
    plan: Plan,  # noqa: ARG001 - as `burst` calls it
    table: pa.Table,
) -> tuple[None, pa.Table]:
    """HAVING and the SELECT's expressions are the host's."""
    return None, table


def _span(store: SharedStore) -> int:
    """How long a block of panes is at first."""
    longest = max(m.spec.size for shape in store.shapes for m in shape.members)
    return max(1, -(-longest // _PER_WINDOW))


def _is_stream(marks: pa.Table) -> pa.Array:
    return pa.array([s >= 0 for s in marks.column(0).to_pylist()])


def block_name(key: tuple[int, int]) -> str:
    """Where the panes of a block lie, by store and number."""
    return f"{key[0]}/{key[1]}"


BLOCK_SCHEMA = pa.schema(dict.fromkeys(["store", "block", "span", "partials", "bytes"], pa.int64()))
