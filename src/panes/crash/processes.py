"""Processes of a Spark driver: which there are, and how they die.

A driver is started in a session of its own, and everything that it starts stays in that session:
its JVM, the executors of a local cluster, the daemons of Python workers and the workers. So a
driver and all that belongs to it can be found, and be killed, without touching any other process.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from panes.errors import OptionError

_EXECUTOR, _DAEMON = "CoarseGrainedExecutorBackend", "daemon\0"
_JAVA = "java"


@dataclass(frozen=True, slots=True)
class Process:
    """A process that lives: its parent, its session, and the command that started it."""

    pid: int
    parent: int
    session: int
    command: str

    @property
    def is_java(self) -> bool:
        """Whether it is a JVM."""
        return Path(self.command.partition("\0")[0]).name == _JAVA


def require_processes() -> None:
    """Refuse a system where processes cannot be found."""
    if not Path("/proc/self/stat").exists():
        raise OptionError("kills need a system with /proc, as Linux has it")


def living() -> dict[int, Process]:
    """All processes that live, by their numbers."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, parent, _, session = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
            command = (folder / "cmdline").read_text(errors="replace")
            if state not in "ZX":
                pid = int(folder.name)
                found[pid] = Process(pid, int(parent), int(session), command)
    return found


def of_driver(driver: int) -> dict[int, Process]:
    """A driver and all that it has started, directly or not."""
    return {pid: p for pid, p in living().items() if p.session == driver}


def workers(driver: int) -> list[int]:
    """The Python workers of a driver: a daemon forks them, under its own command."""
    known = of_driver(driver)
    daemons = {pid for pid, p in known.items() if _DAEMON in p.command}
    return sorted(pid for pid in daemons if known[pid].parent in daemons)


def executors(driver: int) -> list[int]:
    """The executors of a driver on a local cluster."""
    known = of_driver(driver).values()
    return sorted(p.pid for p in known if _EXECUTOR in p.command and p.is_java)


def kill(pids: Iterable[int]) -> None:
    """Kill processes at once; those that are gone already are left in peace."""
    _send(pids, signal.SIGKILL)


def _send(pids: Iterable[int], what: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, what)


def kill_driver(driver: int) -> None:
    """Kill a driver with its JVMs, and then whatever it has left.

    The JVMs are stopped first: one that sees its driver go would end in good order, and one that
    is gone takes along the worker that may be at work here.
    """
    java = [p.pid for p in of_driver(driver).values() if p.is_java]
    _send(java, signal.SIGSTOP)
    kill([driver, *java])
    me = os.getpid()
    kill(pid for pid in of_driver(driver) if pid != me)


def executor_of(pid: int) -> int | None:
    """The executor that a Python worker works for; None if that is the driver itself."""
    known = living()
    while pid in known:
        if known[pid].is_java:
            return pid if _EXECUTOR in known[pid].command else None
        pid = known[pid].parent
    return None
