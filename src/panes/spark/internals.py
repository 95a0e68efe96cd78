"""Every undocumented name of Spark that Panes relies on, once, each with the reason.

Everything else in `panes.spark` is documented DataFrame API. Each part below has a test in
``tests/spark/test_internals.py`` that fails when Spark changes what it relies on. In this order:

- sending objects and types: `dumps`, `to_arrow_schema`, `spark_type`, `local_frame`;
- inside a task: `batch_number`, which `tag_of` helps through Spark Connect;
- a stream's plan: `watermark_delay`, `may_run_without_data`;
- a checkpoint: `is_used`, `has_commit`, `STATE_OPERATOR`, `CHECKPOINT_FILES`;
- a Column: `take_apart`, `text_of`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import dropwhile
from typing import Any

import pyarrow as pa
from pyspark import TaskContext, cloudpickle
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas import types as arrow_types
from pyspark.sql.utils import get_active_spark_context

from panes.errors import QueryError

UTC = "UTC"

# Objects and types

_dumps: Callable[[object], bytes] = cloudpickle.dumps


def dumps(value: object) -> bytes:
    """An object as bytes, as Spark sends its functions: a user's lambdas are among them.

    Python's own pickle refuses functions that are not importable. Spark brings cloudpickle along,
    but documents no use of it.
    """
    return _dumps(value)


def to_arrow_schema(schema: T.StructType) -> pa.Schema:
    """The Arrow types in which Spark hands columns to Python; instants are in UTC.

    The documented way, `DataFrame.toArrow`, runs a job, and cannot run on a stream.
    """
    return arrow_types.to_arrow_schema(schema, timezone=UTC)


def spark_type(data_type: pa.DataType) -> T.DataType:
    """The Spark type of an Arrow type. Spark documents it only as what `createDataFrame` does."""
    return arrow_types.from_arrow_type(data_type)


def local_frame(session: SparkSession, table: pa.Table, schema: T.StructType) -> DataFrame:
    """A table as a DataFrame of a session, which does not become the active session.

    `createDataFrame` makes its session the active one. In ``foreachBatch`` that is the batch's
    own session, and the user's would be lost: nothing documented sets it back.
    """
    active = SparkSession._activeSession
    try:
        return session.createDataFrame(table, schema)
    finally:
        SparkSession._activeSession = active


# Inside a task

_BATCH, _TAGS, _TAG = "streaming.sql.batchId", "spark.job.tags", "panes-batch-"


def tag_of(batch_id: int) -> str:
    """A job tag that tells tasks the number of their micro-batch, for `SparkSession.addTag`."""
    return f"{_TAG}{batch_id}"


def batch_number() -> int:
    """The micro-batch of this task, from 1: a clock that no machine's clock can turn back.

    Spark notes it among a task's local properties. Through Spark Connect, what ``foreachBatch``
    runs lies outside of the micro-batch: there the tag of `tag_of` tells it.
    """
    context = TaskContext.get()
    number = None if context is None else context.getLocalProperty(_BATCH)
    if number is None and context is not None:
        tagged = re.search(rf"{_TAG}(\d+)", context.getLocalProperty(_TAGS) or "")
        number = None if tagged is None else tagged[1]
    if number is None:
        raise QueryError("the query runs outside of a micro-batch")
    return int(number) + 1


# A stream's plan

_WATERMARK = "spark.watermarkDelayMs"


def watermark_delay(field: T.StructField) -> int | None:
    """The milliseconds that a column's ``withWatermark`` waits; None if it has no watermark.

    Spark notes them in the column's metadata, and nowhere else that can be read.
    """
    delay: int | None = field.metadata.get(_WATERMARK)
    return delay


_NODE = re.compile(r"^(?P<depth>[ :+-]*)(?:\*\(\d+\) |\* )?(?P<node>\w.*)", re.MULTILINE)
_STREAM = re.compile(r"StreamingRelation\b")
_SHUFFLE = re.compile(r"(Exchange|Coalesce)\b")
_REMOVED = re.compile(r"Project\b|Filter\b|Coalesce\b|Exchange .*\bRE(PARTITION|BALANCE)_")
_NEEDS_NONE = re.compile(r"(AdaptiveSparkPlan|Project|Filter|Union|Broadcast\w*Join)\b")


def may_run_without_data(frame: DataFrame) -> bool:
    """Whether tasks over a stream may run in a micro-batch without data, having no rows there.

    Tasks over a source run only where the source has data. Over a shuffle, such as that of a join
    with a large table, tasks run in every micro-batch. A task cannot tell the two: what it sees of
    a batch whose rows were all filtered out and of a batch without data is the same. Only Spark's
    physical plan tells, and `DataFrame.explain` shows it in words only.

    Where a source has no data, the optimizer removes a repartition of its rows, and tasks with
    it, unless something other than a filter or a projection lies between. True where in doubt.
    """
    above: list[tuple[int, str]] = []
    for line in _NODE.finditer(_physical_plan(frame)):
        depth, node = len(line["depth"]), line["node"]
        while above and above[-1][0] >= depth:
            above.pop()
        if _STREAM.match(node) and _is_shuffled([parent for _, parent in reversed(above)]):
            return True
        above.append((depth, node))
    return False


def _is_shuffled(parents: Sequence[str]) -> bool:
    """Whether a shuffle is among the nodes over a stream, from below, that may not be removed.

    What needs a shuffle, as a join does, gets another one in place of one that was removed.
    """
    if not any(map(_SHUFFLE.match, parents)):
        return False
    staying = dropwhile(_REMOVED.match, parents)
    return not all(map(_NEEDS_NONE.match, staying))


def _physical_plan(frame: Any) -> str:
    """What `DataFrame.explain` prints, a node per line, indented by its depth."""
    if hasattr(frame, "_explain_string"):
        shown: str = frame._explain_string(mode="simple")
    else:
        jvm: Any = get_active_spark_context()._jvm
        shown = jvm.PythonSQLUtils.explainString(frame._jdf.queryExecution(), "simple")
    return shown


# A checkpoint

STATE_OPERATOR = "transformWithState"
"""How the names begin that Spark's ``state-metadata`` gives to the operator of our state."""
CHECKPOINT_FILES = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
"""A class that writes a checkpoint's files without starting a process for each."""


