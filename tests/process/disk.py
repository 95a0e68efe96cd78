"""A disk that fails where a test wants it to, and files that are damaged."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest


def killed(query: Any) -> None:
    """Let go of the folder, as the system does when a process is killed."""
    query._turn.keeper.folder.close()


class Killed(BaseException):
    """The process has ended."""


class Disk:
    """Counts what is done to files, and fails at one of these."""

    def __init__(self, patch: pytest.MonkeyPatch, fails: Callable[[], BaseException]) -> None:
        self.done, self.at = 0, -1
        self._fails = fails
        for name in ("fsync", "replace", "unlink"):
            patch.setattr(os, name, self._counted(getattr(os, name)))
        write = Path.write_bytes

        def written(path: Path, data: bytes) -> int:
            if self._is_due():
                write(path, data[: len(data) // 2])
                raise self._fails()
            return write(path, data)

        patch.setattr(Path, "write_bytes", written)

    def _is_due(self) -> bool:
        self.done += 1
        return self.done - 1 == self.at

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*given: Any, **named: Any) -> Any:
            if self._is_due():
                raise self._fails()
            return call(*given, **named)

        return counted


FULL = OSError(errno.ENOSPC, "No space left on device")


def files(folder: Path) -> Iterator[Path]:
    yield from sorted(path for path in folder.iterdir() if path.name != "lock")


def flipped(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(bytes(data))


DAMAGE: dict[str, Callable[[Path], None]] = {
    "a byte": lambda path: flipped(path, -1),
    "cut short": lambda path: os.truncate(path, path.stat().st_size - 1),
    "empty": lambda path: os.truncate(path, 0),
    "deleted": lambda path: path.unlink(),
}
