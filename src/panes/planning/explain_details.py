"""The details of a plan: partial columns, kernels, categories of windows and aggregates.

`explain(..., details=True)` prints them. They are for people who work on this library or know the
papers behind it; `panes.planning.explain` has the text for everyone else.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from panes.aggregates.aggregate import Bounded
from panes.kernels.choose import choose
from panes.language.query import Window
from panes.planning.choose_store import StoreChoice
from panes.planning.describe import axis_text, kind_text, length_text, line
from panes.planning.plan import Plan
from panes.planning.utc_days import days_of
from panes.stores.store import STORED
from panes.windows.cut import Cut, cut, panes_per_window
from panes.windows.spec import Landmark, PerRow, paned


def plan_details(plan: Plan, store: StoreChoice) -> Iterator[str]:
    """Every decision of a plan, in the words of the papers; a line each."""
    yield from window_details(plan.window)
    yield from day_lines(plan)
    yield from _counting_lines(plan)
    yield from _fill_lines(plan)
    yield from _store_lines(plan, store)
    yield from _roll_lines(plan)
    yield from _aggregate_lines(plan)


def day_lines(plan: Plan) -> Iterator[str]:
    """That days are those of UTC, where that has to be said."""
    said = days_of(plan.window.spec, plan.axis)
    if said is not None:
        yield line("", said)


def window_details(window: Window) -> Iterator[str]:
    """The category of a window, and where its panes begin."""
    spec = window.spec
    yield line("window", f"{kind_text(window)} on {axis_text(window)}; {spec.category.value}")
    if window.partition:
        yield line("partition", ", ".join(window.partition))
    if isinstance(spec, PerRow):
        yield line("cut", "a pane at every position that has a row")
        yield line("", "a row waits, with what is selected of it, until progress has passed it")
        return
    yield line("cut", _cut_text(cut(paned(spec)), window))
    panes = panes_per_window(paned(spec))
    if panes is None:
        yield line("", "closed panes are folded into one per key: a landmark only grows")
        return
    shared = -(-spec.size // spec.slide) if not isinstance(spec, Landmark) else 1
    rows = "row is in" if shared == 1 else "row counts in up to"
    per_window = f"{panes} pane{'s' * (panes != 1)} per window"
    yield line("", f"{per_window}; each {rows} {shared} window{'s' * (shared != 1)}")


def _cut_text(panes: Cut, window: Window) -> str:
    families = [f"every {length_text(window, f.slide)}" for f in panes.families]
    if len(families) == 1:
        return f"a pane begins {families[0]}"
    return f"panes begin {' and '.join(families)}, where windows start and where they end"


def _counting_lines(plan: Plan) -> Iterator[str]:
    """What is different where rows are counted."""
    if plan.order is not None:
        yield line("order", f"rows wait until progress on `{plan.axis.column}` has passed them")
    if plan.counts_rows:
        together = ", ".join(plan.window.partition)
        counted = f"rows of one {together} go to one" if together else "one counts all rows"
        yield line("shards", f"on Spark, {counted}")


def _fill_lines(plan: Plan) -> Iterator[str]:
    per_row = isinstance(plan.window.spec, PerRow)
    names = plan.window.partition if per_row else [k.name for k in plan.query.keys]
    keys = ", ".join(names) or "no key"
    plain = plan.rows.where is None and all(
        isinstance(e, exp.Column) for e in plan.rows.expressions
    )
    through = "Arrow columns as they are" if plain else "expressions and filters by DuckDB"
    yield line("fill", f"one partial per pane and key ({keys}); {through}")


def _store_lines(plan: Plan, store: StoreChoice) -> Iterator[str]:
    positions = {"eager": "window", "buffered": "window", "adaptive": "window", "bins": "bin"}
    name = positions.get(store.name, "pane")
    why = f"{store.why}; {store.source}" if store.source else store.why
    yield line("store", f"{store.name} ({why}): {STORED[store.name]}")
    yield line("", "partial columns, each shared by the aggregates behind it:")
    yield line("", f"{name} int64, key int64")
    for i, piece in enumerate(plan.pieces):
        asked = zip(plan.query.calls, plan.aggregates, plan.piece_of, strict=True)
        users = [c.sql for c, a, needed in asked if a.kind == "bounded" and i in needed]
        names = ", ".join(piece.monoid.names)
        yield line("", f"{names} {piece.monoid.dtype}: {', '.join(users)}")
    if store.name == "panes":
        yield line("", size_text(plan))
    for values in plan.value_sets:
        columns = ", ".join(plan.rows.expressions[c].sql(dialect="spark") for c in values.columns)
        yield line("", f"and a multiset of {columns}: 24 bytes per pane, key and different value")


def size_text(plan: Plan) -> str:
    """How many bytes the store `panes` needs, for each key or for each pane."""
    width = 16 + sum(8 * len(p.monoid.names) for p in plan.pieces)
    has_sketches = any(p.monoid.dtype == object for p in plan.pieces)
    more = " and what the sketches hold" if has_sketches else ""
    if isinstance(plan.window.spec, PerRow):
        return f"{width} bytes per pane{more}; a row is not kept once it is in its pane"
    panes = (panes_per_window(plan.spec) or 1) + 1
    return f"about {panes * width:,} bytes per key: {panes} panes x {width} bytes{more}"


def _roll_lines(plan: Plan) -> Iterator[str]:
    chosen: dict[str, tuple[list[str], str]] = {}
    for piece in plan.pieces:
        choice = choose(piece.monoid, plan.spec)
        names, _ = chosen.setdefault(choice.kernel, ([], choice.why))
        names.append("+".join(piece.monoid.names))
    if plan.value_sets:
        chosen["sliding multiset"] = (["values"], "counts are integers, so leaving panes subtract")
    label = "roll"
    for kernel, (names, why) in chosen.items():
        yield line(label, f"{kernel} for {', '.join(names)} ({why})")
        label = ""


def _aggregate_lines(plan: Plan) -> Iterator[str]:
    label = "aggregates"
    for call, aggregate in zip(plan.query.calls, plan.aggregates, strict=True):
        differential = {"full": "full-", "pseudo": "pseudo-", "none": "non-"}
        said = f"{aggregate.kind}, {differential[aggregate.differential]}differential"
        if isinstance(aggregate, Bounded) and aggregate.error is not None:
            said += f", approximate: {aggregate.error}"
        yield line(label, f"{call.sql}: {said}")
        label = ""
