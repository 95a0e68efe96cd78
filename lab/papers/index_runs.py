"""Windows as *On Indexing Sliding Windows* runs them: full, then rolled over once, and timed.

The indexes are those of `panes.index`, with the paper's fixed numbers of buckets and groups. A
window takes one basic window of rows at a time. Every index is compared with sorted rows before it
is timed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.errors import WrongAnswerError
from panes.index.aux_ring import Aux
from panes.index.basic_windows import BasicWindow, BasicWindows
from panes.index.bw import Bw
from panes.index.db import Db
from panes.index.domain import Domain
from panes.index.form_aggr import AggrForm
from panes.index.form_hash import HashForm
from panes.index.form_list import ListForm
from panes.index.g_index import GIndex
from panes.index.h_index import HIndex
from panes.index.index import DomainIndex, Index
from panes.index.l_index import LIndex
from panes.index.ring import Ring
from panes.index.row_links import RowLinks
from panes.index.row_ring import RowRing
from panes.index.scan import Scan
from panes.index.t_index import TIndex

Integers = NDArray[np.int64]

ROWS = 100_000
BASIC_WINDOWS = (50, 100, 500)
VALUES = (1_000, 10_000)
PURGES = 5
BUCKETS, FORM_BUCKETS = 100, 5
SCHEMA = pa.schema([("value", pa.int64()), ("other", pa.int64())])

DOMAINS: dict[str, Callable[[], Domain]] = {
    "L": LIndex,
    "T": TIndex,
    "H": lambda: HIndex(BUCKETS),
}


class FewBuckets(HashForm):
    """HASH with the paper's five buckets."""

    def __init__(self, rows: RowRing, windows: BasicWindows, domain: Domain) -> None:
        super().__init__(rows, windows, domain, FORM_BUCKETS)


FORMS: dict[str, type[DomainIndex]] = {"LIST": ListForm, "AGGR": AggrForm, "HASH": FewBuckets}
LINKS: dict[str, type[RowLinks]] = {"RING": Ring, "AUX": Aux, "BW": Bw, "DB": Db}

Make = Callable[[Integers], tuple[RowRing, BasicWindows, Index]]


def set_index(domain: str, form: str) -> Make:
    """L-, T- or H-INDEX over a form."""

    def make(_: Integers) -> tuple[RowRing, BasicWindows, Index]:
        pointer = np.int32 if form == "LIST" else np.int64
        rows, windows = RowRing(SCHEMA, pointer), BasicWindows()
        return rows, windows, FORMS[form](rows, windows, DOMAINS[domain]())

    return make


def group_index(groups: int) -> Make:
    """G-INDEX over GROUP."""

    def make(first: Integers) -> tuple[RowRing, BasicWindows, Index]:
        rows, windows = RowRing(SCHEMA, np.int64), BasicWindows()
        return rows, windows, GIndex(rows, windows, first, groups)

    return make


def no_index(_: Integers) -> tuple[RowRing, BasicWindows, Index]:
    """LIST alone."""
    rows, windows = RowRing(SCHEMA, np.int64), BasicWindows()
    return rows, windows, Scan(rows, windows)


def links(kind: str, domain: str = "L") -> Make:
    """A ring index of some kind, over the paper's L-INDEX unless told otherwise."""

    def make(_: Integers) -> tuple[RowRing, BasicWindows, Index]:
        rows, windows = RowRing(SCHEMA, np.int32), BasicWindows()
        return rows, windows, LINKS[kind](rows, windows, DOMAINS[domain]())

    return make


def uniform(count: int, values: int, *, seed: int) -> Integers:
    """Values that are all equally likely."""
    return np.random.default_rng([seed, 3]).integers(0, values, count)


def power_law(count: int, values: int, *, seed: int) -> Integers:
    """Values of which the nth is n times as rare as the first."""
    shares = 1 / np.arange(1, values + 1)
    drawn = np.random.default_rng([seed, 4]).choice(values, count, p=shares / shares.sum())
    return drawn.astype(np.int64)


@dataclass(slots=True)
class Rolled:
    """A window that rolls, and the seconds it has spent on each part of that."""

    make: Make
    basic_windows: int
    rows: RowRing = field(init=False)
    windows: BasicWindows = field(init=False)
    index: Index = field(init=False)
    seconds: dict[str, float] = field(default_factory=lambda: {"in": 0.0, "out": 0.0, "ask": 0.0})
    _slid: int = 0

    def begin(self, first: Integers) -> None:
        """An empty window, whose groups are made from these values."""
        self.rows, self.windows, self.index = self.make(first)

    def slide(self, values: Integers, ask: Callable[[Index], object] | None = None) -> None:
        """One basic window comes, one goes, and a question is asked."""
        arrays = [pa.array(values), pa.array(values[::-1])]
        began = time.process_time()
        first = self.rows.append(arrays, len(values))
        self.index.add(first, values, None)
        summary = self.index.seal()
        self.rows.seal()
        came = time.process_time()
        for window in self.windows.pop_before(self._slid + 1 - self.basic_windows):
            self.index.evict(window)
            self.rows.evict(window.end)
        self._slid += 1
        if self._slid * PURGES % self.basic_windows == 0:
            self.index.purge()
        went = time.process_time()
        if ask is not None:
            ask(self.index)
        answered = time.process_time()
        self.windows.append(BasicWindow(self._slid - 1, first, self.rows.end, summary))
        for part, took in (("in", came - began), ("out", went - came), ("ask", answered - went)):
            self.seconds[part] += took


def measure(
    make: Make,
    values: Integers,
    basic_windows: int,
    *,
    ask: Callable[[Index], object] | None = None,
    rounds: int = 3,
    slides: int | None = None,
) -> dict[str, float]:
    """Nanoseconds per row, coming, going and asking, of the fastest round.

    The first half of the values fills the window, the second rolls it over; `slides` stops early.
    """
    parts = np.array_split(values, 2 * basic_windows)
    best: dict[str, float] = {}
    for _ in range(rounds):
        rolled = Rolled(make, basic_windows)
        rolled.begin(parts[0])
        for part in parts[:basic_windows]:
            rolled.slide(part)
        rolled.seconds = {"in": 0.0, "out": 0.0, "ask": 0.0}
        timed = parts[basic_windows:][:slides]
        for part in timed:
            rolled.slide(part, ask)
        rows = sum(len(part) for part in timed)
        found = {part: took / rows * 1e9 for part, took in rolled.seconds.items()}
        best = {part: min(took, best.get(part, took)) for part, took in found.items()}
    return best


def require_right(makes: Mapping[str, Make]) -> None:
    """Every index holds the values and counts of plain rows, and the rows of each value."""
    for draw in (uniform, power_law):
        values = draw(600, 40, seed=7)
        parts = np.array_split(values, 30)
        for name, make in makes.items():
            rolled = Rolled(make, 10)
            rolled.begin(parts[0])
            for number, part in enumerate(parts):
                rolled.slide(part)
                _compare(name, rolled, np.concatenate(parts[max(number - 9, 0) : number + 1]))


def _compare(name: str, rolled: Rolled, window: Integers) -> None:
    keys, counts = rolled.index.present()
    want, times = np.unique(window, return_counts=True)
    if keys.tolist() != want.tolist() or counts.tolist() != times.tolist():
        raise WrongAnswerError(f"{name} holds other values than the rows of its window")
    found, begins = rolled.index.rows_by_key(keys)
    here = rolled.rows.take(found)["value"].to_numpy()
    if here.tolist() != np.sort(window).tolist() or begins[-1] != len(window):
        raise WrongAnswerError(f"{name} finds other rows than those of its window")
