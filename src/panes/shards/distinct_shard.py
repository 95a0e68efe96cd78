"""One shard of SELECT DISTINCT inside FROM: each row once, while one like it may count.

Equal rows lie at equal positions and go to one shard. The rows that have come are kept in blocks
of positions, so a batch fetches and rewrites only the blocks that its rows lie in; a block behind
what is promised is dropped as it is.

Invariant: a state has a block for each number in its ledger, and the rows of a block are different.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from panes.arrays.columns import column_of
from panes.arrays.key_numbers import KeyNumbers
from panes.arrays.type_names import type_name
from panes.axis import BEGINNING
from panes.planning.terms import CheckedOptions
from panes.progress.promise import Promise
from panes.shards.names import AT, ROWS, column_name
from panes.shards.outcome import ShardOutcome
from panes.shards.packages import Packages
from panes.shards.query_identity import Property, require_same, to_table
from panes.shards.sent_rows import numbered
from panes.shards.state import ABOUT, State
from panes.stores import codec
from panes.stores.state_format import FORMAT, format_table, require_format

_WHAT, _FORMAT = "different rows", 1
_IDENTITY, _PROGRESS, _BLOCKS, _BLOCK = "query", "progress", "blocks", "block"
_PER_WINDOW = 8


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
            "SELECT DISTINCT": Property.of(
                ", ".join(f"{f.name} {type_name(f.type)}" for f in schema)
            ),
            "the number of shards": Property.of(str(shards)),
        }
        self._promise, self._span = Promise(terms.bound()), max(1, (within or 0) // _PER_WINDOW)
        self._blocks: dict[int, tuple[int, int]] = {}  # rows and bytes of each
        data = state.get(ABOUT)
        if data is not None:
            self._restore(codec.unpack(data))

    def take(self, data: Sequence[bytes]) -> ShardOutcome:
        """Take in one batch; gives the rows that are the first of their kind, and their promise."""
        return self.take_opened(Packages.of(data))

    def take_opened(self, packages: Packages) -> ShardOutcome:
        """Take in one batch, whose packages have been unpacked."""
        sent = packages.named(ROWS)
        fresh = self._fresh(pa.concat_tables(sent)) if sent else pa.table({})
        packages.observe([self._promise])
        self._forget()
        self._write()
        given = self._outcome(fresh).beside(packages)
        return replace(given, has_ended=packages.have_ended)

    def finish(self) -> ShardOutcome:
        """The stream has ended. If it goes on after all, its rows are still known."""
        return replace(self._outcome(pa.table({})), has_ended=True)

    def _outcome(self, fresh: pa.Table) -> ShardOutcome:
        return ShardOutcome(
            answers=fresh,
            promised={"left": self._promise.at},
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
            columns = numbered(mine, range(len(self._schema)))
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
        return numbered(codec.unpack(data)[_BLOCK], range(len(self._schema)))

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


def _name(number: int) -> str:
    return f"{_BLOCK}/{number}"


_LEDGER = pa.schema({"block": pa.int64(), "rows": pa.int64(), "bytes": pa.int64()})
