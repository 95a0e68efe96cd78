"""The details of a plan: partial columns, kernels, categories of windows and aggregates.

`explain(..., details=True)` prints them among the lines for everyone (`panes.planning.explain`).
They are for people who work on this library or know the papers behind it.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from panes.aggregates.aggregate import Aggregate, Bounded
from panes.kernels.choose import choose
from panes.planning.choose_store import StoreChoice
from panes.planning.describe import line
from panes.planning.plan import Plan
from panes.windows.spec import PerRow


def fill_lines(plan: Plan) -> Iterator[str]:
    """The expressions that become partials, and who evaluates them."""
    per_row = isinstance(plan.window.spec, PerRow)
    names = plan.window.partition if per_row else [k.name for k in plan.query.keys]
    keys = ", ".join(names) or "no key"
    plain = plan.rows.where is None and all(
        isinstance(e, exp.Column) for e in plan.rows.expressions
    )
    through = "Arrow columns as they are" if plain else "expressions and filters by DuckDB"
    yield line("fill", f"one partial per pane and key ({keys}); {through}")


def partial_lines(plan: Plan, store: StoreChoice) -> Iterator[str]:
    """The columns of partials, and the aggregates that each of them is for."""
    positions = {"eager": "window", "buffered": "window", "adaptive": "window", "bins": "bin"}
    yield line("", "partial columns, each shared by the aggregates behind it:")
    yield line("", f"{positions.get(store.name, 'pane')} int64, key int64")
    for i, piece in enumerate(plan.pieces):
        asked = zip(plan.query.calls, plan.aggregates, plan.piece_of, strict=True)
        users = [c.sql for c, a, needed in asked if a.kind == "bounded" and i in needed]
        names = ", ".join(piece.monoid.names)
        yield line("", f"{names} {piece.monoid.dtype}: {', '.join(users)}")


def roll_lines(plan: Plan) -> Iterator[str]:
    """The kernel that rolls each piece, and why it does."""
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


def category_text(aggregate: Aggregate) -> str:
    """The category of an aggregate, and whether a window follows from the one before."""
    differential = {"full": "full-", "pseudo": "pseudo-", "none": "non-"}
    said = f"{aggregate.kind}, {differential[aggregate.differential]}differential"
    if isinstance(aggregate, Bounded) and aggregate.error is not None:
        said += f", approximate: {aggregate.error}"
    return said
