"""A cluster in dicts that runs a register of any queries: what Spark will host, without Spark.

Every batch is split over tasks, and every shard is built anew from its bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from pyspark import cloudpickle

from panes.answers.select import selected
from panes.expressions.projection import Projection
from panes.language.join_text import is_join, read_join
from panes.language.parse import parse
from panes.language.query import WINDOW_COLUMNS
from panes.nodes.inner import joined_schemas
from panes.nodes.status import status_columns
from panes.planning.join_plan import SourcePlan
from panes.planning.join_query_plan import JoinQueryPlan, plan_join_query
from panes.planning.plan import Plan, plan
from panes.planning.terms import CheckedOptions, StreamOptions, check_options
from panes.shards.above_shard import AboveShard
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
from panes.shards.shared_joins import SharedJoin, part_key, shared_joins
from panes.sharing.queries import Queries
from panes.sharing.shareable import shared_spec
from panes.stores import codec
from tests.shards.join_tasks import rows_of_task

SHARDS, ABOVE, TASKS = 3, 2, 2
Reads = list[tuple[Use, Callable[[pa.Table], pa.Table]]]


class PartsHost:
    """A register over streams of these columns; with several streams there may be joins."""

    def __init__(self, schemas: Mapping[str, pa.Schema], run: StreamOptions) -> None:
        self._schemas, self._run = dict(schemas), run
        self.below: list[dict[str, bytes]] = [{} for _ in range(SHARDS)]
        self.above: list[dict[str, bytes]] = [{} for _ in range(ABOVE)]
        self.windows = {name: Queries(name) for name in schemas}
        self.alone: dict[str, AloneQuery] = {}
        self.joined: dict[str, JoinQueryPlan] = {}
        self.late: dict[str, int] = dict.fromkeys(schemas, 0)
        self._numbers = 0

    # Queries come and go

    def add(self, name: str, text: str) -> None:
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
        self.alone[name] = AloneQuery(key, name, planned, check_options(asked, self._run))
        for stream in self.alone[name].streams:
            if self.windows[stream].axis is None:
                self.windows[stream].axis = planned.placing

    def remove(self, name: str) -> None:
        if self.joined.pop(name, None) is None and self.alone.pop(name, None) is None:
            next(q for q in self.windows.values() if name in q.asked).remove(name)

    def queries(self) -> set[str]:
        shared = {name for queries in self.windows.values() for name in queries.asked}
        return {*self.joined, *self.alone, *shared}

    def exact_from(self, name: str) -> object | None:
        """As a shard remembers it, in a state of its own."""
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
        shard = PartsShard(self._parts(), state, shards=SHARDS, above=ABOVE)
        for part, windows in shard._windows:
            if name in part.names:
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

    def _joins(self) -> tuple[SharedJoin, ...]:
        texts = {name: " ".join(one.query.text.split()) for name, one in self.joined.items()}
        return shared_joins(self.joined, (), {n: part_key(t) for n, t in texts.items()})

    def _parts(self) -> RegisterParts:
        self._plans: list[tuple[Plan | None, tuple[str, ...]]] = []
        contents: dict[str, int] = {}
        windows = tuple(self._window_parts())
        for name, one in self.alone.items():
            contents[name] = self._number(one.plan, status_columns(one.plan, one.terms))
        joins = self._joins()
        for shared in joins:
            for query in shared.queries:
                contents[query.name] = self._number(None)
        terms = CheckedOptions(lateness=self._run.lateness, late=self._run.late)  # type: ignore[arg-type]
        return RegisterParts(windows, tuple(self.alone.values()), joins, terms, contents)

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
            for source, read in enumerate(one.streams):
                if read == stream:
                    use = Use(one.key, (one.name,), lambda o=one: _of_alone(o))  # type: ignore[misc]
                    found.append((use, lambda rows, o=one, s=source: _of_plan(o.plan, s, rows)))  # type: ignore[misc]
        for shared in parts.joins:
            names = tuple(n for query in shared.queries for n in query.twins)
            for number, side in enumerate(shared.join.sources):
                if stream in side.source.streams:
                    keys = shard_keys(shared.join)[number]
                    use = Use(shared.key, names, lambda s=side, n=number, k=keys: _of_side(s, n, k))  # type: ignore[misc]
                    found.append((use, lambda rows, j=shared.join, n=number:
                                  rows_of_task(j, n, n, rows)))  # type: ignore[misc]  # fmt: skip
        return found

    def _shards(self) -> list[PartsShard]:
        LIVE.clear()
        BLOCKS.clear()
        above = None if len(self._schemas) == 1 else ABOVE
        parts = self._parts()
        return [PartsShard(parts, state, shards=SHARDS, above=above) for state in self.below]

    def _given(self, outcomes: Sequence[PartsOutcome]) -> dict[str, pa.Table]:
        sent = [one for outcome in outcomes for one in outcome.sent]
        if len(self._schemas) > 1:
            inboxes: list[list[bytes]] = [[] for _ in self.above]
            for outcome in outcomes:
                for shard, package in outcome.packages:
                    inboxes[shard].append(package)
            for state, inbox in zip(self.above, inboxes, strict=True):
                shard_above = AboveShard(self._parts(), CheckedOptions(), state, shards=ABOVE)
                sent += shard_above.take(inbox).sent
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
