"""A window index against what one would take instead: DuckDB, SQLite, Polars, a dict of deques.

Every contender holds the same window and takes one basic window of rows in at a time, drops those
that leave, and looks values up in between. All of them are first compared with each other, then
timed in turns, step by step, so that a busy moment falls on all.
"""

from __future__ import annotations

import gc
import sqlite3
import statistics
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa

import panes
from panes.bench.measure import Report, Timing

BASIC = 60
"""Basic windows in a window, of a minute each."""
VALUES = 100_000
ROWS_PER_LOOKUP = 100
MINUTE = 60_000_000
SCHEMA = pa.schema([("ts", pa.timestamp("us")), ("item", pa.int64()), ("price", pa.float64())])
Row = tuple[int, int, float]


class Workload:
    """Basic windows of rows, in order, and the values that are looked up in each."""

    def __init__(self, rows: int, values: int = VALUES, seed: int = 1) -> None:
        self.rows, self.values = rows, values
        self._random = np.random.default_rng(seed)

    def batch(self, number: int) -> pa.Table:
        """The rows of one basic window."""
        first = number * MINUTE
        ts = np.sort(self._random.integers(first, first + MINUTE, self.rows))
        item = self._random.integers(0, 1_000, self.rows)
        price = self._random.integers(0, self.values, self.rows).astype(np.float64)
        return pa.table([pa.array(ts).view(SCHEMA[0].type), item, price], schema=SCHEMA)

    def asked(self, count: int) -> list[float]:
        """Values to look up, most of which are there."""
        return [float(v) for v in self._random.integers(0, self.values + 5, count)]


class Contender(ABC):
    """A window of some sort. `given` turns a batch into what it takes, outside of the clock."""

    name = ""

    def given(self, batch: pa.Table) -> object:
        return batch

    @abstractmethod
    def slide(self, given: object, number: int) -> None:
        """Take in the rows of a basic window, and drop those that leave the window."""

    @abstractmethod
    def rows(self, value: float) -> object:
        """The rows of a value, in whatever shape it gives them."""

    @abstractmethod
    def plain(self, found: object) -> list[Row]:
        """Such rows as tuples, to be compared."""


class ByPanes(Contender):
    """Our own, with the index that is chosen for it."""

    name = "panes"

    def __init__(self) -> None:
        self.index = panes.window_index(
            SCHEMA, at="ts", size="1 hour", basic="1 minute", on="price"
        )

    def slide(self, given: object, number: int) -> None:
        self.index.add(given)
        self.index.advance((number + 1) * MINUTE)

    def rows(self, value: float) -> object:
        return self.index.rows(value)

    def plain(self, found: object) -> list[Row]:
        assert isinstance(found, pa.Table)
        columns = [found["ts"].cast(pa.int64()), found["item"], found["price"]]
        return sorted(zip(*(c.to_pylist() for c in columns), strict=True))


class ByDuckDB(Contender):
    """DuckDB in memory: INSERT, DELETE, SELECT."""

    name = "duckdb"

    def __init__(self) -> None:
        self.connection = duckdb.connect()
        self.connection.execute("CREATE TABLE bids (ts BIGINT, item BIGINT, price DOUBLE)")

    def given(self, batch: pa.Table) -> object:
        return batch.set_column(0, "ts", batch["ts"].cast(pa.int64()))

    def slide(self, given: object, number: int) -> None:
        self.connection.register("came", given)
        self.connection.execute("INSERT INTO bids SELECT * FROM came")
        oldest = (number + 1 - BASIC) * MINUTE
        self.connection.execute("DELETE FROM bids WHERE ts < ?", [oldest])

    def rows(self, value: float) -> object:
        return self.connection.execute("SELECT * FROM bids WHERE price = ?", [value]).fetchall()

    def plain(self, found: object) -> list[Row]:
        assert isinstance(found, list)
        return sorted(tuple(row) for row in found)


