"""Snapshots of a query in this process, over one stream, a union or a join."""

from __future__ import annotations

import time
from dataclasses import replace

from panes.axis import BEGINNING
from panes.language.query import Query
from panes.live.feed import Look
from panes.live.pane_counts import PaneCounts
from panes.live.process_feed import ProcessFeed
from panes.live.recorder import Where, kept_table
from panes.live.snapshot import AxisShown, Snapshot, WindowsShown
from panes.planning.describe import describe
from panes.planning.plan import Plan
from panes.process.running_query import OpenJoin, OpenQuery
from panes.windows.cut import cut
from panes.windows.spec import Landmark, Sliding

_EXPLAIN_EVERY = 5.0
OWN_ROWS = "windows over rows of their own have no common place on the axis"


class QueryFeed(ProcessFeed):
    """A query that is watched from now on."""

    def __init__(self, query: OpenQuery | OpenJoin, title: str = "") -> None:
        super().__init__(query, title or " + ".join(query.query.streams))
        self.kind = "query" if isinstance(query, OpenQuery) else "join"
        self._query = query
        self._explained, self._explained_at = "", 0.0
        self.attach()

    def _filled(self, shown: Snapshot, look: Look) -> Snapshot:
        plan = self._plan()
        return replace(
            shown,
            text=self._query.query.text,
            axis=self._axis(plan),
            windows=WindowsShown() if plan is None else self._windows(plan, shown),
            answers=self.recorder.answers.shown(look.answers),
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

    def _keep(self, answers: object) -> int:
        return kept_table(self.recorder.answers, answers)

    # Asked by whoever looks

    def _plan(self) -> Plan | None:
        query = self._query
        if not isinstance(query, OpenQuery) or not self.recorder.steps:
            return None
        return query.plan

    def _axis(self, plan: Plan | None) -> AxisShown:
        if plan is None:
            return AxisShown()
        return AxisShown(plan.placing.kind, plan.placing.column)

    def _windows(self, plan: Plan, shown: Snapshot) -> WindowsShown:
        if self.recorder.panes is None:
            return WindowsShown(note=OWN_ROWS)
        return self.windows({"": plan.spec}, shown)

    def _explain(self) -> str:
        """What the query does, in words; said anew only now and then."""
        now = time.monotonic()
        if self.recorder.steps and now - self._explained_at > _EXPLAIN_EVERY:
            self._explained, self._explained_at = self._query.explain(), now
        asked = self._query.query
        if not self._explained and isinstance(asked, Query) and asked.window is not None:
            return describe(asked.window)
        return self._explained
