"""The cost of indexes: the formulas of the paper (Table 1, section 5), with a time for each step.

Where a step is done differently here, the formula is the one of what is done here: AGGR sorts once,
buckets double, stubs need no row. Times are orders of magnitude and there to compare indexes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from panes.index.kinds import DOMAINS, FORMS, KINDS, Structure
from panes.index.operators import OPERATORS


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexLoad:
    """The load of a window index: basic windows, rows and values in each, values in the window.

    `questions` are how many of each are asked per basic window.
    """

    windows: float
    rows: float
    values: float
    window_values: float
    questions: Mapping[str, float]

    @property
    def window_rows(self) -> float:
        """The number of rows in the window."""
        return self.windows * self.rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """Nanoseconds for one step of each kind."""

    write: float = 2.0
    hash: float = 8.0
    level: float = 4.0
    hop: float = 1.5
    far_hop: float = 60.0
    count: float = 1.0
    sort: float = 12.0
    read: float = 0.7
    near: float = 2e5
    """Rows that are near enough to be hopped through without waiting for memory."""

    def link(self, load: IndexLoad) -> float:
        """One hop from row to row of a window."""
        return self.hop if load.window_rows < self.near else self.far_hop


@dataclass(frozen=True, slots=True)
class IndexCost:
    """Nanoseconds per row: to keep an index, and to answer what is expected to be asked."""

    structure: Structure
    keeping: float
    asking: float

    @property
    def total(self) -> float:
        return self.keeping + self.asking


def estimated_values(rows: float, values: float, windows: float) -> float:
    """Values of a window, of whose basic windows one has so many rows and values.

    As if all values were equally likely; at least those seen, at most as many for each.

    >>> estimated_values(1000, 1000, 60), round(estimated_values(1000, 632, 60))
    (60000, 1000)
    """
    if values >= rows:
        return values * windows
    low, high = values, max(values * windows, values)
    for _ in range(60):
        middle = (low + high) / 2
        if middle * -math.expm1(-rows / middle) < values:
            low = middle
        else:
            high = middle
    return high * -math.expm1(-rows * windows / high)


def candidates() -> list[Structure]:
    """All indexes that are compared: every kind over each of its forms."""
    found = []
    for kind in KINDS:
        for form in FORMS[kind]:
            if kind in ("ring", "aux", "bw", "db"):
                found += [Structure(kind, form, domain) for domain in DOMAINS]
            elif kind in ("scan", "group"):
                found.append(Structure(kind, form))
            else:
                found.append(Structure(kind, form, kind))  # type: ignore[arg-type]
    return found


def index_cost(made: Structure, load: IndexLoad, steps: Steps = Steps()) -> IndexCost:  # noqa: B008
    """The cost of an index per row."""
    rows = max(load.rows, 1.0)
    asked = sum(
        times * _question(made, name, load, steps) for name, times in load.questions.items()
    )
    return IndexCost(made, steps.write + _keeping(made, load, steps), asked / rows)


def _search(made: Structure, load: IndexLoad, steps: Steps) -> float:
    """Finding the entry of one value that could be anywhere."""
    every = max(load.window_values, 2.0)
    if made.domain == "list":
        return steps.hop * every / 2
    return steps.level * math.log2(every) if made.domain == "tree" else steps.hash


def _keeping(made: Structure, load: IndexLoad, steps: Steps) -> float:
    """Arrival, sealing and eviction of one row."""
    rows, every = max(load.rows, 1.0), max(load.window_values, 1.0)
    share = load.values / rows
    if made.kind == "scan":
        return 0.0
    if made.kind == "group":
        return steps.count * (math.log2(made.groups) + 2 * made.groups / rows)
    search = _search(made, load, steps)
    if made.form == "aggr" or made.form == "hash":
        # Sorted values are found in one pass over a sorted list.
        if made.domain == "list" and made.form == "aggr":
            search = steps.hop * every / max(load.values, 1.0)
        local = steps.sort if made.form == "aggr" else steps.hash + steps.count
        return local + share * (search + 2 * steps.count)
    if made.kind in ("list", "tree", "hash"):
        return search + 2 * steps.count
    ring = load.window_rows / every * steps.link(load)
    linked = search + 3 * steps.count + 3 * share * steps.count
    if made.kind == "ring":
        return linked + 2 * ring + steps.count * every / rows
    if made.kind == "aux":
        return linked + ring
    return linked + share * (ring if made.kind == "bw" else steps.count)


def _question(made: Structure, name: str, load: IndexLoad, steps: Steps) -> float:
    """One question, apart from what it costs whatever the index."""
    operator = OPERATORS[name]
    every, window_rows = max(load.window_values, 1.0), load.window_rows
    has_entries = made.kind not in ("scan", "group")
    scan = steps.read * window_rows
    ordered = steps.count * every if has_entries else steps.sort * window_rows
    if not operator.by_rows:
        if operator.in_order:
            return ordered
        return _search(made, load, steps) if has_entries else scan
    if name == "sorted":
        ordering = steps.link(load) if made.kind in ("ring", "aux", "bw", "db") else steps.sort
        return ordered + window_rows * ordering
    if made.kind in ("ring", "aux", "bw", "db"):
        found = window_rows / every * steps.link(load)
        return found + (ordered if operator.in_order else _search(made, load, steps))
    return scan + (ordered if operator.in_order and has_entries else 0.0)
