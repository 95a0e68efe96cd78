"""What Spark does not understand of an expression, in our words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pyspark.errors import AnalysisException
from sqlglot import exp

from panes.errors import QueryError


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
