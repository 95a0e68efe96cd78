"""Spark Connect: a real server in a process of its own, and a client that has no JVM."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import pathlib, sys, tempfile
import pyarrow as pa
from pyspark.sql import functions as F
import panes, panes.spark
from panes.sample_streams import bids
from panes.reference.compare import difference
from tests.spark.streaming import as_batches, read_stream, run_to_end

parts = sys.argv[1:]
spark = panes.spark.session()
print("session:", type(spark).__module__)
rows = bids(1_000, keys=5, hours=0.3)
text = (
    "SELECT item, max(price) AS high, median(price) AS mid, count(*) AS n "
    "FROM bids [RANGE 5 minutes SLIDE 1 minute WATTR ts] GROUP BY item"
)
want = panes.oracle(text, bids=rows)

def told(answers):
    return difference(answers.sort_by([(n, "ascending") for n in want.column_names[:3]]), want)

folder = pathlib.Path(tempfile.mkdtemp())
files = as_batches(folder / "in", [rows.slice(i, 400) for i in range(0, 1_000, 400)])
frame, stream = spark.read.parquet(str(files)), read_stream(spark, files)
if "batch" in parts:
    print("batch:", told(panes.sql(text, bids=frame).toArrow()))
if "stream" in parts:
    run_to_end(panes.sql(text, lateness="10 seconds", bounded=True, bids=stream), folder)
    print("stream:", told(spark.read.parquet(str(folder / "out")).toArrow()))
if "live" in parts:
    from tests.live.streams import ask
    answers = panes.sql(text, lateness="10 seconds", bounded=True, bids=stream)
    writer = answers.writeStream.option("checkpointLocation", str(folder / "live state"))
    query = writer.trigger(availableNow=True).start(str(folder / "live"), format="parquet")
    with panes.spark.live(query, text=text) as page:
        query.awaitTermination()
        for _ in range(1_000):  # a listener is told a moment later
            shown = ask(page.url)[2]
            if shown["status"] == "finished":
                break
        print("live:", shown["status"], shown["title"], shown["counts"]["rows"])
if "joined" in parts:
    items = frame.select("item").distinct().hint("merge")
    joined = stream.where("price IS NOT NULL").join(items, "item")
    place = folder / "joined"
    run_to_end(panes.sql(text, lateness="10 seconds", bounded=True, bids=joined), place)
    print("joined:", told(spark.read.parquet(str(place / "out")).toArrow()))
if "register" in parts:
    reg = panes.register("bids", stream, lateness="10 seconds")
    reg.add("high", text)
    reg.add("all", "SELECT count(*) AS n FROM bids [TUMBLING 1 minute WATTR ts]")
    reg.start(checkpoint=str(folder / "state"), sink=str(folder / "register"), bounded=True)
    reg.await_end(300)
    answers = spark.read.parquet(str(folder / "register/query=high")).drop("batch")
    print("register:", told(answers.toArrow()))
if "drop-in" in parts:
    window = ("ts", "5 minutes", "1 minute")
    mine = panes.spark.group_by(frame, panes.spark.window(*window), "item").agg(F.avg("price"))
    theirs = frame.groupBy(F.window(*window), "item").agg(F.avg("price"))
    near = mine.alias("a").join(theirs.alias("b"), ["window", "item"]).where(
        "abs(a.`avg(price)` - b.`avg(price)`) < 1e-9"
    )
    print("drop-in:", (mine.count(), near.count()) == (theirs.count(), theirs.count()))
if "calls" in parts:
    from tests.spark import drop_in_calls
    given = drop_in_calls.rows(spark)
    found = {n: drop_in_calls.difference(spark, n, given) for n in drop_in_calls.CALLS}
    print("calls:", {n: d for n, d in found.items() if d is not None} or None)
pairs = (
    "SELECT a.price, b.price AS other FROM a LEFT JOIN b ON a.item = b.item AND a.price < b.price "
    "AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 2 SECONDS"
)

def paired(answers):
    same = panes.oracle(pairs, a=rows, b=rows)
    by = [(n, "ascending") for n in same.column_names]
    return difference(answers.sort_by(by), same.sort_by(by))

if "pairs" in parts:
    print("pairs:", paired(panes.sql(pairs, a=frame, b=frame).toArrow()))
if "stream of pairs" in parts:
    place = folder / "pairs"
    other = read_stream(spark, files)
    run_to_end(panes.sql(pairs, lateness="10 seconds", bounded=True, a=stream, b=other), place)
    print("stream of pairs:", paired(spark.read.parquet(str(place / "out")).toArrow()))
"""
SAID = {"batch": "None", "stream": "None", "joined": "None", "register": "None", "drop-in": "True"}
SAID |= {"calls": "None", "pairs": "None", "stream of pairs": "None"}
SAID |= {"live": "finished bids 1000"}


@pytest.mark.slow
def test_everything_works_through_connect() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *SAID],
        env={**os.environ, "SPARK_REMOTE": "local[2]", "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    for line in ("connect.session", *(f"{part}: {told}" for part, told in SAID.items())):
        assert line in done.stdout, done.stdout[-500:] + done.stderr[-2000:]
