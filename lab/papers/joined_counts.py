"""Q7-2 with a join by name: pairs of packets in a band, counted by the minute of their left packet.

Every so often rows of both links come, then both links promise what their clock says. What the
join gives goes to a count in windows, which holds a number per open minute. Bytes are those of the
join, with all that waits in it, and of the count, looked at after every step.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Protocol

import numpy as np
import pyarrow as pa

import panes
from lab.papers.disorder import SECOND
from lab.papers.flows import SAME_FLOW, Traffic, flow_links
from lab.papers.order_preserving import InputBufferedJoin, OutputBufferedJoin
from lab.papers.skew import Link, arrivals_of
from lab.papers.unions import positions
from lab.papers.watch import Watch, require_same
from panes.axis import FOREVER
from panes.join.oa_join import OAJoin
from panes.join.progress import individual
from panes.join.rule import Arrivals, JoinedRows, JoinRule, Progress
from panes.windows.partners import Band

OA, OPOB, OPIB = "OA-Join", "OPOB-Join", "OPIB-Join"
BANDS = (1, 3, 5, 7, 9)
SCALE = 8
RATE = 4_000 // SCALE
FLOWS = 1_000
SECONDS = 80
EVERY = 1.0
_LEFT_KEY = ("srcIP", "destIP", "srcPort", "destPort")
_RIGHT_KEY = ("destIP", "srcIP", "destPort", "srcPort")
_COUNT = "SELECT count(*) AS n FROM pairs [RANGE 1 minute, SLIDE 1 minute, WA ts]"


class Join(Protocol):
    """A join of two streams, step by step."""

    @property
    def nbytes(self) -> int:
        """Bytes of all that is stored and waits."""
        ...

    def step(
        self, left: Arrivals, right: Arrivals, before: Progress, after: Progress
    ) -> Iterator[JoinedRows]:
        """Take in rows and promises; gives joined rows."""
        ...


JOINS: dict[str, Callable[[JoinRule], Join]] = {
    OA: OAJoin,
    OPOB: OutputBufferedJoin,
    OPIB: InputBufferedJoin,
}


@dataclass(frozen=True, slots=True)
class Counted:
    """What a run of Q7-2 gave and took; `latency` is that of a promise that closes a minute."""

    answers: pa.Table
    peak_bytes: int
    peak_waiting: int
    pairs: int
    seconds: float
    latency: float


def q7_2(band: float) -> str:
    """The query as printed, for a band of so many seconds."""
    return f"""
SELECT count(*) AS n [RANGE 1 minute, SLIDE 1 minute, WA M1.ts]
FROM M1 [RANGE {band:g} seconds, WA ts], M2 [RANGE {band:g} seconds, WA ts]
WHERE {SAME_FLOW.format(l="M1", r="M2")}
"""


def two_links(*, seconds: float, rate: float, flows: int) -> dict[str, Link]:
    """M1 and M2, in order and synchronised."""
    traffic = {"M1": Traffic(rate), "M2": Traffic(rate, is_answer=True)}
    return flow_links(traffic, seconds=seconds, flows=flows)


def require_right(links: Mapping[str, Link], band: float, found: Mapping[str, Counted]) -> None:
    """The joins give what `panes.sql` gives."""
    right = panes.sql(q7_2(band), **{name: link.rows for name, link in links.items()})
    for name, counted in found.items():
        require_same(counted.answers, right, of=f"Q7-2, {name}, band {band:g} s")


def require_oracle(band: float) -> None:
    """What `panes.sql` gives for a few rows is what the oracle gives."""
    few = {
        name: link.rows for name, link in two_links(seconds=130, rate=0.5, flows=2).items()
    }  # fmt: skip
    text = q7_2(band)
    require_same(panes.sql(text, **few), panes.oracle(text, **few), of=f"Q7-2, band {band:g} s")


def count_pairs(name: str, links: Mapping[str, Link], band: float, *, every: float) -> Counted:
    """Q7-2 over M1 and M2 with the join of that name."""
    reach = int(band * SECOND)
    rule = JoinRule(Band(-reach, reach - 1), hashed=len(_LEFT_KEY))
    run = _Run(JOINS[name](rule), rule)
    for now, came in arrivals_of(links, every=every):
        left, right = _arrivals(came["M1"], _LEFT_KEY), _arrivals(came["M2"], _RIGHT_KEY)
        run.step(left, right, run.promised)
        run.step(Arrivals(), Arrivals(), Progress(now, now))
    return run.ended()


class _Run:
    """A join and the count behind it, while they run."""

    def __init__(self, join: Join, rule: JoinRule) -> None:
        self._join, self._rule, self._count = join, rule, Watch(_COUNT, store="eager")
        self.promised = Progress()
        self._count.push(pairs=_pairs([]))
        self._peak = self._waiting = self._pairs = 0
        self._seconds = 0.0
        self._closings: list[float] = []

    def step(self, left: Arrivals, right: Arrivals, after: Progress) -> None:
        """Rows come, or promises; both are timed up to the answers that follow."""
        begin = time.perf_counter()
        self._join_and_count(left, right, after)
        closed = 0
        if after != self.promised:
            complete = individual(self._rule.partners, after, "left")
            closed = len(self._count.punctuate(pairs=complete))
        took = time.perf_counter() - begin
        self.promised = after
        self._seconds += took
        self._closings += [took] * bool(closed)
        self._peak = max(self._peak, self._join.nbytes + self._count.query.state["bytes"])
        if isinstance(self._join, OutputBufferedJoin):
            self._waiting = max(self._waiting, self._join.buffered)

    def _join_and_count(self, left: Arrivals, right: Arrivals, after: Progress) -> None:
        joined = _pairs(list(self._join.step(left, right, self.promised, after)))
        self._pairs += len(joined)
        if len(joined):
            self._count.push(pairs=joined)

    def ended(self) -> Counted:
        """The streams have ended, which is not timed."""
        self._join_and_count(Arrivals(), Arrivals(), Progress(FOREVER, FOREVER))
        self._count.finish()
        return Counted(
            self._count.answers, self._peak, self._waiting, self._pairs, self._seconds,
            median(self._closings) if self._closings else 0.0,
        )  # fmt: skip


def _arrivals(rows: pa.Table, key: tuple[str, ...]) -> Arrivals:
    """Rows for a join that is asked for nothing but their positions."""
    return Arrivals(positions(rows), [rows[name].combine_chunks() for name in key])


def _pairs(found: list[JoinedRows]) -> pa.Table:
    """The left positions of joined rows."""
    at = [joined.left.at[joined.left_index] for joined in found if joined.left is not None]
    whole = np.concatenate(at) if at else np.empty(0, dtype=np.int64)
    return pa.table({"ts": pa.array(whole, pa.timestamp("us", "UTC"))})
