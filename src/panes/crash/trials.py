"""Runs of a job that are killed again and again, until they end; then their answers are judged.

A cell is who is killed and where. In a cell, a run is killed in one batch after the other, Python
workers several times in each, and goes on each time, until it ends or the kills are used up. Then
another one begins.
"""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from panes.crash import processes
from panes.crash.drivers import CLUSTER, LOCAL, Driver, Drivers, wait_until
from panes.crash.jobs import Job, Streams
from panes.crash.kills import (
    BLOCK,
    CHANGE,
    DRIVER,
    END,
    EXECUTOR,
    RANDOM,
    STATE,
    STORED,
    SUNK,
    VICTIMS,
    WORKER,
    KillPlan,
)
from panes.crash.place import JobPlace
from panes.crash.verdict import Verdict
from panes.errors import PanesError, QueryError

IN_TASKS = (RANDOM, BLOCK, STATE, STORED, END)
"""Points at which a Python worker runs, so that it or its executor can be killed."""
_IN_A_ROW = {DRIVER: 1, WORKER: 5, EXECUTOR: 1}
"""How often a batch is killed before the next one is. A worker that is forked again costs little, a
run much; the same task may fail 20 times."""
_ENDS_PER_RUN = {DRIVER: 3, WORKER: 10, EXECUTOR: 3}
_SHARE = {DRIVER: 0.8, WORKER: 0.05, EXECUTOR: 0.2}
"""How long one waits for a kill at random, at most, in parts of an undisturbed run: a run ends with
its driver, and goes on after the others."""
_CALM_RUNS = 4
_FAILURES = 3
"""How often a stream may fail in a row without a kill: a busy machine starts workers too late."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Who is killed, and at which point."""

    victim: str
    point: str


@dataclass(frozen=True, slots=True)
class Tally:
    """How often processes were killed in a cell, in how many runs, and what was wrong then."""

    kills: int = 0
    runs: int = 0
    verdict: Verdict = field(default_factory=Verdict)

    def __add__(self, other: Tally) -> Tally:
        kills, runs = self.kills + other.kills, self.runs + other.runs
        return Tally(kills, runs, self.verdict + other.verdict)


def cells(job: Job, victims: tuple[str, ...] = VICTIMS) -> list[Cell]:
    """All cells that a job has."""
    points = [RANDOM, BLOCK, STATE, STORED, SUNK]
    points += [END] * job.ends + [CHANGE] * job.changes
    found = [Cell(v, p) for v in victims for p in points]
    return [c for c in found if c.victim == DRIVER or c.point in IN_TASKS]


class Torment:
    """A job over streams, to be killed on the drivers of one master. Seeded: it has no luck."""

    def __init__(self, job: Job, streams: Streams, *, seed: int = 0) -> None:
        self._job, self._streams = job, streams
        self._random = random.Random(seed)
        self._length = 1.0

    def calm(self, drivers: Drivers) -> Verdict:
        """A run that nobody disturbs, which also tells how long one takes."""
        with self._place() as place:
            for _ in range(_FAILURES):
                clock = _Clock()
                if self._watch(self._begun(drivers, place), place, clock):
                    self._length = clock.length
                    return self._job.judged(place, self._streams)
                if place.said().get("refused"):
                    raise QueryError(place.said()["failed"])
            raise PanesError(f"the stream fails without a kill: {place.said()['failed']}")

    def tally(self, drivers: Drivers, cell: Cell, kills: int) -> Tally:
        """Kill so many times in a cell; fewer if no run ever comes to its point.

        A run that ends before its kill is due is half as long as was thought: the machine had more
        to do when it was measured.
        """
        total, calm = Tally(), 0
        while total.kills < kills and calm < _CALM_RUNS:
            most = kills - total.kills
            if cell.point == END:
                most = min(most, _ENDS_PER_RUN[cell.victim])
            one = self._run(drivers, cell, most, self._length / 2**calm)
            calm = 0 if one.kills else calm + 1
            total = total + one
        return total

    def _run(self, drivers: Drivers, cell: Cell, most: int, length: float) -> Tally:
        """One run to its end, that takes about so long, killed on the way."""
        with self._place() as place:
            killer = self._killer(cell, place, most, length)
            failed = 0
            while True:
                driver = self._begun(drivers, place)
                before = killer.kills
                if self._watch(driver, place, killer):
                    break
                killer.look(driver)
                failed = failed + 1 if killer.kills == before else 0
                if failed == _FAILURES:
                    raise PanesError(f"a stream fails though nothing is killed: {place.said()}")
                if cell.victim == DRIVER:
                    driver.kill()  # what is left of it
            killer.withdraw()
            return Tally(killer.kills, 1, self._job.judged(place, self._streams))

    def _killer(
        self, cell: Cell, place: JobPlace, most: int, length: float
    ) -> _AtPoint | _AtRandom:
        if cell.point == RANDOM:
            return _AtRandom(cell.victim, self._random, length, most)
        return _AtPoint(cell, place, self._random, most)

    def _begun(self, drivers: Drivers, place: JobPlace) -> Driver:
        driver = drivers.living()
        driver.begin(self._job, place)
        return driver

    def _watch(self, driver: Driver, place: JobPlace, killer: _Killer) -> bool:
        """Wait until a run is done, has failed, or its driver is dead; says whether it is done."""
        told: dict[str, object] = {}

        def is_over() -> bool:
            nonlocal told
            told = place.said()
            if told.get("started"):
                killer.look(driver)
            return bool(told.get("done") or told.get("failed")) or not driver.is_alive

        killer.began()
        wait_until(is_over)
        if not driver.is_alive and not killer.is_deadly:
            raise PanesError(f"a driver died by itself: {driver.last_words()}")
        return bool(told.get("done"))

    @contextmanager
    def _place(self) -> Iterator[JobPlace]:
        with tempfile.TemporaryDirectory(prefix="panes-", ignore_cleanup_errors=True) as folder:
            place = JobPlace(Path(folder) / "run")
            place.make(self._streams, self._job.hidden)
            yield place
            shutil.rmtree(place.folder, ignore_errors=True)


