"""A cluster in dicts that runs a register of any queries: what Spark will host, without Spark.

Every batch is split over tasks, and every shard is built anew from its bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark import cloudpickle

from panes.answers.select import selected
from panes.expressions.projection import Projection
from panes.language.join_query import JoinQuery
from panes.language.join_text import is_join, read_join
from panes.language.parse import parse
from panes.language.query import WINDOW_COLUMNS
from panes.language.query_graph import QueryGraph, read_graph
from panes.nodes.inner import derived_schemas, joined_schemas
from panes.nodes.parts import run_inside
from panes.nodes.promised_answers import as_rows
from panes.nodes.status import status_columns
from panes.planning.join_plan import SourcePlan
from panes.planning.join_query_plan import JoinQueryPlan, plan_join_query
from panes.planning.plan import Plan, plan
from panes.planning.terms import CheckedOptions, StreamOptions, check_options
from panes.shards.combiner import Combiner
from panes.shards.exactness import alone_exact_from, join_exact_from, label, what_was_missed
from panes.shards.join_keys import ShardKeys, shard_keys
from panes.shards.names import AT, PASSING, ROW, SOURCE, column_name
from panes.shards.outcome import PartsOutcome
from panes.shards.part_combiners import Use, Uses, use_column
from panes.shards.parts_shard import PartsShard
from panes.shards.query_filler import filler_of
from panes.shards.query_state import RECALL as BLOCKS
from panes.shards.register_filler import read_columns
from panes.shards.register_parts import ALL_STATE, AloneQuery, RegisterParts, StreamWindows
from panes.shards.register_shard import LIVE, Definition, combiner
from panes.shards.sent_answers import LATE, PACKED, TITLE, set_aside_content
from panes.shards.sent_rows import rows_of_side
from panes.shards.shared_joins import SharedJoin, SharedQuery, part_key, sharing_joins
from panes.sharing.queries import Queries
from panes.sharing.shareable import shared_spec
from panes.stores import codec
from tests.shards.join_tasks import rows_of_task

SHARDS, TASKS = 3, 2
Reads = list[tuple[Use, Callable[[pa.Table], pa.Table]]]


@dataclass(frozen=True)
class _Part:
    """A part of a query with others inside: what it is planned as, and which parts it reads."""

    key: str
    plan: Plan | JoinQueryPlan
    level: int
    parts: dict[str, str]
    inner: bool

    @property
    def gives_at(self) -> int:
        if isinstance(self.plan, Plan) or (self.inner and self.plan.aggregation is None):
            return self.level
        return self.level + 1

    @property
    def schema(self) -> pa.Schema:
        answers = (
            self.plan.schema()
            if isinstance(self.plan, Plan)
            else SharedQuery.of("", self.plan).schema()
        )
        return as_rows(answers.empty_table()).schema


class PartsHost:
    """A register over streams of these columns, whose shards stand on so many levels."""

    def __init__(
        self, schemas: Mapping[str, pa.Schema], run: StreamOptions, levels: int = 1
    ) -> None:
        self._schemas, self._run = dict(schemas), run
        self._levels = max(levels, 1 if len(schemas) == 1 else 2)
        self.states: list[list[dict[str, bytes]]] = [
            [{} for _ in range(SHARDS)] for _ in range(self._levels)
        ]
        self.below = self.states[0]
        self.nested: dict[str, list[_Part]] = {}
        self.windows = {name: Queries(name) for name in schemas}
        self.alone: dict[str, AloneQuery] = {}
        self.joined: dict[str, JoinQueryPlan] = {}
        self.late: dict[str, int] = dict.fromkeys(schemas, 0)
        self._numbers = 0

    # Queries come and go

    def add(self, name: str, text: str) -> None:
        graph = read_graph(text)
        if graph.names:
            self.nested[name] = list(self._nested(name, graph))
            return
        if is_join(text):
            query = read_join(text)
            schemas = joined_schemas(query.join, {n: self._schemas[n] for n in query.streams})
            self.joined[name] = plan_join_query(query, schemas, is_shared=True)
            return
        asked = parse(text)
        again = dict(asked.again)
        planned = plan(asked, {n: self._schemas[again.get(n, n)] for n in asked.streams})
        queries = self.windows[asked.streams[0]]
        if shared_spec(asked) is not None and queries.axis in (None, planned.axis):
            one = queries.asked_as(name, text, asked)
            schema = self._schemas[queries.stream]
            queries.bind(one, schema, lambda q: plan(q, {queries.stream: schema}))
            queries.asked[name] = one
            return
        self._numbers += 1
        key = part_key("alone", name, str(self._numbers))
        self.alone[name] = AloneQuery(key, (name,), planned, check_options(asked, self._run))
        for stream in self.alone[name].streams:
            if self.windows[stream].axis is None:
                self.windows[stream].axis = planned.placing

    def _nested(self, name: str, graph: QueryGraph) -> Iterator[_Part]:
        found: dict[str, _Part] = {}
        self._numbers += 1
        for part in graph.parts:
            reads = {n: graph.again.get(n, n) for n in part.query.streams}
            below = {n: found[read] for n, read in reads.items() if read in found}
            parts = {n: one.key for n, one in below.items()}
            own = part_key("inner", part.query.text, *parts.values())
            key = own if part.name else part_key("nested", name, str(self._numbers))
            schemas = {n: one.schema for n, one in below.items()}
            known = {
                n: self._schemas[read] for n, read in reads.items() if n not in below
            } | schemas
            planned: Plan | JoinQueryPlan
            if isinstance(part.query, JoinQuery):
                sides = joined_schemas(part.query.join, known)
                planned = plan_join_query(part.query, sides, is_shared=True)
            else:
                planned = plan(part.query, derived_schemas(part.query, known))
                for stream in (read for n, read in reads.items() if n not in below):
                    if self.windows[stream].axis is None:
                        self.windows[stream].axis = planned.placing
            level = max((one.gives_at for one in below.values()), default=0) + 1
            found[part.name] = _Part(key, planned, level, parts, bool(part.name))
            yield found[part.name]

    def remove(self, name: str) -> None:
        if self.nested.pop(name, None) is not None:
            return
        if self.joined.pop(name, None) is None and self.alone.pop(name, None) is None:
            next(q for q in self.windows.values() if name in q.asked).remove(name)

    def queries(self) -> set[str]:
        shared = {name for queries in self.windows.values() for name in queries.asked}
        return {*self.joined, *self.alone, *self.nested, *shared}

    def exact_from(self, name: str) -> object | None:
        """As a shard remembers it, in a state of its own."""
        if name in self.nested:
            part = self.nested[name][-1]
            state = self.states[part.level - 1][0]
            own = what_was_missed({}, dict(state))
            if isinstance(part.plan, Plan):
                [mine] = (one for one in self._parts().alone if one.key == part.key)
                return alone_exact_from(mine, own)
            found = [(s, q) for s in self._joins() for q in s.queries if q.key == part.key]
            return join_exact_from(*found[0], own)
        state = dict(self.below[0])
        columns = {
            self._key(s): (s, q.axis.column or "") for s, q in self.windows.items() if q.axis
        }
        missed = what_was_missed(columns, state)
        if name in self.alone:
            return alone_exact_from(self.alone[name], missed)
        if name in self.joined:
            for shared in self._joins():
                for query in shared.queries:
                    if name in query.twins:
                        return join_exact_from(shared, query, missed)
        LIVE.clear()
        shard = PartsShard(self._parts(), state, shards=SHARDS, levels=self._levels)
        for shared_windows, windows in shard._windows:
            if name in shared_windows.names:
                at, axis = windows._queries.exact_from[name], windows._queries.axis
                return None if at is None or axis is None else label(axis, at)
        raise KeyError(name)

    # Batches

    def push(self, **tables: pa.Table) -> dict[str, pa.Table]:
        inboxes: list[list[bytes]] = [[] for _ in self.below]
        for stream, table in tables.items():
            reads = self._reads(stream)
            uses = Uses(tuple(use for use, _ in reads), SHARDS)
            size = -(-len(table) // TASKS) or 1
            for begin in range(0, len(table), size):
                task, rows = uses(), table.slice(begin, size)
                task.add(_structs([read(rows) for _, read in reads], len(rows)))
                for shard, package in task.packages():
                    inboxes[shard].append(package)
        if not any(inboxes):
            return {}
        return self._given([s.take(i) for s, i in zip(self._shards(), inboxes, strict=True)])

    def finish(self) -> dict[str, pa.Table]:
        return self._given([shard.finish() for shard in self._shards()])

    # Parts

    def _key(self, stream: str) -> str:
        return ALL_STATE if len(self._schemas) == 1 else part_key("windows", stream)

    def _planned(self) -> list[tuple[_Part, tuple[str, ...]]]:
        """The parts of nested queries, each once, with the queries that need it."""
        found: dict[str, tuple[_Part, list[str]]] = {}
        for name, parts in self.nested.items():
            for part in parts:
                found.setdefault(part.key, (part, []))[1].append(name)
        return [(part, tuple(names)) for part, names in found.values()]

    def _joins(self) -> tuple[SharedJoin, ...]:
        asked: list[tuple[SharedQuery, int, Mapping[str, str]]] = []
        for name, plan_of_join in self.joined.items():
            key = part_key(" ".join(plan_of_join.query.text.split()))
            one = SharedQuery.of(name, plan_of_join, (), key)
            asked.append((replace(one, twins=(name,)), 1, {}))
        for part, names in self._planned():
            if isinstance(part.plan, JoinQueryPlan):
                one = SharedQuery.of(names[0], part.plan, (), part.key)
                asked.append((replace(one, inner=part.inner, twins=names), part.level, part.parts))
        return sharing_joins(asked)

    def _parts(self) -> RegisterParts:
        self._plans: list[tuple[Plan | None, tuple[str, ...]]] = []
        contents: dict[str, int] = {}
        windows, joins = tuple(self._window_parts()), self._joins()
        nested = [
            self._alone_part(*one) for one in self._planned() if isinstance(one[0].plan, Plan)
        ]
        alone = (*self.alone.values(), *nested)
        for one in (a for a in alone if not a.inner):
            contents[one.names[0]] = self._number(one.plan, status_columns(one.plan, one.terms))
        for query in (q for shared in joins for q in shared.queries if not q.inner):
            contents[query.name] = self._number(None)
        terms = CheckedOptions(lateness=self._run.lateness, late=self._run.late)  # type: ignore[arg-type]
        schemas = {part.key: part.schema for part, _ in self._planned() if part.inner}
        return RegisterParts.of(windows, alone, joins, terms, contents, schemas)

    def _alone_part(self, part: _Part, names: tuple[str, ...]) -> AloneQuery:
        assert isinstance(part.plan, Plan)
        query = part.plan.query
        terms = check_options(query, run_inside(self._run, query.streams, part.parts))
        named = {i: part.parts[n] for i, n in enumerate(query.streams) if n in part.parts}
        return AloneQuery(part.key, names, part.plan, terms, part.level, named, part.inner)

    def _window_parts(self) -> Iterator[StreamWindows]:
        for number, (stream, queries) in enumerate(self.windows.items()):
            if queries.axis is None:
                continue
            for shape in queries.shapes:
                shape.answer_columns = self._number(shape.plan)
            column = queries.axis.column or ""
            any_query = parse(f"SELECT count(*) AS n FROM {stream} [TUMBLING 1 WATTR {column}]")
            sent = Definition.of(queries, cloudpickle.dumps)
            names, terms = tuple(queries.asked), check_options(any_query, self._run)
            yield StreamWindows(self._key(stream), number, stream, column, sent, terms, names)

    def _number(self, planned: Plan | None, status: tuple[str, ...] = ()) -> int:
        self._plans.append((planned, status))
        return len(self._plans) - 1

    def _reads(self, stream: str) -> Reads:
        parts = self._parts()
        found: Reads = []
        for windows in (w for w in parts.windows if w.stream == stream):
            queries = self.windows[stream]
            use = Use(windows.key, (), lambda w=windows: combiner(w.definition, SHARDS, w.terms))  # type: ignore[misc]
            found.append((use, lambda rows, q=queries: _of_windows(q, rows)))  # type: ignore[misc]
        for one in parts.alone:
            for source, (read, _) in enumerate(one.sources):
                if read == stream:
                    use = Use(one.key, one.names, lambda o=one: _of_alone(o), one.level)  # type: ignore[misc]
                    found.append((use, lambda rows, o=one, s=source: _of_plan(o.plan, s, rows)))  # type: ignore[misc]
        for shared in parts.joins:
            for number, side in enumerate(shared.join.sources):
                if stream in side.source.streams:
                    keys = shard_keys(shared.join)[number]
                    make = partial(_of_side, side, number, keys)
                    use = Use(shared.key, shared.names, make, shared.level)
                    found.append((use, partial(rows_of_task, shared.join, number, number)))
        return found

    def _shards(self) -> list[PartsShard]:
        LIVE.clear()
        BLOCKS.clear()
        parts, levels = self._parts(), self._levels
        return [PartsShard(parts, state, shards=SHARDS, levels=levels) for state in self.below]

    def _given(self, outcomes: Sequence[PartsOutcome]) -> dict[str, pa.Table]:
        for level, states in enumerate(self.states[1:], 2):
            inboxes: list[list[bytes]] = [[] for _ in states]
            for outcome in outcomes:
                for shard, package in outcome.packages:
                    inboxes[shard].append(package)
            shards = [PartsShard(self._parts(), state, shards=SHARDS, level=level,
                                 levels=self._levels) for state in states]  # fmt: skip
            outcomes = [s.take(inbox) for s, inbox in zip(shards, inboxes, strict=True)]
        sent = [one for outcome in outcomes for one in outcome.sent]
        found: dict[str, list[pa.Table]] = {}
        late = {set_aside_content(LATE, i): s for i, s in enumerate(self._schemas)}
        for one in sent:
            table = codec.unpack(one.package)[PACKED]
            if one.content in late:
                self.late[late[one.content]] += len(table)
            if one.content >= 0:
                for name, answers in self._answers(one.content, table):
                    found.setdefault(name, []).append(answers)
        return {name: pa.concat_tables(tables) for name, tables in found.items()}

    def _answers(self, content: int, table: pa.Table) -> Iterator[tuple[str, pa.Table]]:
        planned, status = self._plans[content]
        names = np.array(table.column(TITLE).to_pylist(), dtype=object)
        for name in dict.fromkeys(names.tolist()):
            mine = table.filter(pa.array(names == name)).drop_columns([TITLE])
            if planned is not None:
                mine = _selected(planned, mine, status)
            yield name, mine


def _selected(planned: Plan, lowered: pa.Table, status: tuple[str, ...]) -> pa.Table:
    """What Spark would select of lowered answers."""
    columns = {}
    if planned.names_windows:
        for i, name in enumerate(WINDOW_COLUMNS):
            columns[name] = lowered.column(i).combine_chunks().view(planned.axis.type)
    others = [n for n in lowered.column_names[2:] if n not in status]
    table = pa.table(columns | {n: lowered.column(n) for n in others})
    found = selected(planned, table)[1]
    for name in status:
        found = found.append_column(name, lowered.column(name))
    return found


def _structs(tables: Sequence[pa.Table], rows: int) -> pa.RecordBatch:
    columns = {
        use_column(i): pa.StructArray.from_arrays(
            [column.combine_chunks() for column in table.columns], names=table.column_names
        )
        for i, table in enumerate(tables)
    }
    nothing = {SOURCE: pa.nulls(rows, pa.int32()), AT: pa.nulls(rows, pa.int64())}
    return pa.RecordBatch.from_pydict(columns | nothing)


def _of_windows(queries: Queries, rows: pa.Table) -> pa.Table:
    axis = queries.axis
    assert axis is not None
    at, missing = axis.ticks(rows.column(axis.column).combine_chunks())
    whole = [c.combine_chunks() for c in rows.columns]
    named = {AT: pa.array(at, mask=missing)}
    named[ROW] = pa.StructArray.from_arrays(whole, names=rows.column_names)
    trees = read_columns(queries)
    columns = Projection(tuple(trees.values()), None)(rows)[1] if trees else []
    return pa.table(named | dict(zip(trees, columns, strict=True)))


def _of_plan(planned: Plan, source: int, rows: pa.Table) -> pa.Table:
    at, missing = planned.placing.ticks(rows.column(planned.placing.column).combine_chunks())
    _, columns = Projection(planned.rows.expressions, None)(rows)
    kept, _ = planned.rows(rows)
    passes = np.ones(len(rows), dtype=bool)
    if kept is not None:
        passes = np.isin(np.arange(len(rows)), kept)
    named = {
        SOURCE: pa.array([source] * len(rows), pa.int32()),
        AT: pa.array(at, mask=missing),
        PASSING: pa.array(passes),
    }
    return pa.table(named | {column_name(i): c for i, c in enumerate(columns)})


def _of_alone(one: AloneQuery) -> Combiner:
    return Combiner(
        filler_of(one.plan, keep_rows=one.terms.drops_late), SHARDS, notes_positions=False
    )


def _of_side(side: SourcePlan, number: int, keys: ShardKeys) -> Combiner:
    return Combiner(rows_of_side(side, number, keys), SHARDS, notes_positions=False)
