"""Spark's side of `panes verify`: a query over DataFrames, bounded ones and streams of files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
from pyspark.sql import SparkSession

import panes
import panes.spark
from panes.cli.on_spark import told
from panes.crash.place import cut, read_stream, write_batches
from panes.crash.sample import BATCHES, stream_options
from panes.spark.session import quiet

Tables = Mapping[str, pa.Table]


def bounded(text: str, tables: Tables) -> pa.Table:
    """The answers of Spark's batch."""
    with told():
        session = _session()
        frames = {name: session.createDataFrame(table) for name, table in tables.items()}
        return panes.sql(text, frames).toArrow()


def streamed(text: str, tables: Tables) -> pa.Table:
    """The answers of a stream: rows in the order of their tables, in a few micro-batches.

    It is given just so much lateness that no row is late, and windows close on the way; where no
    lateness does that, they close at the end.
    """
    with told():
        return _streamed(text, tables)


def _session() -> SparkSession:
    session = panes.spark.session(spark__ui__enabled="false")
    quiet(session)  # what goes wrong is told
    return session


def _streamed(text: str, tables: Tables) -> pa.Table:
    session = _session()
    batches = {name: cut(table, BATCHES) for name, table in tables.items()}
    with TemporaryDirectory(prefix="panes-verify-") as folder:
        place = Path(folder)
        frames = {
            name: read_stream(session, write_batches(place / "rows" / name, parts))
            for name, parts in batches.items()
        }
        answers = panes.sql(text, frames, **stream_options(text, batches))
        sink = answers.writeStream.format("parquet").option("path", str(place / "answers"))
        sink = sink.option("checkpointLocation", str(place / "state"))
        sink.trigger(availableNow=True).start().awaitTermination()
        return session.read.schema(answers.schema).parquet(str(place / "answers")).toArrow()
