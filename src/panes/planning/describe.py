"""Windows and queries in words, as `explain` prints them and as a checkpoint remembers them."""

from __future__ import annotations

from collections.abc import Iterator

from panes.axis import format_duration
from panes.language.query import Inner, Query, Window
from panes.windows.spec import Landmark, PartitionedRows, PerRow, Sliding

_LABEL = 11


def describe(window: Window) -> str:
    """A window in words: all that decides which rows it holds."""
    origin = window.spec.origin if isinstance(window.spec, Sliding | Landmark) else 0
    counted = f", ORIGIN {origin}" if origin else ""
    return f"{kind_text(window)}{counted} on {axis_text(window)}"


def kind_text(window: Window) -> str:
    """The kind of a window, with its RANGE and SLIDE."""
    spec = window.spec
    if isinstance(spec, Landmark):
        return f"landmark, SLIDE {length_text(window, spec.slide)}"
    if isinstance(spec, PerRow):
        by = f" by {spec.counted_by}" if spec.every > 1 else ""
        each = "every row" if spec.every == 1 else f"every {spec.every}th row{by}"
        return f"one per row, RANGE {length_text(window, spec.size)}, {each}"
    name = "partitioned rows"
    if not isinstance(spec, PartitionedRows):
        name = {0: "tumbling", 1: "sliding", -1: "sampling"}[
            (spec.size > spec.slide) - (spec.size < spec.slide)
        ]
    size, slide = length_text(window, spec.size), length_text(window, spec.slide)
    return f"{name}, RANGE {size} SLIDE {slide}"


def axis_text(window: Window) -> str:
    """The order of the rows of a window."""
    return "arrival order" if window.column is None else f"`{window.column}`"


def length_text(window: Window, ticks: int) -> str:
    """A length on the axis of a window, in the units of its clause."""
    if window.measure == "time":
        return format_duration(ticks)
    return f"{ticks} rows" if window.measure == "rows" else str(ticks)


def question_lines(query: Query) -> Iterator[str]:
    """The question: the text, the streams, and the SELECTs around them."""
    yield line("query", " ".join(query.text.split()))
    yield line("streams", " + ".join(query.streams))
    for stream, inner in zip(query.streams, query.inner, strict=False):
        if inner is not None:
            yield line("before", f"{stream}: {_inner_text(inner)}")
    if query.early is not None:
        every = "with every batch" if query.early.every is None else "every so much of the axis"
        yield line("early", f"open windows are answered {every}; answers have a status")


def _inner_text(inner: Inner) -> str:
    steps = []
    if inner.where is not None:
        steps.append(f"rows where {inner.where.sql(dialect='spark')}")
    if inner.columns is not None:
        steps.append("projected to " + ", ".join(o.name for o in inner.columns))
    if inner.distinct:
        steps.append("each different one once, remembered while a window may count it")
    return "; ".join(steps) or "as it is"


def line(label: str, text: str) -> str:
    """One line of a plan: a label, or none, and what it says."""
    return f"{label:<{_LABEL}}{text}".rstrip()
