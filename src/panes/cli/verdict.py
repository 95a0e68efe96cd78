"""What an engine gave, held against the oracle; and why there may be nothing to compare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TypeAlias

import pyarrow as pa

from panes.errors import PanesError, QueryError
from panes.language.join_query import JoinQuery
from panes.language.query import Query
from panes.reference.compare import difference, differing_rows
from panes.windows.spec import PerRow

_MOST_TOLD = 20

Outcome: TypeAlias = pa.Table | PanesError
"""The answers of an engine, or what it failed of."""


def judge(got: Outcome, want: Outcome, keys: list[str]) -> tuple[str, str, list[str]]:
    """Whether an engine did as the oracle, the words for it, and answers that differ."""
    if isinstance(got, QueryError):
        return "refused", f"refused: {_first_line(got)}", []
    if isinstance(got, PanesError) and isinstance(want, PanesError):
        return "failed", "fails, as the oracle does", []
    if isinstance(got, PanesError):
        return "differs", f"differs: fails: {_first_line(got)}", []
    if isinstance(want, PanesError):
        return "differs", f"differs: {len(got):,} answers, and the oracle fails", []
    found = difference(got, want)
    if found is None:
        return "equal", "equal", []
    if got.schema != want.schema:
        return "differs", found, []
    told = list(islice(differing_rows(got, want, keys), _MOST_TOLD + 1))
    if len(told) > _MOST_TOLD:
        told[_MOST_TOLD:] = ["and more"]
    return "differs", f"differs: {len(got):,} answers, the oracle has {len(want):,}", told


def why_no_answers(asked: Query | JoinQuery, streams: Mapping[str, pa.Table], rows: int) -> str:
    """What to look at where a query over so many rows of each stream has no answers."""
    return "; ".join(_reasons(asked, streams, rows))


def _reasons(asked: Query | JoinQuery, streams: Mapping[str, pa.Table], rows: int) -> Iterator[str]:
    empty = [name for name, table in streams.items() if not len(table)]
    if empty:
        yield f"`{empty[0]}` has no rows: give a file that has some"
        return
    if isinstance(asked, JoinQuery):
        yield "look at ON: perhaps no two rows match"
    else:
        yield from _reasons_of_one(asked, streams)
    if any(len(table) == rows for table in streams.values()):
        yield f"take more rows: --rows {10 * rows}"


def _reasons_of_one(asked: Query, streams: Mapping[str, pa.Table]) -> Iterator[str]:
    window = asked.window
    if window is not None and window.column is not None:
        for name, table in streams.items():
            column = table[window.column] if window.column in table.column_names else None
            if column is not None and column.null_count == len(column):
                yield f"`{window.column}` of `{name}` is NULL in every row"
    if window is not None and window.measure == "rows":
        spec = window.spec
        every = spec.every if isinstance(spec, PerRow) else spec.slide
        if every > sum(len(table) for table in streams.values()):
            yield f"the first window has its answer after {every:,} rows"
    if asked.where is not None or any(asked.inner):
        yield "look at WHERE: perhaps no row passes it"
    if asked.having is not None:
        yield "look at HAVING: perhaps it removes every answer"


def _first_line(failure: PanesError) -> str:
    return str(failure).splitlines()[0]
