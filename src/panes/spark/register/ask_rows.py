"""Asking a register on Spark for rows, from those that its shards keep.

    state --what shards remember--> which runs have rows of the window, or why it is refused
          --mapInArrow: the rows of these runs--> WHERE, ORDER BY, LIMIT and SELECT are Spark's own

Everything is read as the last batch left it: the stream goes on meanwhile, and the answer stays
that of the moment its `window_end` says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it
from pyspark.sql import types as T  # noqa: N812

from panes.asking.kept_columns import columns_read
from panes.asking.row_questions import ordering_of
from panes.asking.row_window import outputs_of
from panes.errors import QueryError, StateError
from panes.expressions.projection import resolve
from panes.language.parse import parse
from panes.language.row_question import Ordering, RowQuestion
from panes.planning.plan import Plan
from panes.shards.find_rows import FoundRows, find_rows
from panes.shards.names import AT, KEPT
from panes.shards.state import ABOUT
from panes.sharing.queries import Queries
from panes.spark.answers import edge_texts, named
from panes.spark.batches import Batches, as_schema, in_batches
from panes.spark.bind import arrow_schema, bind_query, sql
from panes.spark.column_names import PLACE
from panes.spark.expressions import spark_sql
from panes.spark.internals import to_arrow_schema
from panes.spark.register.ask import read_state
from panes.stores import codec

_RUN = 32
"""A row's place is its run's number in the upper bits, and its own in so many lower ones."""


def ask_rows(
    frame: DataFrame,
    checkpoint: str,
    shards: Sequence[int],
    queries: Queries,
    asked: RowQuestion,
) -> DataFrame:
    """The rows that a question asks for, of the window that ends just after the newest row."""
    plan, schema = ordering_plan(frame, asked), arrow_schema(frame)
    queries.require_same_axis(None, plan)
    state = read_state(frame.sparkSession, checkpoint)
    known = _Known({}, frozenset()) if state is None else _known(state, shards)
    abouts = {shard: codec.unpack(data) for shard, data in known.abouts.items()}
    found = find_rows(asked, schema, abouts, queries.keep, plan.axis)
    if state is None or found is None:
        return selected_rows(_no_rows(frame, asked), frame, asked, plan, (0, 0))
    for shard, name in found.runs:
        if (shard, name) not in known.runs:
            raise StateError(f"rows {name} of shard {shard} are missing from the state")
    read = _schema(frame, tuple(found.columns))
    listed = [f"{shard} {name}" for shard, name in found.runs]
    stored = state.where(F.concat_ws(" ", "shard", "name").isin(listed))
    rows = stored.mapInArrow(ReadRuns(found, to_arrow_schema(read)), read)
    return selected_rows(rows, frame, asked, plan, (found.start, found.end))


def require_answerable(frame: DataFrame, asked: RowQuestion) -> Plan:
    """Refuse a question that could not be answered; gives a plan over the column of its window."""
    if asked.window.measure == "rows":
        raise QueryError(
            "rows of a DataFrame have no order of their own, so there are no last ones",
            hint="ask for a stretch of time: [RANGE 10 minutes WATTR ts]",
        )
    plan = ordering_plan(frame, asked)
    checked = selected_rows(_no_rows(frame, asked), frame, asked, plan, (0, 0))
    checked.schema  # noqa: B018 - Spark refuses here what it does not understand
    return plan


def ordering_plan(frame: DataFrame, asked: RowQuestion) -> Plan:
    """A plan over the column that orders the rows of a question."""
    return bind_query(parse(ordering_of(asked)), (frame,), ()).plan


def selected_rows(
    rows: DataFrame, frame: DataFrame, asked: RowQuestion, plan: Plan, extent: tuple[int, int]
) -> DataFrame:
    """What is selected of rows, in their order; equal ones in that of the axis, then as they came.

    The rows are those of a window of `frame`.
    """
    schema, axis = arrow_schema(frame), plan.axis
    if asked.where is not None:
        rows = rows.where(sql(resolve(asked.where, schema, stream=asked.stream)))
    by = [_by(o, sql(resolve(o.expression, schema, stream=asked.stream))) for o in asked.order]
    ordered = rows.orderBy(*by, AT, PLACE)
    some = ordered if asked.limit is None else ordered.limit(min(asked.limit, _MOST))
    axis_type = frame.schema[axis.column or ""].dataType if axis.kind == "time" else None
    edges = edge_texts(f"{extent[0]}L", f"{extent[1]}L", axis_type)
    outputs = outputs_of(asked, schema).items()
    return some.selectExpr(*edges, *(named(spark_sql(tree), name) for name, tree in outputs))


_MOST = (1 << 31) - 1
"""Spark takes no greater LIMIT."""


def _by(ordering: Ordering, column: Column) -> Column:
    if ordering.descending:
        return column.desc_nulls_first() if ordering.nulls_first else column.desc_nulls_last()
    return column.asc_nulls_first() if ordering.nulls_first else column.asc_nulls_last()


@dataclass(frozen=True, slots=True)
class _Known:
    """What each shard remembers, and the names of all runs that are there."""

    abouts: dict[int, bytes]
    runs: frozenset[tuple[int, str]]


def _known(state: DataFrame, shards: Sequence[int]) -> _Known:
    name = F.col("name")
    listed = state.where((name == ABOUT) | name.startswith(f"{KEPT}/"))
    data = F.when(name == ABOUT, F.col("data")).alias("data")
    found = listed.select("shard", "name", data).collect()
    abouts = {row.shard: bytes(row.data) for row in found if row.data is not None}
    missing = sorted(set(shards) - abouts.keys()) if abouts else []
    if missing:
        raise StateError(
            f"the state of shard {missing[0]} is missing, and {len(abouts)} others are there",
            hint="take the checkpoint from a backup, or start with a new one",
        )
    return _Known(abouts, frozenset((row.shard, row.name) for row in found))


def _no_rows(frame: DataFrame, asked: RowQuestion) -> DataFrame:
    names = columns_read(asked, arrow_schema(frame))
    return frame.sparkSession.createDataFrame([], _schema(frame, names))


def _schema(frame: DataFrame, names: Sequence[str]) -> T.StructType:
    """The columns of rows that were kept, with where each lies and how they came."""
    own = [T.StructField(name, frame.schema[name].dataType) for name in names]
    order = [T.StructField(AT, T.LongType()), T.StructField(PLACE, T.LongType())]
    return T.StructType([*order, *own])


@dataclass(frozen=True, slots=True)
class ReadRuns:
    """The rows of a window in runs of a state."""

    found: FoundRows
    schema: pa.Schema

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            for run in batch.to_pylist():
                yield from self._read(self.found.runs[run["shard"], run["name"]], run["data"])

    def _read(self, number: int, data: bytes) -> Iterator[pa.RecordBatch]:
        at, columns = self.found.rows_in(data)
        place = (number << _RUN) + np.arange(len(at))
        given = [pa.array(at), pa.array(place), *columns]
        yield from in_batches(as_schema(pa.table(given, names=self.schema.names), self.schema))
