"""A snapshot: all that a page shows of a running query, at one moment.

The page is a function of it and of nothing else; scripts read the same as JSON. It is bounded: its
size follows from the constants of this folder, never from rows, keys, windows or queries. Positions
are ticks of the axis (microseconds for time), instants of the clock are seconds since the epoch.
Whoever changes the meaning of a field, or removes one, raises `VERSION`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Literal

from panes.cells import Cell

VERSION = 1


@dataclass(frozen=True, slots=True)
class AxisShown:
    """What positions mean. `kind` is ``time``, ``integer`` or ``rows``."""

    kind: str = "time"
    column: str | None = None


@dataclass(frozen=True, slots=True)
class Counts:
    """Everything since the beginning."""

    rows: int = 0
    batches: int = 0
    answers: int = 0
    late: int = 0
    rejected: int = 0


@dataclass(frozen=True, slots=True)
class Samples:
    """The run over time, column by column, oldest first.

    `rows` are per second, `batch` is the longest batch in seconds, `stored` are partials and rows
    that wait for their windows and `nbytes` their bytes, without rows that were set aside.
    """

    at: Sequence[float] = ()
    rows: Sequence[float] = ()
    batch: Sequence[float] = ()
    nbytes: Sequence[int] = ()
    stored: Sequence[int] = ()
    progress: Sequence[int | None] = ()
    newest: Sequence[int | None] = ()


@dataclass(frozen=True, slots=True)
class ShownArrivals:
    """Some rows as they came: their number in arrival order, and their position.

    `late` are rows behind the promise. `promise` is its line: from row `promise_row` on it stood at
    `promise_at`.
    """

    row: Sequence[int] = ()
    at: Sequence[int] = ()
    late_row: Sequence[int] = ()
    late_at: Sequence[int] = ()
    promise_row: Sequence[int] = ()
    promise_at: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class PanesShown:
    """Panes near progress: where each begins and ends, and how many rows fell into it.

    Unless `exact`, large batches are counted by a sample of their rows.
    """

    start: Sequence[int] = ()
    end: Sequence[int] = ()
    rows: Sequence[int] = ()
    exact: bool = True


@dataclass(frozen=True, slots=True)
class WindowsShown:
    """Windows near progress, oldest first. `of` is the query, where there are several.

    `start` is None where a window begins with the stream. Of `total` windows some are left out.
    """

    start: Sequence[int | None] = ()
    end: Sequence[int] = ()
    closed: Sequence[bool] = ()
    of: Sequence[str] = ()
    total: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True)
class AnswerLine:
    """The answers of one key over windows: their ends, and the value in each."""

    key: str
    at: Sequence[int]
    value: Sequence[float]


@dataclass(frozen=True, slots=True)
class AnswersShown:
    """The newest answers: a table of the greatest, and a line for each of a few keys.

    `window` is the end of the window that the rows are of, `total` how many answers it has. `of` is
    the query, where there are several.
    """

    columns: Sequence[str] = ()
    rows: Sequence[Sequence[Cell]] = ()
    by: str | None = None
    window: int | None = None
    total: int = 0
    lines: Sequence[AnswerLine] = ()
    note: str = ""
    of: str = ""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why rows were set aside, and how many."""

    kind: Literal["late", "rejected"]
    reason: str
    rows: int


@dataclass(frozen=True, slots=True)
class SetAsideShown:
    """Rows that came late or were rejected: how many for which reason, and the last of them."""

    reasons: Sequence[Reason] = ()
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[Cell]] = ()


@dataclass(frozen=True, slots=True)
class QueryShown:
    """A query of a register. `cost` is what its answers took, as `RegisterShown.cost` says.

    `shape` is a number that queries share which are planned or joined together.
    """

    name: str
    text: str
    window: str
    store: str
    shape: int
    answers: int
    cost: int
    failed: str | None = None


@dataclass(frozen=True, slots=True)
class GroupShown:
    """A sliding group: queries whose windows end together. `parents` are indexes, strong first."""

    label: str
    queries: int
    names: Sequence[str]
    parents: Sequence[int]


@dataclass(frozen=True, slots=True)
class RegisterShown:
    """The queries of a register that cost most, or that were looked for, and what they share.

    `cost` says in words what the cost of a query is, `shares` what the queries share. Where it is
    `of_joins`, `stores` are joins.
    """

    cost: str = ""
    shares: str = ""
    of_joins: bool = False
    queries: Sequence[QueryShown] = ()
    total: int = 0
    found: int = 0
    stores: Sequence[str] = ()
    shapes: int = 0
    groups: Sequence[GroupShown] = ()
    groups_total: int = 0
    can_edit: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What is shown. `run` changes when another query, or another run of it, is shown.

    `status` is ``failed`` until a step succeeds again, and `said` is why.
    """

    kind: Literal["query", "join", "register", "spark"]
    run: str
    title: str
    text: str
    taken: float
    started: float
    status: Literal["waiting", "running", "finished", "failed"]
    said: str = ""
    axis: AxisShown = field(default_factory=AxisShown)
    progress: int | None = None
    progress_by: str = ""
    newest: int | None = None
    counts: Counts = field(default_factory=Counts)
    state: dict[str, int] = field(default_factory=dict)
    samples: Samples = field(default_factory=Samples)
    arrivals: ShownArrivals = field(default_factory=ShownArrivals)
    panes: PanesShown = field(default_factory=PanesShown)
    windows: WindowsShown = field(default_factory=WindowsShown)
    answers: AnswersShown = field(default_factory=AnswersShown)
    set_aside: SetAsideShown = field(default_factory=SetAsideShown)
    register: RegisterShown | None = None
    explain: str = ""

    def as_json(self) -> str:
        """The snapshot as JSON; feeds hold no number that JSON does not know."""
        shown = {"version": VERSION, **_fields(self)}
        return json.dumps(shown, separators=(",", ":"), allow_nan=False, default=_fields)


def _fields(one: object) -> dict[str, object]:
    """What a dataclass holds, one level deep; `asdict` would copy every number by itself."""
    if not is_dataclass(one):
        raise TypeError(f"a snapshot holds plain values, got {type(one).__name__}")
    return {f.name: getattr(one, f.name) for f in fields(one)}
