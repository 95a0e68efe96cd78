"""A query with others inside as parts of a register: each bound to what it reads.

A part that reads another one is bound to a DataFrame without rows, which has the columns of its
answers and what is promised of them. The expressions over answers are evaluated by shards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it

from panes.aggregates.custom import UserAggregate
from panes.errors import QueryError
from panes.language.join_query import JoinQuery
from panes.language.query_graph import Part, QueryGraph
from panes.nodes.inner import derived_schemas
from panes.nodes.parts import require_parts, run_inside
from panes.nodes.promised_answers import as_rows, promising_columns_of_join
from panes.nodes.promised_columns import placed_by, promising_columns
from panes.planning.plan import Plan, plan
from panes.planning.terms import StreamOptions
from panes.shards.names import PROMISE
from panes.shards.shared_joins import SharedQuery, Source, part_key
from panes.spark.bind import BoundQuery, Made, arrow_schema, columns_made, promising
from panes.spark.column_names import PASSES
from panes.spark.internals import spark_type
from panes.spark.join.bind import BoundJoin
from panes.spark.register.alone import bound_join, bound_windows, selects_of


@dataclass(frozen=True, slots=True)
class BoundRows:
    """The different rows of one place in FROM: of a stream, or of the answers of `part`.

    `bound` are the windows or the side of a join that read it as their source of that `number`.
    """

    key: str
    name: str
    bound: BoundQuery
    number: int
    level: int
    made: Made
    part: str | None

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows."""
        fields = arrow_schema(self.bound.frames[self.number])
        return pa.schema([f for f in fields if f.name != PASSES])

    @property
    def source(self) -> Source:
        """What it reads, and what places the rows of that."""
        query = self.bound.plan.query
        inner, column = query.inner[self.number], self.bound.plan.placing.column
        stream = dict(query.again).get(self.name, self.name)
        return self.part or stream, placed_by(inner, column)


@dataclass(frozen=True, slots=True)
class BoundPart:
    """A query of its own, or one inside another: bound to what it reads.

    `parts` are the keys of those that it reads, by its names for them. Rows of streams go to it at
    `level`, as what is `made` of them inside FROM.
    """

    key: str
    bound: BoundQuery | BoundJoin
    plan: Plan | None = None
    level: int = 1
    parts: Mapping[str, str] = field(default_factory=dict)
    made: Mapping[str, Made] = field(default_factory=dict)
    inner: bool = False
    distinct: tuple[BoundRows, ...] = ()

    @property
    def gives_at(self) -> int:
        """The level of the shards that give its answers."""
        has_above = isinstance(self.bound, BoundJoin) and (
            self.bound.plan.aggregation is not None or not self.inner
        )
        return self.level + has_above

    @property
    def placed(self) -> list[tuple[str, str | None]]:
        """The streams that windows read, each with what places its rows."""
        if isinstance(self.bound, BoundJoin):
            return []
        query, again = self.bound.plan.query, dict(self.bound.plan.query.again)
        column = self.bound.plan.placing.column
        read = zip(query.streams, query.inner, strict=True)
        own = [(again.get(n, n), placed_by(i, column)) for n, i in read if n not in self.parts]
        return own + [rows.source for rows in self.distinct if rows.part is None]

    def run(self, run: StreamOptions) -> StreamOptions:
        """The options of a register for what it reads."""
        of_streams = {rows.name for rows in self.distinct if rows.part is None}
        inside = [name for name in self.parts if name not in of_streams]
        return run_inside(run, self.bound.plan.query.streams, inside) if inside else run


def bound_parts(
    graph: QueryGraph,
    key: str,
    streams: Mapping[str, DataFrame],
    run: StreamOptions,
    aggregates: tuple[UserAggregate, ...],
) -> tuple[BoundPart, ...]:
    """The parts of a query, each behind those that it reads; `key` is that of the last one."""
    if graph.names:
        require_parts(graph, run)
    found: dict[str, BoundPart] = {}
    frames = dict(streams)
    for part in graph.parts:
        reads = {n: graph.again.get(n, n) for n in part.query.streams}
        below = {name: found[read] for name, read in reads.items() if read in found}
        own = part_key("inner", *_said(part, {n: b.key for n, b in below.items()}))
        given = {name: frames[read] for name, read in reads.items() if read in frames}
        one = _bound(part, own if part.name else key, below, given, run, aggregates)
        found[part.name] = one
        if part.name:
            stream = streams[next(iter(streams))]
            frames[part.name] = _nothing_of(one, stream, aggregates)
    return tuple(found.values())


