"""One expression on both engines: its value and its type, row by row."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from sqlglot import exp

from panes.errors import ColumnTypeError, PanesError
from panes.expressions.projection import Projection, resolve
from panes.expressions.types import VOID, spark_name
from panes.language.expressions import require_known
from panes.language.grammar import parse_select
from panes.language.tokens import tokenize


@dataclass(frozen=True, slots=True)
class Answer:
    """The values of an expression as they are written, and what Spark calls their type."""

    values: tuple[str, ...]
    type: str


def read(sql: str) -> list[exp.Expression]:
    """The expressions of a SELECT that reads nothing, as a query would take them."""
    select = parse_select(tokenize(f"SELECT {sql}"), sql)
    require_known(select)
    return [item.unalias() for item in select.expressions]


def in_process(trees: Sequence[exp.Expression], rows: pa.Table) -> list[Answer]:
    """The answers in one process; what is refused, or fails, is a `PanesError`."""
    resolved = tuple(resolve(tree, rows.schema, stream="s") for tree in trees)
    _, columns = Projection(resolved, None)(rows)
    return [_answer(column, spark_name(column.type)) for column in columns]


@dataclass(frozen=True, slots=True)
class Outcome:
    """An expression in one process: the rows that have an answer, and those that fail.

    A row that fails because its value is "not translated" is in neither.
    """

    answer: Answer | None
    answered: list[int]
    failed: dict[int, str]


def row_by_row(sql: str, rows: pa.Table) -> Outcome:
    """The answers of all rows that have one, and why the others have none."""
    (tree,) = read(sql)
    project = Projection((resolve(tree, rows.schema, stream="s"),), None)
    project.types(rows.schema)  # what is refused is refused here
    failed: dict[int, str] = {}
    parts = list(_answered(project, rows, 0, failed))
    if not parts:
        return Outcome(None, [], failed)
    values = tuple(v for answer, _ in parts for v in answer.values)
    answer = Answer(values, parts[0][0].type)
    return Outcome(answer, [row for _, some in parts for row in some], failed)


def _answered(
    project: Projection, rows: pa.Table, first: int, failed: dict[int, str]
) -> Iterator[tuple[Answer, range]]:
    """The answers of as many rows at once as have one."""
    try:
        _, (column,) = project(rows)
        yield _answer(column, spark_name(column.type)), range(first, first + len(rows))
    except PanesError as failure:
        half = len(rows) // 2
        if half:
            yield from _answered(project, rows.slice(0, half), first, failed)
            yield from _answered(project, rows.slice(half), first + half, failed)
        elif "not translated" not in str(failure) and not isinstance(failure, ColumnTypeError):
            failed[first] = str(failure).splitlines()[0]


def fails_on_spark(frame: DataFrame, sql: str, row: int) -> bool:
    """Whether an expression is an error for one row."""
    try:
        frame.where(f"row = {row}").selectExpr(sql).collect()
    except PySparkException:
        return True
    except (OverflowError, ValueError):  # a date that Python does not have
        return False
    return False


def on_spark(frame: DataFrame) -> list[Answer]:
    """The answers on Spark."""
    table = frame.toArrow()
    kinds = [field.dataType.simpleString() for field in frame.schema]
    return [_answer(column, kind) for column, kind in zip(table.columns, kinds, strict=True)]


def same(one: Answer, other: Answer) -> bool:
    """Whether two answers are the same; NULL alone has a type only on Spark."""
    return one.values == other.values and (one.type == other.type or other.type == VOID_NAME)


VOID_NAME = spark_name(VOID)


def _answer(column: pa.ChunkedArray | pa.Array, kind: str) -> Answer:
    if pa.types.is_date(column.type):  # Python's dates end with the year 9999
        column = column.cast(pa.int32())
    elif pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    return Answer(tuple(_written(v, column.type) for v in column.to_pylist()), kind)


def _written(value: object, kind: pa.DataType) -> str:
    """A value as text; entries of a map have no order, and every NaN is one."""
    if value is None:
        return "NULL"
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None).isoformat()
    if pa.types.is_map(kind):
        assert isinstance(value, list)
        pairs = ((_written(k, kind.key_type), _written(v, kind.item_type)) for k, v in value)
        return str(sorted(pairs))
    if pa.types.is_struct(kind):
        assert isinstance(value, dict)
        return str([(f.name, _written(value[f.name], f.type)) for f in kind])
    if pa.types.is_list(kind):
        assert isinstance(value, list)
        return str([_written(v, kind.value_type) for v in value])
    return repr(value)
