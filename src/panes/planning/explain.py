"""A plan as text: which panes there are, what is stored, and what it costs. Same plan, same text.

The text is for people who have read the README. With `details` it also names partial columns,
kernels and the formulas behind the costs (`panes.planning.explain_details`).
"""

from __future__ import annotations

from collections.abc import Iterator

from panes.aggregates.aggregate import Bounded
from panes.language.query import Query, Window
from panes.planning.choose_store import StoreChoice, choose_store
from panes.planning.cost import Observed, estimate
from panes.planning.describe import describe, length_text, line, question_lines
from panes.planning.explain_details import category_text, fill_lines, partial_lines, roll_lines
from panes.planning.plan import Plan
from panes.planning.utc_days import days_of
from panes.stores.by_name import STORED
from panes.windows.cut import cut, panes_per_window
from panes.windows.spec import Landmark, PerRow, Sliding, paned


def explain(
    plan: Plan,
    store: StoreChoice | None = None,
    seen: Observed | None = None,
    *,
    details: bool = False,
) -> str:
    """The plan, a line for each decision; after a run, the estimated and the measured costs."""
    chosen = choose_store(plan) if store is None else store
    lines = list(question_lines(plan.query))
    lines += _plan_lines(plan, chosen, details=details)
    lines.append(line("answers", ", ".join(f"{f.name} {f.type}" for f in plan.schema())))
    if seen is not None and isinstance(plan.window.spec, Sliding) and seen.rows:
        lines += _cost_lines(plan, chosen, seen, details=details)
    return "\n".join(lines) + "\n"


def explain_unbound(query: Query, *, details: bool = False) -> str:
    """As much of a plan as the text alone decides."""
    lines = list(question_lines(query))
    if query.window is not None:
        lines += _window_lines(query.window, details=details)
    more = "partial columns, kernels and sizes" if details else "types and sizes"
    lines.append(line("more", f"give the streams to see {more}"))
    return "\n".join(lines) + "\n"


def _plan_lines(plan: Plan, store: StoreChoice, *, details: bool) -> Iterator[str]:
    yield from _window_lines(plan.window, details=details)
    said = days_of(plan.window.spec, plan.axis)
    if said is not None:
        yield line("", said)
    yield from _counting_lines(plan)
    if not isinstance(plan.window.spec, PerRow):
        keys = ", ".join(k.name for k in plan.query.keys)
        yield line("keys", keys or "none: one answer per window")
    if details:
        yield from fill_lines(plan)
    yield from _store_lines(plan, store, details=details)
    if details:
        yield from partial_lines(plan, store)
        yield from roll_lines(plan)
    yield from _aggregate_lines(plan, details=details)


def _window_lines(window: Window, *, details: bool) -> Iterator[str]:
    spec = window.spec
    category = f"; {spec.category.value}" if details else ""
    yield line("window", f"{describe(window)}{category}")
    if window.partition:
        yield line("partition", f"{', '.join(window.partition)}: each one has windows of its own")
    if isinstance(spec, PerRow):
        yield line("panes", "one at every position that has a row")
        yield line("", "a row waits for its answer until progress has passed it")
        return
    families = cut(paned(spec)).families
    every = length_text(window, families[0].slide)
    begins = f"a pane begins every {every}"
    if len(families) > 1:
        begins = f"panes begin where windows start and where they end, two in {every}"
    yield line("panes", begins)
    panes = panes_per_window(paned(spec))
    if panes is None or isinstance(spec, Landmark):
        yield line("", "older panes are merged into one per key: the window only grows")
        return
    windows = -(-spec.size // spec.slide)
    counts = "is in 1 window" if windows == 1 else f"counts in up to {windows} windows"
    yield line("", f"{panes} pane{'s' * (panes != 1)} per window; each row {counts}")


def _counting_lines(plan: Plan) -> Iterator[str]:
    """The lines for windows that count rows."""
    if plan.order is not None:
        yield line("order", f"a row waits until progress on `{plan.axis.column}` has passed it")
    if plan.counts_rows:
        together = ", ".join(plan.window.partition)
        counted = (
            f"rows of one {together} go to one shard" if together else "one shard has all rows"
        )
        yield line("on Spark", counted)


def _store_lines(plan: Plan, store: StoreChoice, *, details: bool) -> Iterator[str]:
    why = f"{store.why}; {store.source}" if details and store.source else store.why
    yield line("store", f"{store.name} ({why}): {STORED[store.name]}")
    if store.name == "panes":
        yield line("", _size_text(plan))
    for values in plan.value_sets:
        columns = ", ".join(plan.rows.expressions[c].sql(dialect="spark") for c in values.columns)
        yield line("", f"and 24 bytes per pane, key and different value of {columns}")


def _size_text(plan: Plan) -> str:
    """The bytes that the store `panes` needs, for each key or for each pane."""
    width = 16 + sum(8 * len(p.monoid.names) for p in plan.pieces)
    has_sketches = any(p.monoid.dtype == object for p in plan.pieces)
    more = " and what the sketches hold" if has_sketches else ""
    if isinstance(plan.window.spec, PerRow):
        return f"{width} bytes per pane{more}; a row is not kept once it is in its pane"
    panes = (panes_per_window(plan.spec) or 1) + 1
    return f"about {panes * width:,} bytes per key: {panes} panes x {width} bytes{more}"


def _aggregate_lines(plan: Plan, *, details: bool) -> Iterator[str]:
    label = "aggregates"
    for call, aggregate in zip(plan.query.calls, plan.aggregates, strict=True):
        said = "from partial results of a fixed size"
        if details:
            said = category_text(aggregate)
        elif aggregate.kind == "holistic":
            said = "from all different values and their counts"
        elif isinstance(aggregate, Bounded) and aggregate.error is not None:
            said = f"approximate, {aggregate.error}"
        yield line(label, f"{call.sql}: {said}")
        label = ""


def _cost_lines(plan: Plan, store: StoreChoice, seen: Observed, *, details: bool) -> Iterator[str]:
    """The cost of each store, by what was seen, and that of the chosen one."""
    slide = plan.spec.slide
    open_for = length_text(plan.window, round(seen.duration / slide) * slide)
    yield line(
        "seen",
        f"{seen.rows:,} rows, {seen.windows:,} windows of {seen.groups:,.1f} keys, open for up "
        f"to {open_for}",
    )
    by_time, by_memory = (" (6.1-6.4)", " (6.5-6.9)") if details else ("", "")
    label = "cost"
    for found in estimate(plan, seen):
        costs = f"{found.store:<15}{found.seconds:8.3f} s{by_time}"
        costs += f"{_bytes(found.bytes):>10}{by_memory}"
        if not details:
            costs += " estimated"
        if found.store == store.name:
            costs += f"  chosen; measured {seen.seconds:.3f} s, {_bytes(seen.peak_bytes)}"
        yield line(label, costs)
        label = ""


def _bytes(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"
