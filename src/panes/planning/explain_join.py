"""A join as text: which rows are joined, what is stored, and when it is forgotten."""

from __future__ import annotations

from collections.abc import Iterator

from panes.axis import BEGINNING, FOREVER, format_duration
from panes.language.query import Window
from panes.planning.describe import describe, line
from panes.planning.join_plan import JoinPlan
from panes.planning.join_query_plan import AT, JoinQueryPlan
from panes.planning.utc_days import days_of
from panes.windows.partners import Band, CommonWindows
from panes.windows.spec import Spec

_HOW = {
    "inner": "pairs of rows that match",
    "left": "pairs, and rows of the left side without a partner",
    "right": "pairs, and rows of the right side without a partner",
    "full": "pairs, and rows of both sides without a partner",
    "semi": "rows of the left side that have a partner, each once",
    "anti": "rows of the left side that have no partner",
}
_BY = {
    "max": "the later position of both sides",
    "min": "the earlier position of both sides",
    "window": "the windows of the join",
    "positions": "each group is given as soon as no more joined rows of its positions can come",
}


def explain_join(plan: JoinQueryPlan, *, details: bool = False) -> str:
    """The plan of a query over a join, a line for each decision."""
    lines = [line("query", " ".join(plan.query.text.split()))]
    for source in plan.join.sources:
        lines.append(line("side", f"{source.name}: {' + '.join(source.source.streams)}"))
        if source.plan.rows.where is not None:
            asked = source.plan.rows.where.sql(dialect="spark")
            lines.append(line("", f"only rows where {asked}"))
    lines += _join_lines(plan.join, details=details)
    lines += _above_lines(plan)
    return "\n".join(lines) + "\n"


def _join_lines(join: JoinPlan, *, details: bool) -> Iterator[str]:
    if isinstance(join.left, JoinPlan):
        yield from _join_lines(join.left, details=details)
    kind = "as-of join" if join.as_of else f"{join.how} join"
    yield line("join", f"{kind} of {join.left.name} and {join.right.name}: {_HOW[join.how]}")
    yield line("", _partners_text(join))
    if isinstance(join.partners, CommonWindows):
        yield from _day_lines(join.partners.spec, join)
    keys = [
        f"{one.name or one.sql()} = {other.name or other.sql()}"
        for one, other in zip(join.left_keys.expressions, join.right_keys.expressions, strict=True)
    ]
    yield line("keys", ", ".join(keys) or "none: every two rows within reach are compared")
    if join.rest is not None and join.rest.where is not None:
        yield line("", f"and of pairs {join.rest.where.sql(dialect='spark')}")
    yield from _stored_lines(join)
    if details:
        codes = ", ".join(str(t) for t in join.key_types) or "none"
        yield line("", f"rows by key and position in blocks of time; keys compared as {codes}")


def _partners_text(join: JoinPlan) -> str:
    if isinstance(join.partners, CommonWindows):
        window = Window(join.partners.spec, "time" if join.axis.kind == "time" else "integer",
                        join.left_at)  # fmt: skip
        return f"pairs in every window that holds both rows: {describe(window)}"
    low, high = join.partners.low, join.partners.high
    if join.as_of:
        return f"the last row of {join.right.name} at most {_length(join, -low)} before"
    parts = []
    if low > BEGINNING:
        parts.append(f"{join.right_at} >= {join.left_at} {_signed(join, low)}")
    if high < FOREVER:
        parts.append(f"{join.right_at} <= {join.left_at} {_signed(join, high)}")
    return " and ".join(parts)


def _stored_lines(join: JoinPlan) -> Iterator[str]:
    left, right = join.left.name, join.right.name
    if join.as_of:
        yield line("stored", f"rows of {left} until {right} has passed them")
        yield line("", f"rows of {right} while a row of {left} may find them")
        return
    if isinstance(join.partners, Band):
        yield line("stored", f"rows of {left} {_until(join, right, join.partners.high)}")
        yield line("", f"rows of {right} {_until(join, left, -join.partners.low)}")
        return
    yield line("stored", "rows of both sides until the other side has passed their last window")


def _until(join: JoinPlan, other: str, far: int) -> str:
    """The time for which rows are stored whose last partner lies this far behind them."""
    if far >= FOREVER:
        return "for ever"
    if far < 0:
        return f"until {other} is {_length(join, -far)} before them"
    return f"until {other} has passed them by {_length(join, far)}"


def _above_lines(plan: JoinQueryPlan) -> Iterator[str]:
    found = plan.aggregation
    if found is None:
        yield line("answers", ", ".join(f"{f.name} {f.type}" for f in plan.schema()))
        return
    window = found.query.window
    if found.by in ("left", "right", "max", "min") and window is not None:
        text = describe(window).replace(f"`{AT}`", _BY.get(found.by, ""))
        yield line("above", f"windows over joined rows: {text}")
        yield from _day_lines(window.spec, plan.join)
    elif found.fold is not None:
        yield line("above", "rows of the left side, each with the aggregates of its partners")
        yield line("", "pairs are never made")
    else:
        yield line("above", _BY[found.by])
    calls = ", ".join(call.sql for call in found.query.calls)
    keys = ", ".join(k.name for k in found.query.keys) or "none"
    yield line("", f"aggregates: {calls}; keys: {keys}")


def _day_lines(spec: Spec, join: JoinPlan) -> Iterator[str]:
    said = days_of(spec, join.axis)
    if said is not None:
        yield line("", said)


def _length(join: JoinPlan, ticks: int) -> str:
    return format_duration(ticks) if join.axis.kind == "time" else str(ticks)


def _signed(join: JoinPlan, ticks: int) -> str:
    return f"{'-' if ticks < 0 else '+'} {_length(join, abs(ticks))}"
