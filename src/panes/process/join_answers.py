"""A join and what is answered of its rows: each query selects them, or aggregates them in windows.

One query over a join has it alone; in a register, queries with the same join share it
(`panes.process.shared_joins`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from panes.aggregates.custom import UserAggregate
from panes.errors import InputError
from panes.language.join_query import JoinQuery
from panes.nodes.fold_stage import FoldStage
from panes.nodes.joined_rows import passing_rows, selected_rows
from panes.nodes.missed_rows import Missed, Whole, sure_rows, whole_windows
from panes.nodes.set_aside import Aside, SetAside
from panes.planning.join_query_plan import JoinQueryPlan
from panes.planning.terms import StreamOptions
from panes.process.join_run import JoinRun
from panes.process.joined_windows import Above, above

Coming: TypeAlias = dict[str, Any]
"""What `JoinRun.take` is given in one step; it waits for the columns of all sides."""


class JoinAnswers:
    """The answers of one query over a join; it may have `missed` rows."""

    def __init__(
        self,
        plan: JoinQueryPlan,
        run: StreamOptions,
        aggregates: Sequence[UserAggregate],
        missed: Missed | None = None,
    ) -> None:
        self.plan = plan
        self.whole = None if missed is None or missed.is_nothing else Whole(plan, missed)
        self.above: Above | None = above(plan, run, aggregates)

    def of(self, joined: pa.Table, run: JoinRun, *, ends: bool) -> pa.Table:
        """The answers that joined rows give, by what the join has promised so far."""
        if isinstance(run.stage, FoldStage):
            return joined
        if self.above is None:
            return selected_rows(self.plan, joined)
        joined = passing_rows(self.plan, joined)
        if self.whole is not None:
            joined = self.whole.rows(joined)
        found = self.above.take(joined, run.stage, ends=ends)
        if self.whole is None:
            return found
        return whole_windows(self.plan, self.whole.upto, found)


class RunningJoin:
    """A join, and the answers of all queries that have it, by name.

    What came `early`, before the columns of all its streams were known, is still to be taken in.
    Rows that came before that are `unstored`, up to a position of each source.
    """

    def __init__(
        self,
        plan: JoinQueryPlan,
        run: StreamOptions,
        set_aside: SetAside,
        columns: Sequence[pa.Schema],
        *,
        early: Sequence[Coming] = (),
        unstored: tuple[int, ...] = (),
    ) -> None:
        self.has_begun, self.unstored = False, unstored
        self.aside = Aside(set_aside, columns)
        self.run = JoinRun(plan, run, set_aside)
        self.answers: dict[str, JoinAnswers] = {}
        self._early = list(early)

    def after(self, coming: Coming) -> pa.Table:
        """Joined rows of a step, and of those that waited for it."""
        steps = [*self._early, coming]
        self._early, self.has_begun = [], True
        joined = pa.concat_tables([self.run.take(**one) for one in steps])
        return sure_rows(self.run.join, self.unstored, joined) if self.unstored else joined


NO_COLUMNS = "its answers have no columns"
NO_PROMISE = "a promise cannot be understood"


def no_batch_yet(query: JoinQuery, schemas: Mapping[str, pa.Schema], what: str) -> InputError:
    """The refusal of what cannot be done before every side of a join is known."""
    sides = [side.streams for side in query.join.sources]
    missing = (names[0] for names in sides if not any(name in schemas for name in names))
    unseen = dict.fromkeys(dict(query.again).get(name, name) for name in missing)
    return InputError(
        f"the query has seen no batch of {', '.join(f'`{name}`' for name in unseen)}, so {what}",
        hint="push an empty table with the stream's schema, or give panes.open a schema",
    )


def known_schemas(
    query: JoinQuery, schemas: Mapping[str, pa.Schema]
) -> dict[str, pa.Schema] | None:
    """The columns of all streams; None unless every side has sent a batch.

    Streams of a union that have not been seen yet look like the others.
    """
    known = dict(schemas)
    for source in query.join.sources:
        first = next((known[s] for s in source.streams if s in known), None)
        if first is None:
            return None
        known |= {s: first for s in source.streams if s not in known}
    return known
