"""What people see on stderr: progress while something runs, tables when it is done."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

console = Console(stderr=True, soft_wrap=True, highlight=False)


class Meter:
    """A bar that counts rows; on anything but a terminal it shows nothing."""

    def __init__(self, progress: Progress, what: str, total: int | None) -> None:
        self._progress = progress
        self._task = progress.add_task(what, total=total)

    def advance(self, rows: int) -> None:
        """So many rows more."""
        self._progress.advance(self._task, rows)


@contextmanager
def meter(what: str, total: int | None) -> Iterator[Meter]:
    """Show progress for as long as the block runs."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        yield Meter(bar, what, total)


def say(text: str) -> None:
    """One line for people."""
    console.print(text, markup=False)


@contextmanager
def errors_in(log: Path) -> Iterator[None]:
    """Let processes that start in the block, and their own, write errors to a file.

    The JVM and its Python workers talk to whatever is file 2 when the JVM starts, and would talk
    into what people read. What they said is shown if the block fails.
    """
    sys.stderr.flush()
    terminal = os.dup(2)
    try:
        with log.open("wb") as file:
            os.dup2(file.fileno(), 2)
        yield
    except Exception:
        os.dup2(terminal, 2)
        say(log.read_text(errors="replace"))
        raise
    finally:
        os.dup2(terminal, 2)
        os.close(terminal)
