"""What a register's queries are to its tasks and shards: parts, and what each reads of a stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it
from sqlglot import exp

from panes.aggregates.custom import UserAggregate
from panes.nodes.inputs import remembered
from panes.nodes.status import status_columns
from panes.planning.plan import Plan
from panes.planning.terms import CheckedOptions, StreamOptions
from panes.shards.combiner import Combiners, combiners
from panes.shards.names import AT, PASSING, ROW, column_name
from panes.shards.part_combiners import Use
from panes.shards.query_filler import filler_of
from panes.shards.register_filler import read_columns
from panes.shards.register_parts import (
    AloneQuery,
    DifferentRows,
    RegisterParts,
    StreamWindows,
)
from panes.shards.register_shard import Definition, combiner
from panes.shards.shared_joins import SharedJoin, SharedQuery, part_key, sharing_joins
from panes.sharing.queries import Queries
from panes.spark.bind import AS_THEY_ARE, BoundQuery, sql
from panes.spark.column_names import PASSES
from panes.spark.internals import dumps, spark_type
from panes.spark.join.bind import BoundJoin
from panes.spark.join.stream import read_sides, terms_of
from panes.spark.register.answer_columns import AllAnswerColumns
from panes.spark.register.nested import BoundPart, BoundRows, answers_of
from panes.spark.register.registered_queries import RegisteredQueries
from panes.spark.stream.node import whole_row
from panes.spark.stream.query import placed_columns, positions, projected_columns


@dataclass(frozen=True, slots=True)
class Read:
    """What one part reads of a stream, of rows that are `passing`, and what a task makes of it."""

    use: Use
    columns: Mapping[str, Column]
    passing: Column | None = None

    @property
    def struct(self) -> Column:
        """All of it in one column, NULL for rows that do not pass."""
        columns = F.struct(*(c.alias(n) for n, c in self.columns.items()))
        return columns if self.passing is None else F.when(self.passing, columns)


@dataclass(slots=True)
class PlannedParts:
    """The parts of a register, what they read of each stream, and what they answer."""

    parts: RegisterParts = field(default_factory=RegisterParts)
    reads: dict[str, list[Read]] = field(default_factory=dict)
    columns: AllAnswerColumns = field(default_factory=AllAnswerColumns)
    contents: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls, registered: RegisteredQueries, shards: int, *, bounded: bool, rows: bool
    ) -> PlannedParts:
        """All parts; with `rows`, tasks send whole rows that may be set aside."""
        found = cls(reads={name: [] for name in registered.streams})
        run = replace(registered.run, bounded=bounded)
        windows = tuple(found._windows(registered, shards, bounded=bounded, rows=rows))
        alone = tuple(found._alone(registered, shards, bounded=bounded))
        joins, terms = found._joins(registered, shards, run)
        distinct = tuple(found._distinct(registered, terms, shards, bounded=bounded))
        found.parts = RegisterParts.of(
            windows, alone, joins, terms, found.contents, _schemas(registered), distinct
        )
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
        self, registered: RegisteredQueries, shards: int, *, bounded: bool
    ) -> Iterator[AloneQuery]:
        """The queries and parts of queries that share no panes, each once."""
        for part, names in parts_of(registered, BoundQuery):
            assert isinstance(part.bound, BoundQuery)
            plan = part.plan or part.bound.plan
            terms = registered.terms_alone(part, bounded=bounded)
            terms = replace(terms, inside=terms.inside.union(part.parts))
            axis = part.bound.axis_type if part.plan is None else spark_type(plan.axis.type)
            if not part.inner:
                [name] = names
                status = status_columns(plan, terms)
                self.contents[name] = self.columns.of_plan(plan, axis, status)
            named = {i: part.parts[n] for i, n in enumerate(plan.query.streams) if n in part.parts}
            one = AloneQuery(part.key, names, plan, terms, part.level, named, part.inner)
            filler = partial(filler_of, plan, keep_rows=terms.drops_late)
            make = combiners(filler, shards, terms, plan.placing)
            for number, (source, _) in enumerate(one.sources):
                if number not in named:
                    use = Use(part.key, names, make, part.level)
                    name = part.bound.plan.query.streams[number]
                    made = part.made.get(name, AS_THEY_ARE)
                    columns = projected_columns(part.bound, number, terms, source=number, made=made)
                    passing = _passing(part, name, part.bound.plan)
                    self.reads[source].append(Read(use, columns, passing))
            yield one

    def _joins(
        self, registered: RegisteredQueries, shards: int, run: StreamOptions
    ) -> tuple[tuple[SharedJoin, ...], CheckedOptions]:
        """The joins, and what the joined streams promise."""
        parts = {part.key: part for part, _ in parts_of(registered, BoundJoin)}
        joins = joins_of(registered)
        agreed = [terms_of(_join(part), part.run(run))[1] for part in parts.values()]
        terms = max(agreed, key=lambda one: one.lateness or 0, default=CheckedOptions())
        terms = replace(terms, inside=frozenset())
        for shared in joins:
            for query in shared.queries:
                if not query.inner:
                    self.contents[query.name] = self.columns.of_joined(query.schema())
            self._read_sides(shared, parts[shared.queries[0].key], terms, shards)
        return joins, terms

    def _distinct(
        self,
        registered: RegisteredQueries,
        join_terms: CheckedOptions,
        shards: int,
        *,
        bounded: bool,
    ) -> Iterator[DifferentRows]:
        """The different rows that windows and joins read, each once."""
        found: dict[str, tuple[BoundRows, CheckedOptions, tuple[str, ...]]] = {}
        for part, names in (*parts_of(registered, BoundQuery), *parts_of(registered, BoundJoin)):
            is_join = isinstance(part.bound, BoundJoin)
            for rows in part.distinct:
                terms = join_terms if is_join else registered.terms_alone(part, bounded=bounded)
                before = found[rows.key][2] if rows.key in found else ()
                found[rows.key] = rows, terms, tuple(dict.fromkeys(before + names))
        for rows, terms, names in found.values():
            plan, stream = rows.bound.plan, rows.bound.plan.query.streams[rows.number]
            own = replace(terms, inside=frozenset([stream] if rows.part else [])).of(stream)
            one = DifferentRows(
                rows.key, names, rows.name, rows.schema, remembered(plan.query, terms), plan,
                own, rows.source, rows.level, rows.part,
            )  # fmt: skip
            if rows.part is None:
                make = combiners(one.filler, shards, own, plan.placing)
                use = Use(rows.key, names, make, rows.level)
                self.reads[rows.source[0]].append(_read_rows(rows, own, use))
            yield one

    def _read_sides(
        self, shared: SharedJoin, part: BoundPart, terms: CheckedOptions, shards: int
    ) -> None:
        """What the sides of a join read of streams."""
        sources, sides = iter(enumerate(shared.sources)), _join(part).sides
        read = read_sides(_join(part), terms, shards, made=part.made)
        for of, side in zip(sides, read, strict=True):
            use = Use(shared.key, shared.names, side.combiner, part.level)
            for name, columns in zip(side.names, side.columns, strict=True):
                _, (stream, _) = next(sources)
                if name not in part.parts:
                    self.reads[stream].append(Read(use, columns, _passing(part, name, of.plan)))


def _passing(part: BoundPart, name: str, plan: Plan) -> Column | None:
    """Which rows of a stream a part is sent, where it does not ask that with its own WHERE."""
    where = plan.rows.where
    flags = () if where is None else [c for c in where.find_all(exp.Column) if c.name == PASSES]
    return sql(part.made[name][PASSES]) if name in part.made and not flags else None


def _read_rows(rows: BoundRows, terms: CheckedOptions, use: Use) -> Read:
    """What is read of a stream whose different rows are wanted: all that is selected from it."""
    columns = placed_columns(rows.bound, rows.number, terms, source=0, made=rows.made)
    columns[PASSING] = sql(rows.made[PASSES])
    named = {column_name(i): exp.column(f.name, quoted=True) for i, f in enumerate(rows.schema)}
    return Read(use, columns | {name: sql(tree, rows.made) for name, tree in named.items()})


def parts_of(
    registered: RegisteredQueries, kind: type[BoundQuery | BoundJoin]
) -> Iterator[tuple[BoundPart, tuple[str, ...]]]:
    """The parts of a kind, each with the queries that need it; those that are equal are one."""
    found: dict[str, tuple[BoundPart, list[str]]] = {}
    for name, asked in registered.alone.items():
        for part in asked.parts:
            if isinstance(part.bound, kind):
                found.setdefault(part.key, (part, []))[1].append(name)
    return ((part, tuple(names)) for part, names in found.values())


def _schemas(registered: RegisteredQueries) -> dict[str, pa.Schema]:
    """The columns of what others read, by the key of the part that gives it."""
    found: dict[str, pa.Schema] = {}
    for part in (part for asked in registered.alone.values() for part in asked.parts):
        found |= {rows.key: rows.schema for rows in part.distinct}
        if part.inner:
            found[part.key] = answers_of(part, registered.aggregates)
    return found


def _join(part: BoundPart) -> BoundJoin:
    assert isinstance(part.bound, BoundJoin)
    return part.bound


def joins_of(registered: RegisteredQueries) -> tuple[SharedJoin, ...]:
    """The joins of all parts, each with those that share it."""
    return sharing_joins(
        (_shared_query(part, names, registered.aggregates), part.level, part.parts)
        for part, names in parts_of(registered, BoundJoin)
    )


def _shared_query(
    part: BoundPart, names: tuple[str, ...], aggregates: tuple[UserAggregate, ...]
) -> SharedQuery:
    one = SharedQuery.of(names[0], _join(part).plan, aggregates, part.key)
    return replace(one, twins=names, inner=part.inner)


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
