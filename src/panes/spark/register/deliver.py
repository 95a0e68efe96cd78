"""What is done with every batch of a register: each query's answers go to its sink."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it
from pyspark.sql import types as T  # noqa: N812

from panes.errors import PanesError
from panes.language.query import WINDOW_COLUMNS
from panes.live.apart import Kind
from panes.path_part import path_part
from panes.shards.names import ROW
from panes.shards.sent_answers import LATE, PACKED, REJECTED, TITLE, set_aside_content
from panes.sharing.failures import QueriesFailed, failing
from panes.spark.column_names import PACKAGE
from panes.spark.emit import Unpack
from panes.spark.host import named_batch
from panes.spark.internals import local_frame, to_arrow_schema
from panes.spark.query import Sink, send
from panes.spark.register.answer_columns import AnswerColumns
from panes.spark.register.stream import CONTENT, NAMES
from panes.spark.register.tap import MOST_ROWS, Tap
from panes.spark.stream.node import numbered
from panes.stores import codec

_SMALL, _MOST_CARRIED = 1 << 16, 16
_KINDS: dict[Kind, int] = {"late": LATE, "rejected": REJECTED}
REASON = "reason"

RegisterSink: TypeAlias = "str | Path | Callable[[str, DataFrame, int], None] | Together"
"""A folder, or a function of a query's name, its answers and the batch's number."""


class SinkError(PanesError, RuntimeError):
    """A sink has failed; what it raised is the cause."""


def work_out(frame: DataFrame) -> str | None:
    """Evaluate all of a frame; what that fails of, None if it does not fail."""
    try:
        frame.write.format("noop").mode("overwrite").save()
    except Exception as error:
        return reason_of(error)
    return None


def reason_of(error: Exception) -> str:
    """What Spark failed of, without where and how it found out."""
    text = str(error)
    conditions = [m for m in _CONDITION.finditer(text) if m["name"] not in _WRAPPING]
    return conditions[-1]["words"].strip() if conditions else text.strip()[:_MOST_LETTERS]


_CONDITION = re.compile(r"\[(?P<name>[A-Z][A-Z0-9_.]+)\] (?P<words>.+?)\s*SQLSTATE: ", re.DOTALL)
_WRAPPING, _MOST_LETTERS = {"STREAM_FAILED", "FOREACH_BATCH_USER_FUNCTION_ERROR"}, 500


@dataclass(frozen=True, slots=True)
class Together:
    """A sink for very many queries: one DataFrame for all answers with the same columns.

    Its column ``query`` has the query's name. Without it, a function is called once for every
    query that has answers.
    """

    function: Callable[[DataFrame, int], None]


@dataclass(slots=True)
class Answered:
    """Answers of a batch with the same columns: whose they are, and themselves if they are few.

    A Spark job for a few rows takes longer than carrying them through the driver.
    """

    given: Counter[str] = field(default_factory=Counter)
    packages: list[bytes] | None = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def add(self, given: Mapping[str, int], package: bytes | None) -> None:
        """One shard's package, if it is small, and how many answers of each query it holds."""
        self.given.update(given)
        if package is None or self.packages is None or len(self.packages) >= _MOST_CARRIED:
            self.packages = None
        else:
            self.packages.append(bytes(package))


def _answered(batch: DataFrame) -> dict[int, Answered]:
    """What all shards answer in a batch, by the numbers of their answer columns."""
    small = f"CASE WHEN length({PACKAGE}) <= {_SMALL} THEN {PACKAGE} END AS {PACKAGE}"
    found: dict[int, Answered] = {}
    for row in batch.where(f"{NAMES} IS NOT NULL").selectExpr(CONTENT, NAMES, small).collect():
        found.setdefault(row[0], Answered()).add(json.loads(row[1]), row[2])
    return found