class BySQLite(Contender):
    """SQLite in memory with an index; rows leave by their number."""

    name = "sqlite"

    def __init__(self) -> None:
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.connection.execute("CREATE TABLE bids (ts INTEGER, item INTEGER, price REAL)")
        self.connection.execute("CREATE INDEX by_price ON bids (price)")
        self._came: deque[int] = deque()
        self._gone = 0

    def given(self, batch: pa.Table) -> object:
        columns = (batch["ts"].cast(pa.int64()), batch["item"], batch["price"])
        return list(zip(*(c.to_pylist() for c in columns), strict=True))

    def slide(self, given: object, number: int) -> None:  # noqa: ARG002 - as all others
        assert isinstance(given, list)
        run = self.connection
        run.execute("BEGIN")
        run.executemany("INSERT INTO bids VALUES (?, ?, ?)", given)
        self._came.append(len(given))
        if len(self._came) > BASIC:
            self._gone += self._came.popleft()
            run.execute("DELETE FROM bids WHERE rowid <= ?", (self._gone,))
        run.execute("COMMIT")

    def rows(self, value: float) -> object:
        return self.connection.execute("SELECT * FROM bids WHERE price = ?", (value,)).fetchall()

    def plain(self, found: object) -> list[Row]:
        assert isinstance(found, list)
        return sorted(found)


class ByPolars(Contender):
    """Polars: the window is a frame, a look-up a filter."""

    name = "polars"

    def __init__(self) -> None:
        self.frame = pl.DataFrame(schema={"ts": pl.Int64, "item": pl.Int64, "price": pl.Float64})

    def given(self, batch: pa.Table) -> object:
        return pl.from_arrow(batch.set_column(0, "ts", batch["ts"].cast(pa.int64())))

    def slide(self, given: object, number: int) -> None:
        oldest = (number + 1 - BASIC) * MINUTE
        self.frame = pl.concat([self.frame, given]).filter(pl.col("ts") >= oldest).rechunk()

    def rows(self, value: float) -> object:
        return self.frame.filter(pl.col("price") == value)

    def plain(self, found: object) -> list[Row]:
        return sorted(found.rows())  # type: ignore[attr-defined]


class ByDeques(Contender):
    """A dict of deques: for each value its rows, the oldest first."""

    name = "deques"

    def __init__(self) -> None:
        self.of: dict[float, deque[Row]] = {}
        self.came: deque[list[Row]] = deque()

    def given(self, batch: pa.Table) -> object:
        return BySQLite.given(self, batch)  # type: ignore[arg-type]

    def slide(self, given: object, number: int) -> None:  # noqa: ARG002 - as all others
        assert isinstance(given, list)
        for row in given:
            self.of.setdefault(row[2], deque()).append(row)
        self.came.append(given)
        if len(self.came) > BASIC:
            for row in self.came.popleft():
                rows = self.of[row[2]]
                rows.popleft()
                if not rows:
                    del self.of[row[2]]

    def rows(self, value: float) -> object:
        return list(self.of.get(value, ()))

    def plain(self, found: object) -> list[Row]:
        assert isinstance(found, list)
        return sorted(found)


CONTENDERS: tuple[type[Contender], ...] = (ByPanes, ByDuckDB, BySQLite, ByPolars, ByDeques)