def answers_of(part: BoundPart, aggregates: Sequence[UserAggregate]) -> pa.Schema:
    """The columns of a part's answers, as others read them."""
    if isinstance(part.bound, BoundJoin):
        schema = SharedQuery.of("", part.bound.plan, aggregates).schema()
    else:
        schema = (part.plan or part.bound.plan).schema()
    return as_rows(schema.empty_table()).schema


def _said(part: Part, parts: Mapping[str, str]) -> Iterator[str]:
    """What a part says, and what its names stand for: WITH may give one name to two things."""
    query = part.query
    again, selects = dict(query.again), selects_of(query)
    yield " ".join(query.text.split())
    for name in query.streams:
        yield f"{name}={parts.get(name, again.get(name, name))}"
        inner = selects.get(name)
        if inner is not None:
            columns = ((o.name, o.expression.sql(dialect="spark")) for o in inner.columns or ())
            where = None if inner.where is None else inner.where.sql(dialect="spark")
            yield repr((inner.distinct, *columns, where))


def _bound(
    part: Part,
    key: str,
    below: Mapping[str, BoundPart],
    frames: Mapping[str, DataFrame],
    run: StreamOptions,
    aggregates: tuple[UserAggregate, ...],
) -> BoundPart:
    query, inner = part.query, bool(part.name)
    parts = {name: one.key for name, one in below.items()}
    levels = {name: one.gives_at for name, one in below.items()}
    read = {name: arrow_schema(frame) for name, frame in frames.items()}
    selects = selects_of(query)
    made = {n: columns_made(one, read[n], n) for n, one in selects.items() if n not in parts}
    run = run_inside(run, query.streams, parts) if parts else run
    bound: BoundQuery | BoundJoin
    if isinstance(query, JoinQuery):
        bound = bound_join(query, frames, run, aggregates)
        _require_told(bound, inner=inner)
    else:
        bound = bound_windows(query, frames, run, aggregates)
    found = []
    for of, number, name in _places(bound):
        select = selects.get(name)
        if select is not None and select.distinct:
            said = _said(part, {n: one.key for n, one in below.items()})
            own = part_key("different", *said, name, of.plan.placing.column or "")
            rows = BoundRows(own, name, of, number, levels.get(name, 0) + 1, made.pop(name, {}),
                             parts.get(name))  # fmt: skip
            parts[name], levels[name] = own, rows.level
            found.append(rows)
    asked = None
    if parts and not isinstance(query, JoinQuery):
        asked = plan(query, derived_schemas(query, read), aggregates)
    level = max(levels.values(), default=0) + 1
    return BoundPart(key, bound, asked, level, parts, made, inner, tuple(found))


def _places(bound: BoundQuery | BoundJoin) -> Iterator[tuple[BoundQuery, int, str]]:
    """All that is read: by which windows or side, as their source of which number, and its name."""
    for of in (bound,) if isinstance(bound, BoundQuery) else bound.sides:
        for number, name in enumerate(of.plan.query.streams):
            yield of, number, name


def _require_told(bound: BoundJoin, *, inner: bool) -> None:
    """Refuse to read answers of which nobody knows when they are all there."""
    found = bound.plan.aggregation
    if inner and found is not None and found.by == "positions":
        raise QueryError(
            "groups by the positions of a join are complete one by one, so nothing is promised of "
            "them, and no other query of a register reads them",
            hint="give the join a window: count(*) [TUMBLING 1 minute WATTR l.ts]",
        )


def _nothing_of(
    part: BoundPart, stream: DataFrame, aggregates: Sequence[UserAggregate]
) -> DataFrame:
    """A streaming DataFrame with the columns of a part's answers and their promises, and no row."""
    columns = [
        F.lit(None).cast(spark_type(f.type)).alias(f.name) for f in answers_of(part, aggregates)
    ]
    nothing = stream.select(*columns, F.lit(None).cast("long").alias(PROMISE))
    if isinstance(part.bound, BoundJoin):
        promised = promising_columns_of_join(part.bound.plan)
    else:
        promised = promising_columns(part.bound.plan.query)
    return promising(nothing, promised, bounded=False)
