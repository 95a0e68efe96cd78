"""A stream on Spark with a live page beside it, and a way to send it rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import panes
import panes.spark
from tests.live.streams import TEXT, bids


@contextmanager
def streamed(
    spark: SparkSession, folder: Path, *, is_register: bool
) -> Iterator[tuple[panes.LivePage, Callable[[list[int | None]], None]]]:
    """The page of a query or register over files, and what writes one more of them."""
    source = folder / "in"
    source.mkdir()

    def put(at: list[int | None]) -> None:
        """One file, which is one micro-batch; waits until it has been read."""
        number = len(list(source.iterdir()))
        pq.write_table(bids(at), folder / "waiting")
        os.rename(folder / "waiting", source / f"{number:03}.parquet")
        running = reg.query if reg is not None else query
        assert running is not None
        running.processAllAvailable()

    pq.write_table(bids([0]), folder / "waiting")
    schema = spark.read.parquet(str(folder / "waiting")).schema
    os.rename(folder / "waiting", source / "000.parquet")
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    frame = reader.parquet(str(source))
    reg: Any = None
    query: Any = None
    if is_register:
        reg = panes.register("bids", frame, lateness=5)
        reg.add("one", TEXT)
        reg.add("two", "SELECT count(*) AS n FROM bids [TUMBLING 20 WATTR at] HAVING n > 2")
        apart = {"late": str(folder / "late"), "rejected": str(folder / "rejected")}
        reg.start(checkpoint=str(folder / "state"), sink=str(folder / "answers"), **apart)
        page = panes.spark.live(reg)
    else:
        answers, late = panes.spark.LiveRows(folder / "answers"), panes.spark.LiveRows()
        rejected = panes.spark.LiveRows()
        tagged = panes.sql(TEXT, lateness=5, with_late=True, bids=frame)
        writer = tagged.writeStream.foreachBatch(
            panes.spark.split(answers=answers, late=late, rejected=rejected)
        )
        query = writer.option("checkpointLocation", str(folder / "state")).start()
        page = panes.spark.live(query, text=TEXT, answers=answers, late=late, rejected=rejected)
    try:
        with page:
            yield page, put
    finally:
        reg.stop() if reg is not None else query.stop()
