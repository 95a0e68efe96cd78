"""A node: what gives rows and promises. A graph of nodes is stepped from the inside out.

    stream ──► shared windows ──► answers of many queries
    stream ──► windows ──► windows over their answers ──► answers of a query

Everything that runs in one process is a node: windows of one query (`WindowsNode`), a join of one
query (`JoinNode`), windows of many queries over shared panes (`SharedWindows`), queries over shared
joins (`SharedJoins`). A node reads streams and other nodes by their names. In a step it takes in
the rows and the promises of what it reads, and gives the answers of its ends; what it says of
answers to come is a promise to those that read it. What it remembers is written as a tree, from
which a new node goes on. It knows nothing of threads, watchers' steps or folders: these are the
matter of the faces, `RunningQuery` and `Register`.

Laws, which `tests/process/test_any_register.py` looks for in any history:

- a step is made once by each node, after the steps of those that it reads;
- answers are final, and none lies before what the node has promised of its column;
- a node that begins behind rows which came before gives only what these could not have changed
  (`begins_behind`), so what it gives is what it would have given had it always been there;
- a step that fails leaves no trace (`panes.process.all_or_nothing`).
"""

from __future__ import annotations

import datetime as dt
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, TypeAlias

from panes.answers.portions import Portion
from panes.axis import parse_instant
from panes.errors import OptionError
from panes.nodes.set_aside import Aside
from panes.process.object_tree import Tree
from panes.process.tree_reader import TreeReader
from panes.process.tree_writer import TreeWriter

Instant: TypeAlias = "str | int | dt.datetime"


def clock() -> int:
    """The time, in microseconds."""
    return time.time_ns() // 1_000


def position_of(stream: str, instant: Instant, measure: str | None) -> int:
    """What is promised of a stream, as a position on an axis of some measure."""
    if measure != "time" and not isinstance(instant, Integral):
        raise OptionError(f"`{stream}` has no time axis: a promise is a whole number there")
    return parse_instant(instant)


def bytes_of(state: Mapping[str, int]) -> int:
    """All bytes of a state."""
    return sum(size for name, size in state.items() if name.endswith("bytes"))


@dataclass(slots=True)
class Step:
    """What comes in one step: rows by the names of streams and nodes, and what is promised.

    `promised` has what nodes promise of their answers, by name and column; `told` what the caller
    promises of streams, with a `key` of rows of that key only. With `is_last`, nothing comes after
    it. What fails is noted in `lost`, by the name of the node, and in `failed`, by that of a query,
    if others are to go on.
    """

    rows: dict[str, Any] = field(default_factory=dict)
    promised: dict[str, Mapping[str, int]] = field(default_factory=dict)
    told: Mapping[str, Instant] = field(default_factory=dict)
    key: Mapping[str, object] | None = None
    beats: bool = False
    is_last: bool = False
    others_go_on: bool = False
    lost: dict[str, Exception] = field(default_factory=dict)
    failed: dict[str, Exception] = field(default_factory=dict)


class Node(ABC):
    """What reads streams or other nodes by name, and gives answers and promises.

    If it `answers_one` query, what fails in it is the fault of that query, and others go on.
    """

    answers_one = False

    @property
    @abstractmethod
    def reads(self) -> Sequence[str]:
        """The names of the streams and nodes that it reads."""

    @abstractmethod
    def take(self, step: Step) -> Sequence[Portion]:
        """Take in what a step brings of what it reads; gives the answers of each of its ends."""

    def hand_on(self, step: Step, given: Sequence[Portion]) -> None:  # noqa: B027
        """Nodes that read it have its answers as rows, and its promise; here, none reads it."""

    @abstractmethod
    def require_instants(self, told: Mapping[str, Instant]) -> None:
        """Refuse promises that are no positions of what it reads."""

    @abstractmethod
    def aside(self) -> Iterable[Aside]:
        """The rows that were set aside, in one pile or several."""

    @property
    @abstractmethod
    def state(self) -> Mapping[str, int]:
        """How much is stored."""

    @abstractmethod
    def explain(self, *, details: bool = False) -> str:
        """How it is run, as text."""

    def written_by(self, writer: TreeWriter) -> Tree:
        """All that is remembered."""
        return writer.tree(self)

    def read_from(self, tree: Tree, reader: TreeReader) -> None:
        """Remember what was written, of a node that was made as this one was."""
        reader.value(tree, self)
