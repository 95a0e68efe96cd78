"""A query that outlives its process: after its steps, what it remembers is in a folder.

A step is written before its answers are with the caller, and so are they: whoever starts again
reads them in `last_answers`. A step that cannot be written has not happened.
"""

from __future__ import annotations

import datetime as dt
import json
import warnings
from abc import ABC, abstractmethod
from collections.abc import Container, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from panes.axis import format_duration, parse_duration
from panes.errors import OptionError, PanesError, StateError
from panes.html import Explained
from panes.planning.terms import StreamOptions
from panes.process.in_turn import Turn
from panes.process.object_tree import LastWriting, Tree
from panes.process.tree_reader import TreeReader
from panes.process.tree_writer import TreeWriter
from panes.stores.state_file import StateFile
from panes.stores.state_folder import StateFolder

_MOVING = frozenset({"push", "punctuate", "finish"})
"""Steps that a caller's position goes with; others do not come from its source."""
_LAST = frozenset({"finish", "answer"})
_SAID_ANEW = frozenset({"max_answers", "stall_rows"})
_DURATIONS = ("lateness", "max_ahead", "heartbeat", "revise_within")
NO_FOLDER = "nothing is kept of the query: it has no state folder"


class Keepable(Protocol):
    """What can be kept in a folder: whatever takes steps."""

    _turn: Turn

    @property
    def given_columns(self) -> Mapping[str, pa.Schema]:
        """The columns of the streams that have come or are known."""
        ...

    def open_streams(self, **streams: pa.Table) -> None:
        """Meet streams that come together, without rows."""
        ...

    def written_by(self, writer: TreeWriter) -> Tree:
        """All that is remembered."""
        ...

    def read_from(self, tree: Tree, reader: TreeReader) -> None:
        """Remember what was written."""
        ...


@dataclass(frozen=True, slots=True)
class _Standing:
    """Which steps are in; `answers` are those of the steps since the last writing."""

    pushes: int = 0
    position: Any = None
    waiting: Any = None
    is_waiting: bool = False
    unwritten: int = 0
    is_changed: bool = False
    answers: tuple[object, ...] = ()


