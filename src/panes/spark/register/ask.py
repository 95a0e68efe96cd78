"""Asking a register on Spark: an answer from the state that its last batch left.

Spark reads the shards' state as a table, and every shard answers for its keys.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it

from panes.asking.ask_panes import answer_now
from panes.asking.look_up import planned_question
from panes.asking.set_questions import planned_sets
from panes.errors import QueryError
from panes.language.query import Query
from panes.planning.plan import Plan
from panes.planning.terms import CheckedOptions
from panes.shards.names import KEPT
from panes.shards.register_parts import ALL_STATE
from panes.shards.register_shard import Definition, as_lowered, resumed
from panes.shards.register_state import take_up
from panes.shards.sent_answers import with_ticks
from panes.shards.state import ABOUT
from panes.sharing.queries import Queries
from panes.spark.answers import finished, handed_over_schema, with_start
from panes.spark.batches import as_schema
from panes.spark.internals import STATE_OPERATOR, dumps, has_commit, to_arrow_schema
from panes.spark.state_host import STATE_NAME
from panes.stores import codec
from panes.windows.spec import Sliding


def read_state(session: SparkSession, checkpoint: str, key: str = ALL_STATE) -> DataFrame | None:
    """What shards keep, as the last batch left it: columns `shard`, `name`, `data` and `level`.

    Batches that come later do not change it. None if no batch has been finished. With a `key`, it
    is the state of one part. `level` numbers the operators whose state it is.
    """
    if not has_commit(session, checkpoint):
        return None
    known = session.read.format("state-metadata").load(checkpoint)
    ours = known.where(F.col("operatorName").startswith(STATE_OPERATOR))
    operators = sorted({row[0] for row in ours.select("operatorId").collect()} or {0})
    reader = session.read.format("statestore").option("path", checkpoint)
    reader = reader.option("stateVarName", STATE_NAME)
    found = [
        reader.option("operatorId", number).load().withColumn("level", F.lit(number))
        for number in operators
    ]
    state = reduce(DataFrame.unionAll, found).select(
        F.col("key.shard").alias("shard"),
        F.col("user_map_key.name").alias("name"),
        F.col("user_map_value.data").alias("data"),
        "level",
    )
    if key == ALL_STATE:
        return state
    own = state.where(F.col("name").startswith(f"{key}/"))
    return own.withColumn("name", F.substring("name", len(key) + 2, 1 << 20))


def as_of_now(state: DataFrame | None, queries: Queries) -> Queries:
    """The queries as the next batch will find them, by what the last one left; without panes."""
    now = Definition.of(queries, dumps).queries()
    if state is not None:
        about = state.where(F.col("name") == ABOUT)
        for row in about.select("data").limit(1).collect():  # all shards remember the same
            take_up(now, codec.unpack(bytes(row.data)))
    return now


def ask(
    frame: DataFrame,
    checkpoint: str,
    queries: Queries,
    terms: CheckedOptions,
    query: Query,
    plan_of: Callable[[Query], Plan],
) -> DataFrame:
    """The answer over the window that ends with the newest pane.

    Whether there is one is known before the panes are read.
    """
    plan = plan_of(query)
    spec = plan.window.spec
    if not isinstance(spec, Sliding) or plan.axis.column is None:
        raise QueryError(
            "what is asked for now is one window over a column: [RANGE 10 minutes WATTR ts]",
            hint="rows of a DataFrame have no order of their own, so ROWS means nothing here",
        )
    queries.require_same_axis(None, plan)
    state = read_state(frame.sparkSession, checkpoint)
    now = as_of_now(state, queries)
    asked = AskState(frame, state, now, Definition.of(queries, dumps), terms)
    plan = planned_question(query, plan_of, now.stores)
    sets = planned_sets(query.text, plan, plan_of, now.stores, queries.aggregates)
    if sets is None:
        return asked(plan)
    first, second = asked(sets.first), asked(sets.second)
    return first.intersect(second) if sets.operation == "INTERSECT" else first.subtract(second)


@dataclass(frozen=True, slots=True)
class AskState:
    """Answers plans from one state: all of them of the same moment.

    `now` are the queries as that state has them.
    """

    frame: DataFrame
    state: DataFrame | None
    now: Queries
    definition: Definition
    terms: CheckedOptions

    def __call__(self, plan: Plan) -> DataFrame:
        spec = plan.window.spec
        assert isinstance(spec, Sliding)
        store = self.now.store_of(plan)
        answer_now(plan, store, spec.size, self.now.newest, as_lowered)
        schema = with_start(handed_over_schema(plan))
        axis_type = self.frame.schema[plan.axis.column or ""].dataType
        if self.state is None:
            return finished(plan, self.frame.sparkSession.createDataFrame([], schema), axis_type)
        answer = AskShard(self.definition, self.terms, plan, to_arrow_schema(schema))
        panes = self.state.where(~F.col("name").startswith(f"{KEPT}/"))
        lowered = panes.groupBy("shard").applyInArrow(lambda rows: answer(rows), schema)
        return finished(plan, lowered, axis_type)


@dataclass(frozen=True, slots=True)
class AskShard:
    """One shard's answers: to the rows of its state."""

    definition: Definition
    terms: CheckedOptions
    plan: Plan
    schema: pa.Schema

    def __call__(self, rows: pa.Table) -> pa.Table:
        blobs = dict(
            zip(rows.column("name").to_pylist(), rows.column("data").to_pylist(), strict=True)
        )
        queries = self.definition.queries()
        resumed(queries, self.terms, blobs)
        spec = self.plan.window.spec
        assert isinstance(spec, Sliding)
        store = queries.store_of(self.plan)
        found = answer_now(self.plan, store, spec.size, queries.newest, as_lowered)
        if found is None:
            return self.schema.empty_table()
        return as_schema(with_ticks(found), self.schema)
