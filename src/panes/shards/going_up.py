"""What goes up from a shard of a join to the windows above it, batch by batch.

Joined rows go up at once, with a promise of those to come. Groups by positions are complete one by
one, by joint punctuation, which no promise along one axis says. So their rows wait here until they
are complete, and then go up together: all rows of one batch lie at one position, the number of the
batch, which is promised to be over at once.

Invariant: all shards of a join take the same batches, so they give them the same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from panes.axis import LIMIT
from panes.nodes.join_stage import JoinStage
from panes.nodes.joined_rows import complete_groups, passing_rows, placed_rows
from panes.planning.join_query_plan import AT, Aggregation, JoinQueryPlan
from panes.shards.names import ENDED
from panes.shards.state import State
from panes.stores import codec

_WAITING, _BATCHES = "waiting", "batches"


@dataclass(frozen=True, slots=True)
class Gone:
    """Rows that have gone up, placed, and what is promised of those to come; None: nothing.

    `waiting` are joined rows that are stored until they can go up.
    """

    rows: pa.Table
    promise: int | None
    waiting: int = 0


class GoingUp:
    """The way from one join to the windows of one query, for one batch."""

    def __init__(self, plan: JoinQueryPlan, state: State) -> None:
        assert plan.aggregation is not None
        self._plan, self._above, self._state = plan, plan.aggregation, state

    def take(self, joined: pa.Table, stage: JoinStage) -> Gone:
        """Joined rows of a batch, after which the join is at this stage."""
        rows = passing_rows(self._plan, joined)
        by = self._above.by
        if by == "positions":
            return self._complete(self._above, rows, stage)
        at = stage.progress_above(by)
        return Gone(placed_rows(self._plan, by, rows), at if -LIMIT < at < LIMIT else None)

    def finish(self, joined: pa.Table) -> Gone:
        """The last joined rows: nothing comes after them."""
        rows = passing_rows(self._plan, joined)
        if self._above.by != "positions":
            return Gone(placed_rows(self._plan, self._above.by, rows), ENDED)
        waiting, number = self._waiting(rows.schema)
        self._write(rows.schema.empty_table(), number + 1)
        return Gone(_at(pa.concat_tables([waiting, rows]), number), ENDED)

    def _complete(self, above: Aggregation, rows: pa.Table, stage: JoinStage) -> Gone:
        waiting, number = self._waiting(rows.schema)
        together = pa.concat_tables([waiting, rows])
        complete, left = complete_groups(self._plan, above, together, stage)
        self._write(left, number + 1)
        return Gone(_at(complete, number), number + 1, len(left))

    def _waiting(self, schema: pa.Schema) -> tuple[pa.Table, int]:
        """Rows of groups that are not complete, and how many batches there have been."""
        data = self._state.get(_WAITING)
        if data is None:
            return schema.empty_table(), 0
        tables = codec.unpack(data)
        waiting = tables[_WAITING]
        return waiting.cast(schema), int(tables[_BATCHES].column(_BATCHES)[0].as_py())

    def _write(self, waiting: pa.Table, batches: int) -> None:
        count = pa.table({_BATCHES: pa.array([batches], pa.int64())})
        self._state[_WAITING] = codec.pack({_WAITING: waiting.combine_chunks(), _BATCHES: count})


def _at(rows: pa.Table, number: int) -> pa.Table:
    """Rows that all lie at one position."""
    return rows.append_column(AT, pa.array(np.full(len(rows), number, dtype=np.int64)))