class Keeper:
    """Keeps a query in a folder."""

    def __init__(
        self, query: Keepable, folder: StateFolder | StateFile, said: Mapping[str, Any], every: int
    ) -> None:
        """`said` is what must be the same whenever the query goes on; `every` so many steps."""
        self.folder, self._every = folder, every
        self._query, self._said = query, said
        self._standing = _Standing()
        self._streams: list[dict[str, pa.Schema]] = []
        self._written = LastWriting()

    @property
    def pushes(self) -> int:
        """How many pushes are in."""
        return self._standing.pushes

    @property
    def position(self) -> Any:
        """That of the last step that is in."""
        return self._standing.position

    @position.setter
    def position(self, value: Any) -> None:
        try:
            copied = json.loads(json.dumps(value))
        except (TypeError, ValueError):
            copied = None
        if copied != value:
            raise OptionError(
                f"a position is what JSON can hold, and {value!r} is not",
                hint='numbers, text, lists and dicts of these: query.position = {"offset": 17}',
            )
        self._standing = replace(self._standing, waiting=copied, is_waiting=True)

    @property
    def last_answers(self) -> list[Any]:
        """What the steps gave that the last writing made durable."""
        return list(self._standing.answers)

    def resume(self, may_change: Container[str] = ()) -> None:
        """Go on where the folder ends, or begin one that is new. Some options `may_change`."""
        about, blocks = self.folder.read()
        if about:
            _require_same(about["said"], self._said, self.folder.path, may_change)
            reader = TreeReader(blocks, self.folder, about["panes"])
            self._open_streams(reader.value(about["streams"]))
            self._query.read_from(about["query"], reader)
            self._written = reader.written
            self._standing = _Standing(
                about["pushes"], about["position"], answers=tuple(reader.value(about["answers"]))
            )
        else:
            self._note_streams()
            self.write()

    def stepped(self, name: str, answers: object) -> None:
        """A step has given answers, and is undone if this fails or anything after it."""
        before = self._standing
        self._query._turn.undo.last(lambda: self._go_back(before))
        now = replace(
            before,
            pushes=before.pushes + (name == "push"),
            unwritten=before.unwritten + 1,
            answers=(*(before.answers if before.unwritten else ()), answers),
        )
        if name in _MOVING and before.is_waiting:
            now = replace(now, position=before.waiting, waiting=None, is_waiting=False)
        self._standing = now
        self._note_streams()
        if now.unwritten >= self._every or name in _LAST:
            self.write()

    def write(self) -> None:
        """Put what the query remembers into the folder."""
        writer = TreeWriter(self._written)
        about = self._about(writer)
        try:
            self.folder.write(about, writer.blocks)
        except OSError as error:
            raise StateError(
                f"the state could not be written to {self.folder.path}: "
                f"{error.strerror or error}; the step has not happened",
                hint="make room, or mend what is wrong with the disk, and make the call again",
            ) from error
        self._written = writer.now
        self._standing = replace(self._standing, unwritten=0, is_changed=False)

    def save(self) -> None:
        """Put what the query remembers into a file, once."""
        self._note_streams()
        writer = TreeWriter(None)
        try:
            self.folder.write(self._about(writer), writer.blocks)
        except OSError as error:
            raise StateError(
                f"the state cannot be saved in {self.folder.path}: {error.strerror or error}"
            ) from error

    def changed(self) -> None:
        """What is asked has changed, which is no step: it is written with the next one."""
        self._standing = replace(self._standing, is_changed=True)

    def close(self) -> None:
        """Write what is not written yet, and let others have the folder."""
        try:
            if self._standing.unwritten or self._standing.is_changed:
                self.write()
        except BaseException:
            self._written = (
                LastWriting()
            )  # nothing puts back what stores tell of themselves only once
            raise
        self.folder.close()

    # Within

    def _about(self, writer: TreeWriter) -> dict[str, object]:
        """All that is written, beside its blocks."""
        standing = self._standing
        return {
            "panes": _version(),
            "said": self._said,
            "pushes": standing.pushes,
            "position": standing.position,
            "answers": writer.tree([_plain(one) for one in standing.answers]),
            "streams": writer.tree([_empty(group) for group in self._streams]),
            "query": self._query.written_by(writer),
        }

    def _go_back(self, before: _Standing) -> None:
        """The step has not happened; what it may have written is written over, by `close` too."""
        self._written = LastWriting()
        self._standing = replace(before, is_changed=True)

    def _note_streams(self) -> None:
        """Which streams have come together: a plan is made when the first of them come."""
        known = {name for group in self._streams for name in group}
        new = {n: s for n, s in self._query.given_columns.items() if n not in known}
        if new:
            self._streams = [*self._streams, new]

    def _open_streams(self, groups: list[dict[str, pa.Table]]) -> None:
        """Let the query meet its streams as it did, without rows."""
        self._streams = [{name: t.schema for name, t in group.items()} for group in groups]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for group in groups:
                try:
                    self._query.open_streams(**group)
                except PanesError as error:
                    raise self._other_columns(error.message) from error
        known = self._query.given_columns
        for name, schema in ((n, s) for group in self._streams for n, s in group.items()):
            if known[name] != schema:
                was, now = (
                    ", ".join(f"{f.name} {f.type}" for f in s) for s in (schema, known[name])
                )
                raise self._other_columns(f"those of `{name}` were {was}, are {now}")

    def _other_columns(self, words: str) -> StateError:
        return StateError(
            f"the state in {self.folder.path} is that of streams with other columns: {words}",
            hint="give the same schema, or name a new folder",
        )


