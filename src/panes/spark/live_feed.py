"""A live page beside a streaming query on Spark, fed by Spark's own progress reports.

A listener is told of every micro-batch; `panes.spark.observe` has put our counts into the reports.
Nothing is asked of the cluster, so the stream is as fast as without the page. A query that is
restarted on its checkpoint has the same id, and the page goes on.
"""

from __future__ import annotations

import datetime as dt
import re
import time
import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from threading import Lock
from typing import Any, Literal

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener
from pyspark.sql.streaming.query import StreamingQuery

from panes.axis import BEGINNING, FOREVER
from panes.errors import OptionError
from panes.language.query import Query
from panes.language.read import read
from panes.live.answer_history import AnswerHistory
from panes.live.apart import Apart
from panes.live.feed import Look
from panes.live.live_page import LivePage
from panes.live.recorder import position
from panes.live.register_shown import axis_shown, register_shown, specs_of
from panes.live.scatter import Scatter
from panes.live.snapshot import AnswersShown, AxisShown, Counts, SetAsideShown, Snapshot
from panes.live.timeline import Timeline
from panes.live.windows_near import windows_of
from panes.planning.explain import explain_unbound
from panes.register.view import RegisterView
from panes.spark.query import Sink, send
from panes.spark.register.register import SparkRegister
from panes.windows.spec import Landmark, PanedSpec, Sliding

_ONE_ROW = re.compile(r"(RateStream|RatePerMicroBatch).*rowsPer\w+=1\b.*numPartitions=1\b")
_NOT_SHOWN = "answers are where the stream writes them; LiveRows shows them here too"
_MOST_ROWS = 5_000
Status = Literal["waiting", "running", "finished", "failed"]


def live(
    query: object,
    /,
    *,
    text: str = "",
    answers: LiveRows | None = None,
    late: LiveRows | None = None,
    name: str = "panes",
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
    answers, late
        The `LiveRows` that the stream writes to, to show these rows too.
    name
        The name of the metrics, as it was given to `panes.sql`.
    title, port, token, edit
        As for `panes.live`.
    """
    if isinstance(query, SparkRegister):
        feed = SparkFeed(query.query, query, name=query.metrics_name, title=title, can_edit=edit)
    elif hasattr(query, "recentProgress"):
        feed = SparkFeed(query, text=text, name=name, title=title)
    else:
        raise OptionError(
            f"panes.spark.live shows a streaming query, got {type(query).__name__}",
            hint="panes.spark.live(answers.writeStream.start(...)); for a query in this process, "
            "panes.live(query)",
        )
    feed.answers = AnswerHistory() if answers is None else answers.history
    feed.has_answers = answers is not None
    feed.apart = Apart() if late is None else late.apart
    return LivePage(feed, port=port, token=token, edit=edit)


class LiveRows:
    """A sink that passes rows on, and keeps some of each micro-batch for a live page.

    For ``foreachBatch``, and wherever `panes.spark.split` or a register takes a function. `keys`
    is how many columns after the window's are the key of an answer. Not for Spark Connect, where
    such functions run elsewhere.
    """

    def __init__(self, sink: Sink | None = None, *, keys: int = 1) -> None:
        self._sink = sink
        self.history, self.apart = AnswerHistory(keys), Apart()

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        if self._sink is not None:
            send(frame, self._sink, batch_id)
        shown: pa.Table = frame.limit(_MOST_ROWS).toArrow()
        if "window_end" in shown.column_names:
            self.history.give(shown.sort_by("window_end"))
        elif "reason" in shown.column_names:
            self.apart.add("late", [shown])
        else:
            self.history.give(shown)


class SparkFeed(StreamingQueryListener):
    """A streaming query that is listened to from now on, and what it reported before."""

    def __init__(
        self,
        query: StreamingQuery | Any | None,
        register: SparkRegister | None = None,
        *,
        text: str = "",
        name: str = "panes",
        title: str = "",
        can_edit: bool = False,
    ) -> None:
        super().__init__()
        if query is None:
            raise OptionError("the register does not run yet", hint="call start first")
        self._register, self._name, self.can_edit = register, name, can_edit
        self._text, self._asked = text, read(text) if text else None
        self._title = title or query.name or self._streams()
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
        self._view: RegisterView | None = None
        self.answers, self.apart, self.has_answers = AnswerHistory(), Apart(), False
        self._session = SparkSession.active()
        self._session.streams.addListener(self)
        for report in query.recentProgress:
            self._note(report)

    def _streams(self) -> str:
        """What a page is called that was given no name."""
        if self._register is not None:
            return self._register.stream
        return "a stream on Spark" if self._asked is None else " + ".join(self._asked.streams)

    def detach(self) -> None:
        """Listen no longer."""
        self._session.streams.removeListener(self)

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
            observed = _fields(report.observedMetrics.get(self._name))
            at = dt.datetime.fromisoformat(report.timestamp).timestamp()
            seconds = report.durationMs.get("triggerExecution", 0) / 1_000
            self._count(_rows_in(report), observed)
            self._sample(at + seconds, seconds, _rows_in(report), observed)

    def _count(self, rows: int, observed: Mapping[str, int | None]) -> None:
        before = self._counts
        counted = Counter({n: observed.get(n) or 0 for n in ("answers", "late", "rejected")})
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
        register = self._register
        if register is not None and (self._view is None or self._view.version != register.version):
            self._view = register.view()
        view = self._view
        with self._lock:
            shown = Snapshot(
                kind="spark",
                run=self._run,
                title=self._title,
                text=self._text if view is None else f"{len(view.queries):,} queries on Spark",
                taken=time.time(),
                started=self._begun,
                status="waiting" if self._is_waiting() else self._status,
                said=self._said,
                axis=self._axis(),
                progress=position(self._progress),
                progress_by="Spark's progress reports",
                newest=position(self._newest),
                counts=self._counts,
                state=dict(self._state),
                arrivals=self._scatter.shown(),
                windows=windows_of(self._specs(), self._progress, self._newest, self._newest),
                explain=self._explain(),
            )
            if self._timeline is not None:
                shown = replace(shown, samples=self._timeline.shown())
        return replace(
            shown,
            answers=self._answers(look),
            set_aside=self._apart(),
            register=None
            if view is None
            else register_shown(view, view.queries, {}, look.queries, can_edit=self.can_edit),
        )

    def _is_waiting(self) -> bool:
        return self._status == "running" and self._counts.batches == 0

    def _axis(self) -> AxisShown:
        if self._view is not None:
            return axis_shown(self._view)
        window = self._asked.window if isinstance(self._asked, Query) else None
        return AxisShown() if window is None else AxisShown(window.measure, window.column)

    def _specs(self) -> dict[str, PanedSpec]:
        if self._view is not None:
            return dict(specs_of(self._view.queries))
        window = self._asked.window if isinstance(self._asked, Query) else None
        if window is None or not isinstance(window.spec, Sliding | Landmark):
            return {}
        return {"": window.spec}

    def _explain(self) -> str:
        if self._register is not None:
            return self._register.explain()
        return explain_unbound(self._asked) if isinstance(self._asked, Query) else ""

    def _answers(self, look: Look) -> AnswersShown:
        if not self.has_answers:
            return AnswersShown(note=_NOT_SHOWN)
        return self.answers.shown(look.answers)

    def _apart(self) -> SetAsideShown:
        return self.apart.shown()


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
