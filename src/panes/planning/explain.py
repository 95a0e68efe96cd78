"""A plan as text: what will be kept, how it is rolled, and why. Same plan, same text."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from panes.aggregates.aggregate import Bounded
from panes.axis import format_duration
from panes.kernels.choose import choose
from panes.language.query import Inner, Query, Window
from panes.planning.choose_store import StoreChoice, choose_store
from panes.planning.cost import Observed, estimate
from panes.planning.plan import Plan
from panes.stores.store import STORED
from panes.windows.cut import Cut, cut, panes_per_window
from panes.windows.spec import Landmark, PartitionedRows, PerRow, Sliding, paned

_LABEL = 11


def explain(plan: Plan, store: StoreChoice | None = None, seen: Observed | None = None) -> str:
    """The plan, a line for each decision; after a run, what it was estimated to cost and did."""
    chosen = choose_store(plan) if store is None else store
    lines = list(_lines(plan, chosen))
    if seen is not None and isinstance(plan.window.spec, Sliding) and seen.rows:
        lines += _cost_lines(plan, chosen, seen)
    return "\n".join(lines) + "\n"


def explain_unbound(query: Query) -> str:
    """As much of a plan as the text alone decides."""
    lines = list(_question(query))
    if query.window is not None:
        lines += _window_lines(query.window)
    lines.append(_line("more", "give the streams to see partial columns, kernels and sizes"))
    return "\n".join(lines) + "\n"


def _lines(plan: Plan, store: StoreChoice) -> Iterator[str]:
    yield from _question(plan.query)
    yield from _window_lines(plan.window)
    yield from _counting_lines(plan)
    yield from _fill_lines(plan)
    yield from _store_lines(plan, store)
    yield from _roll_lines(plan)
    yield from _aggregate_lines(plan)
    yield _line("answers", ", ".join(f"{f.name} {f.type}" for f in plan.schema()))


def _question(query: Query) -> Iterator[str]:
    yield _line("query", " ".join(query.text.split()))
    yield _line("streams", " + ".join(query.streams))
    for stream, inner in zip(query.streams, query.inner, strict=False):
        if inner is not None:
            yield _line("before", f"{stream}: {_inner(inner)}")
    if query.early is not None:
        every = "with every batch" if query.early.every is None else "every so much of the axis"
        yield _line("early", f"open windows are answered {every}; answers have a status")


def _inner(inner: Inner) -> str:
    """What FROM makes of a stream, in words."""
    steps = []
    if inner.where is not None:
        steps.append(f"rows where {inner.where.sql(dialect='spark')}")
    if inner.columns is not None:
        steps.append("projected to " + ", ".join(o.name for o in inner.columns))
    if inner.distinct:
        steps.append("each different one once, remembered while a window may count it")
    return "; ".join(steps) or "as it is"


def _window_lines(window: Window) -> Iterator[str]:
    spec = window.spec
    yield _line("window", f"{_kind(window)} on {_where(window)}; {spec.category.value}")
    if window.partition:
        yield _line("partition", ", ".join(window.partition))
    if isinstance(spec, PerRow):
        yield _line("cut", "a pane at every position that has a row")
        yield _line("", "a row waits, with what is selected of it, until progress has passed it")
    else:
        yield _line("cut", _cut(cut(paned(spec)), window))
        panes = panes_per_window(paned(spec))
        if panes is None:
            yield _line("", "closed panes are folded into one per key: a landmark only grows")
        else:
            shared = -(-spec.size // spec.slide) if not isinstance(spec, Landmark) else 1
            rows = "row is in" if shared == 1 else "row counts in up to"
            held = f"{panes} pane{'s' * (panes != 1)} per window"
            yield _line("", f"{held}; each {rows} {shared} window{'s' * (shared != 1)}")


def describe(window: Window) -> str:
    """A window in words: all that decides which rows it holds."""
    origin = window.spec.origin if isinstance(window.spec, Sliding | Landmark) else 0
    counted = f", ORIGIN {origin}" if origin else ""
    return f"{_kind(window)}{counted} on {_where(window)}"


def _kind(window: Window) -> str:
    spec = window.spec
    if isinstance(spec, Landmark):
        return f"landmark, SLIDE {_length(window, spec.slide)}"
    if isinstance(spec, PerRow):
        by = f" by {spec.counted_by}" if spec.every > 1 else ""
        each = "every row" if spec.every == 1 else f"every {spec.every}th row{by}"
        return f"one per row, RANGE {_length(window, spec.size)}, {each}"
    name = "partitioned rows"
    if not isinstance(spec, PartitionedRows):
        name = {0: "tumbling", 1: "sliding", -1: "sampling"}[
            (spec.size > spec.slide) - (spec.size < spec.slide)
        ]
    return f"{name}, RANGE {_length(window, spec.size)} SLIDE {_length(window, spec.slide)}"


def _length(window: Window, ticks: int) -> str:
    if window.measure == "time":
        return format_duration(ticks)
    return f"{ticks} rows" if window.measure == "rows" else str(ticks)


def _where(window: Window) -> str:
    return "arrival order" if window.column is None else f"`{window.column}`"


def _cut(panes: Cut, window: Window) -> str:
    families = [f"every {_length(window, f.slide)}" for f in panes.families]
    if len(families) == 1:
        return f"a pane begins {families[0]}"
    return f"panes begin {' and '.join(families)}, where windows start and where they end"


def _counting_lines(plan: Plan) -> Iterator[str]:
    """What is different where rows are counted."""
    if plan.order is not None:
        yield _line("order", f"rows wait until progress on `{plan.axis.column}` has passed them")
    if plan.counts_rows:
        together = ", ".join(plan.window.partition)
        placed = f"rows of one {together} go to one" if together else "one counts all rows"
        yield _line("shards", f"on Spark, {placed}")


def _fill_lines(plan: Plan) -> Iterator[str]:
    per_row = isinstance(plan.window.spec, PerRow)
    names = plan.window.partition if per_row else [k.name for k in plan.query.keys]
    keys = ", ".join(names) or "no key"
    plain = plan.rows.where is None and all(
        isinstance(e, exp.Column) for e in plan.rows.expressions
    )
    through = "Arrow columns as they are" if plain else "expressions and filters by DuckDB"
    yield _line("fill", f"one partial per pane and key ({keys}); {through}")


def _store_lines(plan: Plan, store: StoreChoice) -> Iterator[str]:
    place = {"eager": "window", "buffered": "window", "adaptive": "window", "bins": "bin"}
    name = place.get(store.name, "pane")
    yield _line("store", f"{store.name} ({store.why}): {STORED[store.name]}")
    yield _line("", "partial columns, each shared by the aggregates behind it:")
    yield _line("", f"{name} int64, key int64")
    for i, piece in enumerate(plan.pieces):
        asked = zip(plan.query.calls, plan.aggregates, plan.piece_of, strict=True)
        users = [c.sql for c, a, needed in asked if a.kind == "bounded" and i in needed]
        names = ", ".join(piece.monoid.names)
        yield _line("", f"{names} {piece.monoid.dtype}: {', '.join(users)}")
    if store.name == "panes":
        yield _line("", _weight(plan))
    for values in plan.value_sets:
        columns = ", ".join(plan.rows.expressions[c].sql(dialect="spark") for c in values.columns)
        yield _line("", f"and a multiset of {columns}: 24 bytes per pane, key and different value")


def _weight(plan: Plan) -> str:
    width = 16 + sum(8 * len(p.monoid.names) for p in plan.pieces)
    more = " and what the sketches hold" if _has_objects(plan) else ""
    if isinstance(plan.window.spec, PerRow):
        return f"{width} bytes per pane{more}; a row is not kept once it is in its pane"
    panes = (panes_per_window(plan.spec) or 1) + 1
    return f"about {panes * width:,} bytes per key: {panes} panes x {width} bytes{more}"


def _has_objects(plan: Plan) -> bool:
    return any(p.monoid.dtype == object for p in plan.pieces)


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
        yield _line(label, f"{kernel} for {', '.join(names)} ({why})")
        label = ""


def _aggregate_lines(plan: Plan) -> Iterator[str]:
    label = "aggregates"
    for call, aggregate in zip(plan.query.calls, plan.aggregates, strict=True):
        differential = {"full": "full-", "pseudo": "pseudo-", "none": "non-"}
        said = f"{aggregate.kind}, {differential[aggregate.differential]}differential"
        if isinstance(aggregate, Bounded) and aggregate.error is not None:
            said += f", approximate: {aggregate.error}"
        yield _line(label, f"{call.sql}: {said}")
        label = ""


def _cost_lines(plan: Plan, store: StoreChoice, seen: Observed) -> Iterator[str]:
    """The formulas of the thesis, fed with what was seen, and what it came to."""
    slide = plan.spec.slide
    open_for = _length(plan.window, round(seen.duration / slide) * slide)
    yield _line(
        "seen",
        f"{seen.rows:,} rows, {seen.windows:,} windows of {seen.groups:,.1f} keys, open for up "
        f"to {open_for}",
    )
    label = "cost"
    for found in estimate(plan, seen):
        told = f"{found.store:<15}{found.seconds:8.3f} s (6.1-6.4)"
        told += f"{_bytes(found.bytes):>10} (6.5-6.9)"
        if found.store == store.name:
            told += f"  chosen; measured {seen.seconds:.3f} s, {_bytes(seen.peak_bytes)}"
        yield _line(label, told)
        label = ""


def _bytes(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def _line(label: str, text: str) -> str:
    return f"{label:<{_LABEL}}{text}".rstrip()
