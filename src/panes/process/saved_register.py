"""A register in a state folder, or in a file, from which another process goes on."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import astuple
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from panes.errors import StateError
from panes.process.keeper import Keeper, Kept, said_of
from panes.process.kept_graph import graph_tree, read_graph_tree
from panes.process.object_tree import Tree
from panes.process.register_graph import RegisterGraph
from panes.process.register_questions import Questions
from panes.process.step import uninterrupted
from panes.process.tree_reader import TreeReader
from panes.process.tree_writer import TreeWriter
from panes.sharing.queries import Failed
from panes.stores.state_file import StateFile

Signature: TypeAlias = tuple[int, int, int, int] | None
"""Device, inode, time and size of a file."""

_SAID_ANEW = frozenset({"lateness", "late", "max_ahead"})


class SavedRegister(Questions, Kept):
    """A register that can be written to a file, and go on from it.

    `saves` is how often it has been saved, in this process and in those before it.
    """

    saves: int
    _last_progress: int
    _graph: RegisterGraph
    _came: dict[str, int]
    _failed: dict[str, Failed]
    _written: dict[str, Signature]

    @property
    def said(self) -> Mapping[str, object]:
        """What must be the same when it goes on."""
        return said_of("Register", {"stream": ", ".join(self.streams)}, self._run, self._aggregates)

    @uninterrupted
    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write everything to a file; ``panes.register(stream, saved=path)`` goes on from there.

        It is what a state folder has (`state=`), written once. Options are said anew then. A file
        that is there and is not as this register wrote or read it is refused, unless `overwrite`
        says that it may go: another register may have written it.
        """
        self._require_running()
        if not overwrite:
            require_own(path, self._written.get(os.path.realpath(path)))
        self.saves += 1
        try:
            Keeper(self, StateFile(path), self.said, 1).save()
        except BaseException:
            self.saves -= 1
            raise
        self._written[os.path.realpath(path)] = signature(path)

    @uninterrupted
    def take_up(self, path: str | Path) -> None:
        """Go on where a saved register ended."""
        found = signature(path)
        Keeper(self, StateFile(path), self.said, 1).resume(_SAID_ANEW)
        self._written[os.path.realpath(path)] = found

    # In a state

    @property
    def given_columns(self) -> Mapping[str, pa.Schema]:
        """None: the columns of streams are written with the graph."""
        return {}

    def open_streams(self, **streams: pa.Table) -> None:
        """There are none to meet."""

    def written_by(self, writer: TreeWriter) -> Tree:
        """All that is remembered."""
        return {
            "finished": self._finished,
            "ended_at": self._last_progress,
            "saves": self.saves,
            "came": self._came,
            "failed": {name: astuple(failed) for name, failed in self._failed.items()},
            "graph": graph_tree(self._graph, writer),
        }

    def read_from(self, tree: Tree, reader: TreeReader) -> None:
        """Remember what was written."""
        self._finished, self._last_progress = tree["finished"], tree["ended_at"]
        self.saves, self._came = tree["saves"], tree["came"]
        self._failed = {name: Failed(*failed) for name, failed in tree["failed"].items()}
        read_graph_tree(self._graph, tree["graph"], reader)


def signature(path: str | Path) -> Signature:
    """What tells a file from whatever is written there later; None if there is none."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


def require_own(path: str | Path, known: Signature) -> None:
    """Refuse to write over a file that is not as a register has `known` it; an empty one may go."""
    found = signature(path)
    if found in (None, known) or found[-1] == 0:
        return
    try:
        about, _ = StateFile(path).read()
    except StateError:
        what = "is no saved register"
    else:
        saves = about["query"]["saves"]
        times = "once" if saves == 1 else f"{saves} times"
        what = f"was saved by another register of `{about['said']['stream']}` ({times} so far)"
    raise StateError(
        f"{path} {what}, and would be lost",
        hint="save to another file, or say that it may go: reg.save(path, overwrite=True)",
    )
