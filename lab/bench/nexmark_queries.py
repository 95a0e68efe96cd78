"""The queries of Nexmark whose windows our language can express, as every contender asks them.

Windows are those of the suite: ten seconds, for hot items every two. What the suite leaves open
where several are equal is settled here for all contenders: of the hottest items the smallest, of
the highest bids the greatest auction and the greatest bidder.

Left out, and why: `LEFT_OUT`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import duckdb
import polars as pl
import pyarrow as pa

import panes
from lab.bench.nexmark_stream import Nexmark

LEFT_OUT = {
    "q0 to q2": "they have no window: rows are passed on, converted or filtered one by one",
    "q3": "its join has no window, so both sides would be kept for ever",
    "q10": "it writes the stream to files",
    "q11": "its windows are sessions, which have no panes",
    "q13, q14": "they have no window: a look-up and a function of single rows",
    "q15 to q17": "they count by calendar day, and this stream lasts minutes",
    "q18 to q22": "they keep the last or the first rows of keys for ever, or change single rows",
}
_ROWS = "SELECT *, epoch_us(ts) AS us FROM"


@dataclass(frozen=True, slots=True)
class Contest:
    """One query: what it asks, of which streams, and how every contender is asked."""

    name: str
    asks: str
    streams: tuple[str, ...]
    text: str
    duckdb: str
    polars: Callable[[Nexmark], pl.DataFrame] | None = None

    def rows(self, data: Nexmark) -> int:
        """How many rows are read."""
        return sum(len(getattr(data, name)) for name in self.streams)

    def by_panes(self, data: Nexmark) -> pa.Table:
        """Our own."""
        return panes.sql(self.text, **{name: getattr(data, name) for name in self.streams})

    def by_duckdb(self, data: Nexmark) -> pa.Table:
        """DuckDB, over the same Arrow tables."""
        connection = duckdb.connect()
        connection.execute("SET TimeZone = 'UTC'")
        for name in self.streams:
            connection.register(name, getattr(data, name))
        return connection.sql(self.duckdb).to_arrow_table()

    def by_polars(self, data: Nexmark) -> pa.Table:
        """Polars, where it has a natural way to say it."""
        assert self.polars is not None
        return self.polars(data).to_arrow()


def _polars_q7(data: Nexmark) -> pl.DataFrame:
    is_best = pl.col("price") == pl.col("price").max()
    windows = pl.DataFrame(data.bids).group_by_dynamic("ts", every="10s", closed="left")
    best = pl.col("auction", "bidder").filter(is_best).max()
    return _with_edges(windows.agg(pl.col("price").max(), best))


def _polars_q8(data: Nexmark) -> pl.DataFrame:
    window = pl.col("ts").dt.truncate("10s")
    sellers = pl.DataFrame(data.auctions).lazy().select("seller", window)
    persons = pl.DataFrame(data.persons).lazy().select("id", "name", window)
    found = persons.join(sellers, left_on=["id", "ts"], right_on=["seller", "ts"], how="semi")
    return _with_edges(found.collect())


def _polars_q12(data: Nexmark) -> pl.DataFrame:
    windows = pl.DataFrame(data.bids).group_by_dynamic(
        "ts", every="10s", closed="left", group_by="bidder"
    )
    return _with_edges(windows.agg(pl.len().cast(pl.Int64).alias("n")))


def _with_edges(answers: pl.DataFrame) -> pl.DataFrame:
    end = (pl.col("ts") + pl.duration(seconds=10)).alias("window_end")
    return answers.with_columns(pl.col("ts").alias("window_start"), end).drop("ts")


def _edges(window: str, size: int, slide: int) -> str:
    """SQL for the edges of a window that is numbered by its slide."""
    return (
        f"make_timestamp(({window} + 1) * {slide}000000 - {size}000000) AS window_start, "
        f"make_timestamp(({window} + 1) * {slide}000000) AS window_end"
    )


_WON = """
    SELECT a.category AS category, a.seller AS seller, a.expires AS expires, max(b.price) AS price
    FROM (SELECT id, category, seller, reserve, ts AS opened, expires FROM auctions) AS a
    JOIN bids AS b ON a.id = b.auction
    AND b.ts BETWEEN a.expires - INTERVAL '20 seconds' AND a.expires
    WHERE b.ts >= a.opened AND b.ts < a.expires AND b.price >= a.reserve
    GROUP BY a.id, a.category, a.seller, a.expires
"""
"""Winning bids in the order in which auctions expire, which is when they are known."""
_DUCKDB_WON = """
    SELECT a.category, a.seller, a.expires, max(b.price) AS price
    FROM auctions AS a JOIN bids AS b ON a.id = b.auction AND b.ts >= a.ts AND b.ts < a.expires
    WHERE b.price >= a.reserve GROUP BY a.id, a.category, a.seller, a.expires
