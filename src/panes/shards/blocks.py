"""Blocks: runs of neighbouring panes that a host keeps together, and the ledger of them.

A window should be made of several blocks, so that a batch rewrites only the newest few; and there
should be few of them, since a host fetches each one by itself.

Invariant: a ledger lists exactly the blocks that its state has, each a parcel that is not empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.aggregates.aggregate import Piece
from panes.axis import FOREVER
from panes.errors import StateError
from panes.shards.recall import Recall, digest
from panes.shards.state import State
from panes.stores import codec
from panes.stores.parcel import Parcel, from_tables, to_tables
from panes.windows.spec import Landmark, PanedSpec

MOST_BLOCKS = 64
_PER_WINDOW = 8


def block_span(spec: PanedSpec) -> int:
    """How long a block is at first, a whole number of slides; a landmark keeps one block.

    >>> from panes.windows.spec import Sliding
    >>> block_span(Sliding(size=3600, slide=60))
    480
    """
    if isinstance(spec, Landmark):
        return FOREVER
    slides = -(-spec.size // (spec.slide * _PER_WINDOW))
    return slides * spec.slide


def span_under(longest: int) -> int:
    """How long a block is at first under windows of many sizes, the longest of which is given."""
    return max(1, -(-longest // _PER_WINDOW))


@dataclass(frozen=True, slots=True)
class Block:
    """What is known of a block without fetching it. The `digest` names its bytes."""

    partials: int
    nbytes: int
    digest: bytes | None = None


class Blocks:
    """The ledger of one store's blocks: block b has the panes in ``origin + [b, b + 1) * span``.

    With a `recall`, what this process has read or written lately is not fetched again.
    """

    def __init__(
        self, store: str, span: int, *, origin: int = 0, recall: Recall[Parcel] | None = None
    ) -> None:
        self.store, self.span = store, span
        self._origin, self._recall = origin, recall
        self._known: dict[int, Block] = {}

    def __len__(self) -> int:
        return len(self._known)

    @property
    def numbers(self) -> set[int]:
        """The numbers of all blocks."""
        return set(self._known)

    @property
    def partials(self) -> int:
        """How many partials all blocks have."""
        return sum(block.partials for block in self._known.values())

    @property
    def nbytes(self) -> int:
        """How many bytes all blocks take."""
        return sum(block.nbytes for block in self._known.values())

    def of(self, starts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The block that each pane belongs to, by where it begins."""
        return (starts - self._origin) // self.span

    def number(self, at: int) -> int:
        """The block that a position belongs to."""
        return (at - self._origin) // self.span

    def start(self, number: int) -> int:
        """Where a block begins; the block before it ends there."""
        return self._origin + number * self.span

    def fetch(self, state: State, number: int, pieces: Sequence[Piece | None]) -> Parcel:
        """A block, written with these pieces; those that are None are left out."""
        block = self._known[number]
        if self._recall is not None and block.digest is not None:
            recalled = self._recall.get(block.digest)
            if recalled is not None:
                return recalled
        data = state.get(self._name(number))
        parcel = None if data is None else from_tables(pieces, codec.unpack(data))
        if parcel is None:
            raise StateError(f"block {number} of {self.store} is missing from the state")
        self._remember(block, parcel)
        return parcel

    def put(
        self, state: State, number: int, pieces: Sequence[Piece], parcel: Parcel | None
    ) -> None:
        """Write a block anew; one without anything in it is dropped."""
        if parcel is None or not len(parcel):
            self.drop(state, number)
            return
        data = codec.pack(to_tables(pieces, parcel))
        state[self._name(number)] = data
        name = None if self._recall is None else digest(data)
        self._known[number] = Block(len(parcel), len(data), name)
        self._remember(self._known[number], parcel)

    def drop(self, state: State, number: int) -> None:
        """Forget a block, if there is one."""
        if self._known.pop(number, None) is not None:
            del state[self._name(number)]

    def drop_all(self, state: State) -> None:
        """Forget all blocks."""
        for number in self.numbers:
            self.drop(state, number)

    def restore(self, rows: Iterable[dict[str, object]]) -> None:
        """List the blocks that `block_table` wrote for this store."""
        for row in rows:
            known = {name: row[name] for name in ("partials", "nbytes", "digest")}
            self._known[int(str(row["block"]))] = Block(**known)  # type: ignore[arg-type]
            self.span = int(str(row["span"]))

    def rows(self) -> list[dict[str, object]]:
        """What is written of each block."""
        of = {"store": self.store, "span": self.span}
        return [{**of, "block": n, **asdict(block)} for n, block in self._known.items()]

    def _name(self, number: int) -> str:
        return f"{self.store}/{number}"

    def _remember(self, block: Block, parcel: Parcel) -> None:
        if self._recall is not None and block.digest is not None:
            self._recall.put(block.digest, parcel, block.nbytes)


def block_table(ledgers: Iterable[Blocks]) -> pa.Table:
    """The ledgers of all stores, to be written into a state."""
    rows = [row for blocks in ledgers for row in blocks.rows()]
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


_SCHEMA = pa.schema(
    {
        "store": pa.string(),
        "span": pa.int64(),
        "block": pa.int64(),
        "partials": pa.int64(),
        "nbytes": pa.int64(),
        "digest": pa.binary(),
    }
)
