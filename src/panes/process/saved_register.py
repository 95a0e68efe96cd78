"""A register in a file or a state folder, from which another process goes on."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from panes.errors import OptionError, QueryError, StateError
from panes.process import register_file
from panes.process.keeper import Kept
from panes.process.kept_register import register_tree, take_up_tree
from panes.process.object_tree import Tree
from panes.process.register_file import Signature, StreamState
from panes.process.register_graph import RegisterGraph
from panes.process.register_questions import Questions
from panes.process.step import in_turn, uninterrupted
from panes.process.tree_reader import TreeReader
from panes.process.tree_writer import TreeWriter


class SavedRegister(Questions, Kept):
    """A register that can be written to a file, and go on from it.

    `saves` is how often it has been saved, in this process and in those before it.
    """

    saves: int
    _last_progress: int
    _graph: RegisterGraph
    _written: dict[str, Signature]

    def _texts(self) -> dict[str, str]:
        raise NotImplementedError

    @uninterrupted
    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write everything to a file; ``panes.register(stream, saved=path)`` goes on from there.

        Lateness and the like are said anew then, and so are prepared questions. A file that is
        there and is not as this register wrote or read it is refused, unless `overwrite` says that
        it may go: another register may have written it. Only sliding windows over one column of
        one stream can be saved.
        """
        self._require_running()
        if not overwrite:
            register_file.require_own(path, self._written.get(os.path.realpath(path)))
        if self._run.rows_late is not None:
            raise OptionError("a register with rows_late cannot be saved", hint="give a lateness")
        self._require_saveable()
        if self._primary.reading.schema is None:
            raise QueryError("nothing has come yet that could be saved")
        state = self._primary.saved_state(self.saves + 1)
        register_file.write(path, self._primary.queries, state)
        self._written[os.path.realpath(path)] = register_file.signature(path)
        self.saves += 1

    @in_turn
    def require_saveable(self) -> None:
        """Refuse now what `save` would refuse later: queries whose state is not in the file."""
        self._require_saveable()

    def _require_saveable(self) -> None:
        beside = [name for name in self._texts() if name not in self._primary.queries.asked]
        if beside:
            raise QueryError(
                f"only sliding windows over one column can be saved, not query `{beside[0]}`",
                hint="give it a register of its own",
            )

    @uninterrupted
    def take_up(self, path: str | Path) -> None:
        """Go on where a saved register ended."""
        found = register_file.signature(path)
        manifest, state, beside = register_file.read(path)
        if manifest.stream != self.stream:
            raise StateError(
                f"{path} holds a register of `{manifest.stream}`, not of `{self.stream}`"
            )
        self._primary.take_up(manifest, state, beside)
        self._note_taken_up(beside)
        self.saves = beside.saves
        self._written[os.path.realpath(path)] = found

    def _note_taken_up(self, beside: StreamState) -> None:
        """Rows have come, in a process before this one."""
        self._graph.schemas[self.stream] = beside.schema
        self._graph.arrived[self.stream] = max(beside.arrived, 1)

    # In a state folder

    @property
    def given_columns(self) -> Mapping[str, pa.Schema]:
        """None: the columns of the stream are written with all else."""
        return {}

    def open_streams(self, **streams: pa.Table) -> None:
        """There are none to meet."""

    def written_by(self, writer: TreeWriter) -> Tree:
        """All that is remembered, but for prepared questions."""
        windows = self._primary
        is_known = windows.reading.schema is not None and not self._finished
        beside = windows.saved_state(self.saves + 1) if is_known else None
        flags = {"finished": self._finished, "ended_at": self._last_progress, "saves": self.saves}
        return {**flags, **register_tree(windows.queries, windows.reading, beside, writer)}

    def read_from(self, tree: Tree, reader: TreeReader) -> None:
        """Remember what was written."""
        windows = self._primary
        beside = take_up_tree(windows.queries, windows.reading, tree, reader)
        self._finished, self._last_progress = tree["finished"], tree["ended_at"]
        self.saves = tree["saves"]
        if beside is not None:
            windows.bind_prepared(beside)
            self._note_taken_up(beside)

    def _require_kept(self, name: str) -> None:
        """Refuse a query whose state a folder does not keep."""
        if self._turn.keeper is None or name in self._primary.queries.asked:
            return
        self._graph.remove(name)
        raise QueryError(
            f"a state folder keeps sliding windows over one column, not query `{name}`",
            hint="give it a register of its own, or panes.open(text, state=...)",
        )