class _Killer:
    """Who looks at a run, again and again, and kills."""

    kills = 0
    is_deadly = False

    def began(self) -> None:
        """A driver has been told to run."""

    def look(self, driver: Driver, /) -> None:
        """Do what is due."""

    def withdraw(self) -> None:
        """Nobody is to be killed any more."""


class _Clock(_Killer):
    """Kills nobody, and looks how long a run takes once its stream has started."""

    def __init__(self) -> None:
        self._first: float | None = None
        self._last = 0.0

    @property
    def length(self) -> float:
        """Seconds from the first look to the last."""
        return 0.0 if self._first is None else self._last - self._first

    def look(self, _: Driver) -> None:
        self._last = time.monotonic()
        self._first = self._first or self._last


class _AtPoint(_Killer):
    """Plans a kill at a point, and the next one there or in a later batch once it has struck."""

    def __init__(self, cell: Cell, place: JobPlace, luck: random.Random, most: int) -> None:
        self._cell, self._kills, self._random, self._most = cell, place.kills, luck, most
        self.is_deadly = cell.victim == DRIVER
        self._in_batch: Counter[int] = Counter()
        self._plan(0)

    def look(self, _: Driver) -> None:
        struck = self._kills.struck(self._cell.point)
        if struck is not None:
            self.kills += 1
            self._in_batch[struck] += 1
            is_enough = self._in_batch[struck] >= _IN_A_ROW[self._cell.victim]
            self._plan(0 if self._cell.point == END else struck + is_enough)

    def withdraw(self) -> None:
        self._kills.withdraw(self._cell.point)

    def _plan(self, batch: int) -> None:
        """The next kill, if there is to be one. A change is struck at its end, or on the way."""
        self._kills.forget(self._cell.point)
        if self.kills >= self._most:
            return
        plan = KillPlan(self._cell.victim, batch)
        if self._cell.point == CHANGE:
            after = self._random.choice([None, self._random.uniform(0, 1)])
            plan = replace(plan, batch=0, after=after)
        self._kills.plan(self._cell.point, plan)


class _AtRandom(_Killer):
    """Kills some process of a kind at a moment that is drawn anew after each kill."""

    def __init__(self, victim: str, luck: random.Random, length: float, most: int) -> None:
        self._victim, self._random, self._length, self._most = victim, luck, length, most
        self.is_deadly = victim == DRIVER
        self._due: float | None = None

    def began(self) -> None:
        self._due = None

    def look(self, driver: Driver) -> None:
        if self.kills >= self._most:
            return
        if self._due is None:
            most = _SHARE[self._victim] * self._length
            self._due = time.monotonic() + self._random.uniform(0, most)
        if time.monotonic() >= self._due and self._killed(driver):
            self.kills += 1
            self._due = None

    def _killed(self, driver: Driver) -> bool:
        if not driver.is_alive:
            return False
        if self._victim == DRIVER:
            driver.kill()
            return True
        find = processes.workers if self._victim == WORKER else processes.executors
        found = find(driver.pid)
        if found:
            processes.kill([self._random.choice(found)])
        return bool(found)


def drivers_for(victim: str, kinds: str | None = None) -> Drivers:
    """Executors of their own are there on a local cluster only."""
    if victim == EXECUTOR:
        return Drivers(CLUSTER, spare=False, kinds=kinds)
    return Drivers(LOCAL, spare=victim == DRIVER, kinds=kinds)
