"""The index of a window: the kind that was asked for, or the cheapest one.

It is chosen when the first basic window is sealed, from what has come until then and from the
questions that are expected. `explain_index` says what was chosen, why, and what was compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from panes.arrays.slots import distinct
from panes.errors import OptionError
from panes.index.cost import IndexCost, IndexLoad, candidates, estimated_values, index_cost
from panes.index.g_index import GROUPS
from panes.index.kinds import KINDS, NAMES, Kind, Structure
from panes.index.operators import OPERATORS

ROWS_PER_LOOKUP, ROWS_PER_FETCH = 100, 1_000
"""The questions to expect if nobody says: a count for so many rows, their rows more rarely."""


@dataclass(frozen=True, slots=True)
class IndexChoice:
    """An index, what it was chosen by, and what all others would cost."""

    structure: Structure
    load: IndexLoad
    compared: tuple[IndexCost, ...]
    is_asked: bool


def require_kind(kind: str | None) -> Kind | None:
    """A kind of index by name."""
    if kind is None or kind in KINDS:
        return kind
    raise OptionError(f"there is no index kind {kind!r}", hint=f"one of {', '.join(KINDS)}")


def require_questions(questions: Mapping[str, float] | None) -> Mapping[str, float] | None:
    """Questions by name, and how many of each are asked while a basic window fills."""
    if questions is not None and not isinstance(questions, Mapping):
        raise OptionError(
            f"questions are how often each is asked, by name, got {questions!r}",
            hint='questions={"count": 100}',
        )
    for name, times in (questions or {}).items():
        if name not in OPERATORS:
            raise OptionError(
                f"no question is called {name!r}", hint=f"questions: {', '.join(OPERATORS)}"
            )
        if not isinstance(times, int | float) or isinstance(times, bool) or not times >= 0:
            raise OptionError(f"questions per basic window are a number, got {times!r} for {name}")
    return questions


def choose_index(
    first_keys: NDArray[np.int64],
    *,
    windows: int,
    kind: Kind | None,
    groups: int = GROUPS,
    questions: Mapping[str, float] | None = None,
    values: int | None = None,
) -> IndexChoice:
    """The index for a window of so many basic windows, of which the first has these keys."""
    rows = max(len(first_keys), 1)
    different = max(len(distinct(first_keys)), 1)
    if questions is None:
        questions = {"count": rows / ROWS_PER_LOOKUP, "rows": rows / ROWS_PER_FETCH, "values": 1.0}
    load = IndexLoad(
        windows=windows,
        rows=rows,
        values=different,
        window_values=estimated_values(rows, different, windows) if values is None else values,
        questions=questions,
    )
    compared = sorted((index_cost(made, load) for made in candidates()), key=lambda c: c.total)
    cheapest = next(c for c in compared if kind is None or c.structure.kind == kind).structure
    structure = Structure(cheapest.kind, cheapest.form, cheapest.domain, groups)
    return IndexChoice(structure, load, tuple(compared), kind is not None)


def explain_index(choice: IndexChoice) -> str:
    """The chosen index, the reason, and the costs that were compared."""
    load = choice.load
    asked = ", ".join(f"{n} {times:,.4g}" for n, times in load.questions.items()) or "none"
    why = "asked for" if choice.is_asked else "the cheapest for what was seen and is expected"
    lines = [
        f"index      {describe(choice.structure)}: {why}",
        f"seen       {load.rows:,.0f} rows with {load.values:,.0f} values in the first basic "
        f"window; {load.windows:,.0f} of them",
        f"expected   {load.window_values:,.0f} values in the window",
        f"questions  per basic window: {asked}",
        "costs      nanoseconds per row, to keep it + to answer",
    ]
    best: dict[str, IndexCost] = {}
    for cost in choice.compared:
        best.setdefault(cost.structure.kind, cost)
    for cost in best.values():
        name = describe(cost.structure)
        lines.append(f"           {name:34} {cost.keeping:>10,.1f} + {cost.asking:,.1f}")
    return "\n".join(lines) + "\n"


def describe(made: Structure) -> str:
    """An index in a few words.

    >>> describe(Structure("db", "list", "hash")), describe(Structure("scan", "list"))
    ('DB over LIST, values by hash', 'no index, over LIST')
    """
    over = f"over {made.form.upper()}"
    if made.kind == "scan":
        return f"{NAMES[made.kind]}, {over}"
    if made.kind in ("ring", "aux", "bw", "db"):
        return f"{NAMES[made.kind]} {over}, values by {made.domain}"
    return f"{NAMES[made.kind]} {over}"