def run(rows: int, repeat: int, say: Callable[[str], None]) -> Report:
    """Check, then time, all contenders. The larger window has twice `rows` rows."""
    report = Report("index", f"panes bench index --rows {rows} --repeat {repeat}")
    say("checking that all contenders find the same rows")
    check()
    for window in (rows // 5, rows * 2):
        say(f"a window of {window:,} rows")
        _keep(report, window, max(repeat, 3))
    say(f"the mix: one look-up for {ROWS_PER_LOOKUP} rows")
    _mix(report, rows // 5, repeat)
    return report


def check() -> None:
    """All contenders hold the same window after every step, and find the same rows in it."""
    work = Workload(40, values=50)
    contenders = [kind() for kind in CONTENDERS]
    for number in range(2 * BASIC):
        batch = work.batch(number)
        for contender in contenders:
            contender.slide(contender.given(batch), number)
        for value in work.asked(5):
            found = [c.plain(c.rows(value)) for c in contenders]
            for contender, rows in zip(contenders[1:], found[1:], strict=True):
                if rows != found[0]:
                    raise AssertionError(f"{contender.name} and panes differ at {value}")


def _keep(report: Report, window: int, repeat: int) -> None:
    """How fast rows come and go, what a slide and what questions cost, in a full window."""
    work, ours = Workload(window // BASIC), ByPanes()
    point = f"{window:,} rows"
    for number in range(BASIC):
        ours.slide(work.batch(number), number)
    came, slid, asked = [], [], _Asked(ours, work)
    for number in range(BASIC, BASIC + 4 * repeat):
        batch = work.batch(number)
        gc.collect()
        begin = time.perf_counter()
        ours.index.add(batch)
        added = time.perf_counter()
        ours.index.advance((number + 1) * MINUTE)
        done = time.perf_counter()
        came.append(done - begin)
        slid.append(done - added)
        asked.ask()
    report.timings.append(Timing("panes in and out", point, tuple(came), f"{work.rows} rows"))
    report.timings.append(Timing("panes slide", point, tuple(slid), f"{work.rows} rows"))
    rate = work.rows / statistics.median(came) / 1e6
    report.bar(f"{point}: in and out 10 M rows/s", f"{rate:.1f} M rows/s", met=rate >= 10)
    slide = statistics.median(slid) * 1e3
    report.bar(f"{point}: a slide at most 5 ms", f"{slide:.2f} ms", met=slide <= 5)
    for what, most, unit, found in asked.medians():
        is_rate = unit.endswith("/s")
        met = found >= most if is_rate else found <= most
        least = "at least" if is_rate else "at most"
        report.bar(f"{point}: {what} {least} {most:g} {unit}", f"{found:.3g} {unit}", met=met)


class _Asked:
    """What questions cost, each asked anew after every slide."""

    def __init__(self, ours: ByPanes, work: Workload) -> None:
        self._ours, self._work = ours, work
        self._seconds: dict[str, list[float]] = {}

    def ask(self) -> None:
        index, values = self._ours.index, self._work.asked(500)
        many = np.array(self._work.asked(100_000))
        # The first look at the values in order, after a slide, is the one that costs.
        self._time("DISTINCT", index.values)
        self._time("top-k", lambda: index.top(10))
        self._time("quantile", lambda: index.quantiles([0.5]))
        self._time("a count", lambda: [index.count(v) for v in values])
        self._time("the rows of a value", lambda: [index.rows(v) for v in values])
        self._time("look-ups in a batch", lambda: index.count(many))

    def _time(self, what: str, work: Callable[[], object]) -> None:
        begin = time.perf_counter()
        work()
        self._seconds.setdefault(what, []).append(time.perf_counter() - begin)

    def medians(self) -> Iterator[tuple[str, float, str, float]]:
        """Each question, its bar, the bar's unit, and what was measured."""
        for what, seconds in self._seconds.items():
            median = statistics.median(seconds)
            if what in ("a count", "the rows of a value"):
                yield what, 20.0, "us", median / 500 * 1e6
            elif what == "look-ups in a batch":
                yield what, 5.0, "M/s", 0.1 / median
            else:
                yield what, 1.0, "ms", median * 1e3


def _mix(report: Report, window: int, repeat: int) -> None:
    """Rows, evictions and look-ups together, of all contenders in turns."""
    work = Workload(window // BASIC)
    contenders = [kind() for kind in CONTENDERS]
    for number in range(BASIC):
        batch = work.batch(number)
        for contender in contenders:
            contender.slide(contender.given(batch), number)
    seconds: dict[str, list[float]] = {c.name: [] for c in contenders}
    for number in range(BASIC, BASIC + repeat):
        batch, asked = work.batch(number), work.asked(work.rows // ROWS_PER_LOOKUP)
        for contender in contenders:
            given = contender.given(batch)
            gc.collect()
            begin = time.perf_counter()
            contender.slide(given, number)
            for value in asked:
                contender.rows(value)
            seconds[contender.name].append(time.perf_counter() - begin)
    for name, took in seconds.items():
        report.timings.append(Timing(name, "the mix", tuple(took), f"{work.rows} rows"))
    ours = statistics.median(seconds["panes"])
    for name, least in (("duckdb", 100), ("sqlite", 10), ("polars", 1), ("deques", 1)):
        ratio = statistics.median(seconds[name]) / ours
        report.bar(f"the mix: at least {least} x {name}", f"{ratio:.1f} x", met=ratio >= least)
