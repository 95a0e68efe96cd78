"""The answers to a bound query over bounded DataFrames, whatever the kind of its windows."""

from __future__ import annotations

from pyspark.sql import DataFrame

from panes.spark.batch import per_row, ranked_rows, sliding
from panes.spark.bind import BoundQuery
from panes.windows.spec import PerRow


def answer_bounded(bound: BoundQuery) -> DataFrame:
    """The answers, as a DataFrame that computes them when it is used."""
    if isinstance(bound.plan.window.spec, PerRow):
        return per_row.answer(bound)
    if bound.plan.axis.kind == "rows":
        return ranked_rows.answer(bound)
    return sliding.answer(bound)
