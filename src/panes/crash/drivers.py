"""Drivers of Spark, each a process of its own, and one that is ready when another has died."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType

from panes.crash import driver, processes
from panes.crash.jobs import Job
from panes.crash.place import JobPlace
from panes.crash.written import written
from panes.errors import PanesError

LOCAL, CLUSTER = "local[2,20]", "local-cluster[2,1,1024]"
_GLANCE, _PATIENCE = 0.01, 300.0


def wait_until(what: Callable[[], bool]) -> None:
    """Wait until something holds, or it is clear that it never will."""
    give_up = time.monotonic() + _PATIENCE
    while not what():
        if time.monotonic() > give_up:
            raise PanesError(f"a stream on Spark did nothing for {_PATIENCE:.0f} seconds")
        time.sleep(_GLANCE)


class Driver:
    """A process that runs jobs on Spark."""

    def __init__(self, master: str, kinds: str | None = None) -> None:
        self._kinds = kinds
        self._scratch = tempfile.TemporaryDirectory(prefix="panes-", ignore_cleanup_errors=True)
        folder = Path(self._scratch.name)
        self.log = folder / "log"
        environment = {**os.environ, "TMPDIR": str(folder), "PYTHONWARNINGS": "ignore"}
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", driver.__name__, master, *([kinds] if kinds else [])],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=environment,
                text=True,
                start_new_session=True,
            )
        self.pid = self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it has not been killed."""
        return self._process.poll() is None

    def begin(self, job: Job, place: JobPlace) -> None:
        """Start a job, or let it go on, in its place."""
        (place.folder / driver.JOB).write_text(written(job, self._kinds), encoding="utf-8")
        place.hush()
        assert self._process.stdin is not None
        self._process.stdin.write(f"{place.folder}\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        """Kill it with all that it has started, and see them dead."""
        processes.kill_driver(self.pid)
        self._process.wait()
        with suppress(BrokenPipeError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        wait_until(lambda: not processes.of_driver(self.pid))
        self._scratch.cleanup()

    def last_words(self) -> str:
        """What it wrote last into its log."""
        return self.log.read_text(errors="replace")[-3000:]


class Drivers:
    """The driver that runs jobs now. With `spare`, the next one is started before it is needed.

    `kinds` is a module that knows more kinds of jobs.
    """

    def __init__(self, master: str, *, spare: bool, kinds: str | None = None) -> None:
        self._start, self._is_spared = partial(Driver, master, kinds), spare
        self._now: Driver | None = None
        self._next: Driver | None = None

    def __enter__(self) -> Drivers:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        for one in (self._now, self._next):
            if one is not None:
                one.kill()
        self._now = self._next = None

    def living(self) -> Driver:
        """A driver that lives: the same as last time, unless that one has died."""
        if self._now is not None and not self._now.is_alive:
            self._now.kill()
            self._now = None
        if self._now is None:
            self._now, self._next = self._next or self._start(), None
            if self._is_spared:
                self._next = self._start()
        return self._now
