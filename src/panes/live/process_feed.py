"""Snapshots of whatever runs in this process: what a query and a register show alike."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from typing import Literal, Protocol

from panes.axis import BEGINNING, FOREVER
from panes.live.feed import Look
from panes.live.recorder import Recorder, Where, position
from panes.live.snapshot import PanesShown, Snapshot, WindowsShown
from panes.live.windows_near import windows_of
from panes.process.watched import Watchable, add_watcher, remove_watcher
from panes.windows.spec import PanedSpec


class Shown(Watchable, Protocol):
    """A query or register of this process."""

    @property
    def state(self) -> Mapping[str, int]: ...

    @property
    def is_finished(self) -> bool: ...


class ProcessFeed:
    """A query or register that is watched until the page is closed. A kind of it says the rest."""

    can_edit = False
    kind: Literal["query", "join", "register"] = "register"

    def __init__(self, running: Shown, title: str) -> None:
        self._running, self._title = running, title
        self._run = uuid.uuid4().hex
        self.recorder = Recorder(self._where, lambda: running.state, self._keep)

    def attach(self) -> None:
        """Watch it from now on: the last thing that a kind of feed does when it is made."""
        add_watcher(self._running, self.recorder)

    def detach(self) -> None:
        """Watch it no longer."""
        remove_watcher(self._running, self.recorder)

    def snapshot(self, look: Look) -> Snapshot:
        """How it stands now."""
        recorder = self.recorder
        panes = PanesShown() if recorder.panes is None else recorder.panes.shown()
        shown = Snapshot(
            kind=self.kind,
            run=self._run,
            title=self._title,
            text="",
            taken=time.time(),
            started=recorder.begun,
            status=self._status(),
            said=recorder.failure,
            progress=position(recorder.where.progress),
            progress_by=recorder.where.by,
            newest=position(recorder.newest),
            counts=recorder.counts,
            state=dict(recorder.state),
            samples=recorder.timeline.shown(),
            arrivals=recorder.scatter.shown(),
            panes=panes,
            set_aside=recorder.apart.shown(),
        )
        return self._filled(shown, look)

    def windows(self, specs: Mapping[str, PanedSpec], shown: Snapshot) -> WindowsShown:
        """Windows of some queries around progress, as far back as there are panes."""
        progress, newest, panes = self.recorder.where.progress, self.recorder.newest, shown.panes
        if progress == FOREVER:
            progress = panes.end[-1] if panes.end else BEGINNING
        return windows_of(specs, progress, panes.start[0] if panes.start else newest, newest)

    def _filled(self, shown: Snapshot, look: Look) -> Snapshot:
        """The same snapshot with what this kind of feed knows."""
        raise NotImplementedError

    def _where(self) -> Where:
        """How far it is; asked in the thread that pushes."""
        raise NotImplementedError

    def _keep(self, answers: object) -> int:
        """Keep of some answers what is shown of them, and count them; in the thread that pushes."""
        raise NotImplementedError

    def _status(self) -> Literal["waiting", "running", "finished", "failed"]:
        if self.recorder.failure:
            return "failed"
        if self._running.is_finished:
            return "finished"
        return "running" if self.recorder.steps else "waiting"
