"""One shard of a register: all its queries over some of the keys, at a host that keeps its state.

Between batches a shard is nothing but bytes under names: one `about`, the panes of each store in
blocks, and the rows that are kept for questions (`panes.shards.kept_rows`). The queries come with
each batch, and may be others than those the state was written with
(`panes.shards.register_state`). A host often runs a shard in the same process again: its panes are
still there then, under the name of the state they belong to.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from uuid import uuid4

import numpy as np
import pyarrow as pa

from panes.axis import BEGINNING, FOREVER
from panes.errors import StateError
from panes.planning.plan import Plan
from panes.planning.terms import CheckedOptions
from panes.progress.promise import Promise
from panes.shards.blocks import MOST_BLOCKS, Blocks, block_table, span_under
from panes.shards.combiner import Combiner
from panes.shards.kept_ledger import KeptLedger
from panes.shards.kept_rows import KeptRows
from panes.shards.names import AT, KEPT, ROWS
from panes.shards.outcome import ShardOutcome
from panes.shards.packages import Packages
from panes.shards.recall import Recall
from panes.shards.register_filler import RegisterFiller, columns_of_rows, tables_of
from panes.shards.register_state import Written, begin_after, require_register, take_up, to_tables
from panes.shards.state import ABOUT, State
from panes.sharing.failures import naming
from panes.sharing.parcels import split, take
from panes.sharing.queries import Queries
from panes.sharing.shared_store import SharedStore
from panes.stores import codec
from panes.stores.parcel import from_tables

_VERSION, BLOCKS = "version", "blocks"
_WHOLE_AFTER_A_CHANGE = 2


@dataclass(frozen=True, slots=True)
class Definition:
    """The queries of a register as other processes get them, and a name for just these.

    It goes with a job's functions, as they do, and is never stored: states and files are Arrow.
    Compressed: Spark sends what is larger than a megabyte in a way that its stateful processors
    cannot read.
    """

    data: bytes
    name: str
    number: int = 0

    @classmethod
    def of(
        cls, queries: Queries, dumps: Callable[[Queries], bytes], *, number: int = 0
    ) -> Definition:
        """What a register has now; the cuts are chosen here, once for all.

        `dumps` is how the host sends objects: a user's functions are among them. `number` is that
        of the list of queries, which grows: a state refuses one that is older than itself.
        """
        for store in queries.stores.values():
            store.cut  # noqa: B018 - found here, and sent with the rest
        return cls(zlib.compress(dumps(queries)), uuid4().hex, number)

    def queries(self) -> Queries:
        """The queries, with nothing stored."""
        found: Queries = pickle.loads(zlib.decompress(self.data))
        return found


@dataclass(slots=True)
class LiveShard:
    """A shard as it is in this process: its queries with their panes, and its blocks at rest.

    Blocks are those of each store, by its number; `definition` is the name of the queries. So many
    batches are still to be written `whole`: after a change of queries it is two. Where a host
    reads what a batch that was given up has left, and not what was written in its place, the next
    batch still says everything.
    """

    queries: Queries
    definition: str = ""
    blocks: dict[int, Blocks] = field(default_factory=dict)
    whole: int = 0


LIVE: Recall[LiveShard] = Recall()
"""Shards that this process has had lately, by the version of the state they belong to."""
FILLED: Recall[Queries] = Recall()
"""Queries that tasks of this process fill panes for, by their definition."""


def combiner(definition: Definition, shards: int, terms: CheckedOptions) -> Combiner:
    """What a task does with its rows before the shuffle."""
    queries = FILLED.get(definition.name)
    if queries is None:
        queries = definition.queries()
        FILLED.put(definition.name, queries, len(definition.data))
    filler = RegisterFiller(queries, keep_rows=terms.drops_late)
    step = None if queries.axis is None else terms.step_on(queries.axis.kind)
    return Combiner(filler, shards, max_step=step)


class RegisterShard:
    """A shard's part of a register, for one batch."""

    def __init__(
        self, definition: Definition, terms: CheckedOptions, state: State, after: int = BEGINNING
    ) -> None:
        """Rows up to `after` came before the state began."""
        self._definition, self._terms, self._state = definition, terms, state
        self._after = after
        data = state.get(ABOUT)
        tables = {} if data is None else codec.unpack(data)
        self._live = self._remembered(tables)
        self._queries = self._live.queries
        ledger, newest = KeptLedger.of(tables), self._queries.newest
        self._kept = KeptRows(self._queries.keep, state, ledger, newest)

    @property
    def newest(self) -> int:
        """Where the newest row lies."""
        return self._queries.newest

    def take_opened(self, packages: Packages, open_from: int = FOREVER) -> ShardOutcome:
        """Take in one batch; gives the answers that are final from now on.

        Windows that are not among these queries are open from `open_from` on.
        """
        promise = self._queries.promise
        late = self._late(packages, open_from)
        late_from = packages.oldest_late([promise]) if late else FOREVER
        with naming(lambda: self._queries.shapes):
            for tables in packages:
                for store in self._queries.stores.values():
                    self._add(store, tables_of(store, tables))
        promised = promise.at if self._terms.drops_late else BEGINNING
        self._kept.add(packages.named(KEPT), promised)
        packages.observe([promise])
        self._queries.newest = max(self._queries.newest, *packages.highest().values(), BEGINNING)
        return replace(self._outcome().beside(packages, late), late_from=late_from)

    def finish(self) -> ShardOutcome:
        """The stream has ended: every window that holds a row is answered."""
        self._queries.promise.punctuate(self._queries.last_end(), "the end of the stream")
        return self._outcome()

    def _outcome(self) -> ShardOutcome:
        with naming(lambda: self._queries.shapes):
            portions = list(self._queries.answers(as_lowered))
            self._write()
        blocks = self._live.blocks.values()
        return ShardOutcome(
            portions=portions,
            progress=self._queries.promise.at,
            partials=sum(b.partials for b in blocks),
            nbytes=sum(b.nbytes for b in blocks) + self._kept.nbytes,
            newest=self._queries.newest,
        )

    def _add(self, store: SharedStore, tables: Mapping[str, pa.Table]) -> None:
        """What a task sends a store: partials, or the rows themselves."""
        parcel = from_tables(store.panes.pieces, tables)
        if parcel is not None:
            store.panes.touch(parcel.starts, *(c.starts for c in parcel.values))
            take(store, parcel, store.panes.pieces, list(store.panes.values))
        if ROWS in tables:
            at = tables[ROWS].column(AT).combine_chunks().to_numpy()
            on_time = np.flatnonzero(at >= self._queries.promise.at)
            rows = tables[ROWS].take(pa.array(on_time)).combine_chunks()
            filled = store.fill_columns(at[on_time], columns_of_rows(store, rows))
            store.panes.touch(filled.partials.starts, *(f.starts for f in filled.counted.values()))
            store.panes.add(filled)

    def _late(self, packages: Packages, open_from: int) -> list[pa.Table]:
        """Rows that break a promise made before this batch."""
        queries, late = self._queries, self._terms.late
        if queries.axis is None:
            return []
        open_from = min(open_from, queries.open_from())
        return packages.late_rows([queries.promise], queries.axis, open_from, late)

    # The state

    def _remembered(self, tables: Mapping[str, pa.Table]) -> LiveShard:
        if not tables:
            queries = self._definition.queries()
            queries.promise = Promise(self._terms.bound())
            begin_after(queries, self._after)
            return _noting(LiveShard(queries, self._definition.name))
        require_register(tables)
        about = tables[_VERSION].to_pylist()[0]
        if about["definition"] != self._definition.name:
            self._require_newer(about.get("number", 0))
        live = LIVE.take(about["version"])
        if live is not None and live.definition == self._definition.name:
            return live
        return self._taken_up(tables, about["definition"], about.get("whole", 0))

    def _require_newer(self, number: int) -> None:
        """Refuse queries that do not follow those which the state was written with.

        Every list of queries has the number after the one that was found. So where the newest list
        is lost, the next one has a number that the state has already. Queries that are only tried
        are of no list, and have no number.
        """
        if self._definition.number and number >= self._definition.number:
            raise StateError(
                f"the state was written with list {number} of the register's queries, and the "
                f"newest list in panes-register is {self._definition.number - 1}: one is missing",
                hint="take the checkpoint from a backup, or start with a new one",
            )

    def _taken_up(self, tables: Mapping[str, pa.Table], definition: str, whole: int) -> LiveShard:
        """From its bytes, for the queries of now."""
        live = resumed(self._definition.queries(), self._terms, self._state, tables)
        live.definition, live.whole = self._definition.name, whole
        _noting(live)
        if definition != self._definition.name:
            live.whole = _WHOLE_AFTER_A_CHANGE
            for store in live.queries.stores.values():
                store.evict(live.queries.newest)
        return live

    def _write(self) -> None:
        """Put back the blocks that changed, drop those that no window needs, and remember."""
        live, stores = self._live, self._queries.stores.values()
        if live.whole:
            live.whole -= 1
            self._touch_all()
        for serial in live.blocks.keys() - {store.serial for store in stores}:
            live.blocks.pop(serial).drop_all(self._state)
        for store in stores:
            self._write_blocks(store)
        kept = self._kept.write(self._queries.newest)
        version = uuid4().hex
        self._state[ABOUT] = codec.pack(
            {
                _VERSION: pa.table(
                    {
                        "version": [version],
                        "definition": [live.definition],
                        "number": [self._definition.number],
                        "whole": [live.whole],
                    }
                ),
                BLOCKS: block_table(live.blocks.values()),
                **to_tables(self._queries),
                **kept,
            }
        )
        size = sum(
            store.panes.nbytes + store.panes.key_bytes + store.panes.table_bytes for store in stores
        )
        LIVE.put(version, live, size + len(self._definition.data))

    def _touch_all(self) -> None:
        """All blocks and rows that are there are written anew."""
        self._kept.rewrite()
        for store in self._queries.stores.values():
            blocks = self._live.blocks.get(store.serial)
            if blocks is not None:
                starts = [blocks.start(number) for number in blocks.numbers]
                store.panes.touch(np.array(starts, dtype=np.int64))

    def _write_blocks(self, store: SharedStore) -> None:
        blocks = self._live.blocks.get(store.serial)
        if blocks is None:
            blocks = self._live.blocks[store.serial] = Blocks(str(store.serial), first_span(store))
        touched = store.panes.touched or ()
        changed = {b for starts in touched for b in np.unique(blocks.of(starts)).tolist()}
        store.panes.touched = []
        needed_from = store.needed_from()
        listed = blocks.numbers | changed
        over = {b for b in listed if blocks.start(b + 1) <= needed_from}
        if len(listed - over) > MOST_BLOCKS:
            blocks.drop_all(self._state)
            blocks.span *= 2
            store.panes.touched = [store.panes.fragments.everything().starts]
            store.panes.touched += [
                v.store.everything().starts for v in store.panes.values.values()
            ]
            self._write_blocks(store)
            return
        needed = changed - over
        parcels = split(store, lambda starts, _: blocks.of(starts), needed) if needed else {}
        for number in needed:
            blocks.put(self._state, number, store.panes.pieces, parcels.get(number))
        for number in over:
            blocks.drop(self._state, number)


