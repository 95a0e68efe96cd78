"""What people see on stderr beside bars and tables: lines, and what other processes said."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

console = Console(stderr=True, soft_wrap=True, highlight=False)


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
