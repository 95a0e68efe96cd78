"""Asking a register on Spark: an answer from the state that its last batch left.

Spark reads the shards' state as a table, and every shard answers for its keys.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it

from panes.asking.ask_panes import answer_now
from panes.errors import QueryError
from panes.planning.plan import Plan
from panes.planning.terms import Terms
from panes.register.queries import Queries
from panes.register.shared_store import SharedStore
from panes.shards.register_shard import Definition, as_lowered, resumed
from panes.spark.host import STATE_NAME
from panes.spark.internals import STATE_OPERATOR, dumps, to_arrow_schema
from panes.spark.register.lowered import finished, lowered_schema, with_ticks
from panes.windows.spec import Sliding


def read_state(frame: DataFrame, checkpoint: str) -> DataFrame:
    """What shards keep, as of the last batch: columns `shard`, `name` and `data`."""
    session = frame.sparkSession
    known = session.read.format("state-metadata").load(checkpoint)
    ours = known.where(F.col("operatorName").startswith(STATE_OPERATOR))
    operator = ours.agg(F.max("operatorId")).collect()[0][0]
    reader = session.read.format("statestore").option("path", checkpoint)
    state = reader.option("operatorId", operator or 0).option("stateVarName", STATE_NAME).load()
    return state.select(
        F.col("key.shard").alias("shard"),
        F.col("user_map_key.name").alias("name"),
        F.col("user_map_value.data").alias("data"),
    )


def ask(
    frame: DataFrame, checkpoint: str, queries: Queries, now: Queries, terms: Terms, bound: Plan
) -> DataFrame:
    """The answer over the window that ends with the newest pane.

    `now` are the queries as the last batch left them, without panes: it tells whether there is an
    answer before the state is read.
    """
    spec = bound.window.spec
    if not isinstance(spec, Sliding) or bound.axis.column is None:
        raise QueryError(
            "what is asked for now is one window over a column: [RANGE 10 minutes WATTR ts]",
            hint="rows of a DataFrame have no order of their own, so ROWS means nothing here",
        )
    store = store_for(now, bound)
    answer_now(bound, store, spec.size, now.newest, as_lowered)
    definition = Definition.of(queries, dumps)
    schema = lowered_schema(bound)
    answer = AskShard(definition, terms, bound, to_arrow_schema(schema))
    lowered = (
        read_state(frame, checkpoint)
        .groupBy("shard")
        .applyInArrow(
            lambda rows: answer(rows),
            schema,
        )
    )
    axis_type = frame.schema[bound.axis.column].dataType
    return finished(bound, lowered, axis_type)


def store_for(queries: Queries, bound: Plan) -> SharedStore:
    """The store with the same GROUP BY as a question."""
    store = queries.stores.get(bound.rows.expressions[: len(bound.query.keys)])
    if store is None:
        raise QueryError(
            "no registered query has that GROUP BY, so nothing is stored for it",
            hint="add one; it is answered from the rows to come",
        )
    return store


@dataclass(frozen=True, slots=True)
class AskShard:
    """One shard's answers: to the rows of its state."""

    definition: Definition
    terms: Terms
    bound: Plan
    schema: pa.Schema

    def __call__(self, rows: pa.Table) -> pa.Table:
        kept = dict(
            zip(rows.column("name").to_pylist(), rows.column("data").to_pylist(), strict=True)
        )
        queries = self.definition.queries()
        resumed(queries, self.terms, kept)
        spec = self.bound.window.spec
        assert isinstance(spec, Sliding)
        store = store_for(queries, self.bound)
        found = answer_now(self.bound, store, spec.size, queries.newest, as_lowered)
        if found is None:
            return self.schema.empty_table()
        given = with_ticks(found)
        return pa.table(
            [given.column(f.name).cast(f.type) for f in self.schema], schema=self.schema
        )
