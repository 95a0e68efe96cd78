"""What a live page costs the query beside it.

A stream comes in batches, once every so often, so that a million rows come in a second; or as fast
as they are taken. A reader in a process of its own asks for snapshots as a page does. What is
measured is processor time of the process that pushes and serves, all its threads together, for the
same rows with the page and without it: other work on the machine changes it little.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

import pyarrow as pa

import panes
from lab.bench.measure import Report
from panes.live.feed import Look
from panes.live.query_feed import QueryFeed
from panes.sample_streams import bids

TEXT = (
    "SELECT item, max(price) AS high, count(*) AS n "
    "FROM bids [RANGE 1 hour SLIDE 1 minute WATTR ts] GROUP BY item"
)
BATCH = 20_000
PACE = 1_000_000
MOST_COST = 0.03
_POLL = 0.5
_MOST_PACED = 3_000_000
_READER = f"""
import http.client, sys, time
netloc, path = sys.argv[1:]
asked = 0
sys.stdout.write("ready\\n"); sys.stdout.flush()
while True:
    try:
        connection = http.client.HTTPConnection(netloc, timeout=10)
        connection.request("GET", path)
        connection.getresponse().read()
    except OSError:
        break
    time.sleep({_POLL})
"""


STEPS = 3
"""How often `run` says what it does."""


def run(rows: int, repeat: int, say: Callable[[str], None]) -> Report:
    """Check that a page changes no answer, then time a paced stream and one at full speed."""
    report = Report("live", f"panes bench live --rows {rows} --repeat {repeat}")
    say("checking that answers are the same with the page")
    few = _batches(bids(100_000))
    plain, watched = _answers(few, has_page=False), _answers(few, has_page=True)
    if not watched.equals(plain):
        raise AssertionError("answers with a page differ from those without")
    paced = _batches(bids(min(rows, _MOST_PACED)))
    say(f"timing a stream of {PACE:,} rows a second, with and without the page, in turns")
    seconds = _in_turns(paced, repeat, every=BATCH / PACE)
    for contender, each in seconds.items():
        report.add(contender, f"{PACE:,} rows/s", each, sum(map(len, paced)))
    stream = sum(map(len, paced)) / PACE
    extra = _difference(seconds) / stream
    what = f"at {PACE:,} rows/s, the page takes at most {MOST_COST:.0%} of a core"
    report.bar(what, f"{extra:.2%}", met=extra <= MOST_COST)
    say("timing full speed, with and without the page, in turns")
    whole = _batches(bids(rows))
    seconds = _in_turns(whole, repeat, every=0)
    for contender, each in seconds.items():
        report.add(contender, "full speed", each, rows)
    share = _difference(seconds) / statistics.median(seconds["alone"])
    report.bar("at full speed, for comparison", f"{share:.2%} more work", met=True)
    snapshot = _snapshot_seconds(paced)
    report.bar("a snapshot of this query, for comparison", f"{snapshot * 1e3:.1f} ms", met=True)
    return report


def _difference(seconds: dict[str, tuple[float, ...]]) -> float:
    """How much longer with the page, in the median of runs that followed one another."""
    pairs = zip(seconds["with the page"], seconds["alone"], strict=True)
    return statistics.median(beside - alone for beside, alone in pairs)


def _in_turns(
    batches: list[pa.Table], repeat: int, *, every: float
) -> dict[str, tuple[float, ...]]:
    """Processor seconds with the page and without, one after the other."""
    seconds: dict[str, list[float]] = {"alone": [], "with the page": []}
    for turn in range(repeat + 1):  # the first one warms everything up
        for contender, each in seconds.items():
            query = _opened()
            with _page(query) if contender != "alone" else nullcontext():
                busy = _pushed(query, batches, every)
            if turn:
                each.append(busy)
    return {contender: tuple(each) for contender, each in seconds.items()}


def _opened() -> panes.OpenQuery:
    query = panes.open(TEXT, lateness="10 seconds", max_ahead=None)
    assert isinstance(query, panes.OpenQuery)
    return query


def _pushed(query: panes.OpenQuery, batches: list[pa.Table], every: float) -> float:
    """Push batches, one every so many seconds; gives the processor time that this took."""
    used, begun = time.process_time(), time.perf_counter()
    for number, batch in enumerate(batches):
        wait = begun + number * every - time.perf_counter()
        if wait > 0:
            time.sleep(wait)
        query.push(bids=batch)
    return time.process_time() - used


@contextmanager
def _page(query: panes.OpenQuery) -> Iterator[None]:
    """A page beside a query, and somebody who looks at it."""
    with panes.live(query) as page:
        address = page.url.removeprefix("http://")
        netloc, _, token = address.partition("/?")
        command = [sys.executable, "-c", _READER, netloc, f"/api/snapshot?{token}"]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as reader:
            assert reader.stdout is not None
            reader.stdout.readline()
            try:
                yield
            finally:
                reader.kill()


def _answers(batches: list[pa.Table], *, has_page: bool) -> pa.Table:
    query = _opened()
    with _page(query) if has_page else nullcontext():
        given = [query.push(bids=batch) for batch in batches]
        return pa.concat_tables([*given, query.finish()])


def _snapshot_seconds(batches: list[pa.Table]) -> float:
    """How long a snapshot takes, as JSON, after so many batches."""
    query = _opened()
    feed = QueryFeed(query)
    _pushed(query, batches, 0)
    feed.snapshot(Look())
    begin = time.perf_counter()
    for _ in range(10):
        json.loads(feed.snapshot(Look()).as_json())
    return (time.perf_counter() - begin) / 10


def _batches(rows: pa.Table) -> list[pa.Table]:
    return [rows.slice(begin, BATCH) for begin in range(0, len(rows), BATCH)]
