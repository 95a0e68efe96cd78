"""The way of joined rows: they are selected as they are, or aggregated.

Joined rows are aggregated in windows over the position of either side, over the greater or the
smaller of both, in the windows of the join itself, or for each pair of positions (thesis 7.2). In
every case that is one window query over joined rows, whose columns are called ``l.ts``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, cast

import pyarrow as pa
from sqlglot import exp

from panes.aggregates.catalog import is_aggregate
from panes.aggregates.custom import UserAggregate
from panes.errors import QueryError
from panes.expressions.projection import Projection
from panes.language.clause import Parts, window_of
from panes.language.join_query import Join, JoinQuery
from panes.language.places import error_in
from panes.language.query import WINDOW_COLUMNS, Key, Query, Window
from panes.language.select import name_of, read_select
from panes.planning.bind_join import plan_join
from panes.planning.join_plan import JoinPlan
from panes.planning.joined_columns import JoinedColumns, column
from panes.planning.plan import Plan, plan
from panes.planning.using import using_columns
from panes.windows.partners import Band
from panes.windows.spec import Sliding

PAIRS = "pairs"
"""The stream of joined rows, as the query over them calls it."""
AT = "__at"
"""The column of joined rows that has their position, where no column of a side is that."""

By: TypeAlias = Literal["left", "right", "max", "min", "window", "positions"]


@dataclass(frozen=True, slots=True)
class Aggregation:
    """A window query over joined rows, and what their position in it is.

    `by` positions: there are no windows, and a group is complete as soon as no more pairs of its
    positions can come; `grouped` tells of which sides the position is part of the group. Where
    groups are of the left side alone and aggregates of the right one, `fold` answers them without
    making pairs.
    """

    query: Query
    by: By
    grouped: tuple[bool, bool] = (False, False)
    fold: Plan | None = None


@dataclass(frozen=True, slots=True)
class JoinQueryPlan:
    """A query over a join, bound to the columns of its streams.

    `answers` gives what is selected of joined rows, of those that pass WHERE; with an `aggregation`
    it gives the rows that are aggregated, as they are.
    """

    query: JoinQuery
    join: JoinPlan
    names: tuple[str, ...]
    answers: Projection
    aggregation: Aggregation | None = None

    @property
    def names_windows(self) -> bool:
        """True if answers begin with the window that they are of."""
        return self.join.windows is not None

    def joined_schema(self) -> pa.Schema:
        """The columns of joined rows: those of the window, then those of both sides."""
        edges = [(name, self.join.axis.type) for name in WINDOW_COLUMNS] * self.names_windows
        return pa.schema([*edges, *self.join.schema()])

    def schema(self) -> pa.Schema:
        """The columns of the answers, where joined rows are not aggregated."""
        edges = [(name, self.join.axis.type) for name in WINDOW_COLUMNS] * self.names_windows
        types = self.answers.types(self.joined_schema())
        return pa.schema([*edges, *zip(self.names, types, strict=True)])


def plan_join_query(
    query: JoinQuery,
    sides: Sequence[pa.Schema],
    aggregates: Sequence[UserAggregate] = (),
    *,
    is_shared: bool = False,
) -> JoinQueryPlan:
    """Bind a query over a join to the columns of its sides, after what FROM makes of streams.

    A join that `is_shared` makes its pairs, whatever this query needs of them.
    """
    items = _Items(query, aggregates)
    where = query.select.args.get("where")
    asked = None if where is None else where.this
    joined = plan_join(
        query.join, sides, asked, items.over,
        is_aggregated=items.aggregates, is_shared=is_shared,
    )  # fmt: skip
    if not items.aggregates:
        outputs, names = items.outputs(joined.columns)
        return JoinQueryPlan(query, joined.plan, names, Projection(outputs, joined.after))
    aggregation = items.aggregation(
        joined.columns, joined.plan, asks_after=is_shared or joined.after is not None
    )
    passed = tuple(column(name) for name in joined.plan.columns)
    return JoinQueryPlan(
        query, joined.plan, joined.plan.columns, Projection(passed, joined.after), aggregation
    )


class _Items:
    """The SELECT list of a query over a join, with GROUP BY and HAVING."""

    def __init__(self, query: JoinQuery, user: Sequence[UserAggregate]) -> None:
        self._query, self._user, self._select = query, user, query.select
        trees = [*self._select.expressions]
        trees += [t for t in (self._select.args.get("having"),) if t is not None]
        calls = (n for tree in trees for n in tree.find_all(exp.Anonymous))
        self.aggregates = self._select.args.get("group") is not None or any(
            is_aggregate(n.name, user) for n in calls
        )
        if query.emits_early and not self.aggregates:
            raise QueryError(
                "EMIT EARLY is for joined rows that are aggregated: pairs are given at once",
                hint="leave out EMIT EARLY",
            )
        if query.above is not None and not self.aggregates:
            raise QueryError(
                "a window above a join holds joined rows that are aggregated",
                hint="aggregate them: SELECT count(*) AS n ..., or leave the window out",
            )

    def over(self, columns: JoinedColumns) -> list[exp.Expression]:
        """All expressions over joined columns."""
        if not self.aggregates:
            return [tree for tree, _ in self._qualified(columns)]
        rewritten = self._rewritten(columns)
        found: list[exp.Expression] = [*rewritten.expressions]
        parts = (rewritten.args.get(part) for part in ("group", "having"))
        found += [part for part in parts if part is not None]
        return found + [column(name) for name in self._window_columns(columns)]

    def outputs(self, columns: JoinedColumns) -> tuple[tuple[exp.Expression, ...], tuple[str, ...]]:
        """The expressions selected of joined rows, and their names."""
        items = [i for i in self._qualified(columns) if not _is_edge(*i, columns)]
        for _, name in items:
            if columns.has_windows and name.lower() in WINDOW_COLUMNS:
                raise QueryError(f"`{name}` is the name of a column that every answer has")
        return tuple(tree for tree, _ in items), tuple(name for _, name in items)

    def aggregation(
        self, columns: JoinedColumns, join: JoinPlan, *, asks_after: bool
    ) -> Aggregation:
        """The window query over joined rows; `asks_after`: not all of these are aggregated."""
        window, by = self._window(columns, join)
        select = self._rewritten(columns)
        query = read_select(
            select,
            text=self._query.text,
            streams=(PAIRS,),
            aliases=frozenset(),
            window=window,
            user=self._user,
        )
        query = replace(query, inner=(None,), early=self._query.early, keys=_short(query))
        if by != "positions":
            return Aggregation(query, by)
        plain = [k.expression.name for k in query.keys if isinstance(k.expression, exp.Column)]
        grouped = join.left_at in plain, join.right_at in plain
        if not any(grouped):
            raise QueryError(
                "nothing says when joined rows are complete, so they cannot be aggregated",
                hint="give them a window: count(*) [TUMBLING 1 minute WATTR l.ts], or group by "
                f"`{join.left_at}` or `{join.right_at}`",
            )
        fold = self._fold(query, join) if grouped[0] and not asks_after else None
        return Aggregation(query, by, grouped, fold)

    def _fold(self, query: Query, join: JoinPlan) -> Plan | None:
        """The plan of a fold over the partners of each left row; None if pairs have to be made."""
        if join.how not in ("inner", "left") or join.as_of or join.rest is not None:
            return None
        if not isinstance(join.partners, Band) or isinstance(join.left, JoinPlan):
            return None
        left, right = set(join.left.schema().names), set(join.right.schema().names)
        trees = [a for call in query.calls for a in (*call.arguments, call.where) if a is not None]
        of_keys = {c.name for k in query.keys for c in k.expression.find_all(exp.Column)}
        of_calls = {c.name for tree in trees for c in tree.find_all(exp.Column)}
        if not (of_keys <= left and of_calls <= right):
            return None
        schema = join.schema().append(pa.field(AT, pa.int64()))
        fold = plan(query, {PAIRS: schema}, self._user)
        return None if fold.value_sets else fold

    def _window(self, columns: JoinedColumns, join: JoinPlan) -> tuple[Window, By]:
        """The windows that joined rows are aggregated in, and what their position is."""
        above = self._query.above
        if above is None:
            by: By = "window" if join.windows is not None else "positions"
            return Window(Sliding(size=1, slide=1), "integer", AT), by
        if above.taken is not None:
            taken = {_position(path, columns) for path in above.paths}
            if taken != {join.left_at, join.right_at}:
                raise QueryError(
                    f"{above.taken} in WATTR is of the positions of both sides, "
                    f"`{join.left_at}` and `{join.right_at}`"
                )
            return window_of(_on(above, AT), None), above.taken
        if not above.paths:
            raise QueryError("the window above a join names the column it lies on",
                             hint=f"add WATTR {join.left_at}")  # fmt: skip
        name = _position(above.paths[0], columns)
        if name not in (join.left_at, join.right_at):
            raise QueryError(
                f"joined rows make no progress on `{name}`",
                hint=f"WATTR {join.left_at} or WATTR {join.right_at}",
            )
        return window_of(_on(above, name), None), "left" if name == join.left_at else "right"

    def _window_columns(self, columns: JoinedColumns) -> list[str]:
        above = self._query.above
        return [] if above is None else [_position(path, columns) for path in above.paths]

    def _qualified(self, columns: JoinedColumns) -> list[tuple[exp.Expression, str]]:
        """The SELECT list over joined columns; every item has a name that no other has."""
        items: list[tuple[str, str, exp.Expression]] = []
        for item in self._select.expressions:
            if isinstance(item, exp.Star) or (
                isinstance(item, exp.Column) and isinstance(item.this, exp.Star)
            ):
                items += _starred(item, columns, self._query.join)
            else:
                tree = columns.qualified(cast(exp.Expression, item.unalias()))
                written = name_of(item)
                whole = tree.name if isinstance(tree, exp.Column) and not item.alias else written
                items.append((written, whole, tree))
        short = [written.lower() for written, _, _ in items]
        return [
            (tree, whole if short.count(written.lower()) > 1 else written)
            for written, whole, tree in items
        ]

    def _rewritten(self, columns: JoinedColumns) -> exp.Select:
        """The SELECT over joined columns, without its WHERE, which the join has asked."""
        select: exp.Select = self._select.copy()
        aliased = frozenset(i.alias.lower() for i in select.expressions if i.alias)
        named = replace(columns, aliases=aliased)
        select.set("where", None)
        items = [exp.alias_(tree, name, quoted=True) for tree, name in self._qualified(columns)]
        select.set("expressions", items)
        for part in ("group", "having"):
            if select.args.get(part) is not None:
                select.set(part, named.qualified(select.args[part]))
        return select


def _position(path: Sequence[str], columns: JoinedColumns) -> str:
    """The joined column that a name after WATTR means."""
    parts = [exp.to_identifier(p, quoted=True) for p in path]
    tree = columns.qualified(exp.column(parts[-1], table=parts[0] if len(parts) > 1 else None))
    return tree.name


def _on(clause: Parts, name: str) -> Parts:
    return replace(clause, column=name, paths=(), taken=None, range_column=None)


def _starred(
    item: exp.Expression, columns: JoinedColumns, join: Join
) -> list[tuple[str, str, exp.Expression]]:
    """All columns of all sides, or of the one that is named; those of USING first, and once."""
    star = item if isinstance(item, exp.Star) else item.this
    if any(star.args.values()):
        raise error_in(item, "* EXCEPT and the like are not understood over a join")
    sides = columns.given
    found: list[tuple[str, str, exp.Expression]] = []
    merged: set[str] = set()
    if isinstance(item, exp.Column):
        side = columns.side_of(item.table)
        if side is None:
            raise error_in(item, f"no side of the join is called `{item.table}`")
        columns.require_given(side, item)
        sides = [side]
    else:
        for name, same in using_columns(join, columns).items():
            found.append((name, name, columns.using[name.lower()].copy()))
            merged |= same
    for side in sides:
        for field in columns.schemas[side]:
            name = columns.column(side, field.name)
            if name not in merged:
                found.append((field.name, name, column(name)))
    return found


def _is_edge(tree: exp.Expression, name: str, columns: JoinedColumns) -> bool:
    """True if the answers have this column anyway: an edge of the window by its own name."""
    return (
        columns.has_windows
        and isinstance(tree, exp.Column)
        and tree.name in WINDOW_COLUMNS
        and name.lower() == tree.name
    )


def _short(query: Query) -> tuple[Key, ...]:
    """Keys that are not selected, under the short names of their columns where these are free."""
    taken = [o.name.lower() for o in query.outputs] + [k.name.lower() for k in query.keys]
    short_names = [k.name.rpartition(".")[2].lower() for k in query.keys]
    keys = []
    for key in query.keys:
        tree = key.expression
        short = key.name.rpartition(".")[2]
        is_free = short.lower() not in taken and short_names.count(short.lower()) == 1
        if isinstance(tree, exp.Column) and tree.name == key.name and is_free:
            key = Key(short, tree)
        keys.append(key)
    return tuple(keys)