def _noting(live: LiveShard) -> LiveShard:
    """Panes that change from now on are noted."""
    for store in live.queries.stores.values():
        store.panes.touched = []
    return live


def resumed(
    queries: Queries,
    terms: CheckedOptions,
    state: State,
    about: Mapping[str, pa.Table] | None = None,
) -> LiveShard:
    """Queries with the panes that a state has for them."""
    if about is None:
        data = state.get(ABOUT)
        if data is None:
            raise StateError("the state of the register is missing")
        about = codec.unpack(data)
    queries.promise = Promise(terms.bound())
    written = take_up(queries, about)
    live = LiveShard(queries)
    for row in about[BLOCKS].to_pylist():
        serial = int(row["store"])
        blocks = live.blocks.setdefault(serial, Blocks(row["store"], row["span"]))
        blocks.restore([row])
    for store in queries.stores.values():
        if store.serial in live.blocks:
            _read_blocks(store, written[store.serial], live.blocks[store.serial], state)
    return live


def _read_blocks(store: SharedStore, written: Written, blocks: Blocks, state: State) -> None:
    pieces, values = written.known_to(store)
    for number in blocks.numbers:
        take(store, blocks.fetch(state, number, pieces), pieces, values)


def as_lowered(
    plan: Plan,  # noqa: ARG001 - as a round of answers calls it
    table: pa.Table,
) -> tuple[None, pa.Table]:
    """HAVING and the SELECT's expressions are the host's."""
    return None, table


def first_span(store: SharedStore) -> int:
    """How long a block of panes is at first."""
    longest = max(m.spec.size for shape in store.shapes for m in shape.members)
    return span_under(longest)
