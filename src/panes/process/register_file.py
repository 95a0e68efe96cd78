"""A register of one process in one file: its queries, its panes, and what it remembers.

It is the state of a shard that has all keys (`panes.shards.register_shard`), with every store in
one block, and the rows that are kept for other reasons beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from panes.axis import FOREVER
from panes.errors import StateError
from panes.shards.blocks import MOST_BLOCKS, Blocks, block_table
from panes.shards.register_shard import BLOCKS, first_span
from panes.shards.register_state import to_tables
from panes.shards.state import ABOUT
from panes.sharing.manifest import (
    Manifest,
    QueryEntry,
    failed_entries,
    from_json,
    store_entries,
    to_json,
)
from panes.sharing.parcels import split
from panes.sharing.queries import Queries
from panes.stores import codec
from panes.whole_file import replacing

Signature: TypeAlias = tuple[int, int, int, int] | None
"""Device, inode, time and size of a file."""

_REGISTER, _STATE = "register", "state"
_SCHEMA, _LATE, _REJECTED = "schema", "late", "rejected"
_TAIL, _ARRIVED, _ORDER = "tail", "arrived", "order"


@dataclass(frozen=True, slots=True)
class StreamState:
    """What a file has beside queries and panes: of the stream, and of rows that are kept.

    `ordering` is a query over the column that orders the rows. `tail` are the last rows, with all
    that lie at or after `known_from`. `saves` is how often the register has been saved, this time
    included.
    """

    schema: pa.Schema
    late: pa.Table
    rejected: pa.Table
    arrived: int
    ordering: str | None
    tail: pa.Table | None
    known_from: int | None
    saves: int

    def tables(self) -> dict[str, pa.Table]:
        """As tables."""
        tables = {_SCHEMA: self.schema.empty_table(), _LATE: self.late, _REJECTED: self.rejected}
        known_from = pa.array([self.known_from], pa.int64())
        tables[_ARRIVED] = pa.table(
            {"rows": [self.arrived], "saves": [self.saves], "known_from": known_from}
        )
        tables[_ORDER] = pa.table({"query": [self.ordering]})
        return tables if self.tail is None else {**tables, _TAIL: self.tail}

    @classmethod
    def of(cls, tables: Mapping[str, pa.Table]) -> StreamState:
        """What `tables` gave."""
        [arrived] = tables[_ARRIVED].to_pylist()
        return cls(
            schema=tables[_SCHEMA].schema,
            late=tables[_LATE],
            rejected=tables[_REJECTED],
            arrived=arrived["rows"],
            ordering=tables[_ORDER].column("query")[0].as_py(),
            tail=tables.get(_TAIL),
            known_from=arrived.get("known_from"),
            saves=arrived["saves"],
        )


def write(path: str | Path, queries: Queries, beside: StreamState) -> None:
    """A register as a file, which is there as a whole or not at all."""
    blobs = state_of(queries)
    state = pa.table({"name": list(blobs), "data": pa.array(blobs.values(), pa.large_binary())})
    register = pa.table({"json": [to_json(manifest_of(queries))]})
    data = codec.pack({_REGISTER: register, _STATE: state, **beside.tables()})
    try:
        with replacing(path) as partial:
            partial.write_bytes(data)
    except OSError as error:
        raise StateError(f"the register cannot be saved in {path}: {error.strerror}") from error


def manifest_of(queries: Queries) -> Manifest:
    """The queries of a register, and the numbers that name things in its state."""
    return Manifest(
        stream=queries.stream,
        shards=1,
        last=queries.numbers.last,
        queries=[QueryEntry(a.name, a.text, a.serial, a.deadline) for a in queries.asked.values()],
        stores=store_entries(queries),
        failed=failed_entries(queries),
    )


def signature(path: str | Path) -> Signature:
    """What tells a file from whatever is written there later; None if there is none."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


def require_own(path: str | Path, known: Signature) -> None:
    """Refuse to write over a file that is not as a register has `known` it; an empty one may go."""
    found = signature(path)
    if found in (None, known) or found[-1] == 0:
        return
    try:
        manifest, _, beside = read(path)
    except StateError:
        what = "is no saved register"
    else:
        times = "once" if beside.saves == 1 else f"{beside.saves} times"
        what = f"was saved by another register of `{manifest.stream}` ({times} so far)"
    raise StateError(
        f"{path} {what}, and would be lost",
        hint="save to another file, or say that it may go: reg.save(path, overwrite=True)",
    )


def read(path: str | Path) -> tuple[Manifest, dict[str, bytes], StreamState]:
    """What `write` was given: the queries, the state, and what is beside them."""
    try:
        tables = codec.unpack(Path(path).read_bytes())
    except OSError as error:
        raise StateError(f"no register can be read from {path}: {error.strerror}") from error
    except StateError as error:
        raise StateError(f"{path} is no saved register, or it is damaged: {error}") from error
    if _REGISTER not in tables:
        raise StateError(f"{path} is no saved register")
    manifest = from_json(tables[_REGISTER].column("json")[0].as_py(), str(path))
    state = tables[_STATE].to_pydict()
    blobs = dict(zip(state["name"], state["data"], strict=True))
    return manifest, blobs, StreamState.of(tables)


def state_of(queries: Queries, *, in_blocks: bool = False) -> dict[str, bytes]:
    """Everything that is remembered, and each store in one block, or in several of some length."""
    blobs: dict[str, bytes] = {}
    ledgers = []
    for store in queries.stores.values():
        blocks = Blocks(str(store.serial), first_span(store) if in_blocks else FOREVER)
        while len(parts := split(store, lambda starts, _: blocks.of(starts))) > MOST_BLOCKS:  # noqa: B023
            blocks.span *= 2
        for number, parcel in parts.items():
            blocks.put(blobs, number, store.panes.pieces, parcel)
        ledgers.append(blocks)
    return blobs | {ABOUT: codec.pack({BLOCKS: block_table(ledgers), **to_tables(queries)})}
