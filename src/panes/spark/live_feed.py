"""A live page beside a streaming query on Spark, fed by Spark's own progress reports.

A listener is told of every micro-batch; `panes.spark.observe` has put our counts into the reports.
What was asked, and the rows that a page shows, are said by the subject of the page
(`panes.spark.live_subjects`). A query that is restarted on its checkpoint has the same id, and the
page goes on.
"""

from __future__ import annotations

import datetime as dt
import re
import time
import uuid
from collections.abc import Mapping
from dataclasses import replace
from threading import Lock
from typing import Any, Literal

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener
from pyspark.sql.streaming.query import StreamingQuery

from panes.axis import BEGINNING, FOREVER
from panes.errors import OptionError
from panes.live.feed import Look
from panes.live.live_page import LivePage
from panes.live.recorder import position
from panes.live.scatter import Scatter
from panes.live.snapshot import Counts, Snapshot
from panes.live.timeline import Timeline
from panes.spark.live_rows import LiveRows
from panes.spark.live_subjects import ManyQueries, OneQuery, Subject
from panes.spark.observe import JOIN, name_among
from panes.spark.register.register import SparkRegister

_ONE_ROW = re.compile(r"(RateStream|RatePerMicroBatch).*rowsPer\w+=1\b.*numPartitions=1\b")
_STORED = ("partials", "bytes")
Status = Literal["waiting", "running", "finished", "failed"]


def live(
    query: object,
    /,
    *,
    text: str = "",
    answers: LiveRows | None = None,
    late: LiveRows | None = None,
    rejected: LiveRows | None = None,
    name: str | None = None,
    title: str = "",
    port: int = 0,
    token: str | None = None,
    edit: bool = False,
) -> LivePage:
    """Open a page in the browser beside a streaming query, or beside a register on Spark.

    Parameters
    ----------
    query
        A `StreamingQuery` over answers of `panes.sql`, or a register that was started.
    text
        The text of the query. With it, the page shows the windows and says what they are.
    answers, late, rejected
        The `LiveRows` that the stream writes to, to show these rows too. A register shows its
        answers by itself, and the reasons of rows set aside.
    name
        The name of the metrics, if one was given to `panes.sql`.
    title, port, token, edit
        As for `panes.live`.
    """
    if isinstance(query, SparkRegister):
        if query.query is None:
            raise OptionError("the register does not run yet", hint="call start first")
        about = ManyQueries(query, can_edit=edit)
        feed = SparkFeed(query.query, about, query, name=query.metrics_name, title=title,
                         can_edit=edit)  # fmt: skip
    elif hasattr(query, "recentProgress"):
        subject = OneQuery(text, answers, late, rejected)
        feed = SparkFeed(query, subject, name=name, title=title)
    else:
        raise OptionError(
            f"panes.spark.live shows a streaming query, got {type(query).__name__}",
            hint="panes.spark.live(answers.writeStream.start(...)); for a query in this process, "
            "panes.live(query)",
        )
    return LivePage(feed, port=port, token=token, edit=edit)


