"""Every undocumented name of Spark that Panes relies on, once, each with the reason.

Those of a Column are in `panes.spark.column_parts`. Everything else in `panes.spark` is documented
DataFrame API. Each part below has a test in ``tests/spark/test_internals.py`` that fails when Spark
changes what it relies on. In this order:

- sending objects and types: `dumps`, `to_arrow_schema`, `spark_type`, `local_frame`;
- inside a task: `batch_number`, which `tag_of` helps through Spark Connect;
- a stream's plan: `watermark_delay`, `streaming_plan`, `plan_text`; how it is written:
  `append_only`, `before_start`;
- a checkpoint: `is_used`, `has_commit`, `STATE_OPERATOR`, `CHECKPOINT_FILES`, `FILE_MANAGER`,
  `state_version`, `without_snapshots`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark import TaskContext, cloudpickle
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
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
    own session, and the user's would be lost: nothing documented sets it back. Behind a chunk
    without rows it stops reading without a word, so there is one chunk.
    """
    active = SparkSession._activeSession
    try:
        return session.createDataFrame(table.combine_chunks(), schema)
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


def is_watermark(key: str) -> bool:
    """Whether an entry of a column's metadata is its watermark's."""
    return key == _WATERMARK


_PER_ROW = {
    *("StreamingRelation", "StreamingRelationV2", "EventTimeWatermark", "View"),  # classic
    *("DataSource", "Read", "WithWatermark", "WithColumns", "WithColumnsRenamed"),  # Connect
    *("Project", "Filter", "SubqueryAlias"),
}
_CONNECT_SOURCES, _NO_FILES = ("DataSource", "Read"), ("kafka", "rate", "rate-micro-batch")


@dataclass(frozen=True, slots=True)
class StreamingPlan:
    """What a streaming DataFrame reads, and whether its tasks are those of what it reads.

    Tasks over a source run where the source has data in a micro-batch, and only there. Over a
    join or a shuffle they may run without data. Over a filter of files they may not run although
    there are new files, since a filter on folders leaves out whole files. A task cannot tell.
    With `per_row` there is nothing of that kind: the frame's tasks are its sources' tasks. What a
    query of ours gives, or another one with a state of its own, `has_answers` in it.
    """

    per_row: bool
    sources: tuple[DataFrame, ...]
    has_answers: bool = False


def runs_here(frame: DataFrame) -> bool:
    """Whether functions of batches run in this process; through Connect they run elsewhere."""
    return hasattr(frame, "_jdf")


def streaming_plan(frame: DataFrame) -> StreamingPlan:
    """The plan of a streaming DataFrame, as far as Panes needs to know it.

    No documented call leads from a DataFrame to the streams that it reads. A classic session and
    a Connect session have the same tree under other names.
    """
    nodes = list(_classic_nodes(frame) if hasattr(frame, "_jdf") else _connect_nodes(frame))
    leaves_out = any(node.name == "Filter" for node in nodes) and any(n.may_be_files for n in nodes)
    per_row = all(n.name in _PER_ROW and not n.has_subquery for n in nodes) and not leaves_out
    sources = tuple(n.source for n in nodes if n.source is not None)
    has_answers = any("TransformWithState" in n.name for n in nodes)
    return StreamingPlan(per_row, sources, has_answers)


@dataclass(frozen=True, slots=True)
class _Node:
    """A node of a plan; `source` is its own DataFrame, if it is a stream's source."""

    name: str
    has_subquery: bool
    source: DataFrame | None = None
    may_be_files: bool = False


def _classic_nodes(frame: Any) -> Iterator[_Node]:
    session, waiting = frame.sparkSession, [frame._jdf.queryExecution().analyzed()]
    jvm: Any = get_active_spark_context()._jvm
    while waiting:
        node = waiting.pop()
        name, has_subquery = class_of(node), not node.subqueries().isEmpty()
        children = list(each(node.children()))
        waiting += children
        if children or not node.isStreaming():
            yield _Node(name, has_subquery)
        else:
            made = jvm.org.apache.spark.sql.classic.Dataset.ofRows(session._jsparkSession, node)
            source = type(frame)(made, session)
            yield _Node(name, has_subquery, source, may_be_files=name == "StreamingRelation")


def _connect_nodes(frame: Any) -> Iterator[_Node]:
    session, waiting = frame.sparkSession, [frame._plan]
    while waiting:
        node = waiting.pop()
        name, has_subquery = type(node).__name__, bool(node._references)
        children = _connect_children(node)
        waiting += children
        source = None if children else type(frame)(node, session)
        if source is None or not source.isStreaming:
            yield _Node(name, has_subquery)
        elif name in _CONNECT_SOURCES:
            may_be_files = getattr(node, "_format", None) not in _NO_FILES
            yield _Node(name, has_subquery, source, may_be_files)
        else:
            raise QueryError(
                f"bounded=True over a stream that Spark Connect knows only as {name}: "
                "the streams that it reads cannot be told",
                hint="make the DataFrame with readStream instead of SQL text",
            )


