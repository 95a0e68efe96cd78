"""The cost of each store over a run, from what was observed of it."""

from __future__ import annotations

from dataclasses import dataclass

from panes.planning.choose_store import supports
from panes.planning.plan import Plan
from panes.stores.by_name import StoreName
from panes.stores.cost import (
    Load,
    UnitCosts,
    differential_time,
    eager_bytes,
    lazy_bytes,
    paned_time,
    window_time,
)
from panes.windows.cut import panes_per_window
from panes.windows.spec import Sliding


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """The load that a run has shown of a stream and its windows.

    `duration` is how long a window stayed open on the axis; `offset` how far a row's source was
    behind the earliest one, on average; `groups` how many had a row in a window.
    """

    rows: int
    span: int
    windows: int
    groups: float
    row_bytes: float
    duration: float
    offset: float = 0.0
    seconds: float = 0.0
    peak_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Estimate:
    """The cost that a store would have had."""

    store: StoreName
    seconds: float
    bytes: float


def estimate(plan: Plan, seen: Observed, unit: UnitCosts = UnitCosts()) -> list[Estimate]:  # noqa: B008
    """The cost over the run of each store that can hold the plan's windows."""
    spec = plan.spec
    assert isinstance(spec, Sliding)
    per_tick = seen.rows / max(seen.span, 1)
    panes = panes_per_window(spec) or 1
    load = Load(
        rows=per_tick * spec.size,
        panes=panes,
        groups=_in_a_pane(seen.groups, per_tick * spec.size / panes),
        slides=max(panes * spec.slide / spec.size, 1.0),
        overlap=max(spec.size / spec.slide, 1.0),
    )
    partial = 16.0 + sum(8 * len(p.monoid.names) for p in plan.pieces)
    volume = per_tick * seen.duration / max(seen.groups, 1.0)
    lag = per_tick * seen.offset / max(seen.groups, 1.0)
    eager = eager_bytes(partial=partial, duration=seen.duration, slide=spec.slide)
    lazy = lazy_bytes(row=seen.row_bytes, volume=volume, lag=lag)
    paned = eager * load.slides * load.groups / max(seen.groups, 1.0)
    differential = all(a.differential == "full" for a in plan.aggregates)
    in_panes = paned_time(load, unit, differential=differential)
    buffered = differential_time(load, unit) if differential else window_time(load, unit)
    output = unit.answer * seen.groups
    costs: dict[StoreName, tuple[float, float]] = {
        "panes": (in_panes, paned),
        "eager": (window_time(load, unit), eager),
        "buffered": (buffered, lazy),
        "adaptive": (window_time(load, unit), min(eager, lazy)),
        "adaptive-panes": (in_panes, min(paned, lazy)),
    }
    return [
        Estimate(name, (seconds + output) * seen.windows, size * seen.groups)
        for name, (seconds, size) in costs.items()
        if supports(plan, name)
    ]


def _in_a_pane(groups: float, rows: float) -> float:
    """The number of a window's groups with one of a pane's rows, if all are as frequent.

    >>> _in_a_pane(1.0, 50.0), round(_in_a_pane(100.0, 50.0))
    (1.0, 39)
    """
    return groups * (1 - (1 - 1 / groups) ** rows) if groups > 1 else groups
