"""Asking on demand: an answer now, from the panes that a register has stored.

``[RANGE 10 minutes WATTR ts]`` is the window of that size that ends with the pane of the newest
row; it is exact where it begins with a pane, and refused elsewhere. Asking changes nothing: what a
question needs is looked up, and never stored for it.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from panes.answers.select import selected
from panes.asking.refusals import inside_a_pane, not_all_rows, not_stored, not_that_far
from panes.axis import BEGINNING, FOREVER
from panes.planning.plan import Plan
from panes.sharing.completeness import after
from panes.sharing.due import Due, Finish
from panes.sharing.needs import needed_by
from panes.sharing.roll_together import answer
from panes.sharing.shape import Member, Shape
from panes.sharing.shared_store import SharedStore
from panes.windows.cut import Cut
from panes.windows.families import next_edge
from panes.windows.spec import Sliding


def ask_panes(plan: Plan, store: SharedStore, size: int, newest: int) -> pa.Table:
    """The answer over the window of `size` that ends with the pane of the newest row."""
    found = answer_now(plan, store, size, newest, selected)
    return plan.schema().empty_table() if found is None else found


def answer_now(
    plan: Plan, store: SharedStore, size: int, newest: int, finish: Finish
) -> pa.Table | None:
    """The same, finished as `finish` does; None if the window holds no row."""
    if newest == BEGINNING:
        return None
    cut = store.chosen_cut().cut
    end = min(int(next_edge(f.slide, f.phase, newest)) for f in cut.families)
    _require_edge(plan, [cut, *store.completeness.cuts_at(end - size)], end - size, end)
    shape = store.needs.describe(plan)
    _require_stored(plan, store, shape, end - size, newest)
    if end - size > newest:
        return None
    shape.add(Member("asked", Sliding(size=size, slide=size, origin=end), None, BEGINNING))
    due = Due(shape, np.array([0]), np.array([-1]), np.array([0]))
    found = [portion.table for portion in answer(store.panes, [due], finish) if portion.names]
    return found[0] if found else None


def _require_edge(plan: Plan, cuts: list[Cut], start: int, end: int) -> None:
    """Refuse a window that begins inside a pane of some cut, and name sizes that do not."""
    for cut in cuts:
        before = int(cut.pane_start(np.array([start]))[0])
        if before != start:
            longer = end - before
            shorter = end - min(int(next_edge(f.slide, f.phase, start)) for f in cut.families)
            raise inside_a_pane(plan.axis, start, [s for s in (shorter, longer) if s > 0])


def _require_stored(plan: Plan, store: SharedStore, shape: Shape, start: int, newest: int) -> None:
    """Refuse a window for which something is not stored, or not from its start on."""
    since = max(store.needs.known_from(need) for need in needed_by(shape))
    if store.completeness.evicted_before > start and since != FOREVER:
        raise not_that_far(plan, start, max(since, store.completeness.evicted_before))
    if min(since, after(newest)) > start:
        is_stored = since != FOREVER
        raise not_all_rows(plan, start, since) if is_stored else not_stored(plan, after(newest))
