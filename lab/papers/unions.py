"""A query over the union of links that are not equally late, in any order and in order.

Every so often the clock moves: what came since is pushed, and each link promises what its clock
says. In any order (`Meld`, OOP) rows go to the query at once, and the least promise closes windows.
In order (`Merge`, IOP) rows wait until no link can send an older one, and the query sees a stream
in order. Bytes are those of the store and of the rows that wait before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lab.papers.skew import Link, arrivals_of
from lab.papers.union import Meld, Merge
from lab.papers.watch import Watch
from panes.axis import FOREVER


@dataclass(frozen=True, slots=True)
class Ran:
    """What a run over a union gave and took; `latency` is that of a promise that closes windows."""

    answers: pa.Table
    peak_bytes: int
    seconds: float
    latency: float


def in_any_order(text: str, links: Mapping[str, Link], *, store: str, every: float) -> Ran:
    """OOP: the query's one stream, `packets`, is the Meld of the links."""
    union, watch = Meld(links), Watch(text, store=store)
    delays = {name: _delay(link) for name, link in links.items()}
    peak = 0
    for now, came in arrivals_of(links, every=every):
        watch.push(packets=pa.concat_tables(union.push(*each) for each in came.items()))
        peak = max(peak, union.nbytes + watch.query.state["bytes"])
        heard = [union.punctuate(name, now - delay) for name, delay in delays.items()]
        promised = [promise for promise in heard if promise is not None]
        if promised:
            watch.punctuate(packets=max(promised))
    return _ran(watch, peak)


def in_order(text: str, links: Mapping[str, Link], *, store: str, every: float) -> Ran:
    """IOP: the query's one stream, `packets`, is the Merge of the links."""
    union, watch = Merge(links), Watch(text, store=store)
    delays = {name: _delay(link) for name, link in links.items()}
    peak = 0
    for now, came in arrivals_of(links, every=every):
        released = [union.push(name, rows, positions(rows)) for name, rows in came.items()]
        released += [union.punctuate(name, now - delay) for name, delay in delays.items()]
        ordered = pa.concat_tables(rows for rows in released if rows.num_columns)
        watch.push(packets=ordered)
        peak = max(peak, union.nbytes + watch.query.state["bytes"])
        watch.punctuate(packets=union.progress)
    rest = [union.punctuate(name, FOREVER) for name in links]
    watch.push(packets=pa.concat_tables(rows for rows in rest if rows.num_columns))
    return _ran(watch, peak)


def positions(rows: pa.Table) -> NDArray[np.int64]:
    """Where rows lie on the axis."""
    return np.asarray(rows["ts"].cast(pa.int64()))


def united(links: Mapping[str, Link]) -> pa.Table:
    """All rows of all links."""
    return pa.concat_tables(link.rows for link in links.values())


def _delay(link: Link) -> int:
    return int((link.arrival - positions(link.rows)).max())


def _ran(watch: Watch, peak: int) -> Ran:
    watch.finish()
    return Ran(watch.answers, peak, watch.seconds, watch.latency)