def _connect_children(node: Any) -> list[Any]:
    """The plans under a Connect plan; Spark has no one name for them."""
    from pyspark.sql.connect.plan import LogicalPlan  # needs grpc, which only Connect needs

    values = [v if isinstance(v, list | tuple) else [v] for v in vars(node).values()]
    return [v for among in values for v in among if isinstance(v, LogicalPlan)]


def class_of(node: Any) -> str:
    """The name of a Java object's class."""
    name: str = node.getClass().getSimpleName()
    return name


def each(sequence: Any) -> Iterator[Any]:
    """The members of a Scala sequence."""
    return (sequence.apply(i) for i in range(sequence.size()))


def plan_text(frame: DataFrame) -> str:
    """A frame's plan, as the documented `explain` prints it.

    A stream is planned with its first batch, and by this before: whatever Spark would raise of the
    plan is raised here. What it sends along, a user's functions, is pickled for it.
    """
    own: Any = frame
    if not hasattr(own, "_jdf"):
        return str(own._explain_string())
    modes = own.sparkSession._jvm.org.apache.spark.sql.execution.ExplainMode
    return str(own._jdf.queryExecution().explainString(modes.fromString("simple")))


def append_only(frame: DataFrame, refusal: Callable[[str], Exception]) -> None:
    """Let a frame's ``writeStream`` refuse every output mode but append, where it is asked for.

    Spark tells the mode to nobody but its own planner, which takes a stateful function that
    appends for one that updates. No other frame is touched.
    """

    def checked(writer: Any) -> None:
        set_mode = writer.outputMode

        def output_mode(mode: str) -> Any:
            if mode.lower() != "append":
                raise refusal(mode)
            return set_mode(mode)

        writer.outputMode = output_mode

    _written_by(frame, checked)


def before_start(frame: DataFrame, check: Callable[[str], None]) -> None:
    """Let a frame's ``writeStream`` call `check` with its checkpoint before it starts.

    Spark tells nobody of a query that is about to start. Whoever transforms the frame further
    starts another one, which nobody checks.
    """

    def checked(writer: Any) -> None:
        given: dict[str, object] = {}
        set_one, set_all = writer.option, writer.options

        def option(key: str, value: Any) -> Any:
            given[key.lower()] = value
            return set_one(key, value)

        def options(**several: Any) -> Any:
            given.update((key.lower(), value) for key, value in several.items())
            return set_all(**several)

        def checking(start: Callable[..., Any]) -> Callable[..., Any]:
            def begin(*arguments: Any, **more: Any) -> Any:
                known = given | {key.lower(): value for key, value in more.items()}
                if known.get(_CHECKPOINT):
                    check(str(known[_CHECKPOINT]))
                return start(*arguments, **more)

            return begin

        writer.option, writer.options = option, options
        writer.start, writer.toTable = checking(writer.start), checking(writer.toTable)

    _written_by(frame, checked)


def _written_by(frame: DataFrame, changed: Callable[[Any], None]) -> None:
    """Give a frame a class of its own, whose ``writeStream`` has been changed."""
    own: Any = type(frame)

    def writer(self: DataFrame) -> Any:
        found = own.writeStream.fget(self)
        changed(found)
        return found

    frame.__class__ = type(own.__name__, (own,), {"writeStream": property(writer)})


_CHECKPOINT = "checkpointlocation"


# A checkpoint

STATE_OPERATOR = "transformWithState"
"""How the names begin that Spark's ``state-metadata`` gives to the operator of our state."""
CHECKPOINT_FILES = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
"""A class that writes a checkpoint's files without starting a process for each."""


FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
"""The setting that names such a class. With ours, a file that is there already stays as it is."""
COMMITS, STATES = "commits", "state"
"""The folders of a checkpoint with a file for every committed batch, and with the states."""


def state_version(batch_id: int) -> int:
    """The version of the state that a batch leaves, which its files are named by."""
    return batch_id + 1


_DELTAS = "spark.sql.streaming.stateStore.minDeltasForSnapshot"
_NEVER = str((1 << 31) - 1)


@contextmanager
def without_snapshots(session: SparkSession) -> Iterator[None]:
    """A streaming query that is started within leaves no snapshot of its state.

    Spark may write a snapshot minutes after the batch that it is of. One of a batch that was only
    tried could come after that of the batch that was committed, and take its place.
    """
    before = session.conf.get(_DELTAS)
    session.conf.set(_DELTAS, _NEVER)
    try:
        yield
    finally:
        session.conf.set(_DELTAS, before or "")


def is_used(session: SparkSession, checkpoint: str) -> bool:
    """Whether a streaming query has ever been started with a checkpoint."""
    return bool(lines(session, f"{checkpoint}/metadata"))


def has_commit(session: SparkSession, checkpoint: str) -> bool:
    """Whether a micro-batch has ever been finished with a checkpoint: then there is state.

    Before, Spark's reader of states fails, with an error that does not say why.
    """
    return bool(lines(session, f"{checkpoint}/{COMMITS}"))


def lines(session: SparkSession, path: str) -> list[str]:
    """The lines of a file, or of all files in a folder; none if there is no such path."""
    try:
        return [row.value for row in session.read.text(path).select("value").collect()]
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return []
        raise
