"""The columns of answers that promises move with, as far as the texts of queries tell.

What reads the answers of another query closes its windows, and forgets its rows, by what is
promised of these columns. Nothing is promised of any other one, so windows over it would never
close, and a join by it would keep every row for ever. Both are refused when the query is described,
unless its streams are tables.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from sqlglot import exp

from panes.errors import QueryError
from panes.language.join_query import Join, JoinQuery, Source
from panes.language.query import DEFINING, WINDOW_COLUMNS, WINDOW_TIME, Inner, Query
from panes.language.query_graph import Part, QueryGraph
from panes.language.tokens import error_at
from panes.nodes.select import keeps_order
from panes.windows.spec import Landmark, PerRow, Sliding

_COMPARED = (exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.EQ)


def require_promises(graph: QueryGraph) -> None:
    """Refuse windows and joins of answers by columns that nothing is promised of."""
    known: dict[str, frozenset[str] | None] = {}
    for part in graph.parts:
        read = graph.everywhere(known)
        if isinstance(part.query, JoinQuery):
            _require_of_join(part, part.query, read)
            known[part.name] = _of_join(part.query)
        else:
            _require_of_windows(part, part.query, read)
            known[part.name] = promising_columns(part.query)


def require_promise(column: str, promised: Collection[str], part: Part | None = None) -> None:
    """Refuse windows over a column of answers, those of a part, if nothing is promised of it."""
    if column in promised:
        return
    said = f"the answers of the query inside promise nothing of `{column}`"
    better, place = _best(promised), None if part is None else part.place
    if better is None:
        raise error_at(
            place,
            f"{said}, nor of any other column, so windows over them would never close",
            "select a position there, too, and window over it; windows over tables may lie on any "
            "column: panes.sql",
        )
    raise error_at(place, f"{said}, so windows over it would never close", f"WATTR {better}")


def column_within(inner: Inner | None, position: str) -> str | None:
    """The column below a SELECT that promises reach a position of its rows from.

    None if the SELECT has no such position, or could put rows in another order by it.
    """
    if inner is None or inner.columns is None:
        return position.lower()
    for output in inner.columns:
        if output.name.lower() == position.lower():
            below = output.expression.find(exp.Column)
            if below is not None and keeps_order(output.expression, below.name):
                return below.name.lower()
    return None


def placed_by(inner: Inner | None, position: str | None) -> str | None:
    """What places rows below a SELECT: a column, or the expression that positions are made by."""
    made = {} if inner is None else {o.name.lower(): o.expression for o in inner.columns or ()}
    tree = made.get((position or "").lower())
    if tree is None:
        return position
    return tree.name if isinstance(tree, exp.Column) else tree.sql(dialect="spark")


def promising_columns(query: Query) -> frozenset[str]:
    """The columns that promises of the answers of windows move with."""
    window = query.window
    if window is None:
        return frozenset()
    if isinstance(window.spec, PerRow):
        position = (window.column or "").lower()
        placed = {f"{DEFINING}{i}" for i, c in enumerate(query.defining) if _name(c) == position}
        return frozenset(o.name.lower() for o in query.outputs if _name(o.expression) in placed)
    is_ranked = window.measure == "rows" and window.column is not None
    if is_ranked or not isinstance(window.spec, Sliding | Landmark):
        return frozenset()
    start, end = WINDOW_COLUMNS
    edges = {WINDOW_TIME, end}
    return frozenset(edges | {start} if isinstance(window.spec, Sliding) else edges)


def _name(tree: exp.Expression) -> str:
    """What a column is called, without regard to case; nothing if it is no plain column."""
    if not isinstance(tree, exp.Column):
        return ""
    return tree.name if tree.name.startswith(DEFINING) else tree.name.lower()


def _of_join(query: JoinQuery) -> frozenset[str] | None:
    """The same of a join; None if only the columns of its streams tell."""
    if query.select.is_star:
        return None
    placed = {name for source in query.join.sources for name in _positions(query, source)}
    items = ((item.alias_or_name, item.unalias()) for item in query.select.expressions)
    named = {
        n.lower() for n, tree in items if isinstance(tree, exp.Expression) and _name(tree) in placed
    }
    has_windows = query.above is not None or query.join.clause is not None
    return frozenset(named | {WINDOW_TIME, *WINDOW_COLUMNS} if has_windows else named)


def _joins(join: Join) -> Iterator[Join]:
    yield join
    if isinstance(join.left, Join):
        yield from _joins(join.left)


def _positions(query: JoinQuery, source: Source) -> set[str]:
    """The columns of a side that its rows may be placed by: of its clause, or compared in ON."""
    clauses = [j.clause for j in _joins(query.join)] + [source.clause]
    named = {path[-1].lower() for c in clauses for path in (c.paths if c is not None else ())}
    if named:
        return named
    asked = [j.condition for j in _joins(query.join)] + [query.select.args.get("where")]
    return {
        column.name.lower()
        for condition in asked
        if condition is not None
        for comparison in condition.find_all(*_COMPARED)
        for column in comparison.find_all(exp.Column)
        if not column.table or column.table.lower() in {name.lower() for name in source.names}
    }


def _require_of_windows(
    part: Part, query: Query, known: Mapping[str, frozenset[str] | None]
) -> None:
    if query.window is None or query.window.column is None:
        return
    position = query.window.column
    for name, inner in zip(query.streams, query.inner, strict=True):
        promised = known.get(name)
        if name not in known or promised is None:
            continue
        column = column_within(inner, position)
        if column is None:
            raise _out_of_reach(part, position, inner, promised)
        require_promise(column, promised, part)


def _out_of_reach(
    part: Part, position: str, inner: Inner | None, promised: frozenset[str]
) -> QueryError:
    """Why no promise reaches a position through the SELECT around the answers."""
    assert inner is not None
    tree = {o.name.lower(): o.expression for o in inner.columns or ()}.get(position.lower())
    why = f"the SELECT in FROM does not give `{position}`, on which the window lies"
    if tree is not None:
        said = tree.sql(dialect="spark", identify=False).replace("`", "")
        why = (
            f"`{said}` AS {position} could put answers in another order, so nothing that is "
            "promised of them holds for it"
        )
    better = _best(promised)
    return error_at(part.place, why, better and f"SELECT {better}, ... there, and WATTR {better}")


def _require_of_join(
    part: Part, query: JoinQuery, known: Mapping[str, frozenset[str] | None]
) -> None:
    for source in query.join.sources:
        placed = _positions(query, source)
        for name, inner in zip(source.streams, source.inner, strict=True):
            promised = known.get(name)
            if name not in known or promised is None:
                continue
            if promised.isdisjoint(column_within(inner, at) for at in placed):
                raise _never_forgotten(part, source, sorted(placed), promised)


def _never_forgotten(
    part: Part, source: Source, placed: list[str], promised: frozenset[str]
) -> QueryError:
    """Why a join would keep all answers of one side, and what to join by."""
    by = ", ".join(f"`{name}`" for name in placed) or "no position"
    better = _best(promised)
    said = f"the answers called `{source.name}` are joined by {by}"
    if better is None:
        return error_at(
            part.place,
            f"{said}, and they promise nothing of any column: all would be kept for ever",
            "tables may be joined so: panes.sql",
        )
    return error_at(
        part.place,
        f"{said}, of which they promise nothing: all would be kept for ever",
        f"ON ... AND a.{better} = b.{better}, or a band over it",
    )


def _best(promised: Collection[str]) -> str | None:
    return WINDOW_TIME if WINDOW_TIME in promised else min(promised, default=None)
