"""What a state is written as: blocks of bytes, and a manifest of those that count.

A manifest has its format and a checksum in its first line, then what is written and where its
blocks are, as one line of JSON. It is a file of a state folder (`panes.stores.state_folder`), or
the beginning of a file that has the blocks behind it (`panes.stores.state_file`).
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from panes.errors import StateError

FORMAT = 2
_MAGIC = "panes-state"
Damaged: TypeAlias = Callable[[str], StateError]
"""What to raise for damage of some kind."""


@dataclass(slots=True, eq=False)
class FolderBlock:
    """Bytes and their checksum; `data` are those that are not in a file yet."""

    nbytes: int
    checksum: int
    file: str = ""
    begin: int = 0
    data: memoryview | None = None

    @classmethod
    def of(cls, data: bytes | memoryview) -> FolderBlock:
        """A block that is yet to be written."""
        view = memoryview(data)
        view = view.cast("B") if view.nbytes else memoryview(b"")
        return cls(len(view), zlib.crc32(view), data=view)

    def checked(self, data: bytes, damaged: Damaged) -> bytes:
        """What was read in its place, which is what was written."""
        if len(data) < self.nbytes:
            raise damaged("it is cut short")
        if zlib.crc32(data) != self.checksum:
            raise damaged("a checksum differs")
        return data


def manifest_bytes(about: Mapping[str, object], rows: Sequence[Sequence[object]]) -> bytes:
    """What is written, and for each block its size, checksum, file and place there."""
    body = json.dumps({"about": about, "blocks": rows}, separators=(",", ":")).encode()
    return f"{_MAGIC} {FORMAT} {_checksum(str(FORMAT), body)}\n".encode() + body


def read_manifest(
    data: bytes, path: Path, damaged: Damaged
) -> tuple[dict[str, Any], list[FolderBlock], bytes]:
    """What a manifest says, its blocks, and what is written behind it."""
    head, _, rest = data.partition(b"\n")
    body, _, behind = rest.partition(b"\n")
    words = head.decode("ascii", "replace").split()
    if len(words) != 3 or words[0] != _MAGIC:
        raise damaged("its first line is not that of a state")
    if words[2] not in (_checksum(words[1], body), _checksum("", body)):  # the latter: format 1
        raise damaged("its checksum differs")
    if words[1] != str(FORMAT):
        raise StateError(
            f"the state in {path} was written in format {words[1]}; this version of panes reads "
            f"format {FORMAT}",
            hint="go on with the version of panes that wrote it, or begin with a new state",
        )
    said = json.loads(body)
    return said["about"], [FolderBlock(*about) for about in said["blocks"]], behind


def _checksum(written_in: str, body: bytes) -> str:
    """It is of the format, too: a bit makes one of another."""
    return f"{zlib.crc32(body, zlib.crc32(written_in.encode())):08x}"
