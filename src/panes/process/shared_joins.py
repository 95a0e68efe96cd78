"""Many queries over joins of the same streams: queries with the same join share it.

Two queries have the same join if they join the same sides by the same keys, band or windows and
conditions; they may differ in what they select, in filters on one side, and in the windows above.
Rows are then stored and joined once, and each query takes of the joined rows what it needs. A query
that only aggregates the partners of each left row needs no pairs and has a join of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np
import pyarrow as pa

from panes.aggregates.custom import UserAggregate
from panes.answers.portions import Portion
from panes.axis import BEGINNING, parse_instant
from panes.errors import PanesError
from panes.frames import empty_tables
from panes.language.join_query import JoinQuery
from panes.language.query_graph import read_graph
from panes.nodes.inner import joined_schemas, schemas_made
from panes.nodes.missed_rows import Missed
from panes.nodes.set_aside import Aside, SetAside
from panes.planning.explain_join import explain_join
from panes.planning.join_query_plan import JoinQueryPlan, plan_join_query
from panes.planning.terms import StreamOptions
from panes.process.join_answers import (
    NO_COLUMNS,
    NO_PROMISE,
    Coming,
    JoinAnswers,
    RunningJoin,
    known_schemas,
    no_batch_yet,
)
from panes.process.newest_rows import NewestRows
from panes.process.node import Instant, Node, Step
from panes.process.object_tree import Tree
from panes.process.tree_reader import TreeReader
from panes.process.tree_writer import TreeWriter
from panes.process.watched import Watcher
from panes.sharing.failures import noted

_REMEMBERED = ("_newest", "_newest_before_early", "_early", "_told", "joined_rows")


class SharedJoins(Node):
    """Queries over joins of some streams, as one node: those with the same join share it.

    Of queries that say the same and have missed the same, answers are found once.
    """

    UNCHANGED = frozenset({"watcher"})

    def __init__(
        self,
        streams: Sequence[str],
        run: StreamOptions,
        *,
        aggregates: Sequence[UserAggregate] = (),
        now: Callable[[], int],
    ) -> None:
        self.streams = tuple(streams)
        self._run, self._aggregates, self._now = run, tuple(aggregates), now
        self.asked: dict[str, JoinQuery] = {}
        self._schemas: Mapping[str, pa.Schema] = {}
        self._joins: dict[object, RunningJoin] = {}
        self._newest = NewestRows()
        self._early: list[Coming] = []
        self._newest_before_early = NewestRows()
        self.joined_rows: dict[str, int] = {}
        self.watcher: Watcher | None = None
        self.shown: frozenset[str] = frozenset()
        self._told: dict[str, int] = {}

    @property
    def reads(self) -> Sequence[str]:
        """The streams that any query reads."""
        return tuple({s: None for query in self.asked.values() for s in query.streams})

    # Queries

    def add(self, name: str, query: JoinQuery) -> None:
        """Answer one more query from now on: rows that are joined, and windows that are whole.

        Windows that may miss rows, because these came before, are not answered (`exact_from`).
        """
        self._bind(name, query)
        self.asked[name] = query

    def remove(self, name: str) -> None:
        """Answer a query no longer, and forget a join that only it needed."""
        del self.asked[name]
        self.joined_rows.pop(name, None)
        for key, join in list(self._joins.items()):
            join.answers.pop(name, None)
            if not join.answers:
                del self._joins[key]

    def exact_from(self, name: str) -> object | None:
        """Where the first window of a query starts, or its first group or joined row lies.

        All answers from there on are given: every window that starts there or later, and every
        joined row of which all rows lie there or later. Joined rows that are sure are given before
        it as well, windows and groups are not. None: from the beginning of the streams; and as long
        as a stream has sent no batch, so that nothing is known of its columns.
        """
        found = (join.answers.get(name) for join in self._joins.values())
        whole = next((answers.whole for answers in found if answers is not None), None)
        return None if whole is None else whole.begins

    def missed(self, newest: NewestRows) -> None:
        """Rows have come before the first query, of which so much is known."""
        self._newest = newest

    def hear(self, told: Mapping[str, Instant]) -> None:
        """Note promises, for joins that are yet to come."""
        for name, instant in told.items():
            self._told[name] = max(parse_instant(instant), self._told.get(name, BEGINNING))

    def newest_on(self, stream: str, column: str) -> int | None:
        """Where the newest row of a stream lies on a column; None if nobody knows."""
        return self._newest.on(stream, column)

    # Steps

    def bind(self, schemas: Mapping[str, pa.Schema]) -> dict[str, Exception]:
        """Bind the queries whose streams are all known by now; gives those that do not fit."""
        failing: dict[str, Exception] = {}
        self._schemas = dict(schemas)
        for name, query in self.asked.items():
            try:
                self._bind(name, query)
            except PanesError as error:
                failing[name] = error.of(f"query `{name}`")
        return failing

    def take(self, step: Step) -> Sequence[Portion]:
        """Take in rows and promises; gives what every query answers."""
        now, rows = self._now(), {n: t for n, t in step.rows.items() if n in self.streams}
        for name, query in self._unbound().items() if step.is_last else ():
            step.failed[name] = no_batch_yet(query, self._schemas, NO_COLUMNS)
        given = self._answers(step, Coming(rows=rows, told=step.told, now=now, ends=step.is_last))
        if rows:
            self._newest = self._newest.after(rows, self._run, now)
        return given

    def require_instants(self, told: Mapping[str, Instant]) -> None:
        """Refuse promises that cannot be understood, or are no positions of the streams."""
        for query in self._unbound().values():
            if not told.keys().isdisjoint(query.streams):
                raise no_batch_yet(query, self._schemas, NO_PROMISE)
        for join in self._joins.values():
            join.run.require_instants(told)

    # In a state

    def written_by(self, writer: TreeWriter) -> Tree:
        """All that is remembered: queries by their texts, and joins with what is of their rows."""
        joins = []
        for join in self._joins.values():
            missed = {n: a.whole and a.whole.missed.joined for n, a in join.answers.items()}
            folds = any(_folds(answers.plan) for answers in join.answers.values())
            joins.append([folds, join.unstored, missed, writer.tree(join)])
        asked = {name: query.text for name, query in self.asked.items()}
        schemas = writer.tree(empty_tables(self._schemas))
        return {
            "asked": asked,
            "schemas": schemas,
            "joins": joins,
            "tree": writer.tree(self._remembered()),
        }

    def read_from(self, tree: Tree, reader: TreeReader) -> None:
        """Remember what was written."""
        for name, text in tree["asked"].items():
            query = read_graph(text, self._aggregates).asked
            assert isinstance(query, JoinQuery)
            self.asked[name] = query
        self._schemas = {n: table.schema for n, table in reader.value(tree["schemas"]).items()}
        for folds, unstored, missed, said in tree["joins"]:
            reader.value(said, self._made_anew(missed, tuple(unstored), folds=folds))
        remembered = reader.value(tree["tree"], self._remembered())
        for name, value in zip(_REMEMBERED, remembered, strict=True):
            setattr(self, name, value)

    def _remembered(self) -> list[object]:
        return [getattr(self, name) for name in _REMEMBERED]

    def _made_anew(
        self, missed: Mapping[str, Sequence[int] | None], unstored: tuple[int, ...], *, folds: bool
    ) -> RunningJoin:
        """A join with its queries, whose sides have met their streams."""
        found: RunningJoin | None = None
        for name, joined in missed.items():
            query = self.asked[name]
            known = known_schemas(query, self._mine(query))
            assert known is not None
            plan = self._planned(query, known, folds=folds)
            if found is None:
                found = self._joins[_key_of(plan)] = self._new_join(plan, known, unstored)
            behind = None if joined is None else Missed(unstored, tuple(joined))
            found.answers[name] = JoinAnswers(plan, self._run, self._aggregates, behind)
        assert found is not None
        met = found.after({"rows": empty_tables(self._schemas), "told": {}, "now": self._now()})
        _answered(found, met, Step())
        return found

    # What there is to see

    def aside(self) -> Sequence[Aside]:
        """The rows that each join has set aside."""
        return [join.aside for join in self._joins.values()]

    @property
    def state(self) -> Mapping[str, int]:
        """How much is stored: queries, joins, rows and bytes of both sides of all joins."""
        stored = [join.run.stage.stored() for join in self._joins.values()]
        rows = sum(s["left_rows"] + s["right_rows"] for s in stored)
        nbytes = sum(s["left_bytes"] + s["right_bytes"] for s in stored)
        return {
            "queries": len(self.asked),
            "joins": len(self._joins),
            "rows": rows,
            "bytes": nbytes,
        }

    @property
    def progress(self) -> Sequence[int]:
        """How far each side of each join is."""
        return [at for join in self._joins.values() for at in join.run.reached().values()]

    @property
    def bound(self) -> Mapping[str, tuple[int, JoinQueryPlan]]:
        """Queries whose streams have come: the number of the join that each shares, its plan."""
        return {
            name: (number, answers.plan)
            for number, join in enumerate(self._joins.values())
            for name, answers in join.answers.items()
        }

    def explain(self, *, details: bool = False) -> str:
        """How each join is run, and which queries share it."""
        parts = []
        for join in self._joins.values():
            names = ", ".join(join.answers)
            first = next(iter(join.answers.values()))
            parts.append(f"queries    {names}\n" + explain_join(first.plan, details=details))
        return "\n".join(parts)

    def end(self) -> None:
        """Nothing more comes: forget the joins."""
        self._joins.clear()

    # Within

    def _bind(self, name: str, query: JoinQuery) -> None:
        """Find or make the join of a query, if all its streams are known and it has none yet."""
        if any(name in join.answers for join in self._joins.values()):
            return
        known = known_schemas(query, self._mine(query))
        if known is None:
            return
        came = self._newest_before_early if self._early else self._newest
        plan = self._planned(query, known, folds=True)
        unstored = _newest_of(plan, came, known)
        if not _folds(plan) or max(unstored) > BEGINNING:  # a fold would miss partners of rows
            plan = self._planned(query, known, folds=False)
        key = _key_of(plan)
        if key not in self._joins:
            self._joins[key] = self._new_join(plan, known, unstored)
            newest = [came.by_stream(side, known) for side in plan.join.sources]
            self._joins[key].run.begin_behind(newest, self._told)
            self._newest = self._newest.laid(plan.join.sources, known)
        shared = self._joins[key]
        same = _same_answers(shared, plan)
        if same is not None:
            shared.answers[name] = same
            return
        joined = _newest_of(plan, self._newest if shared.has_begun else NewestRows(), known)
        answers = JoinAnswers(plan, self._run, self._aggregates, Missed(shared.unstored, joined))
        if answers.whole is not None:
            answers.whole.require_answers()
        shared.answers[name] = answers

    def _mine(self, query: JoinQuery) -> dict[str, pa.Schema]:
        """The columns of the streams that a query reads, as far as they are known."""
        return {name: one for name, one in self._schemas.items() if name in query.streams}

    def _planned(
        self, query: JoinQuery, known: Mapping[str, pa.Schema], *, folds: bool
    ) -> JoinQueryPlan:
        """The plan of a query that has a join for itself if it `folds`, and may share it if not."""
        made = joined_schemas(query.join, known)
        return plan_join_query(query, made, self._aggregates, is_shared=not folds)

    def _new_join(
        self, plan: JoinQueryPlan, known: Mapping[str, pa.Schema], unstored: tuple[int, ...]
    ) -> RunningJoin:
        columns = list(chain(*schemas_made(plan.query.join, known)))
        return RunningJoin(
            plan, self._run, SetAside(), columns, early=self._early, unstored=unstored
        )

    def _answers(self, step: Step, coming: Coming) -> Sequence[Portion]:
        """What every query answers after a step of its join; those that fail are noted."""
        found: dict[str, pa.Table] = {}
        self._watch()
        for join in list(self._joins.values()):
            joined = None
            with noted(step.failed, join.answers):
                joined = join.after(coming)
            if joined is not None:
                found |= _answered(join, joined, step)
            for name in join.answers if joined is not None else ():
                self.joined_rows[name] = self.joined_rows.get(name, 0) + len(joined)
        if not self._unbound():
            self._early = []
        else:
            if not self._early:
                self._newest_before_early = self._newest
            self._early = [*self._early, coming]
        given = ((name, found[name]) for name in self.asked if name in found)
        return [Portion(-1, [name], np.array([0, len(t)]), t) for name, t in given]

    def _watch(self) -> None:
        """Let the first join that reads a stream tell of its batches."""
        untold = frozenset(self.streams) - self.shown
        for join in self._joins.values():
            join.run.watcher, join.run.tells = self.watcher, untold & join.run.streams
            untold -= join.run.streams

    def _unbound(self) -> dict[str, JoinQuery]:
        """The queries whose streams are not all known yet."""
        bound = {name for join in self._joins.values() for name in join.answers}
        return {name: query for name, query in self.asked.items() if name not in bound}


def _folds(plan: JoinQueryPlan) -> bool:
    """Whether the partners of each left row are only aggregated, and no pairs are made."""
    return plan.aggregation is not None and plan.aggregation.fold is not None


def _key_of(plan: JoinQueryPlan) -> object:
    """What is the same of queries that share a join; one that folds shares it with its like."""
    return replace(plan.query, text="") if _folds(plan) else plan.join.identity


def _same_answers(join: RunningJoin, plan: JoinQueryPlan) -> JoinAnswers | None:
    """The answers of a query that says the same, if neither has missed what the other has."""
    asked = replace(plan.query, text="")
    alike = (a for a in join.answers.values() if replace(a.plan.query, text="") == asked)
    return None if join.has_begun else next(alike, None)


def _answered(join: RunningJoin, joined: pa.Table, step: Step) -> dict[str, pa.Table]:
    """The answers of each query, which are found once for those that say the same."""
    names: dict[int, list[str]] = {}
    for name, answers in join.answers.items():
        names.setdefault(id(answers), []).append(name)
    found: dict[str, pa.Table] = {}
    for some in names.values():
        with noted(step.failed, some):
            table = join.answers[some[0]].of(joined, join.run, ends=step.is_last)
            found |= dict.fromkeys(some, table)
    return found


def _newest_of(
    plan: JoinQueryPlan, newest: NewestRows, known: Mapping[str, pa.Schema]
) -> tuple[int, ...]:
    """Where the newest row of each source of a join lies."""
    return tuple(newest.of(side, known) for side in plan.join.sources)
