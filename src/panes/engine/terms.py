"""The terms of a stream: how late its rows may come, and what becomes of those that come later."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from numbers import Integral
from typing import Literal, TypeAlias

from panes.axis import DAY, parse_duration
from panes.errors import OptionError
from panes.language.query import Query

Late: TypeAlias = Literal["open", "drop"]
Duration: TypeAlias = "str | int | dt.timedelta"


@dataclass(frozen=True, slots=True)
class Run:
    """How a query is to be run over a stream, as the user said it; see `panes.sql`."""

    lateness: Duration | None = None
    late: Late = "open"
    max_ahead: Duration | None = DAY
    punctuation: str | None = None
    bounded: bool = False
    heartbeat: Duration | None = None
    shards: int | None = None
    with_late: bool = False
    name: str = "panes"
    store: str | None = None


@dataclass(frozen=True, slots=True)
class Terms:
    """What a stream promises and what becomes of late rows: checked, and in ticks."""

    lateness: int | None = None
    late: Late = "open"
    max_ahead: int | None = DAY
    punctuation: str | None = None
    heartbeat: int | None = None

    @property
    def drops_late(self) -> bool:
        """Whether late rows count in no window at all."""
        return self.late == "drop"


def agree(query: Query, run: Run) -> Terms:
    """The terms that these options mean for a query."""
    if run.late not in ("open", "drop"):
        raise OptionError(
            f"late must be 'open' or 'drop', got {run.late!r}",
            hint="'open': a late row still counts in windows that are open; 'drop': in none",
        )
    measure = "time" if query.window is None else query.window.measure
    is_ordered = measure == "rows" and query.window is not None and query.window.column is not None
    lateness = run.lateness
    if not is_ordered:  # there, the column that orders the rows has yet to be seen
        require_lateness(lateness, measure)
    if run.punctuation is not None and measure == "rows" and not is_ordered:
        raise OptionError("rows are counted as they arrive, so there is nothing to promise of them")
    if run.heartbeat is not None and measure != "time" and not is_ordered:
        raise OptionError("a heartbeat follows the clock, and the window has no time axis")
    return Terms(
        lateness=_ticks(lateness, "lateness"),
        late=run.late,
        max_ahead=_ticks(run.max_ahead, "max_ahead"),
        punctuation=run.punctuation,
        heartbeat=_ticks(run.heartbeat, "heartbeat"),
    )


def require_lateness(lateness: Duration | None, measure: str) -> None:
    """Lateness is measured as positions are."""
    if lateness is not None and measure != "time" and not isinstance(lateness, Integral):
        raise OptionError(
            f"the window has no time axis, so lateness is a whole number, got {lateness!r}"
        )


def _ticks(given: Duration | None, option: str) -> int | None:
    if given is None:
        return None
    ticks = parse_duration(given, option=option)
    if ticks < 0:
        raise OptionError(f"{option} cannot be negative, got {given!r}")
    return ticks
