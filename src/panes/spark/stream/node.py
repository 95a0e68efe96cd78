"""A node of a streaming query: what its tasks read, what its shards give, and who reads that.

    rows --select--> position, columns --mapInArrow: combine--> a package per shard
         --shuffle by shard--> transformWithState: the state of a shard --> rows, promises, status
         --mapInArrow: unpack--> typed rows --select--> what another node reads, or was asked

`panes.spark.host` has the part between `combine` and the state.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it
from pyspark.sql import types as T  # noqa: N812

from panes.language.expressions import quoted
from panes.planning.terms import CheckedOptions, StreamOptions
from panes.shards.names import EVERY_SOURCE, HIDDEN, PROMISE
from panes.spark.bind import is_inside, is_row, promising
from panes.spark.column_names import PACKAGE, PASSES, SET_ASIDE, STATUS
from panes.spark.emit import KIND, REASON, WHOLE, Emit, Promising, Unpack, with_status
from panes.spark.host import Hosted, TaskRows, host
from panes.spark.observe import observed
from panes.spark.state_host import MakesShard


@dataclass(frozen=True, slots=True)
class NodePlace:
    """Where a query stands among those of a text: which of its own streams are read where.

    `streams` are those of the whole text, whose rows may be set aside. A bounded one has not ended
    while streams that are read `elsewhere` have data. What others read is a node: it `promises`.
    """

    streams: tuple[DataFrame, ...] = ()
    elsewhere: tuple[DataFrame, ...] = ()
    promises: bool = False

    def whole(self, frames: Sequence[DataFrame], run: StreamOptions) -> Sequence[DataFrame] | None:
        """The streams whose columns a row has that is set apart, if such rows are wanted."""
        return (self.streams or frames) if run.with_late else None


@dataclass(frozen=True, slots=True)
class StreamNode:
    """What runs on both sides of a shuffle, over `frames` of which tasks read some rows.

    What its shards answer are `rows` with the columns `given`. What is promised of those to come is
    a row, too, with the positions that `promise` finds for columns; None: nobody asks. A row that
    is set apart has the columns of all streams that make it `whole`; None: nobody wants it.
    """

    frames: Sequence[DataFrame]
    read: Sequence[TaskRows]
    shards: tuple[int, ...]
    shard: MakesShard
    given: T.StructType
    rows: Callable[[pa.Table], pa.Table]
    promise: Promising | None
    whole: Sequence[DataFrame] | None

    def stream(
        self, terms: CheckedOptions, run: StreamOptions, place: NodePlace, name: str
    ) -> DataFrame:
        """Everything that the shards give: rows, promises, rows set apart.

        Their status goes into the metrics of this name.
        """
        given = with_status(self.given, None if self.whole is None else whole_type(self.whole))
        if self.promise is not None:
            given = given.add(PROMISE, "long")
        emit = Emit.of(given, self.rows, self.promise)
        own = [i for i, frame in enumerate(self.frames) if not is_inside(frame)]
        is_alone = len(own) == len(self.frames)
        output = T.StructType().add(PACKAGE, "binary") if emit.packed else given
        stored = host(
            self.read,
            Hosted(self.shard, emit, output),
            self.shards,
            terms if own else replace(terms, heartbeat=None),
            bounded=run.bounded and is_alone,
            elsewhere=place.elsewhere,
            beating=[EVERY_SOURCE] if is_alone else own,
        )
        if emit.packed:
            stored = stored.mapInArrow(Unpack(emit.schema), given)
        told = observed(stored, name, STATUS)
        return told.where(F.col(STATUS).isNull()).drop(STATUS)


def as_read(
    rows: DataFrame,
    run: StreamOptions,
    place: NodePlace,
    frames: Sequence[DataFrame],
    promised: Collection[str],
) -> DataFrame:
    """The rows of a node as another one reads them, with what is promised of these columns.

    At the end of a text, what was asked: answers alone, or beside the rows of its `frames` that
    were set apart, late or rejected. Then column ``answer`` is a struct of what was selected, NULL
    in rows that are none, and ``apart`` a struct of ``kind``, ``reason`` and ``row``, NULL in
    answers.
    """
    if place.promises:
        return promising(rows, promised, bounded=run.bounded)
    if not run.with_late:
        return rows
    apart, whole = F.col(SET_ASIDE), row_type(place.streams or frames)
    row = apart[WHOLE].cast(whole).alias(WHOLE)
    chosen = [F.col(quoted(name)) for name in rows.columns if name not in HIDDEN]
    return rows.select(
        F.when(is_row(rows), F.struct(*chosen)).alias("answer"),
        F.when(apart.isNotNull(), F.struct(apart[KIND], apart[REASON], row)).alias("apart"),
    )


def whole_type(frames: Sequence[DataFrame]) -> T.StructType:
    """The type of a whole row: the columns of all streams, under numbers.

    A name may hold what Arrow cuts off.
    """
    return numbered(row_type(frames))


def numbered(columns: T.StructType) -> T.StructType:
    """The same columns under numbers."""
    return T.StructType([T.StructField(f"c{i}", f.dataType) for i, f in enumerate(columns)])


def whole_row(frames: Sequence[DataFrame], frame: DataFrame) -> Column:
    """A row of one of these streams with the columns of all."""
    own = set(frame.columns)
    values = (F.col(quoted(f.name)) if f.name in own else F.lit(None) for f in row_type(frames))
    types = whole_type(frames)
    return F.struct(*(v.cast(f.dataType).alias(f.name) for v, f in zip(values, types, strict=True)))


def row_type(frames: Sequence[DataFrame]) -> T.StructType:
    """The columns that a query reads of all streams; text where their types differ."""
    types: dict[str, T.DataType] = {}
    for frame in frames:
        for f in frame.drop(PASSES, *HIDDEN).schema.fields:
            same = types.get(f.name, f.dataType) == f.dataType
            types[f.name] = f.dataType if same else T.StringType()
    return T.StructType([T.StructField(name, kind) for name, kind in types.items()])
