"""A register of one process in one file: its queries, its panes, and what it remembers.

It is the state of a shard that has all keys (`panes.shards.register_shard`), with every store in
one block, and the rows that are kept for other reasons beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import NamedTemporaryFile

import numpy as np
import pyarrow as pa

from panes.axis import FOREVER
from panes.errors import StateError
from panes.register.manifest import Kept, KeptQuery, from_json, kept_stores, to_json
from panes.register.parcels import split
from panes.register.queries import Queries
from panes.shards.blocks import Blocks, block_table
from panes.shards.register_shard import BLOCKS
from panes.shards.register_state import to_tables
from panes.shards.state import ABOUT
from panes.stores import codec

_REGISTER, _STATE = "register", "state"


def write(path: str | Path, queries: Queries, tables: Mapping[str, pa.Table]) -> None:
    """A register and some tables as a file, which is there as a whole or not at all."""
    kept = Kept(
        stream=queries.stream,
        shards=1,
        last=queries.numbers.last,
        queries=[KeptQuery(a.name, a.text, a.serial, a.deadline) for a in queries.asked.values()],
        stores=kept_stores(queries),
    )
    blobs = _blobs(queries)
    state = pa.table({"name": list(blobs), "data": pa.array(blobs.values(), pa.large_binary())})
    data = codec.pack({_REGISTER: pa.table({"json": [to_json(kept)]}), _STATE: state, **tables})
    target = Path(path)
    with NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}", delete=False) as file:
        file.write(data)
    Path(file.name).replace(target)


def read(path: str | Path) -> tuple[Kept, dict[str, bytes], dict[str, pa.Table]]:
    """What `write` was given: the queries, the state, and the tables."""
    try:
        tables = codec.unpack(Path(path).read_bytes())
        kept = from_json(tables.pop(_REGISTER).column("json")[0].as_py())
    except (FileNotFoundError, KeyError) as error:
        raise StateError(f"no register is saved in {path}") from error
    state = tables.pop(_STATE).to_pydict()
    return kept, dict(zip(state["name"], state["data"], strict=True)), tables


def _blobs(queries: Queries) -> dict[str, bytes]:
    """The state: everything that is remembered, and each store in one block."""
    blobs: dict[str, bytes] = {}
    ledgers = []
    for store in queries.stores.values():
        parcel = split(store, lambda starts, _: np.zeros_like(starts)).get(0)
        blocks = Blocks(str(store.serial), FOREVER)
        blocks.put(blobs, 0, store.pieces, parcel)
        ledgers.append(blocks)
    return blobs | {ABOUT: codec.pack({BLOCKS: block_table(ledgers), **to_tables(queries)})}
