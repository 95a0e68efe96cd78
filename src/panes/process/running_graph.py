"""Nodes that run together: each is stepped once, after those that it reads.

Invariant: nodes stand in an order in which each comes behind those that it reads; and every node
is read by another one or is the end of a query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext

from panes.answers.portions import Portion
from panes.errors import InputError
from panes.process.node import Node, Step
from panes.sharing.failures import noted


class RunningGraph:
    """Nodes by name, from the inside out; they come and go while the graph runs."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}

    def add(self, name: str, node: Node) -> None:
        """One more node; those that it reads are here already."""
        self.nodes = {**self.nodes, name: node}

    def keep(self, is_end: Callable[[str], bool]) -> None:
        """Forget the nodes that are no end, and that no other node reads."""
        kept, read = dict[str, Node](), set[str]()
        for name, node in reversed(self.nodes.items()):
            if is_end(name) or name in read:
                kept[name] = node
                read.update(node.reads)
        self.nodes = dict(reversed(kept.items()))

    def step(self, step: Step) -> Iterator[tuple[str, Sequence[Portion]]]:
        """Step every node; gives the answers of each."""
        for name, node in self.nodes.items():
            missing = next((read for read in node.reads if read in step.lost), None)
            if missing is not None:
                step.lost[name] = InputError(f"a query inside it failed: {step.lost[missing]}")
                continue
            given: Sequence[Portion] = ()
            goes_on = step.others_go_on and node.answers_one
            with noted(step.lost, [name]) if goes_on else nullcontext():
                given = node.take(step)
            if name in step.lost:
                continue
            node.hand_on(step, given)
            yield name, given
