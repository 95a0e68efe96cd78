"""A query whose panes are spread over shards, with their state in dicts: Spark without Spark.

Every batch is split over tasks and every shard is built anew from its bytes, so whatever holds of a
query in one process must hold here, batch by batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from panes.answers.select import projected
from panes.language.parse import parse
from panes.planning.plan import Plan, plan
from panes.planning.terms import CheckedOptions
from panes.shards.combiner import Combiner
from panes.shards.names import AT, PASSING, PROMISE, ROW, SOURCE, column_name
from panes.shards.outcome import ShardOutcome
from panes.shards.query_filler import filler_of
from panes.shards.query_shard import QueryShard
from panes.shards.query_state import RECALL
from panes.windows.spec import PerRow
from tests.support import SCHEMA, sorted_answers


class ShardedQuery:
    """A cluster in a dict."""

    def __init__(
        self, text: str, schema: pa.Schema = SCHEMA, *, tasks: int = 3, **terms: object
    ) -> None:
        query = parse(text)
        self.plan: Plan = plan(query, dict.fromkeys(query.streams, schema))
        self.schema = self.plan.schema()
        self.tasks, self.forgetful = tasks, True
        self.terms = CheckedOptions(**terms)  # type: ignore[arg-type]
        self.states: list[dict[str, bytes]] = [{} for _ in range(3)]

    def push(self, **batches: pa.Table) -> list[ShardOutcome]:
        rows = pa.concat_tables(
            [
                self._rows(number, batches[name])
                for number, name in enumerate(self.plan.query.streams)
                if name in batches
            ]
        )
        inboxes: list[list[bytes]] = [[] for _ in self.states]
        for task in range(self.tasks):
            filler = filler_of(self.plan, keep_rows=self.terms.drops_late)
            step = self.terms.step_on(self.plan.placing.kind)
            combiner = Combiner(filler, len(self.states), max_step=step)
            for batch in rows.take(np.arange(task, len(rows), self.tasks)).to_batches(
                max_chunksize=5
            ):
                combiner.add(batch)
            for shard, package in combiner.packages():
                inboxes[shard].append(package)
        outcomes = []
        if self.forgetful:
            RECALL.clear()
        for state, inbox in zip(self.states, inboxes, strict=True):
            if inbox:
                outcomes.append(self.shard(state).take(inbox))
        return outcomes

    def shard(self, state: dict[str, bytes]) -> QueryShard:
        return QueryShard(self.plan, self.terms, state, shards=len(self.states))

    def finish(self) -> list[ShardOutcome]:
        return [self.shard(state).finish() for state in self.states]

    def answers(self, outcomes: Sequence[ShardOutcome]) -> pa.Table:
        tables = [projected(self.plan, o.answers) for o in outcomes]
        found = pa.concat_tables([self.schema.empty_table(), *tables])
        if isinstance(self.plan.window.spec, PerRow):
            return found.sort_by("at")
        return sorted_answers(found, len(self.plan.query.shown_keys))

    def _rows(self, source: int, table: pa.Table) -> pa.Table:
        """What Spark's projection would hand to a task."""
        axis = self.plan.placing
        at, missing = axis.ticks(table.column(axis.column).combine_chunks())
        _, columns = replace(self.plan.rows, where=None)(table)
        kept, _ = self.plan.rows(table)
        passes = np.ones(len(table), dtype=bool)
        if kept is not None:
            passes = np.zeros(len(table), dtype=bool)
            passes[kept] = True
        named = {
            SOURCE: pa.array([source] * len(table), pa.int32()),
            AT: pa.array(at, mask=missing),
            PASSING: pa.array(passes),
            ROW: pa.StructArray.from_arrays(
                [c.combine_chunks() for c in table.columns], names=table.column_names
            ),
        }
        if "promise" in table.column_names:
            named[PROMISE] = table.column("promise")
        named |= {column_name(i): c for i, c in enumerate(columns)}
        return pa.table(named)
