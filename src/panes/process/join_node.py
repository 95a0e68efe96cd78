"""A join of one query as a node: rows of both sides go in, joined rows or answers come out.

Until every side has sent a batch, nothing is known of its columns: what comes waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain

import pyarrow as pa

from panes.aggregates.custom import UserAggregate
from panes.axis import BEGINNING
from panes.errors import QueryError
from panes.frames import empty_tables, to_table
from panes.language.join_query import JoinQuery
from panes.language.query import Query
from panes.nodes.inner import joined_schemas, schemas_made
from panes.nodes.promised_answers import promised_by_join
from panes.planning.explain_join import explain_join
from panes.planning.join_query_plan import JoinQueryPlan, plan_join_query
from panes.planning.join_terms import require_join_options
from panes.planning.terms import StreamOptions
from panes.process.join_answers import (
    NO_COLUMNS,
    NO_PROMISE,
    Coming,
    JoinAnswers,
    RunningJoin,
    known_schemas,
    no_batch_yet,
)
from panes.process.node import Instant, Step, clock
from panes.process.query_node import Inside, QueryNode


class JoinNode(QueryNode):
    """The state of one query over a join of streams, or of answers of other nodes."""

    query: JoinQuery

    def __init__(
        self,
        query: JoinQuery,
        inside: Inside,
        run: StreamOptions,
        *,
        aggregates: Sequence[UserAggregate] = (),
        schemas: Mapping[str, pa.Schema] | None = None,
        now: Callable[[], int] = clock,
    ) -> None:
        """`schemas` are those of the sources, as far as they are known."""
        super().__init__(query, inside, run, aggregates=aggregates, now=now)
        require_join_options(query, self.run)
        self._schemas: dict[str, pa.Schema] = {}
        self._early: list[Coming] = []
        self._join: RunningJoin | None = None
        self._mine: JoinAnswers | None = None
        self._note(empty_tables(inside.mine(schemas or {})))

    def _of(self, schemas: Mapping[str, pa.Schema]) -> JoinNode:
        return JoinNode(
            self.query, self._inside, self.run, aggregates=self.aggregates, schemas=schemas
        )

    # Steps

    def _answers(self, step: Step) -> pa.Table:
        if step.key is not None:
            raise QueryError("promises for one key are for windows over one stream")
        tables = {
            name: to_table(batch, name, self._schemas.get(name))
            for name, batch in self._inside.mine(step.rows).items()
        }
        self._note(tables)
        told = dict(self._told(step))
        coming = Coming(
            rows=tables, told=told, now=self._now(), beats=self._beats(step), ends=step.is_last
        )
        if self._join is None or self._mine is None:
            if step.is_last or told:
                raise self._no_batch_yet(NO_COLUMNS if step.is_last else NO_PROMISE)
            self._early.append(coming)
            return pa.table({})
        self._join.run.watcher = self.watcher
        self.is_finished = step.is_last
        joined = self._join.after(coming)
        return self._mine.of(joined, self._join.run, ends=step.is_last)

    def _note(self, tables: Mapping[str, pa.Table]) -> None:
        """Remember the columns of streams; once every side is known, make the plan."""
        for name, table in tables.items():
            self._schemas.setdefault(name, table.schema.remove_metadata())
        known = known_schemas(self.query, self._schemas) if self._join is None else None
        if known is None:
            return
        join, columns = self.query.join, list(chain(*schemas_made(self.query.join, known)))
        plan = plan_join_query(self.query, joined_schemas(join, known), self.aggregates)
        self._join = RunningJoin(plan, self.run, self.set_aside, columns, early=self._early)
        self._mine, self._early = JoinAnswers(plan, self.run, self.aggregates), []

    def early(self) -> pa.Table:
        """The windows above the join that are still open, as they are now."""
        if self._mine is None:
            raise self._no_batch_yet(NO_COLUMNS)
        if self._mine.above is None:
            raise QueryError("EMIT EARLY is for joined rows that are aggregated")
        return self._mine.above.early()

    def require_instants(self, told: Mapping[str, Instant]) -> None:
        """Refuse promises that are no positions of the streams."""
        mine = self._inside.mine(told)
        if self._join is None and mine:
            raise self._no_batch_yet(NO_PROMISE)
        if self._join is not None:
            self._join.run.require_instants(mine)

    # What there is to see

    @property
    def progress(self) -> Mapping[str, int]:
        """Up to where each side is complete; after the end, how far it had come."""
        return {} if self._join is None else self._join.run.reached()

    @property
    def given(self) -> Mapping[str, pa.Schema]:
        """The columns of batches, of the streams that are known."""
        return self._schemas

    @property
    def state(self) -> Mapping[str, int]:
        """How much is stored: rows and bytes of each side, and what windows above the join hold."""
        stored = dict.fromkeys(("left_rows", "right_rows", "left_bytes", "right_bytes"), 0)
        held = {"keys": 0, "partials": 0, "bytes": 0}
        if self._join is not None and self._mine is not None:
            stored |= self._join.run.stage.stored()
            held |= {} if self._mine.above is None else self._mine.above.stored
        total = stored["left_bytes"] + stored["right_bytes"] + held["bytes"]
        rows = stored["left_rows"] + stored["right_rows"]
        return {**held, **stored, "rows": rows, "bytes": total, **self.set_aside.counts}

    @property
    def next_end(self) -> int | None:
        """No window above the join that is yet to be answered ends before, if there are any."""
        above = None if self._mine is None else self._mine.above
        return None if above is None else above.next_end

    @property
    def open_from(self) -> int:
        """The first position of rows that may still be joined."""
        if self._join is None:
            return BEGINNING
        stage = self._join.run.stage
        return min(stage.open_from(side.name) for side in self._join.run.join.sources)

    def promised_answers(self) -> dict[str, int]:
        """What is promised of the columns of answers to come, by their names in small letters."""
        if self._join is None:
            return {}
        return promised_by_join(self.plan, self._join.run.stage, self.next_end)

    @property
    def plan(self) -> JoinQueryPlan:
        """The plan, known once every side has sent a batch."""
        if self._mine is None:
            raise self._no_batch_yet(NO_COLUMNS)
        return self._mine.plan

    def explain(self, *, details: bool = False) -> str:
        """The plan as text."""
        return explain_join(self.plan, details=details)

    def _made(self) -> Sequence[pa.Schema]:
        return [] if self._join is None else self._join.aside.columns

    def _placed(self) -> Iterable[Query]:
        sides = () if self._join is None else self._join.run.join.sources
        return (side.plan.query for side in sides)

    def _no_batch_yet(self, what: str) -> Exception:
        return no_batch_yet(self.query, self._schemas, what)
