"""A folder with the state of a query: blocks of bytes, and a manifest of those that count.

    lock             held by the process that writes; the system releases it when that ends
    manifest         format and checksum in its first line, then what is written, as JSON
    blocks-000017    blocks that one writing has brought, one behind the other

A writing puts new blocks into a file of their own, waits until they are on the disk, and then puts
another manifest in the place of the one before. Blocks that did not change stay where they are.
Files that mostly hold blocks of the past are given up: what still counts in them moves on.

Invariant: all blocks that the manifest names are on the disk before it is. So whenever the process
is killed, the folder holds the state before the last writing or the one after it.
"""

from __future__ import annotations

import os
import weakref
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from panes.errors import OptionError, StateError
from panes.stores.state_blocks import FolderBlock, manifest_bytes, read_manifest
from panes.whole_file import replacing

_LOCK, _MANIFEST, _BLOCKS = "lock", "manifest", "blocks-"
_MOST_FILES = 256


class StateFolder:
    """A folder that this process writes, and no other until it ends or `close` is called."""

    def __init__(self, path: str | Path) -> None:
        """Take the folder; there need not be one yet."""
        self.path = Path(path)
        self.written = 0
        self._sizes: dict[str, int] = {}
        with _as_state_error(self.path, "used"):
            self.path.mkdir(parents=True, exist_ok=True)
            self._require_own()
            self._let_go = weakref.finalize(self, os.close, _locked(self.path))
        try:
            with _as_state_error(self.path, "used"):
                for left in self.path.glob("*.partial"):
                    left.unlink()
                if not (self.path / _MANIFEST).exists():
                    self.write({}, [])
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let others have the folder."""
        self._let_go()

    @property
    def nbytes(self) -> int:
        """Bytes of all files with blocks."""
        return sum(self._sizes.values())

    def read(self) -> tuple[dict[str, Any], list[FolderBlock]]:
        """What was written last, and its blocks in their order; nothing in a new folder."""
        with _as_state_error(self.path, "read"):
            data = (self.path / _MANIFEST).read_bytes()
        about, blocks, _ = read_manifest(data, self.path, lambda how: self._damaged(_MANIFEST, how))
        self._sizes = {
            name: path.stat().st_size
            for name in {block.file for block in blocks}
            if (path := self.path / name).exists()
        }
        return about, blocks

    def fetch(self, block: FolderBlock) -> bytes:
        """The bytes of a block, which are what was written."""
        try:
            with (self.path / block.file).open("rb") as file:
                file.seek(block.begin)
                data = file.read(block.nbytes)
        except FileNotFoundError:
            raise self._damaged(block.file, "it is missing") from None
        return block.checked(data, lambda how: self._damaged(block.file, how))

    def write(self, about: Mapping[str, object], blocks: Sequence[FolderBlock]) -> None:
        """Put these blocks in the place of all others, and `about` beside them. All or nothing."""
        if not self._let_go.alive:
            raise StateError(f"the state folder {self.path} is closed", hint="open it again")
        moving = self._given_up(blocks)
        places: dict[int, int] = {}
        name = self._new_name()
        try:
            size = self._append(name, blocks, moving, places)
            rows = [
                (b.nbytes, b.checksum, name, places[id(b)])
                if id(b) in places
                else (b.nbytes, b.checksum, b.file, b.begin)
                for b in blocks
            ]
            with replacing(self.path / _MANIFEST) as partial:
                partial.write_bytes(manifest_bytes(about, rows))
        except BaseException:
            self._take_back(name)
            raise
        for block in blocks:
            if id(block) in places:
                block.file, block.begin, block.data = name, places[id(block)], None
        if places:
            self._sizes[name] = size
        self.written += size
        self._sweep({block.file for block in blocks})

    # Within

    def _append(
        self, name: str, blocks: Sequence[FolderBlock], moving: set[str], places: dict[int, int]
    ) -> int:
        """Write the blocks that have no file, or not for long, into a new one; gives its size."""
        some = [block for block in blocks if block.data is not None or block.file in moving]
        if not some:
            return 0
        size = 0
        with (self.path / name).open("wb") as file:
            for block in some:
                if id(block) not in places:
                    places[id(block)] = size
                    size += file.write(self.fetch(block) if block.data is None else block.data)
            file.flush()
            os.fsync(file.fileno())
        return size

    def _given_up(self, blocks: Sequence[FolderBlock]) -> set[str]:
        """The files of which less than half counts; and the smallest ones, if they are many."""
        live: Counter[str] = Counter()
        for block in {id(block): block for block in blocks}.values():
            if block.data is None:
                live[block.file] += block.nbytes
        gone = {name for name, nbytes in live.items() if 2 * nbytes < self._sizes[name]}
        left = [name for name, _ in reversed(live.most_common()) if name not in gone]
        return gone | set(left[: len(left) // 2] if len(left) > _MOST_FILES else ())

    def _new_name(self) -> str:
        """A name that no file has had: the manifest may name one of a writing that has failed."""
        names = [*self._sizes, *(path.name for path in self.path.glob(f"{_BLOCKS}*"))]
        last = max((int(name.removeprefix(_BLOCKS)) for name in names), default=0)
        return f"{_BLOCKS}{last + 1:06}"

    def _take_back(self, name: str) -> None:
        """Remove what a failed writing has left, unless the manifest names it after all."""
        manifest = self.path / _MANIFEST
        try:
            if not manifest.exists() or name.encode() not in manifest.read_bytes():
                (self.path / name).unlink(missing_ok=True)
        except OSError:
            pass  # the next writing that succeeds removes it

    def _sweep(self, needed: set[str]) -> None:
        """Remove files without a block that counts. What cannot be removed now is so next time."""
        for path in self.path.glob(f"{_BLOCKS}*"):
            if path.name not in needed:
                self._sizes.pop(path.name, None)
                with suppress(OSError):
                    path.unlink()

    def _require_own(self) -> None:
        """Refuse a folder with other things in it, or without its manifest."""
        names = {path.name for path in self.path.iterdir()} - {_LOCK}
        names = {name for name in names if not name.endswith(".partial")}
        if _MANIFEST in names or not names:
            return
        if all(name.startswith(_BLOCKS) for name in names):
            raise self._damaged(_MANIFEST, "it is missing")
        raise StateError(
            f"{self.path} is no state folder: it holds {min(names)}",
            hint="name a folder that is new or empty",
        )

    def _damaged(self, name: str, how: str) -> StateError:
        return StateError(
            f"the state in {self.path} is damaged: {name}: {how}",
            hint="put back a copy of the folder, or name a new one and push the rows again",
        )


def _locked(path: Path) -> int:
    """The file that says who has the folder, open and locked by this process."""
    try:
        import fcntl
    except ModuleNotFoundError:
        raise OptionError("a state folder needs the file locks of Linux or macOS") from None
    file = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        process = os.read(file, 20).decode() or "unknown"
        os.close(file)
        raise StateError(
            f"the state folder {path} is in use, by process {process}",
            hint="close() the query that uses it or end that process, or name another folder",
        ) from None
    os.ftruncate(file, 0)
    os.write(file, str(os.getpid()).encode())
    return file


@contextmanager
def _as_state_error(path: Path, verb: str) -> Iterator[None]:
    """What the system says of the folder, as an error about state."""
    try:
        yield
    except OSError as error:
        said = error.strerror or str(error)
        raise StateError(f"the state folder {path} cannot be {verb}: {said}") from error
