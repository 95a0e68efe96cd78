"""How a register reads its stream: the columns, the axis that places rows, and the terms.

The first query or question that names an axis settles it for all, and so do its terms. Invariant:
what is settled stays, and rows are admitted only once all of it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from panes.admit.gate import Admitted, Gate
from panes.admit.promises import Promised
from panes.aggregates.custom import UserAggregate
from panes.frames import require_same_columns
from panes.language.expressions import quoted
from panes.language.query import Query
from panes.operators.operator import Chain
from panes.planning.plan import Plan, plan
from panes.planning.scalar import Projection
from panes.planning.terms import Run, Terms, require_lateness
from panes.progress.promise import Promise
from panes.register.queries import Queries


class Reading:
    """The columns of a stream, the plan that places its rows, and the terms; each once known."""

    def __init__(
        self,
        queries: Queries,
        run: Run,
        aggregates: Sequence[UserAggregate],
        now: Callable[[], int],
    ) -> None:
        self._queries, self._run, self._now = queries, run, now
        self._aggregates = tuple(aggregates)
        self.schema: pa.Schema | None = None
        self.terms: Terms | None = None
        self._plan: Plan | None = None

    # What is settled

    @property
    def has_axis(self) -> bool:
        """Whether it is known which column orders the rows."""
        return self._plan is not None

    def plan(self, query: Query, schema: pa.Schema) -> Plan:
        """A query over the stream, planned."""
        planned = plan(query, {self._queries.stream: schema}, self._aggregates)
        require_lateness(self._run.lateness, planned.axis.kind)
        return planned

    def settle_axis(self, planned: Plan, schema: pa.Schema) -> None:
        """A question over a column has the axis of all, or is the first to say which."""
        if planned.axis.column is not None:
            require_lateness(self._run.lateness, planned.axis.kind)
            self._queries.require_same_axis("asked", planned)
            self._queries.axis = planned.axis
            self.place_by(planned, schema)

    def place_by(self, planned: Plan, schema: pa.Schema) -> None:
        """Place rows as a plan does, if nothing has said how."""
        if self._plan is None:
            self._plan = _placing(planned, schema)

    def forget_axis(self) -> None:
        """No query could be bound, so nothing has said how rows are placed."""
        self._plan = None

    def settle_terms(self, terms: Terms) -> None:
        """The first question says how the stream progresses; where it stands stays as it is."""
        if self.terms is None:
            promised, self.terms = self._queries.promise, terms
            self._queries.promise = Promise(terms.bound(), promised.at, promised.why)

    def ordering(self) -> str | None:
        """A query over the column that orders the rows: it is known even if no query is left."""
        if self._plan is None:
            return None
        axis = self._plan.axis
        size = "1 second" if axis.kind == "time" else "1"
        stream, column = quoted(self._queries.stream), quoted(axis.column or "")
        return f"SELECT count(*) FROM {stream} [TUMBLING {size} WATTR {column}]"

    # Rows come

    def require_same_columns(self, schema: pa.Schema) -> None:
        """Refuse a batch with other columns than those that are known."""
        if self.schema is not None:
            require_same_columns(self._queries.stream, self.schema, schema)

    def admit(self, table: pa.Table) -> Admitted:
        """A batch placed on the axis; rows that are late or have no position are set aside."""
        assert self._plan is not None
        assert self.terms is not None
        queries = self._queries
        promised = Promised({queries.stream: queries.promise.at})
        gate = Gate(self._plan, self.terms, self._now(), promised, queries.open_from())
        return gate.admit(queries.stream, table, Chain(), 0)


def _placing(planned: Plan, schema: pa.Schema) -> Plan:
    """A plan that only places rows: all columns of the stream, no filter, no key."""
    every = tuple(exp.column(exp.to_identifier(name, quoted=True)) for name in schema.names)
    query = replace(planned.query, keys=(), where=None)
    rows = Projection(every, None)
    return replace(planned, query=query, rows=rows, row_types=tuple(schema.types))
