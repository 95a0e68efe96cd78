"""How rows come: the order, the split into batches, and what of it is late.

The oracle is asked for the rows that count. Which these are is said here once more, from the words
of the contract: a row is late if it lies before what its stream had promised when its batch came,
and a stream promises its greatest position less its lateness.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st

import panes

LATENESS = 15
ROWS = 40
SCHEMA = pa.schema({"at": pa.int64(), "k": pa.int64(), "v": pa.int64(), "id": pa.int64()})
ORDERS = {"in order": 0, "shuffled": LATENESS, "late": 70}
"""By how much a row may be behind."""


@dataclass(frozen=True)
class Arrivals:
    """The rows of each stream, batch by batch."""

    batches: Sequence[Mapping[str, pa.Table]]

    def whole(self) -> dict[str, pa.Table]:
        """All rows of each stream."""
        names = self.batches[0]
        return {name: pa.concat_tables([b[name] for b in self.batches]) for name in names}

    def in_time(self) -> dict[str, pa.Table]:
        """The rows that are not late."""
        return {name: self._told(name, rows) for name, rows in self.whole().items()}

    def _told(self, name: str, rows: pa.Table) -> pa.Table:
        return rows.filter(pc.greater_equal(rows["at"], pa.array(self.promised(name))))

    def promised(self, name: str) -> list[int]:
        """For each row, what its stream had promised when its batch came."""
        found, latest = [], -(10**6)
        for batch in self.batches:
            at = batch[name]["at"].to_pylist()
            found += [latest - LATENESS] * len(at)
            latest = max([latest, *at])
        return found


def answers_while_open(text: str, arrivals: Arrivals) -> pa.Table:
    """The answers of windows over `s` in which a late row counts where it finds them open."""
    rows, promised = arrivals.whole()["s"], pa.array(arrivals.promised("s"))
    everything = panes.oracle(text, s=rows)
    found = [everything.slice(0, 0)]
    for end in sorted(set(everything["window_end"].to_pylist())):
        counts = pc.or_(pc.greater_equal(rows["at"], promised), pc.less(promised, end))
        answers = panes.oracle(text, s=rows.filter(counts))
        found.append(answers.filter(pc.equal(answers["window_end"], end)))
    return pa.concat_tables(found)


def _row(number: int) -> st.SearchStrategy[tuple[int, int, int, int]]:
    """Rows have numbers of their own, so that each can be told from any other."""
    at, k, v = st.integers(-20, 100), st.sampled_from([1, 1, 2, 3]), st.integers(0, 9)
    return st.tuples(at, k, v, st.just(number))


@st.composite
def arrivals(draw: st.DrawFn, streams: Sequence[str], order: str) -> Arrivals:
    """Rows of some streams that come in one way, in any batches."""
    come = {}
    for name in streams:
        rows = [draw(_row(number)) for number in range(draw(st.integers(1, 20)))]
        delays = [draw(st.sampled_from([0, 0, ORDERS[order], ORDERS[order] // 2])) for _ in rows]
        ordered = sorted(zip(rows, delays, strict=True), key=lambda r: (r[0][0] + r[1], r[0]))
        come[name] = [row for row, _ in ordered]
    cuts = sorted(draw(st.lists(st.integers(0, 20), max_size=4)))
    return _split(come, [0, *cuts, 20])


def usual(streams: Sequence[str], order: str) -> Arrivals:
    """The same rows each time, in four batches, for hosts to which a run is dear."""
    come = {}
    for shift, name in enumerate(streams):
        rows = [((37 * n + 11 * shift) % 120 - 20, 1 + n % 3, n * n % 10, n) for n in range(ROWS)]
        late = ORDERS[order]
        come[name] = sorted(rows, key=lambda r: (r[0] + (late if r[3] % 4 == 1 else 0), r))
    return _split(come, [0, 12, 20, 29, ROWS])


def _split(come: Mapping[str, Sequence[tuple[int, ...]]], cuts: Sequence[int]) -> Arrivals:
    tables = {
        name: pa.table([list(c) for c in zip(*rows, strict=True)], schema=SCHEMA)
        for name, rows in come.items()
    }
    edges = pairwise(cuts)
    return Arrivals([{n: t.slice(a, b - a) for n, t in tables.items()} for a, b in edges])