@dataclass(frozen=True, slots=True)
class Deliver:
    """What is done with every batch: each query's answers go to its sink.

    Queries that have little time are delivered first. `own` are the sinks of single queries.
    """

    columns: tuple[AnswerColumns, ...]
    rows: Mapping[str, T.StructType]
    sink: RegisterSink
    own: Mapping[str, Sink] = field(default_factory=dict)
    deadlines: Mapping[str, int] = field(default_factory=dict)
    late: Sink | None = None
    rejected: Sink | None = None
    tap: Tap | None = None

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        with named_batch(batch, batch_id) as stored:
            found = self._in_order(_answered(stored))
            for columns, answered in found:
                try:
                    frame = self._answers(stored, columns, answered.packages)
                    self._send(frame, answered.names, batch_id)
                except Exception as error:
                    raise self._blaming(stored, columns, answered, error) from error
            sinks: dict[Kind, Sink | None] = {"late": self.late, "rejected": self.rejected}
            for kind, sink in sinks.items():
                if sink is not None:
                    self._send_set_aside(stored, kind, sink, batch_id)
            if self.tap is not None:
                self._show(self.tap, stored, batch_id, found)

    def _show(
        self, tap: Tap, stored: DataFrame, batch_id: int, found: Sequence[tuple[int, Answered]]
    ) -> None:
        """Tell the tap what was delivered, and how to get hold of some of it."""

        def some(name: str) -> pa.Table | None:
            for columns, answered in found:
                if name in answered.given:
                    frame = self._answers(stored, columns, answered.packages, [name])
                    end, title = WINDOW_COLUMNS[1], frame.columns[0]
                    if end not in frame.columns:
                        return frame.drop(title).limit(MOST_ROWS).toArrow()
                    newest = frame.orderBy(F.col(end).desc()).limit(MOST_ROWS)
                    return newest.drop(title).toArrow().sort_by(end)
            return None

        given: Counter[str] = Counter()
        for _, answered in found:
            given.update(answered.given)
        tap.note(batch_id, given, some, lambda: self._some_set_aside(stored))

    def _some_set_aside(self, stored: DataFrame) -> Iterator[tuple[Kind, pa.Table]]:
        """Late and rejected rows, the reason last; without the rows where these are not kept."""
        small = stored.where((F.col(CONTENT) < 0) & (F.length(PACKAGE) <= _SMALL))
        for content, package in small.select(CONTENT, PACKAGE).limit(_MOST_CARRIED).collect():
            table = codec.unpack(bytes(package))[PACKED]
            columns = {}
            for kind, stream in self._set_aside_kinds(content):
                if ROW in table.column_names:
                    row = table.column(ROW).combine_chunks()
                    columns = dict(zip(self.rows[stream].names, row.flatten(), strict=True))
                yield kind, pa.table([*columns.values(), table.column(REASON)],
                                     names=[*columns, REASON])  # fmt: skip

    def _set_aside_kinds(self, content: int) -> Iterator[tuple[Kind, str]]:
        """Which rows a number of set-aside rows means."""
        for number, stream in enumerate(self.rows):
            for kind in _KINDS:
                if content == set_aside_content(_KINDS[kind], number):
                    yield kind, stream

    @contextmanager
    def rows_of(self, batch: DataFrame, batch_id: int) -> Iterator[dict[str, DataFrame]]:
        """The rows of a batch in which all rows are rejected, as the streams have them."""
        with named_batch(batch, batch_id) as stored:
            yield {s: self._set_aside(stored, "rejected", s).drop(REASON) for s in self.rows}

    def _in_order(self, found: Mapping[int, Answered]) -> list[tuple[int, Answered]]:
        """Answers by their columns, the most urgent first, and so the names of their queries."""
        for answered in found.values():
            answered.names = sorted(answered.given, key=lambda n: (self._time(n), n))
        return sorted(found.items(), key=lambda item: (self._time(item[1].names[0]), item[0]))

    def _time(self, name: str) -> float:
        return self.deadlines.get(name, float("inf"))

    def _blaming(
        self, batch: DataFrame, columns: int, answered: Answered, error: Exception
    ) -> Exception:
        """Whose fault it is that answers were not delivered: that of some queries, or the sink's.

        HAVING and the SELECT are evaluated when a sink asks for the answers, so they fail there.
        """

        def fails(names: Sequence[str]) -> str | None:
            return work_out(self._answers(batch, columns, answered.packages, names))

        found = failing(answered.names, fails)
        if found:
            return QueriesFailed(found)
        return SinkError(_sink_failed(error))

    def _answers(
        self,
        batch: DataFrame,
        columns: int,
        packages: Sequence[bytes] | None,
        names: Sequence[str] | None = None,
    ) -> DataFrame:
        """Answers with the same columns, finished by Spark; the query's name comes first.

        With `names`, those of some queries only; the others are not even looked at.
        """
        asked = self.columns[columns]
        schema = asked.with_names()
        if packages is not None:
            table = pa.concat_tables(map(Unpack(to_arrow_schema(schema)).table, packages))
            lowered = local_frame(batch.sparkSession, table, schema)
        else:
            lowered = _unpacked(batch, columns, schema)
        if names is not None:
            lowered = lowered.where(F.col(TITLE).isin(list(names)))
        return asked.finished(lowered)

    def _send_set_aside(self, batch: DataFrame, kind: Kind, sink: Sink, batch_id: int) -> None:
        """Late or rejected rows; those of several streams one stream after the other."""
        try:
            for stream in self.rows:
                to = sink
                if len(self.rows) > 1 and not callable(sink):
                    to = f"{sink}/stream={path_part(stream)}"
                send(self._set_aside(batch, kind, stream), to, batch_id, kind)
        except Exception as error:
            raise SinkError(_sink_failed(error)) from error

    def _set_aside(self, batch: DataFrame, kind: Kind, stream: str) -> DataFrame:
        own = self.rows[stream]
        content = set_aside_content(_KINDS[kind], list(self.rows).index(stream))
        rows = _unpacked(
            batch, content, T.StructType().add(REASON, "string").add(ROW, numbered(own))
        )
        named = rows.select(F.col(ROW).cast(own).alias(ROW), REASON)
        return named.select(f"{ROW}.*", REASON)

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


def _unpacked(batch: DataFrame, content: int, schema: T.StructType) -> DataFrame:
    """The rows of a batch in packages of some content."""
    packages = batch.where(F.col(CONTENT) == content).select(PACKAGE)
    return packages.mapInArrow(Unpack(to_arrow_schema(schema)), schema)


def _sink_failed(error: Exception) -> str:
    return f"a sink of the register has failed: {type(error).__name__}: {error}"


def _write(answers: DataFrame, query: str, folder: str, batch_id: int) -> None:
    """Parquet files in ``query=NAME/batch=N``; a batch that runs again replaces what it wrote."""
    placed = answers.withColumn("batch", F.lit(batch_id)).repartition(query)
    writer = placed.write.mode("overwrite").option("partitionOverwriteMode", "dynamic")
    writer.partitionBy(query, "batch").parquet(folder)
