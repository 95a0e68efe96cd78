"""From partials to answer columns: lower the aggregates, label windows and keys.

The columns are those that `Plan.answers` reads: both edges of the window, the keys and the
aggregates, each under its number.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.aggregates.aggregate import Bounded
from panes.arrays.spread import spread
from panes.arrays.workers import workers
from panes.axis import Axis
from panes.planning.answer_columns import lowered_names
from panes.planning.plan import Plan
from panes.stores.rolled import AnswerPartials, WindowPartials
from panes.windows.cover import Cover
from panes.windows.extent import edges_of
from panes.windows.spec import PanedSpec


def lower(
    plan: Plan, found: AnswerPartials, order: NDArray[np.int64] | None = None
) -> list[pa.Array]:
    """The aggregates of a plan, one value per answer, rearranged by `order`."""

    def lower_one(index: int) -> pa.Array:
        aggregate, needed = plan.aggregates[index], plan.piece_of[index]
        if isinstance(aggregate, Bounded):
            lowered = aggregate.lower([found.partials[p] for p in needed])
        else:
            lowered = aggregate.lower(found.multisets[needed[0]])
        return lowered if order is None else lowered.take(pa.array(order))

    rows = found.partials[0].shape[1] if found.partials else 0
    return spread(workers(), lower_one, range(len(plan.aggregates)), rows=rows)


def lowered_windows(plan: Plan, spec: PanedSpec, found: WindowPartials | None) -> pa.Table:
    """Windows, keys and aggregates of answers, under their numbers; `spec` are the windows."""
    if found is None:
        return plan.lowered_schema().empty_table()
    lowered = lower(plan, found, found.order)
    return labelled(plan.axis, spec, found.keys, found.cover, found.order, lowered)


def labelled(
    axis: Axis,
    spec: PanedSpec,
    keys: Sequence[pa.Array],
    cover: Cover,
    order: NDArray[np.int64] | None,
    lowered: Sequence[pa.Array],
) -> pa.Table:
    """Lowered aggregates with their windows and keys; `order` rearranges these two."""
    group = np.repeat(np.arange(len(cover.offsets) - 1), np.diff(cover.offsets))
    wid = cover.wid
    if order is not None:
        group, wid = group[order], wid[order]
    start, end = edges_of(spec, wid)
    starts = pa.nulls(len(end), axis.type) if start is None else axis.label(start)
    taken = pa.array(group)
    columns = [starts, axis.label(end), *(k.take(taken) for k in keys), *lowered]
    return pa.table(columns, names=lowered_names(len(keys), len(lowered)))
