"""The store of a query: by name, or the one that the planner takes."""

from __future__ import annotations

from dataclasses import dataclass

from panes.errors import OptionError, QueryError
from panes.planning.plan import Plan
from panes.stores.by_name import STORES, StoreName
from panes.windows.spec import Landmark, PerRow


@dataclass(frozen=True, slots=True)
class StoreChoice:
    """A store and the reason it was taken. `source` is where the reason is published."""

    name: StoreName
    why: str
    source: str = ""


def choose_store(plan: Plan, asked: str | None = None) -> StoreChoice:
    """The store for a plan: the one asked for, if it can hold these windows."""
    if asked is None:
        if isinstance(plan.window.spec, PerRow):
            return StoreChoice("panes", "half the entries of `bins`", source="thesis 6.1.4")
        return StoreChoice("panes", "one update a row, whatever the overlap")
    name = next((s for s in STORES if s == asked), None)
    if name is None:
        raise OptionError(f"there is no store {asked!r}", hint=f"one of {', '.join(STORES)}")
    refusal = _refusal(plan, name)
    if refusal is not None:
        raise QueryError(refusal, hint="leave the store to the planner, or name `panes`")
    return StoreChoice(name, "asked for")


def supports(plan: Plan, name: StoreName) -> bool:
    """True if a store can hold the windows of a plan."""
    return _refusal(plan, name) is None


def _refusal(plan: Plan, name: StoreName) -> str | None:
    spec = plan.window.spec
    if name == "bins":
        if not isinstance(spec, PerRow):
            return "the store `bins` holds per-row windows"
        if plan.value_sets:
            return "the store `bins` holds partials of a fixed size; a holistic aggregate has none"
        return None
    if name != "panes" and isinstance(spec, PerRow):
        return f"the store `{name}` cannot hold per-row windows"
    if name != "panes" and isinstance(spec, Landmark):
        return f"the store `{name}` would keep something of every RANGE ALL window for ever"
    return None
