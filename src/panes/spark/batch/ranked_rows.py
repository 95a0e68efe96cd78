"""Row windows over bounded DataFrames: Spark numbers the rows, and then they are integer windows.

A row counts before WHERE. A window that was not full when the rows ended has no answer, so each
row carries how many there are, as one more key.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it
from sqlglot import exp

from panes.language.expressions import quoted
from panes.language.query import WINDOW_COLUMNS, Key
from panes.spark.batch import sliding as batch
from panes.spark.bind import BoundQuery, bind_query, ticks
from panes.spark.column_names import RANK, ROWS


def answer(bound: BoundQuery) -> DataFrame:
    """The answers, as a DataFrame that computes them when it is used."""
    query = bound.plan.query
    window = replace(
        bound.plan.window, spec=bound.plan.spec, column=RANK, measure="integer", partition=()
    )
    count = Key(ROWS, exp.column(exp.to_identifier(ROWS, quoted=True)))
    numbered = replace(
        query,
        window=window,
        keys=(*query.keys, count),
        key_order=(*query.key_order, len(query.keys)),
    )
    answers = batch.answer(bind_query(numbered, (_numbered(bound),), bound.user))
    return answers.where(F.col(WINDOW_COLUMNS[1]) <= F.col(ROWS)).drop(ROWS)


def _numbered(bound: BoundQuery) -> DataFrame:
    """The rows that have a place, with their rank in their partition, and its size."""
    plan, frame = bound.plan, bound.frames[0]
    column = plan.axis.column or ""
    placed = frame.where(ticks(frame, column).isNotNull())
    partition = [F.col(quoted(p)) for p in plan.window.partition] or [F.lit(0)]
    whole = Window.partitionBy(*partition)
    rank = F.row_number().over(whole.orderBy(F.col(quoted(column)))) - 1
    return placed.select("*", rank.cast("long").alias(RANK), F.count("*").over(whole).alias(ROWS))
