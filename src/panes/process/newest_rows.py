"""Where the newest rows of streams lie, on every column that could order them.

A query that is added while rows come may lay a stream on another column than the queries before it,
and look at rows that these leave out. So what has come is noted of streams, not of queries. Rows
that every query takes for wrong, far ahead of the clock or of all others, are not believed here
either.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from panes.arrays.columns import column_of
from panes.axis import BEGINNING, Axis, axis_over
from panes.errors import ColumnTypeError, QueryError
from panes.nodes.gate import believed_up_to
from panes.nodes.inner import chain_of
from panes.nodes.operator import Chain
from panes.planning.join_plan import SourcePlan
from panes.planning.terms import StreamOptions, furthest_instant, furthest_step

Column = tuple[str, str]
"""A stream, and one of its columns."""


@dataclass(frozen=True, slots=True)
class NewestRows:
    """The newest position on each column, of all rows so far; `axes` are those of queries.

    `sent` are the streams that have sent rows; of those in `unseen`, some came before anybody
    looked, and nothing is known of columns that are not in `at`.
    """

    at: Mapping[Column, int] = field(default_factory=dict)
    axes: frozenset[Column] = frozenset()
    sent: frozenset[str] = frozenset()
    unseen: frozenset[str] = frozenset()

    def laid(self, sides: Iterable[SourcePlan], schemas: Mapping[str, pa.Schema]) -> NewestRows:
        """The same once a query lays streams so."""
        found = {way.column for side in sides for way in _ways(side, schemas)}
        return replace(self, axes=self.axes | found)

    def after(self, tables: Mapping[str, pa.Table], run: StreamOptions, now: int) -> NewestRows:
        """The same after some batches."""
        newest = dict(self.at)
        for stream, table in tables.items():
            for name in table.column_names:
                try:
                    axis = axis_over(name, table.schema.field(name).type, stream=stream)
                except ColumnTypeError:
                    continue
                key = stream, name
                at = _newest(axis, column_of(table, name), run, now, is_axis=key in self.axes)
                if stream in self.unseen and key not in newest:
                    continue
                newest[key] = max(at, newest.get(key, BEGINNING))
        sent = self.sent.union(name for name, table in tables.items() if len(table))
        return replace(self, at=newest, sent=sent)

    def on(self, stream: str, column: str) -> int | None:
        """Where the newest row of a stream lies on a column; None if nobody knows."""
        wanted = stream, column.lower()
        return next((at for (s, name), at in self.at.items() if (s, name.lower()) == wanted), None)

    def of(self, side: SourcePlan, schemas: Mapping[str, pa.Schema]) -> int:
        """Where the newest row of a side of a join lies; `BEGINNING` if none has come."""
        for way in _ways(side, schemas):
            stream, _ = way.column
            if stream in self.unseen and way.column not in self.at:
                raise QueryError(
                    f"rows of `{stream}` have come before this query, and nobody knows where they "
                    f"lie on `{way.column[1]}`",
                    hint="add it before the first batch",
                )
            if way.chain.places is not None and stream in self.sent:
                raise QueryError(
                    f"rows of `{stream}` have come before this query, and it computes where they "
                    "lie, so it cannot be known which of them it has missed",
                    hint="add it before the first batch, or window over a column of the stream",
                )
        return max(self.by_stream(side, schemas).values(), default=BEGINNING)

    def by_stream(self, side: SourcePlan, schemas: Mapping[str, pa.Schema]) -> dict[str, int]:
        """Where the newest row of each stream of a side lies, of those that have sent any."""
        known = ((way, self.at.get(way.column, BEGINNING)) for way in _ways(side, schemas))
        return {way.column[0]: way.chain.punctuate(at) for way, at in known if at > BEGINNING}


@dataclass(frozen=True, slots=True)
class _Way:
    """From a column of a stream to the position that a side of a join has of it."""

    column: Column
    chain: Chain


def _ways(side: SourcePlan, schemas: Mapping[str, pa.Schema]) -> list[_Way]:
    """The way of each stream of a side."""
    found = []
    for stream in side.source.streams:
        chain = chain_of(side.plan.query, stream, schemas[stream])
        axis = side.plan.placing if chain.axis is None else chain.axis
        found.append(_Way((stream, axis.column or ""), chain))
    return found


def _newest(axis: Axis, column: pa.Array, run: StreamOptions, now: int, *, is_axis: bool) -> int:
    """The newest position of a batch that is believed."""
    at, missing = axis.ticks(column)
    at = at if missing is None else at[~missing]
    if axis.kind == "time" and (last := furthest_instant(run, now)) is not None:
        at = at[at <= last]
    elif is_axis and len(at) and (step := furthest_step(run, None)) is not None:
        at = at[at <= believed_up_to(at, None, step)]
    return int(at.max(initial=BEGINNING))
