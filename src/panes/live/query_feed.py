"""Snapshots of a query in this process, over one stream, a union or a join."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from typing import Literal

from panes.axis import BEGINNING, FOREVER
from panes.language.query import Query
from panes.live.feed import Look
from panes.live.pane_counts import PaneCounts
from panes.live.recorder import Recorder, Where, kept_table, position
from panes.live.snapshot import AxisShown, PanesShown, Snapshot, WindowsShown
from panes.live.windows_near import windows_near
from panes.planning.describe import describe
from panes.planning.plan import Plan
from panes.process.open_join import OpenJoin
from panes.process.open_query import OpenQuery
from panes.process.watched import add_watcher, remove_watcher
from panes.windows.cut import cut
from panes.windows.spec import Landmark, Sliding

_EXPLAIN_EVERY = 5.0
OWN_ROWS = "windows over rows of their own have no common place on the axis"


class QueryFeed:
    """A query that is watched from now on."""

    can_edit = False

    def __init__(self, query: OpenQuery | OpenJoin, title: str = "") -> None:
        self._query = query
        self._title = title or " + ".join(query.query.streams)
        self._run = uuid.uuid4().hex
        self._explained, self._explained_at = "", 0.0
        self.recorder = Recorder(self._where, self._state, self._keep)
        add_watcher(query, self.recorder)

    def detach(self) -> None:
        """Watch it no longer."""
        remove_watcher(self._query, self.recorder)

    def snapshot(self, look: Look) -> Snapshot:
        """How the query stands."""
        recorder, plan = self.recorder, self._plan()
        counts, where = recorder.counts, recorder.where
        panes, windows = PanesShown(), WindowsShown()
        if recorder.panes is not None:
            panes = recorder.panes.shown()
        if plan is not None:
            windows = self._windows(plan, panes)
        return Snapshot(
            kind="query" if isinstance(self._query, OpenQuery) else "join",
            run=self._run,
            title=self._title,
            text=self._query.query.text,
            taken=time.time(),
            started=recorder.begun,
            status=self._status(),
            said=recorder.failure,
            axis=self._axis(plan),
            progress=position(where.progress),
            progress_by=where.by,
            newest=position(recorder.newest),
            counts=counts,
            state=dict(recorder.state),
            samples=recorder.timeline.shown(),
            arrivals=recorder.scatter.shown(),
            panes=panes,
            windows=windows,
            answers=recorder.answers.shown(look.answers),
            set_aside=recorder.apart.shown(),
            explain=self._explain(),
        )

    # Asked in the thread that pushes

    def _where(self) -> Where:
        query = self._query
        if isinstance(query, OpenQuery):
            if self.recorder.panes is None and not query.is_finished:
                self._watch_panes(query.plan)
            return Where(*query.reached)
        promised = query.progress
        return Where(min(promised.values(), default=BEGINNING))

    def _watch_panes(self, plan: Plan) -> None:
        self.recorder.answers.keys = len(plan.query.shown_keys)
        if isinstance(plan.window.spec, Sliding | Landmark) and not plan.window.origin_first:
            self.recorder.panes = PaneCounts(cut(plan.spec))

    def _state(self) -> Mapping[str, int]:
        return self._query.state

    def _keep(self, answers: object) -> int:
        return kept_table(self.recorder.answers, answers)

    # Asked by whoever looks

    def _plan(self) -> Plan | None:
        query = self._query
        if not isinstance(query, OpenQuery) or not self.recorder.steps:
            return None
        return query.plan

    def _status(self) -> Literal["waiting", "running", "finished", "failed"]:
        if self.recorder.failure:
            return "failed"
        if self._query.is_finished:
            return "finished"
        return "running" if self.recorder.steps else "waiting"

    def _axis(self, plan: Plan | None) -> AxisShown:
        if plan is None:
            return AxisShown()
        return AxisShown(plan.placing.kind, plan.placing.column)

    def _windows(self, plan: Plan, panes: PanesShown) -> WindowsShown:
        if self.recorder.panes is None:
            return WindowsShown(note=OWN_ROWS)
        progress, newest = self.recorder.where.progress, self.recorder.newest
        if progress == FOREVER:
            progress = panes.end[-1] if panes.end else BEGINNING
        oldest = panes.start[0] if panes.start else newest
        return windows_near(plan.spec, progress, oldest, newest)

    def _explain(self) -> str:
        """What the query does, in words; said anew only now and then."""
        now = time.monotonic()
        if self.recorder.steps and now - self._explained_at > _EXPLAIN_EVERY:
            self._explained, self._explained_at = self._query.explain(), now
        asked = self._query.query
        if not self._explained and isinstance(asked, Query) and asked.window is not None:
            return describe(asked.window)
        return self._explained
