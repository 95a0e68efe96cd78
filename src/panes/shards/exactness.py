"""From where a query of a register is exact, as a shard remembers what its part has missed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from panes.axis import BEGINNING, Axis
from panes.planning.plan import Plan
from panes.shards.many_states import ManyStates
from panes.shards.missed_queries import MissedQueries
from panes.shards.parts_shard import PARTS, newest_of
from panes.shards.query_state import first_open
from panes.shards.register_parts import AloneQuery
from panes.shards.shared_joins import SharedJoin, SharedQuery, Source
from panes.shards.state import State
from panes.windows.extent import extent
from panes.windows.spec import Sliding


def what_was_missed(windows: Mapping[str, Source], state: State) -> MissedQueries:
    """What all parts have missed; `windows` are those of streams that share panes, by key."""
    return MissedQueries(ManyStates(state).of(PARTS), newest_of(windows, state))


def alone_exact_from(query: AloneQuery, missed: MissedQueries) -> object | None:
    """Where the first window starts of a query alone that is answered; None: all are."""
    after, plan = max(missed.upto(query.key, [[one] for one in query.sources])), query.plan
    return None if after == BEGINNING else label(plan.axis, _begins(plan, after))


def join_exact_from(shared: SharedJoin, query: SharedQuery, missed: MissedQueries) -> object | None:
    """Where the first window or row of a query over a join lies that is sure; None: all are."""
    whole = missed.meet(shared, query)
    return None if whole is None else whole.begins


def label(axis: Axis, at: int) -> object:
    """A position as a user sees it."""
    return axis.label(np.array([at]))[0].as_py()


def _begins(plan: Plan, after: int) -> int:
    """Where the first window begins that holds no row up to a position."""
    spec, first = plan.window.spec, first_open(plan, after)
    return extent(spec, first).start if isinstance(spec, Sliding) else after + 1