class SparkFeed(StreamingQueryListener):
    """A streaming query that is listened to from now on, and what it reported before."""

    def __init__(
        self,
        query: StreamingQuery | Any,
        about: Subject,
        register: SparkRegister | None = None,
        *,
        name: str | None = None,
        title: str = "",
        can_edit: bool = False,
    ) -> None:
        super().__init__()
        self._about, self._register, self._name = about, register, name
        self.can_edit = can_edit
        self._title = title or query.name or about.title
        self._id, self._run = str(query.id), uuid.uuid4().hex
        self._begun = time.time()
        self._lock = Lock()
        self._seen: set[tuple[str, int]] = set()
        self._counts, self._progress, self._newest = Counts(), BEGINNING, BEGINNING
        self._state: dict[str, int] = {}
        self._timeline: Timeline | None = None
        self._scatter = Scatter(self._begun)
        self._status: Status = "running" if query.isActive else "finished"
        self._said = ""
        self._session = SparkSession.active()
        self._session.streams.addListener(self)
        for report in query.recentProgress:
            self._note(report)

    def detach(self) -> None:
        """Listen no longer."""
        self._session.streams.removeListener(self)
        self._about.close()

    def add(self, name: str, text: str) -> None:
        """Answer one more query; the stream is restarted for it."""
        assert self._register is not None
        self._register.add(name, text)

    def remove(self, name: str) -> None:
        """Answer a query no longer; the stream is restarted without it."""
        assert self._register is not None
        self._register.remove(name)

    # What Spark calls

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        if str(event.id) == self._id:
            self._status, self._said = "running", ""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        if str(event.progress.id) == self._id:
            self._note(event.progress)

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        del event

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        if str(event.id) == self._id:
            said = event.exception
            self._status = "failed" if said else "finished"
            self._said = str(said).strip().splitlines()[0] if said else ""

    # Reports

    def _note(self, report: Any) -> None:
        """Take in the report of a micro-batch, once."""
        with self._lock:
            number = (str(report.runId), int(report.batchId))
            if number in self._seen:
                return
            self._seen = {n for n in self._seen if n[0] == number[0]} | {number}
            observed = _observed(report.observedMetrics, self._name)
            at = dt.datetime.fromisoformat(report.timestamp).timestamp()
            seconds = report.durationMs.get("triggerExecution", 0) / 1_000
            self._count(_rows_in(report), observed)
            self._sample(at + seconds, seconds, _rows_in(report), observed)

    def _count(self, rows: int, observed: Mapping[str, int | None]) -> None:
        before = self._counts
        counted = {n: observed.get(n) or 0 for n in ("answers", "late", "rejected")}
        self._counts = replace(
            before,
            rows=before.rows + rows,
            batches=before.batches + 1,
            answers=before.answers + counted["answers"],
            late=before.late + counted["late"],
            rejected=before.rejected + counted["rejected"],
        )
        late_from, newest = observed.get("late_from"), observed.get("newest")
        if newest is not None:
            self._newest = max(self._newest, newest)
            self._scatter.point(self._counts.rows, newest)
        if late_from is not None:
            self._scatter.point(self._counts.rows, late_from, is_late=True)
        progress = observed.get("progress")
        if progress is not None and BEGINNING < progress < FOREVER:
            self._progress = max(self._progress, progress)
            self._scatter.promise(self._counts.rows, self._progress)

    def _sample(
        self, now: float, seconds: float, rows: int, observed: Mapping[str, int | None]
    ) -> None:
        if self._timeline is None:
            self._begun, self._timeline = now - seconds, Timeline(now - seconds)
        self._state = {n: observed.get(n) or 0 for n in ("partials", "bytes")}
        self._timeline.note(rows, seconds)
        self._timeline.sample(
            now,
            nbytes=self._state["bytes"],
            stored=self._state["partials"],
            progress=position(self._progress),
            newest=position(self._newest),
        )

    # What is shown

    def snapshot(self, look: Look) -> Snapshot:
        """How the stream stands, as its last report says."""
        with self._lock:
            shown = Snapshot(
                kind="spark",
                run=self._run,
                title=self._title,
                text="",
                taken=time.time(),
                started=self._begun,
                status="waiting" if self._is_waiting() else self._status,
                said=self._said,
                progress=position(self._progress),
                progress_by="Spark's progress reports",
                newest=position(self._newest),
                counts=self._counts,
                state=dict(self._state),
                arrivals=self._scatter.shown(),
            )
            if self._timeline is not None:
                shown = replace(shown, samples=self._timeline.shown())
        return self._about.fill(shown, look)

    def _is_waiting(self) -> bool:
        return self._status == "running" and self._counts.batches == 0


def _observed(metrics: Mapping[str, Any], name: str | None) -> dict[str, int | None]:
    """What a report tells of a query; a join below it tells of the streams, and of its own state.

    >>> from pyspark.sql import Row
    >>> above, below = Row(answers=2, partials=5, progress=9), Row(partials=3, late=1, progress=7)
    >>> _observed({"panes": above, "panes_join": below}, "panes")
    {'answers': 2, 'partials': 8, 'progress': 7, 'late': 1}
    """
    name = name_among(metrics) if name is None else name
    above, first = _fields(metrics.get(name)), _fields(metrics.get(name + JOIN))
    levels = [_fields(row) for n, row in metrics.items() if n.startswith(f"{name}_") and JOIN in n]
    stored = {n: sum(one.get(n) or 0 for one in (above, *levels)) for n in _STORED if n in first}
    told = {name: number for name, number in first.items() if number is not None}
    return {**above, **told, **stored, **({"answers": above["answers"]} if above else {})}


def _fields(row: Any) -> dict[str, int | None]:
    """The metrics in a report; through Connect they may have no names."""
    return {} if row is None or not getattr(row, "__fields__", ()) else row.asDict()


def _rows_in(report: Any) -> int:
    """Rows of the streams; those by which Panes keeps a query going are none of them."""
    return sum(source.numInputRows for source in report.sources if not _is_ours(source.description))


def _is_ours(description: str) -> bool:
    """Ours gives one row at a time; a rate source of the user's is a stream like any other.

    >>> _is_ours("RatePerMicroBatchStream[rowsPerBatch=1, numPartitions=1, startTimestamp=0]")
    True
    >>> _is_ours("RateStreamV2[rowsPerSecond=1000, rampUpTimeSeconds=0, numPartitions=default")
    False
    """
    return _ONE_ROW.match(description) is not None
