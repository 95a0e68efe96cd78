"""The streaming DataFrame of a register: one read, one shuffle, all answers.

    rows --select--> position, what any query reads --combine--> shuffle by shard --> all stores
         --> packages of answers, one for each kind, in one streaming query
         --foreachBatch--> rows of a kind --select--> what was asked --> sinks

Queries are of one *kind* if their answers have the same columns and are finished by the same
expressions. However many queries there are, there are few kinds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it
from pyspark.sql import types as T  # noqa: N812

from panes.admit.gate import promise_column
from panes.answers.portions import QUERY, Portion, joined
from panes.answers.select import plain_outputs
from panes.language.expressions import quoted
from panes.language.query import WINDOW_COLUMNS
from panes.planning.plan import Plan
from panes.planning.terms import Terms
from panes.register.queries import Queries
from panes.shards.combiner import AT, PROMISE, ROW, SOURCE, TOO_FAR_AHEAD
from panes.shards.register_filler import read_columns
from panes.shards.register_shard import Definition, RegisterOutcome, RegisterShard, combiner
from panes.spark.answers import END, answer_texts, edge_texts, handed_over_schema, named
from panes.spark.bind import arrow_schema, sql, ticks
from panes.spark.host import PACKAGE, Batches, Hosted, host, named_batch
from panes.spark.internals import dumps, local_frame, to_arrow_schema
from panes.spark.query import Sink, send
from panes.stores import codec

START = "__start"
KIND, NAMES, STATUS = "kind", "names", "status"
LATE, REJECTED = -1, -2
"""What packages hold that are no answers: their kinds."""
_ANSWERS = "answers"
_REASON = "reason"
_STATUS_FIELDS = ("answers", "late", "rejected", "partials", "bytes", "progress")
_EMITTED = T.StructType().add(KIND, "integer").add(PACKAGE, "binary").add(NAMES, "string")
_EMITTED = _EMITTED.add(STATUS, "string")
_ROWS_AT_ONCE = 1 << 16
_ROWS_PER_PACKAGE = 1 << 20
_SMALL, _MOST_CARRIED = 1 << 16, 16

RegisterSink: TypeAlias = "str | Path | Callable[[str, DataFrame, int], None] | Together"
"""A folder, or a function of a query's name, its answers and the batch's number."""


@dataclass(frozen=True, slots=True)
class Together:
    """A sink for very many queries: one DataFrame per kind, with the query's name in ``query``.

    Without it, a function is called once for every query that has answers.
    """

    function: Callable[[DataFrame, int], None]


def kinds_of(queries: Queries) -> list[Plan]:
    """A plan for each kind of answers; every shape is told its kind."""
    known: dict[object, int] = {}
    plans: list[Plan] = []
    for shape in queries.shapes:
        query = shape.plan.query
        outputs = tuple((o.name, o.expression) for o in query.outputs)
        shown = tuple((i, query.keys[i].name) for i in query.shown_keys)
        finish = (str(shape.plan.lowered_schema()), query.having, outputs, shown)
        if finish not in known:
            known[finish] = len(plans)
            plans.append(shape.plan)
        shape.answer_columns = known[finish]
    return plans


def emitted(
    frame: DataFrame,
    queries: Queries,
    terms: Terms,
    shards: tuple[int, ...],
    *,
    bounded: bool,
    rows: bool,
    name: str,
) -> DataFrame:
    """What a register gives in every batch: packages of answers and of rows set apart, status."""
    definition = Definition.of(queries, dumps)
    count, keep_rows = len(shards), terms.drops_late
    projected = _project(frame, queries, terms, rows=rows)
    hosted = Hosted(
        combiner=lambda: combiner(definition, count, keep_rows=keep_rows),
        shard=lambda state: RegisterShard(definition, terms, state),
        emit=emit,
        output=_EMITTED,
    )
    given = host([projected], hosted, shards, terms, bounded=bounded)
    status = F.from_json(STATUS, ", ".join(f"{field} long" for field in _STATUS_FIELDS))
    summed = [field for field in _STATUS_FIELDS if field != "progress"]
    return given.observe(
        name,
        *(F.coalesce(F.sum(status[field]), F.lit(0)).alias(field) for field in summed),
        F.min(status["progress"]).alias("progress"),
    )


def _project(frame: DataFrame, queries: Queries, terms: Terms, *, rows: bool) -> DataFrame:
    """What the combiner needs of the stream: its position, and what any query reads."""
    axis = queries.axis
    assert axis is not None
    at = ticks(frame, axis.column or "")
    if axis.kind == "time" and terms.lateness is not None and terms.max_ahead is not None:
        latest = F.unix_micros(F.current_timestamp()) + F.lit(terms.max_ahead)
        at = F.when(at > latest, F.lit(TOO_FAR_AHEAD)).otherwise(at)
    columns = {AT: at, SOURCE: F.lit(0)}
    if terms.punctuation is not None:
        bound = next(shape.plan for shape in queries.shapes)
        column = promise_column(bound, arrow_schema(frame), terms.punctuation, queries.stream)
        columns[PROMISE] = ticks(frame, column)
    if rows:
        columns[ROW] = F.struct(
            *(F.col(quoted(n)).alias(f"c{i}") for i, n in enumerate(frame.columns))
        )
    columns |= {name: sql(tree) for name, tree in read_columns(queries).items()}
    return frame.select(*(c.alias(n) for n, c in columns.items()))


def emit(outcome: RegisterOutcome) -> Iterator[pd.DataFrame]:
    """What leaves the store: a package for each kind that has answers, and one row of status."""
    by_kind: dict[int, list[Portion]] = {}
    for portion in outcome.answers:
        by_kind.setdefault(portion.columns, []).append(portion)
    rows: list[tuple[int | None, bytes | None, str | None, str | None]] = []
    for kind, portions in by_kind.items():
        for some in _packages(portions):
            names = [name for portion in some for name in portion.names]
            answers = with_ticks(joined(some))
            rows.append((kind, codec.pack({_ANSWERS: answers}), json.dumps(names), None))
    for kind, apart in ((LATE, outcome.late), (REJECTED, outcome.rejected)):
        if apart:
            rows.append((kind, codec.pack({_ANSWERS: pa.concat_tables(apart)}), None, None))
    status = {
        "answers": sum(len(portion.table) for portion in outcome.answers),
        "late": sum(map(len, outcome.late)),
        "rejected": sum(map(len, outcome.rejected)),
        "partials": outcome.partials,
        "bytes": outcome.nbytes,
        "progress": outcome.progress,
    }
    rows.append((None, None, None, json.dumps(status)))
    yield pd.DataFrame(rows, columns=[KIND, PACKAGE, NAMES, STATUS]).astype({KIND: "Int32"})


def _packages(portions: Sequence[Portion]) -> Iterator[list[Portion]]:
    """Portions that are sent together: as many as make no package too large."""
    some: list[Portion] = []
    rows = 0
    for portion in portions:
        if some and rows + len(portion.table) > _ROWS_PER_PACKAGE:
            yield some
            some, rows = [], 0
        some.append(portion)
        rows += len(portion.table)
    yield some


@dataclass(frozen=True, slots=True)
class Unpack:
    """Packages as rows of a schema."""

    schema: pa.Schema

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            for package in batch.column(0):
                table = self.table(package.as_py())
                yield from table.combine_chunks().to_batches(max_chunksize=_ROWS_AT_ONCE)

    def table(self, package: bytes) -> pa.Table:
        """One package."""
        table = codec.unpack(package)[_ANSWERS]
        columns = [table.column(f.name).cast(f.type) for f in self.schema]
        return pa.table(columns, schema=self.schema)


@dataclass(slots=True)
class Answered:
    """What is told of a kind in a batch: the queries that have answers, and these if they are few.

    A Spark job for a few rows takes longer than carrying them through the driver.
    """

    names: list[str] = field(default_factory=list)
    packages: list[bytes] | None = field(default_factory=list)

    def add(self, names: Sequence[str], package: bytes | None) -> None:
        """What one shard tells; its package, if it is small."""
        self.names += names
        if package is None or self.packages is None or len(self.packages) >= _MOST_CARRIED:
            self.packages = None
        else:
            self.packages.append(bytes(package))


def _told(kept: DataFrame) -> dict[int, Answered]:
    """What all shards tell of a batch, by kind."""
    small = f"CASE WHEN length({PACKAGE}) <= {_SMALL} THEN {PACKAGE} END AS {PACKAGE}"
    told: dict[int, Answered] = {}
    for row in kept.where(f"{NAMES} IS NOT NULL").selectExpr(KIND, NAMES, small).collect():
        told.setdefault(row[0], Answered()).add(json.loads(row[1]), row[2])
    return told


@dataclass(frozen=True, slots=True)
class Deliver:
    """What is done with every batch: each query's answers go to its sink.

    Queries that have little time are delivered first. `own` are the sinks of single queries.
    """

    kinds: tuple[Plan, ...]
    axis_type: T.DataType
    row: T.StructType
    sink: RegisterSink
    own: Mapping[str, Sink] = field(default_factory=dict)
    deadlines: Mapping[str, int] = field(default_factory=dict)
    late: Sink | None = None
    rejected: Sink | None = None

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        with named_batch(batch, batch_id) as kept:
            for kind, answered in self._in_order(_told(kept)):
                frame = self._answers(kept, kind, answered.packages)
                self._send(frame, answered.names, batch_id)
            for code, sink in ((LATE, self.late), (REJECTED, self.rejected)):
                if sink is not None:
                    send(self._apart(kept, code), sink, batch_id)

    def _in_order(self, told: Mapping[int, Answered]) -> list[tuple[int, Answered]]:
        """The kinds that have answers, the most urgent first, and so the names of their queries."""
        for answered in told.values():
            answered.names = sorted(set(answered.names), key=lambda n: (self._time(n), n))
        return sorted(told.items(), key=lambda item: (self._time(item[1].names[0]), item[0]))

    def _time(self, name: str) -> float:
        return self.deadlines.get(name, float("inf"))

    def _answers(self, kept: DataFrame, kind: int, packages: Sequence[bytes] | None) -> DataFrame:
        """The answers of one kind, finished by Spark; the query's name comes first."""
        plan = self.kinds[kind]
        schema = T.StructType([T.StructField(QUERY, T.StringType())])
        for handed in lowered_schema(plan).fields:
            schema = schema.add(handed)
        unpack = Unpack(to_arrow_schema(schema))
        if packages is not None:
            table = pa.concat_tables(map(unpack.table, packages))
            lowered = local_frame(kept.sparkSession, table, schema)
        else:
            sent = kept.where(F.col(KIND) == kind).select(PACKAGE)
            lowered = sent.mapInArrow(unpack, schema)
        return finished(plan, lowered, self.axis_type, named(QUERY, _own_name(plan)))

    def _apart(self, kept: DataFrame, code: int) -> DataFrame:
        numbered = [T.StructField(f"c{i}", f.dataType) for i, f in enumerate(self.row.fields)]
        schema = T.StructType().add(_REASON, "string").add(ROW, T.StructType(numbered))
        unpack = Unpack(to_arrow_schema(schema))
        rows = kept.where(F.col(KIND) == code).select(PACKAGE).mapInArrow(unpack, schema)
        named = rows.select(F.col(ROW).cast(self.row).alias(ROW), _REASON)
        return named.select(f"{ROW}.*", _REASON)

    def _send(self, answers: DataFrame, names: Sequence[str], batch_id: int) -> None:
        query = answers.columns[0]
        shared = [n for n in names if n not in self.own]
        alone = [n for n in names if n in self.own]
        each = alone + (shared if callable(self.sink) else [])
        frame = answers.persist() if len(each) > 1 else answers
        try:
            for name in sorted(each, key=lambda n: (self._time(n), n)):
                one = frame.where(F.col(query) == name).drop(query)
                if name in self.own:
                    send(one, self.own[name], batch_id)
                elif callable(self.sink):
                    self.sink(name, one, batch_id)
            if not shared or callable(self.sink):
                return
            others = frame.where(~F.col(query).isin(alone)) if alone else frame
            if isinstance(self.sink, Together):
                self.sink.function(others, batch_id)
            else:
                _write(others, query, str(self.sink), batch_id)
        finally:
            frame.unpersist()


