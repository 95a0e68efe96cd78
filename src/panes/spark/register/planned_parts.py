"""What a register's queries are to its tasks and shards: parts, and what each reads of a stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it

from panes.nodes.status import status_columns
from panes.planning.terms import CheckedOptions, StreamOptions
from panes.shards.combiner import Combiners, combiners
from panes.shards.names import AT, ROW
from panes.shards.part_combiners import Use
from panes.shards.query_filler import filler_of
from panes.shards.register_filler import read_columns
from panes.shards.register_parts import AloneQuery, RegisterParts, StreamWindows
from panes.shards.register_shard import Definition, combiner
from panes.shards.shared_joins import SharedJoin, part_key, shared_joins
from panes.sharing.queries import Queries
from panes.spark.bind import BoundQuery, sql
from panes.spark.internals import dumps
from panes.spark.join.bind import BoundJoin
from panes.spark.join.stream import read_sides, terms_of
from panes.spark.register.answer_columns import AllAnswerColumns
from panes.spark.register.registered_queries import RegisteredQueries
from panes.spark.stream.node import whole_row
from panes.spark.stream.query import positions, projected_columns


@dataclass(frozen=True, slots=True)
class Read:
    """What one part reads of a stream, and what a task makes of it."""

    use: Use
    columns: Mapping[str, Column]


@dataclass(slots=True)
class PlannedParts:
    """The parts of a register, what they read of each stream, and what they answer."""

    parts: RegisterParts = field(default_factory=RegisterParts)
    reads: dict[str, list[Read]] = field(default_factory=dict)
    columns: AllAnswerColumns = field(default_factory=AllAnswerColumns)

    @classmethod
    def of(
        cls, registered: RegisteredQueries, shards: int, *, bounded: bool, rows: bool
    ) -> PlannedParts:
        """All parts; with `rows`, tasks send whole rows that may be set aside."""
        found = cls(reads={name: [] for name in registered.streams})
        run = replace(registered.run, bounded=bounded)
        windows = tuple(found._windows(registered, shards, bounded=bounded, rows=rows))
        contents: dict[str, int] = {}
        alone = tuple(found._alone(registered, shards, contents, bounded=bounded))
        joins, terms = found._joins(registered, shards, run, contents)
        found.parts = RegisterParts(windows, alone, joins, terms, contents)
        return found

    @classmethod
    def of_rows(cls, registered: RegisteredQueries, shards: int) -> PlannedParts:
        """Parts that evaluate no expression, and reject every row as it is."""
        found, windows = cls(), []
        for number, (stream, frame) in enumerate(registered.streams.items()):
            queries = Queries(stream)
            key, sent = part_key("rows", stream), Definition.of(queries, dumps)
            part = StreamWindows(key, number, stream, "", sent, CheckedOptions(), ())
            columns = {AT: F.lit(None).cast("long"), ROW: whole_row([frame], frame)}
            found.reads[stream] = [Read(Use(key, (), _of_windows(part, shards)), columns)]
            windows.append(part)
        found.parts = RegisterParts(tuple(windows))
        return found

    def _windows(
        self, registered: RegisteredQueries, shards: int, *, bounded: bool, rows: bool
    ) -> Iterator[StreamWindows]:
        """The windows that share panes, stream by stream, where any query has windows."""
        for number, (stream, queries) in enumerate(registered.windows.items()):
            if queries.axis is None:
                continue
            frame, terms = registered.streams[stream], registered.terms(stream, bounded=bounded)
            axis_type = frame.schema[queries.axis.column or ""].dataType
            self.columns.of_windows(queries, axis_type)
            part = StreamWindows(
                registered.windows_key(stream),
                number,
                stream,
                queries.axis.column or "",
                Definition.of(queries, dumps, number=registered.version),
                terms,
                tuple(queries.asked),
            )
            use = Use(part.key, (), _of_windows(part, shards))
            self.reads[stream].append(Read(use, _windows_read(frame, queries, terms, rows=rows)))
            yield part

    def _alone(
        self,
        registered: RegisteredQueries,
        shards: int,
        contents: dict[str, int],
        *,
        bounded: bool,
    ) -> Iterator[AloneQuery]:
        """The queries that share no panes."""
        for name, one in registered.alone.items():
            bound = one.bound
            if not isinstance(bound, BoundQuery):
                continue
            plan, terms = bound.plan, registered.terms_alone(bound, bounded=bounded)
            status = status_columns(plan, terms)
            contents[name] = self.columns.of_plan(plan, bound.axis_type, status)
            part = AloneQuery(one.key, name, plan, terms)
            filler = partial(filler_of, plan, keep_rows=terms.drops_late)
            for number, stream in enumerate(part.streams):
                columns = projected_columns(bound, number, terms, source=number)
                use = Use(part.key, (name,), combiners(filler, shards, terms, plan.placing))
                self.reads[stream].append(Read(use, columns))
            yield part

    def _joins(
        self,
        registered: RegisteredQueries,
        shards: int,
        run: StreamOptions,
        contents: dict[str, int],
    ) -> tuple[tuple[SharedJoin, ...], CheckedOptions]:
        """The joins, and what the joined streams promise."""
        over = {n: o for n, o in registered.alone.items() if isinstance(o.bound, BoundJoin)}
        bound = {n: o.bound for n, o in over.items() if isinstance(o.bound, BoundJoin)}
        plans = {name: one.plan for name, one in bound.items()}
        keys = {name: one.key for name, one in over.items()}
        joins = shared_joins(plans, registered.aggregates, keys)
        first = [bound[shared.queries[0].name] for shared in joins]
        agreed = [terms_of(one, run)[1] for one in first]
        terms = max(agreed, key=lambda one: one.lateness or 0, default=CheckedOptions())
        for shared, one in zip(joins, first, strict=True):
            for query in shared.queries:
                contents[query.name] = self.columns.of_joined(query.schema())
            names = tuple(name for query in shared.queries for name in query.twins)
            again = dict(one.plan.query.again)
            for side in read_sides(one, terms, shards):
                use = Use(shared.key, names, side.combiner)
                for stream, columns in zip(side.names, side.columns, strict=True):
                    self.reads[again.get(stream, stream)].append(Read(use, columns))
        return joins, terms


def _of_windows(part: StreamWindows, shards: int) -> Combiners:
    return lambda: combiner(part.definition, shards, part.terms)


def _windows_read(
    frame: DataFrame, queries: Queries, terms: CheckedOptions, *, rows: bool
) -> dict[str, Column]:
    """What the windows of a stream read: its position, and what any query reads."""
    axis = queries.axis
    assert axis is not None
    columns = positions(frame, axis, terms, queries.stream)
    if rows:
        columns[ROW] = whole_row([frame], frame)
    return columns | {name: sql(tree) for name, tree in read_columns(queries).items()}


def expressions_read(
    registered: RegisteredQueries, reads: Sequence[Read], stream: str
) -> dict[tuple[str, ...], list[Column]]:
    """What Spark evaluates before the shuffle, by the queries whose expressions these are."""
    found: dict[tuple[str, ...], list[Column]] = {}
    for read in reads:
        if read.use.names:
            found.setdefault(read.use.names, []).extend(read.columns.values())
    for shape in registered.windows[stream].shapes:
        names = tuple(member.name for member in shape.members)
        trees = read_columns(registered.only(stream, names[0])).values()
        found[names] = [sql(tree) for tree in trees]
    return found
