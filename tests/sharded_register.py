"""A register whose panes are spread over shards, with their state in dicts: Spark without Spark.

Every batch is split over tasks and every shard is built anew from its bytes, so whatever holds of a
register in one process must hold here, batch by batch.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyspark import cloudpickle

from panes.answers.select import selected
from panes.asking.ask_panes import ask_panes
from panes.asking.kept_columns import keep_for
from panes.asking.look_up import planned_question
from panes.asking.row_questions import ordering_of
from panes.asking.row_window import answered
from panes.axis import parse_instant
from panes.expressions.projection import Projection
from panes.language.parse import parse
from panes.language.query import Query
from panes.language.row_question import RowQuestion, read_row_question
from panes.planning.plan import Plan, plan
from panes.planning.terms import CheckedOptions, StreamOptions, check_options
from panes.shards.find_rows import find_rows
from panes.shards.names import AT, EVERY_SOURCE, PROMISE, ROW, SOURCE
from panes.shards.outcome import ShardOutcome
from panes.shards.packages import Packages
from panes.shards.register_filler import read_columns
from panes.shards.register_shard import LIVE, Definition, RegisterShard, combiner
from panes.shards.state import ABOUT
from panes.shards.stored_runs import RECALL
from panes.sharing.queries import Queries
from panes.stores import codec


class ShardedRegister:
    """As `panes.process.register.Register`, through combiners and shards."""

    def __init__(
        self, stream: str, run: StreamOptions, schema: pa.Schema, *, shards: int = 3, tasks: int = 2
    ) -> None:
        self.stream, self._run, self._schema = stream, run, schema
        self._tasks, self._queries = tasks, Queries(stream)
        self._prepared: dict[str, RowQuestion] = {}
        self.states: list[dict[str, bytes]] = [{} for _ in range(shards)]
        self.late: list[pa.Table] = []
        self.rejected: list[pa.Table] = []
        self.forgets = True
        self.number = 0
        self._terms: CheckedOptions | None = None
        self._definition: Definition | None = None

    def add(self, name: str, text: str) -> None:
        asked = self._queries.read(name, text)
        self._terms = check_options(asked.query, self._run)
        self._queries.bind(asked, self._schema, lambda q: plan(q, {self.stream: self._schema}))
        self._queries.asked[name] = asked
        self._definition = None

    def remove(self, name: str) -> None:
        self._queries.remove(name)
        self._definition = None

    def prepare(self, text: str) -> None:
        """Keep rows for a question from the next batch on."""
        asked = read_row_question(text)
        assert asked is not None
        self._prepared[text] = asked
        query = parse(ordering_of(asked))
        self._queries.axis = plan(query, {self.stream: self._schema}).axis
        self._terms = check_options(query, self._run)
        self._keep()

    def forget(self, text: str) -> None:
        del self._prepared[text]
        self._keep()

    def _keep(self) -> None:
        self._queries.keep = keep_for(self._prepared.values(), self._schema)
        self._definition = None

    def ask_rows(self, text: str) -> pa.Table:
        """Rows of all shards, by what their states say and by nothing else."""
        asked = read_row_question(text)
        assert asked is not None
        axis = self._queries.axis
        assert axis is not None
        states = {i: state for i, state in enumerate(self.states) if state}
        abouts = {i: codec.unpack(state[ABOUT]) for i, state in states.items()}
        schema = self._schema
        found = find_rows(asked, schema, abouts, self._queries.keep, axis)
        if found is None:
            return answered(asked, schema.empty_table(), schema, axis, (0, 0))
        positions, tables = [np.zeros(0, np.int64)], [schema.empty_table()]
        for shard, name in found.runs:
            at, columns = found.rows_in(states[shard][name])
            positions.append(at)
            given = dict(zip(found.columns, columns, strict=True))
            nothing = {f.name: pa.nulls(len(at), f.type) for f in schema}
            tables.append(pa.table(nothing | given, schema=schema))
        order = np.argsort(np.concatenate(positions), kind="stable")
        rows = pa.concat_tables(tables).take(pa.array(order))
        return answered(asked, rows, schema, axis, (found.start, found.end))

    def ask(self, text: str) -> pa.Table:
        """From the panes of all shards, as each of them says by itself."""
        query = parse(text, once=True)

        def plan_of(asked: Query) -> Plan:
            return plan(asked, {self.stream: self._schema})

        now = [self._resumed(state) for state in self.states]
        asked = planned_question(query, plan_of, now[0].stores)
        size = asked.window.spec.size  # type: ignore[union-attr]
        told = [ask_panes(asked, q.store_of(asked), size, q.newest) for q in now]
        assert len({t.schema for t in told}) == 1
        return pa.concat_tables(told)

    def queries(self) -> dict[str, str]:
        return {name: asked.text for name, asked in self._queries.asked.items()}

    def push(self, batch: pa.Table) -> dict[str, pa.Table]:
        size = -(-len(batch) // self._tasks) or 1
        parts = [batch.slice(begin, size) for begin in range(0, len(batch), size)]
        return self._run_batch([self._projected(part) for part in parts])

    def punctuate(self, at: int) -> dict[str, pa.Table]:
        promise = {SOURCE: [EVERY_SOURCE], AT: pa.array([None], pa.int64())}
        return self._run_batch([pa.table({**promise, PROMISE: [parse_instant(at)]})])

    def finish(self) -> dict[str, pa.Table]:
        return self._collected([shard.finish() for shard in self._shards()])

    def exact_from(self, name: str) -> int | None:
        """What the shards say, who must agree; they are asked as if a batch came now."""
        return self.exact_froms()[name]

    def exact_froms(self) -> dict[str, int | None]:
        """The same of all queries."""
        told, *others = (self._resumed(state).exact_from for state in self.states)
        assert all(other == told for other in others), (told, others)
        return told

    def _resumed(self, state: dict[str, bytes]) -> Queries:
        LIVE.clear()
        shard = RegisterShard(self._current(), self._agreed(), dict(state))
        return shard._queries

    def _current(self) -> Definition:
        if self._definition is None:
            self._definition = Definition.of(self._queries, cloudpickle.dumps, number=self.number)
        return self._definition

    def _agreed(self) -> CheckedOptions:
        assert self._terms is not None
        return self._terms

    def _shards(self) -> list[RegisterShard]:
        if self.forgets:
            LIVE.clear()
            RECALL.clear()
        return [RegisterShard(self._current(), self._agreed(), state) for state in self.states]

    def _projected(self, part: pa.Table) -> pa.Table:
        """What Spark would select of a task's rows."""
        axis = self._queries.axis
        assert axis is not None
        at, missing = axis.ticks(part.column(axis.column).combine_chunks())
        named = {AT: pa.array(at, mask=missing)}
        named[ROW] = pa.StructArray.from_arrays(
            [c.combine_chunks() for c in part.columns], names=part.column_names
        )
        trees = read_columns(self._queries)
        columns = Projection(tuple(trees.values()), None)(part)[1]
        return pa.table(named | dict(zip(trees, columns, strict=True)))

    def _run_batch(self, tasks: list[pa.Table]) -> dict[str, pa.Table]:
        sent: dict[int, list[bytes]] = {}
        for rows in tasks:
            task = combiner(self._current(), len(self.states), self._agreed())
            for piece in rows.to_batches():
                task.add(piece)
            for shard, package in task.packages():
                sent.setdefault(shard, []).append(package)
        shards = self._shards()
        return self._collected(
            [shards[i].take_opened(Packages.of(packages)) for i, packages in sent.items()]
        )

    def _collected(self, outcomes: list[ShardOutcome]) -> dict[str, pa.Table]:
        found: dict[str, list[pa.Table]] = {}
        for outcome in outcomes:
            self.late += [outcome.late] if len(outcome.late) else []
            self.rejected += [outcome.rejected] if len(outcome.rejected) else []
            for portion in outcome.portions:
                for name, table in portion.tables():
                    found.setdefault(name, []).append(
                        selected(self._queries.homes[name][1].plan, table)[1]
                    )
        joined = {name: pa.concat_tables(tables) for name, tables in found.items()}
        return {name: table for name, table in joined.items() if len(table)}