def lowered_schema(plan: Plan) -> T.StructType:
    """Lowered answers in Spark's types, with both edges in ticks."""
    return T.StructType([T.StructField(START, T.LongType()), *handed_over_schema(plan).fields])


def finished(plan: Plan, lowered: DataFrame, axis_type: T.DataType, *before: str) -> DataFrame:
    """What was selected, of lowered answers that HAVING keeps; `before` come before it."""
    edges = edge_texts(START, END, axis_type if plan.axis.kind == "time" else None)
    chosen, having = answer_texts(plan), plan.query.having
    if plain_outputs(plan) is not None:
        return lowered.selectExpr(*before, *edges, *chosen[len(edges) :])
    edged = lowered.selectExpr("*", *edges)
    passing = edged if having is None else edged.where(sql(having))
    return passing.selectExpr(*before, *chosen)


def with_ticks(lowered: pa.Table) -> pa.Table:
    """Lowered answers with their edges in ticks, in front."""
    columns = {}
    for name, edge_name in zip(WINDOW_COLUMNS, (START, END), strict=True):
        columns[edge_name] = lowered.column(name).combine_chunks().view(pa.int64())
    others = [n for n in lowered.column_names if n not in WINDOW_COLUMNS]
    return pa.table(columns | {n: lowered.column(n) for n in others})


def _write(answers: DataFrame, query: str, folder: str, batch_id: int) -> None:
    """Parquet files in ``query=NAME/batch=N``; a batch that runs again replaces what it wrote."""
    placed = answers.withColumn("batch", F.lit(batch_id)).repartition(query)
    writer = placed.write.mode("overwrite").option("partitionOverwriteMode", "dynamic")
    writer.partitionBy(query, "batch").parquet(folder)


def _own_name(plan: Plan) -> str:
    """What the column of query names is called: ``query``, unless an answer is called so."""
    query = plan.query
    taken = {o.name.lower() for o in query.outputs}
    taken |= {query.keys[i].name.lower() for i in query.shown_keys}
    name = QUERY
    while name in taken:
        name += "_"
    return name
