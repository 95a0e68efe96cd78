"""Windows that a user could take instead of a window index, and the window index among them.

Each holds the same rows, takes in one basic window of them at a time, drops those that leave, and
gives the rows of a value. What it takes is made of a batch outside of the clock.
"""

from __future__ import annotations

import importlib.util
import shutil
import sqlite3
import struct
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections import deque
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa

import panes

BASIC = 60
"""Basic windows in a window, of a minute each."""
MINUTE = 60_000_000
SCHEMA = pa.schema([("ts", pa.timestamp("us")), ("item", pa.int64()), ("price", pa.float64())])
Row = tuple[int, int, float]


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

    def close(self) -> None:  # noqa: B027 - most have nothing to end
        """End what it has started."""


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


class ByRedis(Contender):
    """Redis, on a socket of its own: a list of rows for each value, commands sent together."""

    name = "redis"
    _row = struct.Struct("<qqd")

    def __init__(self) -> None:
        import redis

        self._folder = tempfile.TemporaryDirectory()
        socket = Path(self._folder.name) / "socket"
        options = ("--port", "0", "--unixsocket", str(socket), "--save", "", "--appendonly", "no")
        self._server = subprocess.Popen(
            ["redis-server", *options], stdout=subprocess.DEVNULL, cwd=self._folder.name
        )
        patience = redis.retry.Retry(redis.backoff.ConstantBackoff(0.05), retries=200)
        self._redis: Any = redis.Redis(
            unix_socket_path=str(socket),
            retry=patience,
            retry_on_error=[redis.ConnectionError, FileNotFoundError],
        )
        self._redis.ping()
        self._came: deque[list[str]] = deque()

    def given(self, batch: pa.Table) -> object:
        rows = BySQLite.given(self, batch)  # type: ignore[arg-type]
        assert isinstance(rows, list)
        return [(repr(row[2]), self._row.pack(*row)) for row in rows]

    def slide(self, given: object, number: int) -> None:  # noqa: ARG002 - as all others
        assert isinstance(given, list)
        together = self._redis.pipeline(transaction=False)
        for value, row in given:
            together.rpush(value, row)
        self._came.append([value for value, _ in given])
        if len(self._came) > BASIC:
            for value in self._came.popleft():
                together.lpop(value)
        together.execute()

    def rows(self, value: float) -> object:
        return self._redis.lrange(repr(value), 0, -1)

    def plain(self, found: object) -> list[Row]:
        assert isinstance(found, list)
        return sorted(self._row.unpack(row) for row in found)

    def close(self) -> None:
        self._redis.close()
        self._server.terminate()
        self._server.wait()
        self._folder.cleanup()


CONTENDERS: tuple[type[Contender], ...] = (ByPanes, ByDuckDB, BySQLite, ByPolars, ByDeques)


def contenders() -> tuple[type[Contender], ...]:
    """All that can be run here; Redis only if its server and its Python client are installed."""
    return CONTENDERS if why_no_redis() else (*CONTENDERS, ByRedis)


def why_no_redis() -> str | None:
    """Why Redis is left out; None if it is not."""
    if shutil.which("redis-server") is None:
        return "redis is left out: no redis-server is installed (Debian: redis-server)"
    if importlib.util.find_spec("redis") is None:
        return "redis is left out: its client for Python is not installed (pip install redis)"
    return None
