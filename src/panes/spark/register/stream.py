"""The streaming DataFrame of a register: one read, one shuffle, all answers.

    rows --select--> position, what any query reads --combine--> shuffle by shard --> all stores
         --> packages of answers with the same columns, in one streaming query
         --foreachBatch--> rows with the same columns --select--> what was asked --> sinks

Queries share *answer columns* if their answers have the same columns and are finished by the same
expressions. However many queries there are, these are few. Their number is the package's content.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it
from pyspark.sql import types as T  # noqa: N812

from panes.answers.portions import Portion, joined
from panes.language.expressions import quoted
from panes.nodes.gate import promise_column
from panes.planning.plan import Plan
from panes.planning.terms import CheckedOptions
from panes.shards.names import AT, PROMISE, ROW, SOURCE, TOO_FAR_AHEAD
from panes.shards.register_filler import read_columns
from panes.shards.register_shard import Definition, RegisterOutcome, RegisterShard, combiner
from panes.sharing.queries import Queries
from panes.spark.bind import arrow_schema, sql, ticks
from panes.spark.column_names import PACKAGE
from panes.spark.host import Hosted, host
from panes.spark.internals import dumps
from panes.spark.observe import observed, status_of
from panes.spark.register.lowered import PACKED, with_ticks
from panes.stores import codec

if TYPE_CHECKING:
    import pandas as pd

CONTENT, NAMES, STATUS = "content", "names", "status"
"""Columns of what is emitted: what a package holds, how many answers of which queries, a status."""
LATE, REJECTED = -1, -2
"""The contents of packages that hold no answers."""
REASON = "reason"
_EMITTED = T.StructType().add(CONTENT, "integer").add(PACKAGE, "binary").add(NAMES, "string")
_EMITTED = _EMITTED.add(STATUS, "string")
_ROWS_PER_PACKAGE = 1 << 20


def answer_columns(queries: Queries) -> list[Plan]:
    """A plan for each set of answer columns; every shape is given the number of its own."""
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
    terms: CheckedOptions,
    shards: tuple[int, ...],
    *,
    bounded: bool,
    rows: bool,
    name: str,
    number: int = 0,
    only_rows: bool = False,
) -> DataFrame:
    """What a register gives in every batch: packages of answers and of rows set aside, status.

    With `only_rows`, no expression is evaluated, and every row is rejected.
    """
    definition = Definition.of(queries, dumps, number=number)
    count = len(shards)
    projected = _project(frame, queries, terms, rows=rows or only_rows)
    if only_rows:
        projected = _without_expressions(projected)
    hosted = Hosted(
        combiner=lambda: combiner(definition, count, terms),
        shard=lambda state: RegisterShard(definition, terms, state),
        emit=emit,
        output=_EMITTED,
    )
    given = host([projected], hosted, shards, terms, bounded=bounded)
    return observed(given, name, STATUS, failed=len(queries.failed))


def _project(frame: DataFrame, queries: Queries, terms: CheckedOptions, *, rows: bool) -> DataFrame:
    """What the combiner needs of the stream: its position, and what any query reads."""
    axis = queries.axis
    assert axis is not None
    at = ticks(frame, axis.column or "")
    if axis.kind == "time" and terms.lateness is not None and terms.max_ahead is not None:
        latest = F.unix_micros(F.current_timestamp()) + F.lit(terms.max_ahead)
        at = F.when(at > latest, F.lit(TOO_FAR_AHEAD)).otherwise(at)
    columns = {AT: at, SOURCE: F.lit(0)}
    if terms.punctuation is not None:
        column = promise_column(axis, arrow_schema(frame), terms.punctuation, queries.stream)
        columns[PROMISE] = ticks(frame, column)
    if rows:
        columns[ROW] = F.struct(
            *(F.col(quoted(n)).alias(f"c{i}") for i, n in enumerate(frame.columns))
        )
    columns |= {name: sql(tree) for name, tree in read_columns(queries).items()}
    return frame.select(*(c.alias(n) for n, c in columns.items()))


def _without_expressions(projected: DataFrame) -> DataFrame:
    """The rows alone, which have no position and make no progress."""
    as_it_is = {SOURCE, ROW}
    return projected.select(
        *(
            F.col(f.name) if f.name in as_it_is else F.lit(None).cast(f.dataType).alias(f.name)
            for f in projected.schema.fields
        )
    )


def emit(outcome: RegisterOutcome) -> Iterator[pd.DataFrame]:
    """What leaves the store: packages of answers, by their columns, and one row of status."""
    by_columns: dict[int, list[Portion]] = {}
    for portion in outcome.answers:
        by_columns.setdefault(portion.columns, []).append(portion)
    rows: list[tuple[int | None, bytes | None, str | None, str | None]] = []
    for columns, portions in by_columns.items():
        for some in _packages(portions):
            given: Counter[str] = Counter()
            for portion in some:
                given.update(
                    dict(zip(portion.names, np.diff(portion.bounds).tolist(), strict=True))
                )
            answers = with_ticks(joined(some))
            rows.append((columns, codec.pack({PACKED: answers}), json.dumps(given), None))
    for content, tables in ((LATE, outcome.late), (REJECTED, outcome.rejected)):
        if tables:
            rows.append((content, codec.pack({PACKED: pa.concat_tables(tables)}), None, None))
    status = status_of(
        outcome,
        answers=sum(len(portion.table) for portion in outcome.answers),
        late=sum(map(len, outcome.late)),
        rejected=sum(map(len, outcome.rejected)),
    )
    rows.append((None, None, None, status))
    import pandas as pd

    yield pd.DataFrame(rows, columns=[CONTENT, PACKAGE, NAMES, STATUS]).astype({CONTENT: "Int32"})


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
