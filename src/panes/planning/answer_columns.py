"""The columns of answers and their order, said once: as they are lowered, and as they are selected.

    lowered     window_start  window_end  __k0  __k1 ...  __a0  __a1 ...
    selected    window_start  window_end  keys that are shown   what is selected

A per-row window has neither edges nor keys: it is lowered to aggregates and columns of its row, and
gives what is selected.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from panes.language.query import AGGREGATE, KEY, WINDOW_COLUMNS, Query


@dataclass(frozen=True, slots=True)
class AnswerColumn:
    """A column of the answers: a `lowered` one as it is, or an expression over those."""

    name: str
    lowered: str | None = None
    expression: exp.Expression | None = None


def answer_columns(query: Query, *, names_windows: bool) -> tuple[AnswerColumn, ...]:
    """The columns of a query's answers, in their order; unless windows are named, only outputs."""
    edges = [AnswerColumn(name, lowered=name) for name in WINDOW_COLUMNS]
    keys = [AnswerColumn(query.keys[i].name, lowered=f"{KEY}{i}") for i in query.shown_keys]
    outputs = [AnswerColumn(o.name, expression=o.expression) for o in query.outputs]
    return (*edges, *keys, *outputs) if names_windows else tuple(outputs)


def lowered_names(keys: int, aggregates: int) -> list[str]:
    """The names of the columns of lowered answers, where windows are named."""
    names = [*WINDOW_COLUMNS, *(f"{KEY}{i}" for i in range(keys))]
    return names + aggregate_names(aggregates)


def aggregate_names(aggregates: int) -> list[str]:
    """The names of lowered aggregates."""
    return [f"{AGGREGATE}{i}" for i in range(aggregates)]
