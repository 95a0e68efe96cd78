"""A query over disordered rows that is told by punctuation, or waits by slack; when answers came.

The source's punctuation says that every row of a window is in. A query that hears it answers at
once. One with slack does not hear it: it answers when a row comes that lies so far past the end of
the window, be it too early or long after.

    window ends      last row of it, punctuation     row past end + slack
    ---|--------------------|-----------------------------|---------> arrival
                            answered with punctuation     answered with slack

*Seconds* run from the punctuation to the answer; from the batch that closes the window, if that
comes first. *Rows* are those that come in between, *behind* is how far the newest row lies past the
end of the window when it is answered; both are the same on every machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import pyarrow as pa
import pyarrow.compute as pc

import panes
from lab.papers.disorder import SECOND, Arrivals
from lab.papers.figure import Panel, Points
from lab.papers.watch import Watch, batches_of, require_same
from panes.axis import Duration
from panes.planning.terms import Late


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer of a window and how late it came."""

    end: int
    value: float
    seconds: float
    rows: int
    behind: int


@dataclass(frozen=True, slots=True)
class Slack:
    """How long a query waits for late rows, and what it does with later ones."""

    lateness: Duration
    late: Late


def observe(
    text: str, arrivals: Arrivals, *, batch: int, store: str, slack: Slack | None = None
) -> list[Answered]:
    """Every answer that comes before the end of the stream; with punctuation, or with slack.

    Right answers are required with punctuation; with slack and late rows dropped, those over the
    rows that were not late.
    """
    rows = arrivals.rows.append_column("seq", pa.array(range(len(arrivals.rows))))
    arrivals = Arrivals(rows, arrivals.punctuation)
    watch = Watch(text, store=store)
    if slack is not None:
        watch = Watch(text, store=store, lateness=slack.lateness, late=slack.late)
    answered = list(_answered(watch, arrivals, batch, hears=slack is None))
    watch.finish()
    if slack is None or slack.late == "drop":
        lost = pc.is_in(rows["seq"], value_set=watch.query.late["seq"].combine_chunks())
        right = panes.sql(text, packets=rows.filter(pc.invert(lost)))
        require_same(watch.answers, right, of=text)
    return answered


def _answered(watch: Watch, arrivals: Arrivals, batch: int, *, hears: bool) -> Iterator[Answered]:
    newest, came = 0, 0
    promises: list[tuple[int, Moment]] = []
    for rows, promise in arrivals.steps():
        for piece in batches_of(rows, batch):
            newest = max(newest, pc.max(piece["ts"]).value)
            came += len(piece)
            begin = Moment(time.perf_counter(), came)
            yield from _late_by(watch.push(packets=piece), promises, begin, newest)
        if promise is not None:
            begin = Moment(time.perf_counter(), came)
            promises.append((promise, begin))
            answers = watch.punctuate(packets=promise) if hears else pa.table({})
            yield from _late_by(answers, promises, begin, newest)


@dataclass(frozen=True, slots=True)
class Moment:
    """The clock, and how many rows have come."""

    clock: float
    rows: int


def _late_by(
    answers: pa.Table, promises: Sequence[tuple[int, Moment]], begin: Moment, newest: int
) -> Iterator[Answered]:
    """Answers that a call has given, which began at `begin`."""
    now = time.perf_counter()
    if not len(answers):
        return
    ends = answers["window_end"].cast(pa.int64()).to_pylist()
    for end, value in zip(ends, answers.columns[-1].to_pylist(), strict=True):
        since = next((heard for promise, heard in promises if promise >= end), begin)
        yield Answered(end, value, now - since.clock, begin.rows - since.rows, newest - end)


@dataclass(frozen=True, slots=True)
class Tradeoff:
    """What an answer waits for, in seconds, rows and seconds of the axis; its error in percent."""

    seconds: float
    rows: float
    behind: float
    error: float


def tradeoff(answered: Sequence[Answered], errors: Iterable[float]) -> Tradeoff:
    """Averages over all answers, whose errors are given as parts of one."""
    return Tradeoff(
        seconds=fmean(answer.seconds for answer in answered),
        rows=fmean(answer.rows for answer in answered),
        behind=fmean(answer.behind for answer in answered) / SECOND,
        error=100 * fmean(errors),
    )


def truth(text: str, arrivals: Arrivals) -> dict[int, float]:
    """The right answer of every window, by its end, after the oracle has agreed on a few rows."""
    few = arrivals.rows.slice(0, 300)
    require_same(panes.sql(text, packets=few), panes.oracle(text, packets=few), of=text)
    answers = panes.sql(text, packets=arrivals.rows)
    ends = answers["window_end"].cast(pa.int64()).to_pylist()
    return dict(zip(ends, answers.columns[-1].to_pylist(), strict=True))


PUNCTUATION = "punctuation (WID)"

Tradeoffs = Mapping[str, Mapping[float, Tradeoff]]
"""By kind and slack. Punctuation has none, so it stands at every slack with the same numbers."""


def panels(found: Tradeoffs, *, x: str, error: str) -> tuple[Panel, ...]:
    """Error and latency, which is measured in three ways, over the slack."""

    def over_slack(what: Callable[[Tradeoff], float]) -> dict[str, Points]:
        return {
            kind: tuple((float(slack), what(point)) for slack, point in points.items())
            for kind, points in found.items()
        }

    return (
        Panel(x=x, y=error, series=over_slack(lambda p: p.error)),
        Panel(x=x, y="latency (ms of wall clock)", series=over_slack(lambda p: 1e3 * p.seconds)),
        Panel(x=x, y="latency (rows since punctuation)", series=over_slack(lambda p: p.rows)),
        Panel(x=x, y="latency (seconds of the axis)", series=over_slack(lambda p: p.behind)),
    )
