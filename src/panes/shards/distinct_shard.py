"""One shard of SELECT DISTINCT inside FROM: each row once, while one like it may count.

Equal rows lie at equal positions and go to one shard. The rows that have come are kept in blocks
of positions, so a batch fetches and rewrites only the blocks that its rows lie in; a block behind
what is promised is dropped as it is.

Invariant: a state has a block for each number in its ledger, and the rows of a block are different.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.arrays.columns import column_of
from panes.arrays.key_numbers import KeyNumbers
from panes.arrays.type_names import type_name
from panes.axis import BEGINNING
from panes.planning.terms import CheckedOptions
from panes.progress.promise import Promise
from panes.shards.marks import have_ended, observe_marks, read_marks
from panes.shards.names import ASIDE, AT, ENDED, REJECTED, ROW, ROWS, column_name
from panes.shards.query_filler import rows_by_shard
from panes.shards.query_identity import Property, require_same, to_table
from panes.shards.state import ABOUT, State
from panes.stores import codec
from panes.stores.state_format import FORMAT, format_table, require_format

_WHAT, _FORMAT = "different rows", 1
_IDENTITY, _PROGRESS, _BLOCKS, _BLOCK = "query", "progress", "blocks", "block"
_PER_WINDOW = 8
_NOTHING = pa.Table.from_batches([], pa.schema({"reason": pa.string()}))


@dataclass(slots=True)
class DistinctFiller:
    """Sends rows to the shard of rows like them. `column` gives their positions."""

    column: str | None
    schema: pa.Schema
    _sent: list[pa.Table] = field(default_factory=list)

    def see(self, table: pa.Table, source: NDArray[np.int32], at: NDArray[np.int64]) -> None:
        """Rows that do not pass are not among the different ones."""

    def take(
        self,
        table: pa.Table,
        source: NDArray[np.int32],  # noqa: ARG002 - there is one
        at: NDArray[np.int64],
    ) -> None:
        """Keep rows until it is known which shards there are."""
        columns = {column_name(i): column_of(table, column_name(i)).cast(f.type)
                   for i, f in enumerate(self.schema)}  # fmt: skip
        whole = {ROW: column_of(table, ROW)} if ROW in table.column_names else {}
        self._sent.append(pa.table({AT: pa.array(at), **columns, **whole}))

    def parts(self, shards: int) -> dict[int, dict[str, pa.Table]]:
        """The rows of each shard that has any."""
        if not self._sent:
            return {}
        rows = pa.concat_tables(self._sent).combine_chunks()
        mine = rows_by_shard(_values(rows, self.schema), len(rows), shards)
        return {shard: {ROWS: rows.filter(pa.array(which))} for shard, which in mine.items()}


@dataclass(frozen=True, slots=True)
class DistinctOutcome:
    """What a batch gave: rows that are new, in numbered columns; rows set aside, and sizes.

    `promise` is what was promised of rows to come; `ENDED`: none will.
    """

    answers: pa.Table
    rejected: pa.Table
    aside: tuple[pa.Table, ...]
    promise: int
    progress: int
    partials: int
    nbytes: int
    late: tuple[pa.Table, ...] = ()


class DistinctShard:
    """A shard's part of the different rows of one stream, for one batch.

    Rows are remembered until they lie further than `within` behind what is promised; None: always.
    """

    def __init__(
        self,
        schema: pa.Schema,
        within: int | None,
        terms: CheckedOptions,
        state: State,
        *,
        shards: int,
    ) -> None:
        self._schema, self._within, self._state = schema, within, state
        self._same = {
            "SELECT DISTINCT": _property(
                ", ".join(f"{f.name} {type_name(f.type)}" for f in schema)
            ),
            "the number of shards": _property(str(shards)),
        }
        self._promise, self._span = Promise(terms.bound()), max(1, (within or 0) // _PER_WINDOW)
        self._blocks: dict[int, tuple[int, int]] = {}  # rows and bytes of each
        data = state.get(ABOUT)
        if data is not None:
            self._restore(codec.unpack(data))

    def take(self, packages: Sequence[bytes]) -> DistinctOutcome:
        """Take in one batch; gives the rows that are the first of their kind."""
        opened = [codec.unpack(data) for data in packages]
        seen = [read_marks(tables) for tables in opened]
        sent = [tables[ROWS] for tables in opened if ROWS in tables]
        fresh = self._fresh(pa.concat_tables(sent)) if sent else pa.table({})
        for marks in seen:
            observe_marks(marks, [self._promise])
        self._forget()
        self._write()
        return self._outcome(
            fresh,
            pa.concat_tables([t[REJECTED] for t in opened if REJECTED in t] or [_NOTHING]),
            tuple(tables[ASIDE] for tables in opened if ASIDE in tables),
            ENDED if have_ended(seen) else self._promise.at,
        )

    def finish(self) -> DistinctOutcome:
        """The stream has ended. If it goes on after all, its rows are still known."""
        return self._outcome(pa.table({}), _NOTHING, (), ENDED)

    def _outcome(
        self, fresh: pa.Table, rejected: pa.Table, aside: tuple[pa.Table, ...], promise: int
    ) -> DistinctOutcome:
        return DistinctOutcome(
            answers=fresh,
            rejected=rejected,
            aside=aside,
            promise=promise,
            progress=self._promise.at,
            partials=sum(rows for rows, _ in self._blocks.values()),
            nbytes=sum(nbytes for _, nbytes in self._blocks.values()),
        )

    def _fresh(self, rows: pa.Table) -> pa.Table:
        """The rows that are new; they are remembered."""
        at = column_of(rows, AT).to_numpy()
        block, found = at // self._span, []
        for number in np.unique(block).tolist():
            mine = rows.filter(pa.array(block == number))
            known = self._known(number)
            columns = _values(mine, self._schema)
            both = [pa.concat_arrays(pair) for pair in zip(known, columns, strict=True)]
            count = len(known[0])
            numbers = KeyNumbers([c.type for c in both]).encode(both, count + len(mine))
            _, first = np.unique(numbers, return_index=True)
            new = np.sort(first[first >= count])
            if len(new):
                found.append(mine.take(pa.array(new - count)))
                kept = pa.array(np.concatenate([np.arange(count), new]))
                self._put(number, [c.take(kept) for c in both])
        return pa.concat_tables(found).drop_columns([AT]) if found else pa.table({})

    def _known(self, number: int) -> list[pa.Array]:
        """The columns of the rows of a block."""
        data = self._state.get(_name(number)) if number in self._blocks else None
        if data is None:
            return [pa.array([], f.type) for f in self._schema]
        return _values(codec.unpack(data)[_BLOCK], self._schema)

    def _put(self, number: int, columns: Sequence[pa.Array]) -> None:
        names = [column_name(i) for i in range(len(columns))]
        data = codec.pack({_BLOCK: pa.table(list(columns), names=names)})
        self._state[_name(number)] = data
        self._blocks[number] = len(columns[0]), len(data)

    def _forget(self) -> None:
        """Drop blocks of rows that no window can count again."""
        if self._within is None or self._promise.at == BEGINNING:
            return
        first = (self._promise.at - self._within) // self._span
        for number in [n for n in self._blocks if n < first]:
            del self._blocks[number]
            del self._state[_name(number)]

    # The state

    def _restore(self, tables: dict[str, pa.Table]) -> None:
        require_format(tables, _WHAT, _FORMAT)
        require_same(tables[_IDENTITY], self._same)
        [about] = tables[_PROGRESS].to_pylist()
        self._promise.at, self._span = about["promise"], about["span"]
        for row in tables[_BLOCKS].to_pylist():
            self._blocks[row["block"]] = row["rows"], row["bytes"]

    def _write(self) -> None:
        about = {"promise": [self._promise.at], "span": [self._span]}
        numbers = sorted(self._blocks)
        ledger = {"block": numbers, "rows": [self._blocks[n][0] for n in numbers],
                  "bytes": [self._blocks[n][1] for n in numbers]}  # fmt: skip
        self._state[ABOUT] = codec.pack(
            {
                FORMAT: format_table(_WHAT, _FORMAT),
                _IDENTITY: to_table(self._same),
                _PROGRESS: pa.table(about),
                _BLOCKS: pa.table(ledger, schema=_LEDGER),
            }
        )


def _values(rows: pa.Table, schema: pa.Schema) -> list[pa.Array]:
    """The columns by which rows are different."""
    return [column_of(rows, column_name(i)) for i in range(len(schema))]


def _name(number: int) -> str:
    return f"{_BLOCK}/{number}"


def _property(text: str) -> Property:
    return Property(text, text)


_LEDGER = pa.schema({"block": pa.int64(), "rows": pa.int64(), "bytes": pa.int64()})
