"""What parts of a register hand on to others: answers as rows, and what is promised of these.

    answers of a part --select--> rows --place, evaluate--> packages for the shards of who reads

The shards of one level send packages to those of the next. A package for a level further up is
sent on from level to level, by shards that do not look into it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from struct import Struct
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa

from panes.answers.select import projected
from panes.arrays.columns import column_of
from panes.axis import BEGINNING
from panes.nodes.inner import chain_of
from panes.nodes.operator import Chain
from panes.nodes.promised_answers import as_rows, column_read, least, promised_by_windows
from panes.planning.plan import Plan
from panes.shards.combiner import Combiner, Filler
from panes.shards.marks import Marks, marks_table
from panes.shards.names import AT, ENDED, MARKS, PASSING, SOURCE, column_name
from panes.shards.outcome import ShardOutcome
from panes.shards.shared_joins import addressed, part_key
from panes.stores import codec

ONWARD = part_key("onward")
"""The key of packages for a level further up."""
_PLACE = Struct(">HI")
Package = tuple[int, bytes]
"""A shard, and what it is sent."""
Making: TypeAlias = Literal["selected", "before", "whole"]
"""Answers are selected from inside FROM; or that was done before; or all columns are sent that are
selected there, and nothing is evaluated of them."""


@dataclass(frozen=True, slots=True)
class HandedOn:
    """Answers of a part as rows; what it promises of later ones, column by column, and did before.

    `is_unknown` says that nobody knows which answers it has given already.
    """

    rows: pa.Table
    promised: Mapping[str, int] = field(default_factory=dict)
    before: Mapping[str, int] = field(default_factory=dict)
    has_ended: bool = False
    is_unknown: bool = False


@dataclass(frozen=True)
class PartReading:
    """How a part reads the answers of another one: the place, and what becomes of the rows there.

    `of` and `to` are the keys of both, `level` is that of who reads, and `source` numbers the place
    among all that it reads. `plan` places the rows and evaluates what is read of them, after what
    is `made` of them inside FROM; see `Making`.
    """

    of: str
    to: str
    names: tuple[str, ...]
    level: int
    source: int
    stream: str
    schema: pa.Schema
    plan: Plan
    filler: Callable[[], Filler]
    made: Making = "selected"

    @cached_property
    def _chain(self) -> Chain:
        """What is made of the rows inside FROM."""
        if self.made == "before":
            return Chain()
        query = self.plan.query
        plain = tuple(one and replace(one, distinct=False) for one in query.inner)
        query = replace(query, inner=plain)
        return chain_of(query, self.stream, self.schema, needs_order=True)

    @property
    def _column(self) -> str | None:
        """The column of the answers that places them."""
        if self.made == "before":
            return (self.plan.placing.column or "").lower()
        return column_read(self.plan.query, self.stream)

    def packages(self, given: HandedOn, *, level: int, shards: int) -> Iterator[Package]:
        """What the shards of who reads are sent by a shard of this level."""
        combiner = Combiner(self.filler(), shards, notes_positions=False)
        if len(given.rows):
            combiner.add(self._evaluated(given.rows))
        promise = ENDED if given.has_ended else self._position(given.promised)
        before = ENDED if given.is_unknown else self._position(given.before)
        before = before - 1 if before is not None and before < ENDED else before
        combiner.tell(self.source, promise=promise, before=before)
        for to, package in combiner.packages(always=True):
            yield sent_up(addressed(self.to, package), to, level, self.level)

    def _position(self, promised: Mapping[str, int]) -> int | None:
        """What promises of columns say of the positions of rows, if they say anything."""
        at = least(promised, self._column)
        return None if at == BEGINNING else self._chain.punctuate(at)

    def _evaluated(self, rows: pa.Table) -> pa.RecordBatch:
        """Rows with a position, and what is read of those that pass."""
        plan, rows = self.plan, self._chain.push(rows)
        at, missing = plan.placing.ticks(column_of(rows, plan.placing.column or ""))
        if self.made == "whole":
            passing, values = None, [column_of(rows, name) for name in rows.column_names]
        else:
            passing, values = plan.rows(rows)
        columns = {
            SOURCE: pa.array(np.full(len(rows), self.source, dtype=np.int32)),
            AT: pa.array(at, mask=missing),
        }
        if passing is not None:
            passes = np.zeros(len(rows), dtype=np.bool_)
            passes[passing] = True
            columns[PASSING] = pa.array(passes)
            place = pa.array(np.cumsum(passes) - 1, mask=~passes)
            values = [value.take(place) for value in values]
        named = {column_name(i): value for i, value in enumerate(values)}
        return pa.RecordBatch.from_pydict(columns | named)


@dataclass(frozen=True, slots=True)
class StreamAbove:
    """A stream that a part above the first level reads, on a column, as its source of a number."""

    stream: str
    column: str | None
    to: str
    names: tuple[str, ...]
    level: int
    source: int

    def told(self, newest: int | None, promise: int | None, shards: int) -> Iterator[Package]:
        """What the part is told of the stream: what is promised of it beside its rows, and where
        its newest row lay; None: nobody knows.
        """
        marks = Marks(promise=promise, before=ENDED if newest is None else newest)
        package = addressed(self.to, codec.pack({MARKS: marks_table({self.source: marks})}))
        return (sent_up(package, to, 1, self.level) for to in range(shards))


def handed_on_by_windows(plan: Plan, outcome: ShardOutcome, before: int) -> HandedOn:
    """The answers of windows, of which none ended before some position `before` the batch."""
    return HandedOn(
        as_rows(projected(plan, outcome.answers)),
        promised_by_windows(plan.query, outcome.promised["end"]),
        promised_by_windows(plan.query, before),
        has_ended=outcome.has_ended,
    )


def handed_on_by_rows(
    schema: pa.Schema, column: str, outcome: ShardOutcome, newest: int | None
) -> HandedOn:
    """Rows as they are, with what is promised of the column that places them.

    None further than the `newest` one came before the batch; None: nobody knows.
    """
    rows, promised = outcome.answers, outcome.promised["left"]
    return HandedOn(
        rows.rename_columns(schema.names) if len(rows) else schema.empty_table(),
        {} if promised == BEGINNING else {column: promised},
        {} if newest is None or newest == BEGINNING else {column: newest + 1},
        has_ended=outcome.has_ended,
        is_unknown=newest is None,
    )


def sent_up(package: bytes, to: int, level: int, upto: int) -> Package:
    """A package of a shard of one level, for a shard of another one above it."""
    is_next = upto == level + 1
    return to, package if is_next else addressed(ONWARD, _PLACE.pack(upto, to) + package)


def sent_onward(data: bytes, level: int) -> Package:
    """The same package, at a level that it has reached on its way."""
    upto, to = _PLACE.unpack_from(data)
    return sent_up(data[_PLACE.size :], to, level, upto)
