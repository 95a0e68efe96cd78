"""A join of unions whose links are not equally late, in any order and in order.

Every so often the clock moves: what came since is pushed, and each link promises what its clock
says. In any order (OOP) rows go to the join at once, and each side progresses with its slowest
link. In order (IOP) a `Merge` before each side holds rows back::

    each side by itself      until no link of that side can send an older row
    both sides together      until no link of either side can: the join sees one order

Bytes are those of the rows that wait in `Merge` and of the rows that the join stores.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

import panes
from lab.papers.skew import Link, arrivals_of
from lab.papers.union import Merge
from lab.papers.unions import positions
from panes.axis import FOREVER

Sides = Mapping[str, Sequence[str]]
"""The links of each side, by the name that the side has in the query."""


@dataclass(frozen=True, slots=True)
class Joined:
    """What a run over a join of unions gave, in one order, and the most that it held."""

    answers: pa.Table
    peak_bytes: int
    peak_rows: int


def sources(sides: Sides) -> str:
    """Both sides as a FROM clause writes them, as unions of their links."""
    return ", ".join(
        name if list(links) == [name] else f"{' UNION '.join(links)} AS {name}"
        for name, links in sides.items()
    )


def join_in_any_order(
    text: str, sides: Sides, links: Mapping[str, Link], *, every: float
) -> Joined:
    """OOP: `text` reads the unions of the links."""
    watch = _Watched(text.format(sources=sources(sides)))
    delays = {name: _delay(link) for name, link in links.items()}
    for now, came in arrivals_of(links, every=every):
        watch.push(came)
        watch.punctuate({name: now - delay for name, delay in delays.items()})
    return watch.ended()


def join_in_order(
    text: str, sides: Sides, links: Mapping[str, Link], *, every: float, together: bool
) -> Joined:
    """IOP: `text` reads what comes out of a `Merge` before each side."""
    watch = _Watched(text.format(sources=", ".join(sides)))
    delays = {name: _delay(link) for name, link in links.items()}
    awaited = {side: list(links) if together else list(own) for side, own in sides.items()}
    unions = {side: Merge(names) for side, names in awaited.items()}
    for now, came in arrivals_of(links, every=every):
        released = {}
        for side, union in unions.items():
            parts = [union.push(name, came[name], positions(came[name])) for name in sides[side]]
            parts += [union.punctuate(name, now - delays[name]) for name in awaited[side]]
            released[side] = _one(parts)
        watch.push(released, unions.values())
        watch.punctuate({side: union.progress for side, union in unions.items()})
    rest = {side: [union.punctuate(name, FOREVER) for name in awaited[side]]
            for side, union in unions.items()}  # fmt: skip
    watch.push({side: _one(parts) for side, parts in rest.items() if any(map(len, parts))})
    return watch.ended()


class _Watched:
    """An open join, its answers and the most that was held."""

    def __init__(self, text: str) -> None:
        self._query = panes.open(text, max_ahead=None)
        self._given: list[pa.Table] = []
        self._bytes = self._rows = 0

    def push(self, rows: Mapping[str, pa.Table], unions: Iterable[Merge] = ()) -> None:
        """Rows come to the join, while others wait in unions before it."""
        waiting = list(unions)
        if rows:
            self._given.append(self._query.push(**rows))
        held = self._query.state
        self._bytes = max(self._bytes, held["bytes"] + sum(u.nbytes for u in waiting))
        self._rows = max(self._rows, held["rows"] + sum(u.waiting for u in waiting))

    def punctuate(self, promised: Mapping[str, int]) -> None:
        """Streams promise something."""
        self._given.append(self._query.punctuate(**promised))

    def ended(self) -> Joined:
        """The streams have ended."""
        self._given.append(self._query.finish())
        answers = pa.concat_tables([table for table in self._given if table.num_columns])
        return Joined(in_one_order(answers), self._bytes, self._rows)


def in_one_order(answers: pa.Table) -> pa.Table:
    """Answers sorted by all their columns."""
    return answers.sort_by([(name, "ascending") for name in answers.column_names])


def _one(parts: Sequence[pa.Table]) -> pa.Table:
    return pa.concat_tables([rows for rows in parts if rows.num_columns])


def _delay(link: Link) -> int:
    return int((link.arrival - positions(link.rows)).max())
