"""Kills that are planned: at which point of which batch which process dies.

A plan is a file, named for its point. Whoever comes to the point takes the file away first and
dies then, so a kill happens once, however often a task runs again. A folder of plans is all that
tasks, the driver and the process that watches them share.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Thread

from panes.crash import processes

DRIVER, WORKER, EXECUTOR = VICTIMS = ("driver", "worker", "executor")
RANDOM = "random"
BLOCK, STATE, STORED = "block", "state", "stored"
SUNK, END, CHANGE = "sunk", "end", "change"
POINTS = {
    RANDOM: "at random",
    BLOCK: "while a block is written",
    STATE: "before the state's commit",
    STORED: "after the state's commit",
    SUNK: "between sink and commit",
    END: "during the end of the stream",
    CHANGE: "during a change of queries",
}
"""Where a kill may strike, by name, in words."""
_TAKEN = ".taken"
_DRIVER = "driver.pid"


@dataclass(frozen=True, slots=True)
class KillPlan:
    """Who dies at a point, from which batch on. `after`: so many seconds later."""

    victim: str
    batch: int = 0
    after: float | None = None


@dataclass(frozen=True, slots=True)
class Kills:
    """The planned kills of a run, in a folder."""

    folder: Path

    # Those who watch

    def plan(self, point: str, plan: KillPlan) -> None:
        """One kill at a point, from now on; there is one at a time."""
        partial = self.folder / f"_{point}"
        partial.write_text(json.dumps(asdict(plan)))
        partial.rename(self.folder / point)

    def withdraw(self, point: str) -> None:
        """No kill at a point any more, if there still was one."""
        (self.folder / point).unlink(missing_ok=True)

    def forget(self, point: str) -> None:
        """A kill that has struck has been counted."""
        (self.folder / (point + _TAKEN)).unlink(missing_ok=True)

    def struck(self, point: str) -> int | None:
        """The batch in which the planned kill has struck; None if it has not."""
        try:
            return int((self.folder / (point + _TAKEN)).read_text())
        except (FileNotFoundError, ValueError):
            return None

    def note_driver(self) -> None:
        """This process is the driver that dies."""
        (self.folder / _DRIVER).write_text(str(os.getpid()))

    # Those who die

    def reach(self, point: str, batch: int) -> None:
        """Come to a point: where a kill is planned, it happens now."""
        plan = self._taken(point, batch)
        if plan is None:
            return
        if plan.after is None:
            self._strike(plan)
        else:
            Thread(target=self._strike, args=(plan,), daemon=True).start()

    def _taken(self, point: str, batch: int) -> KillPlan | None:
        path = self.folder / point
        try:
            plan = KillPlan(**json.loads(path.read_text()))
            if batch < plan.batch:
                return None
            mine = self.folder / f"_{point}.{os.getpid()}"
            path.rename(mine)
        except (FileNotFoundError, ValueError):
            return None  # there is none, or another one was faster
        mine.write_text(str(batch))
        mine.rename(self.folder / (point + _TAKEN))
        return plan

    def _strike(self, plan: KillPlan) -> None:
        if plan.after is not None:
            time.sleep(plan.after)
        if plan.victim == DRIVER:
            processes.kill_driver(int((self.folder / _DRIVER).read_text()))
        elif plan.victim == EXECUTOR:
            executor = processes.executor_of(os.getpid())
            processes.kill([] if executor is None else [executor])
        processes.kill([os.getpid()])
