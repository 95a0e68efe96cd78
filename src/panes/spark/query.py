"""A query over Spark DataFrames, bounded or streaming: `panes.sql` ends up here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeAlias

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it
from pyspark.sql import types as T  # noqa: N812

from panes.aggregates.custom import UserAggregate
from panes.errors import InputError, OptionError, QueryError
from panes.frames import is_spark, require_streams
from panes.language.join_query import JoinQuery
from panes.language.query import WINDOW_TIME, Query
from panes.language.query_graph import Part, QueryGraph, read_graph
from panes.nodes.parts import require_parts, run_of
from panes.nodes.promised_columns import promising_columns
from panes.planning.terms import StreamOptions, check_options
from panes.shards.names import ROW
from panes.spark.batch.answer import answer_bounded
from panes.spark.bind import bind
from panes.spark.checkpoint import require_sources
from panes.spark.emit import LATE, REJECTED
from panes.spark.host import named_batch, require_final, stream_terms
from panes.spark.internals import before_start, plan_text
from panes.spark.join.query import answer_join
from panes.spark.observe import metrics_name
from panes.spark.refusals import require_bounded
from panes.spark.stream.distinct import different_rows
from panes.spark.stream.node import NodePlace, as_read, whole_row
from panes.spark.stream.query import answers as stream_answers

Sent: TypeAlias = Literal["answers", "late", "rejected"]
Sink: TypeAlias = "str | Path | Callable[[DataFrame, int], None]"
"""A folder, which gets a subfolder per micro-batch, or a function of a DataFrame and its number."""


class ToldSink(ABC):
    """A sink that is told what it is sent: answers, or rows that came late or were rejected."""

    @abstractmethod
    def take(self, frame: DataFrame, batch_id: int, kind: Sent) -> None:
        """A batch of rows of some kind."""

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """A batch of answers."""
        self.take(frame, batch_id, "answers")


def answer(
    text: str,
    streams: Mapping[str, DataFrame],
    user: Sequence[UserAggregate] = (),
    run: StreamOptions = StreamOptions(),  # noqa: B008 - frozen
) -> DataFrame:
    """The answers, as a DataFrame of the same kind as the streams.

    A stream that is started on a checkpoint of other sources is refused before Spark starts.
    """
    frames = {name: frame for name, frame in streams.items() if is_spark(frame)}
    of_streams = {name: frame for name, frame in frames.items() if frame.isStreaming}
    for name, frame in of_streams.items():
        require_final(name, frame, bounded=run.bounded)
    if run.name is None and of_streams:
        run = replace(run, name=metrics_name(text, map(plan_text, of_streams.values())))
    found = _answer(text, streams, user, run)
    if found.isStreaming:
        before_start(found, lambda checkpoint: require_sources(checkpoint, found))
    return found


def _answer(
    text: str, streams: Mapping[str, DataFrame], user: Sequence[UserAggregate], run: StreamOptions
) -> DataFrame:
    """The answers of a query; those of queries inside it are rows of what stands around them.

    Of streams, each query inside is a node that gives rows and promises, in one streaming query.
    """
    graph = read_graph(text, user)
    require_streams(graph.streams, streams)
    for name, given in streams.items():
        if not is_spark(given):
            other = next(one for one, frame in streams.items() if is_spark(frame))
            raise InputError(
                f"`{name}` is a {type(given).__name__}, and `{other}` is a Spark DataFrame",
                hint=f"{name}=spark.createDataFrame(...) if it is a table, or .load() of a reader",
            )
    frames = {name: streams[name] for name in graph.streams}
    is_streaming = any(frame.isStreaming for frame in frames.values())
    read: tuple[DataFrame, ...] = ()
    if is_streaming and graph.names:
        require_parts(graph, run)
        if run.bounded:
            _require_one_side(graph)
        read = tuple(frames.values())
    if run.with_late and read:
        frames = {name: f.withColumn(ROW, whole_row(read, f)) for name, f in frames.items()}
    parts, times = {part.name: part for part in graph.parts}, Counter[str]()

    def frame(name: str) -> DataFrame:
        """A stream, or the answers of a part: a node of its own for each place that reads it.

        Spark ends only one of several places of one node.
        """
        name = graph.again.get(name, name)
        if name not in parts or (name in frames and not is_streaming):
            return frames[name]
        part, inside = parts[name], {name for name in graph.inside if is_streaming}
        own = run_of(part, run, inside) if is_streaming or not name else StreamOptions()
        times[name] += 1
        if name and is_streaming:
            number = f"_{times[name]}" if times[name] > 1 else ""
            own = replace(own, name=f"{run.name}_{name}{number}")
        place = NodePlace(
            read, _elsewhere(graph, part, frames), promises=is_streaming and bool(name)
        )
        given = {stream: frame(stream) for stream in part.query.streams}
        found = _answer_query(part.query, given, user, own, place)
        frames[name] = as_rows(found) if name else found
        return frames[name]

    return frame("")


def _require_one_side(graph: QueryGraph) -> None:
    """Refuse a bounded join of a part with itself: one side would not be told the end."""
    for part in graph.parts:
        sides = part.query.join.sources if isinstance(part.query, JoinQuery) else ()
        read = Counter(
            name for side in sides for name in {graph.again.get(s, s) for s in side.streams}
        )
        for name in graph.names:
            if read[name] > 1:
                raise QueryError(
                    f"bounded=True, and two sides of a join read the same answers, `{name}`: "
                    "Spark tells the end of the stream to one of them only",
                    hint="leave out bounded=True, and windows are answered that are complete; or "
                    "ask DataFrames of spark.read",
                )


def _elsewhere(
    graph: QueryGraph, part: Part, frames: Mapping[str, DataFrame]
) -> tuple[DataFrame, ...]:
    """The streams that other parts read: while they have data, no stream of this part ends."""
    others = (p.query.streams for p in graph.parts if p is not part)
    again = graph.again
    named = dict.fromkeys(again.get(name, name) for streams in others for name in streams)
    return tuple(frames[name] for name in named if name in graph.streams)


def _answer_query(
    query: Query | JoinQuery,
    frames: Mapping[str, DataFrame],
    user: Sequence[UserAggregate],
    run: StreamOptions,
    place: NodePlace,
) -> DataFrame:
    """The answers of a query with none inside, of those DataFrames that it reads."""
    streams = {name: frames[name] for name in query.streams}
    if isinstance(query, JoinQuery):
        return answer_join(query, streams, user, run, place)
    bound = bind(query, streams, user)
    if bound.is_streaming:
        run, terms = stream_terms(bound.plan.query, bound.frames, bound.plan.placing, run)
        bound, terms = different_rows(bound, terms, run, place)
        rows = stream_answers(bound, terms, run, place)
        return as_read(rows, run, place, bound.frames, promising_columns(bound.plan.query))
    check_options(bound.plan.query, run)
    require_bounded(bound.plan.query, run)
    return answer_bounded(bound)


def as_rows(answers: DataFrame) -> DataFrame:
    """Answers as another query reads them: with the last instant of their window."""
    if "window_end" not in answers.columns:
        return answers
    end = F.col("window_end")
    is_time = isinstance(
        answers.schema["window_end"].dataType, T.TimestampType | T.TimestampNTZType
    )
    last = end - F.expr("INTERVAL '0.000001' SECOND") if is_time else end - F.lit(1)
    return answers.withColumn(WINDOW_TIME, last)


def split(
    *, answers: Sink, late: Sink | None = None, rejected: Sink | None = None
) -> Callable[[DataFrame, int], None]:
    """A function for ``foreachBatch`` that sends answers and rows set apart to their sinks.

    For queries asked with ``with_late=True``. A folder gets Parquet files in a subfolder
    ``batch=N`` per micro-batch, so that a batch that runs again replaces what it wrote. A
    function is called with a DataFrame and the batch's number, and should do the same.
    """

    sinks: dict[Sent, Sink | None] = {LATE: late, REJECTED: rejected}

    def write(tagged: DataFrame, batch_id: int) -> None:
        if "apart" not in tagged.columns:
            raise OptionError("split needs a query that was asked with with_late=True")
        with named_batch(tagged, batch_id) as stored:
            send(stored.where("answer IS NOT NULL").select("answer.*"), answers, batch_id)
            for kind, sink in sinks.items():
                if sink is not None:
                    apart = stored.where(F.col("apart.kind") == kind)
                    send(apart.select("apart.row.*", "apart.reason"), sink, batch_id, kind)

    return write


def send(frame: DataFrame, sink: Sink, batch_id: int, kind: Sent = "answers") -> None:
    """A batch of rows of some kind to a sink."""
    if isinstance(sink, ToldSink):
        sink.take(frame, batch_id, kind)
    elif callable(sink):
        sink(frame, batch_id)
    else:
        frame.write.mode("overwrite").parquet(f"{sink}/batch={batch_id}")
