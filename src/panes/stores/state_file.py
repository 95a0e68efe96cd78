"""A state in one file: the manifest of a state folder, and its blocks behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from panes.errors import StateError
from panes.stores.state_blocks import FolderBlock, manifest_bytes, read_manifest
from panes.whole_file import replacing

_BEFORE_0_2 = b"PANE"


class StateFile:
    """A file that is written as a whole or not at all."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._blocks = b""

    @property
    def nbytes(self) -> int:
        """Bytes of the blocks that were read."""
        return len(self._blocks)

    def close(self) -> None:
        """Nothing is held open."""

    def read(self) -> tuple[dict[str, Any], list[FolderBlock]]:
        """What was written, and its blocks in their order."""
        try:
            data = self.path.read_bytes()
        except OSError as error:
            raise StateError(
                f"no register can be read from {self.path}: {error.strerror}"
            ) from error
        if data.startswith(_BEFORE_0_2):
            raise StateError(
                f"{self.path} was saved in the format of panes 0.1, which is not read any more",
                hint="let that version answer what is open, and begin with a new file",
            )
        about, blocks, self._blocks = read_manifest(data, self.path, self._damaged)
        return about, blocks

    def fetch(self, block: FolderBlock) -> bytes:
        """The bytes of a block, which are what was written."""
        data = self._blocks[block.begin : block.begin + block.nbytes]
        return block.checked(data, self._damaged)

    def write(self, about: Mapping[str, object], blocks: Sequence[FolderBlock]) -> None:
        """Put what is written into the place of what was."""
        ends = [0, *accumulate(block.nbytes for block in blocks)]
        rows = [(b.nbytes, b.checksum, "", at) for b, at in zip(blocks, ends, strict=False)]
        with replacing(self.path) as partial, partial.open("wb") as file:
            file.write(manifest_bytes(about, rows) + b"\n")
            for block in blocks:
                file.write(block.data or b"")

    def _damaged(self, how: str) -> StateError:
        return StateError(f"{self.path} is no saved register, or it is damaged: {how}")
