"""The page of the demo: bids come in this process, slowly enough to watch, beside a live page."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

import pyarrow as pa

import panes
from panes.cli.demo_stage import tell
from panes.cli.live_option import STAY, staying
from panes.process.running_query import RunningQuery
from panes.sample_streams import bids

QUERY = (
    "SELECT item, max(price) AS high, count(*) AS n "
    "FROM bids [RANGE 10 minutes SLIDE 1 minute WATTR ts] GROUP BY item"
)
_HOURS, _ROWS, _BATCH = 4, 240_000, 250
"""A batch is 15 seconds of the stream."""
_BETWEEN = 0.25


@contextmanager
def page_beside() -> Iterator[None]:
    """A live page while the block runs; on a terminal, also afterwards while somebody looks."""
    query = panes.open(QUERY, lateness="10 seconds", max_ahead=None)
    stop = Event()
    coming = Thread(target=_push, args=(query, stop), daemon=True)
    coming.start()
    try:
        with staying(panes.live(query), STAY if sys.stdout.isatty() else 0) as page:
            tell("A live page shows windows of ten minutes, a minute apart, over such bids:")
            tell(f"  {page.url}")
            yield
    finally:
        stop.set()
        coming.join()


def _push(query: RunningQuery, stop: Event) -> None:
    """Batch after batch until there are no more or nobody wants them."""
    rows: pa.Table = bids(_ROWS, keys=12, hours=_HOURS)
    for begin in range(0, len(rows), _BATCH):
        if stop.wait(_BETWEEN):
            return
        query.push(bids=rows.slice(begin, _BATCH))
