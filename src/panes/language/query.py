"""Queries over one stream or a union, as data.

A `Query` is what the text says and nothing else: no schema, no types, no plan. Scalar
expressions stay sqlglot trees. In `outputs` and `having` every aggregate call stands as a
column named `AGGREGATE + i` and every grouping expression as one named `KEY + i`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from panes.aggregates.calls import Parameter
from panes.windows.spec import Spec

KEY = "__k"
AGGREGATE = "__a"
DEFINING = "__r"
WINDOW_COLUMNS = ("window_start", "window_end")
WINDOW_TIME = "window_time"
"""The position of an answer that others read: the last instant of its window."""


@dataclass(frozen=True, slots=True)
class Window:
    """A window clause: its kind, and the column that gives positions.

    `column` is None where rows are ordered by arrival. With `origin_first`, the origin of `spec`
    counts from the smallest position of the stream.
    """

    spec: Spec
    measure: Literal["time", "integer", "rows"]
    column: str | None
    partition: tuple[str, ...] = ()
    origin_first: bool = False


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """One aggregate as it was written."""

    name: str
    arguments: tuple[exp.Expression, ...]
    parameters: tuple[Parameter, ...]
    where: exp.Expression | None
    distinct: bool
    skip_nulls: bool
    sql: str


@dataclass(frozen=True, slots=True)
class Key:
    """A grouping expression and the name its column has in the answers."""

    name: str
    expression: exp.Expression


@dataclass(frozen=True, slots=True)
class Output:
    """A selected expression over keys and aggregates, and its name."""

    name: str
    expression: exp.Expression


@dataclass(frozen=True, slots=True)
class Inner:
    """A SELECT around one stream, inside FROM: what the windows are over instead of its rows.

    `columns` is None for ``*``.
    """

    columns: tuple[Output, ...] | None
    where: exp.Expression | None
    distinct: bool


@dataclass(frozen=True, slots=True)
class Early:
    """``EMIT EARLY``: open windows are answered with each batch, or every so much of the axis."""

    every: int | None
    unit: Literal["time", "integer"] | None


@dataclass(frozen=True, slots=True)
class Query:
    """One SELECT over one windowed stream (or a union of streams).

    `key_order` is the order of the key columns in the answers: selected ones first. `window` is
    None where the text has none, which only the papers' Q2-1 does. `defining` are the columns of
    the row that defines a per-row window, as far as they are selected. `inner` has what FROM makes
    of each stream before it is windowed, in their order; None for a stream as it is. `again` has
    the names that later places of a stream go by in a union, each with its stream.
    """

    text: str
    streams: tuple[str, ...]
    window: Window | None
    where: exp.Expression | None
    keys: tuple[Key, ...]
    key_order: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    outputs: tuple[Output, ...]
    having: exp.Expression | None
    defining: tuple[exp.Expression, ...] = ()
    inner: tuple[Inner | None, ...] = ()
    early: Early | None = None
    again: tuple[tuple[str, str], ...] = ()

    @property
    def emits_early(self) -> bool:
        """True if open windows are answered too."""
        return self.early is not None

    @property
    def shown_keys(self) -> tuple[int, ...]:
        """Keys in the order of the answers, without those whose name something else has taken."""
        outputs = {o.name for o in self.outputs}
        return tuple(i for i in self.key_order if self.keys[i].name not in outputs)