class Kept:
    """The part of a query that its caller goes on from after a restart."""

    _turn: Turn

    @property
    def position(self) -> Any:
        """A value of the caller's own, such as an offset: that of the last step that is in.

        Set it before `push`, `punctuate` or `finish`, and it is stored with that call; if the call
        fails, with the next one that does not. After a restart, rows behind it are to be pushed.
        """
        return self._keeper.position

    @position.setter
    def position(self, value: Any) -> None:
        self._keeper.position = value

    @property
    def pushes(self) -> int:
        """How many pushes are in, those before a restart included."""
        return self._keeper.pushes

    @property
    def last_answers(self) -> list[Any]:
        """What the calls returned that were written last, one entry for each.

        After a restart, the caller may not have had them.
        """
        return self._keeper.last_answers

    def close(self) -> None:
        """Write what is not written yet, and let another process have the state folder."""
        with self._turn.taken():
            self._keeper.close()

    def _note_change(self) -> None:
        """What is asked has changed."""
        if self._turn.keeper is not None:
            self._turn.keeper.changed()

    @property
    def _on_disk(self) -> dict[str, int]:
        """How many bytes the folder has, if there is one, as a part of what is stored."""
        keeper = self._turn.keeper
        return {} if keeper is None else {"on_disk": keeper.folder.nbytes}

    def _explained(self, text: str) -> Explained:
        """A plan, and the folder that the query is kept in."""
        keeper = self._turn.keeper
        if keeper is not None:
            text = (
                f"{text.rstrip()}\nkept       in {keeper.folder.path}, {keeper.pushes:,} pushes\n"
            )
        return Explained(text)

    @property
    def _keeper(self) -> Keeper:
        if self._turn.keeper is None:
            raise OptionError(NO_FOLDER, hint='open it with one: panes.open(text, state="folder")')
        return self._turn.keeper


class KeptQuery(Kept, ABC):
    """A query that is written as it is."""

    def open_streams(self, **streams: pa.Table) -> None:
        """Meet streams that come together, without rows."""
        self.push(**streams)

    @abstractmethod
    def push(self, /, **batches: object) -> pa.Table:
        """Take in a batch of each of some streams."""

    def written_by(self, writer: TreeWriter) -> Tree:
        """All that is remembered."""
        return writer.tree(self)

    def read_from(self, tree: Tree, reader: TreeReader) -> None:
        """Remember what was written."""
        reader.value(tree, self)


@cache
def _version() -> str:
    return version("panes")


def keep(query: Keepable, path: str | Path | None, every: int, said: Mapping[str, Any]) -> None:
    """Keep a query that was just opened in a folder, or go on where the folder ends."""
    if path is None:
        if every != 1:
            raise OptionError("checkpoint_every is for a state folder", hint='state="folder"')
        return
    folder = StateFolder(path)
    try:
        keeper = Keeper(query, folder, said, every)
        keeper.resume()
    except BaseException:
        folder.close()
        raise
    query._turn.keeper = keeper


def said_of(
    kind: str, said: Mapping[str, str], run: StreamOptions, aggregates: Any
) -> dict[str, Any]:
    """What must be the same when a query goes on."""
    options = {f.name: getattr(run, f.name) for f in fields(run) if f.name not in _SAID_ANEW}
    return {
        "kind": kind,
        **{what: " ".join(text.split()) for what, text in said.items()},
        "aggregates": sorted(one.name for one in aggregates),
        **{name: _words(name, value) for name, value in options.items()},
    }


def _words(option: str, value: object) -> str:
    """What an option is; a duration is said as one, however it was written."""
    if option in _DURATIONS and isinstance(value, str | dt.timedelta):
        return format_duration(parse_duration(value, option=option))
    return repr(value)


def _require_same(
    before: Mapping[str, Any], now: Mapping[str, Any], path: Path, may_change: Container[str]
) -> None:
    """Refuse the state of another query, or of one with other options."""
    names = (n for n in {**before, **now} if n not in may_change)
    changed = [n for n in names if before.get(n) != now.get(n)]
    if changed:
        words = "; ".join(f"{n} was {before.get(n)}, is {now.get(n)}" for n in changed)
        raise StateError(
            f"{path} holds the state of another query: {words}",
            hint="ask as before, or begin with a new state",
        )


def _plain(answers: object) -> object:
    """Answers as they are written; those of a register by the names of its queries."""
    return dict(answers) if isinstance(answers, Mapping) else answers


def _empty(group: Mapping[str, pa.Schema]) -> dict[str, pa.Table]:
    return {name: schema.empty_table() for name, schema in group.items()}