"""
CONTESTS = (
    Contest(
        "q4",
        "of each category, the average of the bids that won in every ten seconds",
        ("auctions", "bids"),
        f"SELECT category, avg(price) AS price FROM ({_WON}) [TUMBLING 10 seconds WATTR expires] "
        "GROUP BY category",
        f"""
        SELECT {_edges("w", 10, 10)}, category, avg(price) AS price
        FROM (SELECT *, epoch_us(expires) // 10000000 AS w FROM ({_DUCKDB_WON}))
        GROUP BY w, category
        """,
    ),
    Contest(
        "q5",
        "hot items: the auction with most bids in ten seconds, every two",
        ("bids",),
        "SELECT top_k(auction, 1) AS hot FROM bids [RANGE 10 seconds SLIDE 2 seconds WATTR ts]",
        f"""
        WITH counted AS (
            SELECT w, auction, count(*) AS n FROM (
                SELECT auction, unnest(generate_series(us // 2000000, us // 2000000 + 4)) AS w
                FROM ({_ROWS} bids)
            ) GROUP BY w, auction
        )
        SELECT {_edges("w", 10, 2)}, arg_min(auction, (-n, auction)) AS item, max(n) AS count
        FROM counted GROUP BY w
        """,
    ),
    Contest(
        "q6",
        "of each seller, the average of the last ten bids that won",
        ("auctions", "bids"),
        f"SELECT seller, avg(price) AS price FROM ({_WON}) "
        "[RANGE 10 ROWS SLIDE 1 ROW WATTR expires PA seller] GROUP BY seller",
        f"""
        SELECT row_number() OVER sold - 10 AS window_start, row_number() OVER sold AS window_end,
               seller, avg(price) OVER (sold ROWS 9 PRECEDING) AS price
        FROM ({_DUCKDB_WON}) WINDOW sold AS (PARTITION BY seller ORDER BY expires)
        """,
    ),
    Contest(
        "q7",
        "the highest bid of every ten seconds",
        ("bids",),
        "SELECT max(price) AS price, max_by(auction, price) AS auction, "
        "max_by(bidder, price) AS bidder FROM bids [TUMBLING 10 seconds WATTR ts]",
        f"""
        SELECT {_edges("us // 10000000", 10, 10)}, max(price) AS price,
               arg_max(auction, (price, auction)) AS auction,
               arg_max(bidder, (price, bidder)) AS bidder
        FROM ({_ROWS} bids) GROUP BY us // 10000000
        """,
        _polars_q7,
    ),
    Contest(
        "q8",
        "new users: persons who registered and opened an auction in the same ten seconds",
        ("persons", "auctions"),
        "SELECT p.id, p.name FROM persons AS p LEFT SEMI JOIN auctions AS a "
        "ON p.id = a.seller [TUMBLING 10 seconds WATTR ts]",
        f"""
        SELECT {_edges("p.us // 10000000", 10, 10)}, p.id, p.name FROM ({_ROWS} persons) AS p
        SEMI JOIN ({_ROWS} auctions) AS a
        ON p.id = a.seller AND p.us // 10000000 = a.us // 10000000
        """,
        _polars_q8,
    ),
    Contest(
        "q9",
        "winning bids: of each auction, the highest bid until it expires",
        ("auctions", "bids"),
        "SELECT a.id, a.ts, max(b.price) AS price, max_by(b.bidder, b.price) AS bidder "
        "FROM auctions AS a JOIN bids AS b ON a.id = b.auction "
        "AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '20 seconds' "
        "WHERE b.ts < a.expires AND b.price >= a.reserve GROUP BY a.id, a.ts",
        """
        SELECT a.id, a.ts, max(b.price) AS price, arg_max(b.bidder, (b.price, b.bidder)) AS bidder
        FROM auctions AS a JOIN bids AS b ON a.id = b.auction AND b.ts BETWEEN a.ts AND a.expires
        WHERE b.ts < a.expires AND b.price >= a.reserve GROUP BY a.id, a.ts
        """,
    ),
    Contest(
        "q12",
        "how many bids each user made in every ten seconds, by event time",
        ("bids",),
        "SELECT bidder, count(*) AS n FROM bids [TUMBLING 10 seconds WATTR ts] GROUP BY bidder",
        f"""
        SELECT {_edges("us // 10000000", 10, 10)}, bidder, count(*) AS n
        FROM ({_ROWS} bids) GROUP BY us // 10000000, bidder
        """,
        _polars_q12,
    ),
)
