"""A node: what gives rows and promises. A graph of nodes is stepped from the inside out.

    stream ──► shared windows ──► answers of many queries
    stream ──► windows ──► windows over their answers ──► answers of a query

Everything that runs in one process is a node: one query (`QueryNode`), windows of many queries over
shared panes (`SharedWindows`), queries over shared joins (`SharedJoins`). A node reads streams and
other nodes by their names. In a step it takes in the rows and the promises of what it reads, and
gives the answers of its ends; what it says of answers to come is a promise to those that read it.

Laws, which `tests/process/test_any_register.py` looks for in any history:

- a step is made once by each node, after the steps of those that it reads;
- answers are final, and none lies before what the node has promised of its column;
- a node that begins behind rows which came before gives only what these could not have changed
  (`begins_behind`), so what it gives is what it would have given had it always been there;
- a step that fails leaves no trace (`panes.process.all_or_nothing`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from panes.answers.portions import Portion
from panes.process.open_query import Instant


@dataclass(slots=True)
class Step:
    """What comes in one step: rows by the names of streams and nodes, and what is promised.

    `promised` has what nodes promise of their answers, by name and column; `told` what the caller
    promises of streams. With `is_last`, nothing comes after it. What fails is noted in `lost`, by
    the name of the node, and in `failed`, by that of a query, if others are to go on.
    """

    rows: dict[str, Any] = field(default_factory=dict)
    promised: dict[str, Mapping[str, int]] = field(default_factory=dict)
    told: Mapping[str, Instant] = field(default_factory=dict)
    beats: bool = False
    is_last: bool = False
    others_go_on: bool = False
    lost: dict[str, Exception] = field(default_factory=dict)
    failed: dict[str, Exception] = field(default_factory=dict)


class Node(Protocol):
    """What reads streams or other nodes by name, and gives answers and promises."""

    @property
    def reads(self) -> Sequence[str]:
        """The names of the streams and nodes that it reads."""
        ...

    def take(self, step: Step) -> Sequence[Portion]:
        """Take in what a step brings of what it reads; gives the answers of each of its ends."""
        ...

    def promised_answers(self) -> Mapping[str, int]:
        """What is promised of the columns of answers to come, by their names in small letters."""
        ...

    @property
    def state(self) -> Mapping[str, int]:
        """How much is stored."""
        ...

    def explain(self, *, details: bool = False) -> str:
        """How it is run, as text."""
        ...