def is_used(session: SparkSession, checkpoint: str) -> bool:
    """Whether a streaming query has ever been started with a checkpoint."""
    return bool(lines(session, f"{checkpoint}/metadata"))


def has_commit(session: SparkSession, checkpoint: str) -> bool:
    """Whether a micro-batch has ever been finished with a checkpoint: then there is state.

    Before, Spark's reader of states fails, with an error that does not say why.
    """
    return bool(lines(session, f"{checkpoint}/commits"))


def lines(session: SparkSession, path: str) -> list[str]:
    """The lines of a file, or of all files in a folder; none if there is no such path."""
    try:
        return [row.value for row in session.read.text(path).select("value").collect()]
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return []
        raise


# A Column


@dataclass(frozen=True, slots=True)
class Alias:
    """A Column under another name."""

    child: Column
    name: str


@dataclass(frozen=True, slots=True)
class Call:
    """A function of Columns. `star` stands for the ``*`` of ``count(*)``."""

    name: str
    arguments: tuple[Column, ...]
    distinct: bool
    star: bool


@dataclass(frozen=True, slots=True)
class Name:
    """A column of the frame, by name."""

    name: str


@dataclass(frozen=True, slots=True)
class Text:
    """A Column given as SQL text, as ``F.expr`` makes it."""

    sql: str


Part = Alias | Call | Name | Text | None


def take_apart(column: Column) -> Part:
    """What a Column is at its root; None if it is none of these.

    A drop-in for ``groupBy(...).agg(...)`` is given Columns, and has to know of which aggregate.
    A Column has no documented structure. A classic session's and a Connect session's have the
    same parts under other names.
    """
    if hasattr(column, "_jc"):
        return _classic(column)
    if hasattr(column, "_expr"):
        return _connect(column)
    raise QueryError(f"a {type(column).__name__} is no Column of a known kind of Spark session")


def text_of(column: Column) -> str:
    """A constant Column as SQL text: what its representation shows between its quotes."""
    return repr(column).removeprefix("Column<'").removesuffix("'>")


def _classic(column: Any) -> Part:
    node = column._jc.node()
    name = _class_of(node)

    def wrap(child: Any) -> Column:
        jvm: Any = get_active_spark_context()._jvm
        made: Column = type(column)(jvm.org.apache.spark.sql.Column(child))
        return made

    if name == "Alias":
        return Alias(wrap(node.child()), node.name().apply(0))
    if name == "SqlExpression":
        return Text(node.expression())
    if name == "UnresolvedAttribute":
        return Name(".".join(_each(node.nameParts())))
    if name != "UnresolvedFunction":
        return None
    arguments = list(_each(node.arguments()))
    star = [_class_of(a) == "UnresolvedStar" for a in arguments]
    plain = tuple(wrap(a) for a, is_star in zip(arguments, star, strict=True) if not is_star)
    return Call(node.functionName(), plain, node.isDistinct(), any(star))


def _class_of(node: Any) -> str:
    name: str = node.getClass().getSimpleName()
    return name


def _each(sequence: Any) -> Iterator[Any]:
    """The members of a Scala sequence."""
    return (sequence.apply(i) for i in range(sequence.size()))


def _connect(column: Any) -> Part:
    tree = column._expr
    name = type(tree).__name__
    if name == "ColumnAlias":
        return Alias(type(column)(tree._child), tree._alias[0])
    if name == "SQLExpression":
        return Text(tree._expr)
    if name == "ColumnReference":
        return Name(tree._unparsed_identifier)
    if name != "UnresolvedFunction":
        return None
    star = [type(a).__name__ == "UnresolvedStar" for a in tree._args]
    plain = tuple(
        type(column)(a) for a, is_star in zip(tree._args, star, strict=True) if not is_star
    )
    return Call(tree._name, plain, tree._is_distinct, any(star))
