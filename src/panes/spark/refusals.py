"""Refusals on Spark: options that only one process has, and expressions that Spark refuses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pyspark.errors import AnalysisException
from sqlglot import exp

from panes.errors import QueryError
from panes.language.join_query import JoinQuery
from panes.language.query import Query
from panes.planning.terms import StreamOptions


def require_not_of_process(run: StreamOptions) -> None:
    """Refuse options that only a query in one process has."""
    asked = {
        f"store={run.store!r} is not available on Spark": run.store not in (None, "panes"),
        "rows_late is not available on Spark, where rows have no order of arrival": (
            run.rows_late is not None
        ),
    }
    for words, is_asked in asked.items():
        if is_asked:
            raise QueryError(words, hint="panes.open runs a query in one process")


def require_bounded(query: Query | JoinQuery, run: StreamOptions) -> None:
    """Refuse what only a stream has, of bounded DataFrames."""
    require_not_of_process(run)
    asked = {
        "late='revise' is for streams, and these": run.late == "revise",
        "EMIT EARLY is for streams, and these": query.emits_early,
        "why is for streams, and these": run.why,
        "a flush is for streams, and these": run.flush is not None,
    }
    for words, is_asked in asked.items():
        if is_asked:
            raise QueryError(f"{words} DataFrames are bounded")
    if run.with_late:
        raise QueryError(
            "these DataFrames are bounded, so no row of them is late",
            hint="leave out with_late=True, or ask DataFrames of spark.readStream",
        )


@contextmanager
def in_our_words(trees: Sequence[exp.Expression]) -> Iterator[None]:
    """Whatever Spark says of some expressions while it looks at them is a refusal of the query."""
    try:
        yield
    except AnalysisException as failure:
        written = ", ".join(f"`{t.sql(dialect='spark', identify=False)}`" for t in trees)
        raise QueryError(
            f"{written.replace('``', '`')} {_reason(failure)}",
            hint="docs/reference/scalar_functions.md lists all functions with what they take",
        ) from None


def _reason(failure: AnalysisException) -> str:
    name = failure.getCondition() or ""
    given = failure.getMessageParameters() or {}
    if name.startswith("WRONG_NUM_ARGS"):
        counts = given.get("actualNum", "so many"), given.get("expectedNum", "another number of")
        return f"gives {given.get('functionName', 'a function')} {counts[0]} arguments, " \
               f"and it takes {counts[1]}"  # fmt: skip
    if name.startswith("DATATYPE_MISMATCH"):
        types = (
            given.get("inputType")
            or " and ".join(given[part] for part in ("left", "right") if part in given)
            or given.get("dataType", "")
        )
        return f"does not fit its types{': ' + types if types else ''}"
    said = str(failure).partition("] ")[2].partition(" SQLSTATE")[0].partition(";")[0]
    return f"is refused by Spark: {(said or str(failure)).splitlines()[0]}"
