"""The SELECT itself: keys, aggregates and outputs pulled apart.

Every aggregate call is taken out of the expression around it and numbered; what remains is a
scalar expression over keys and aggregates, which any engine can evaluate on the answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from panes.aggregates.catalog import is_aggregate
from panes.aggregates.custom import UserAggregate
from panes.axis import written_whole
from panes.errors import QueryError
from panes.expressions.field_names import field_names, name_fields
from panes.language.aggregate_call import read_call
from panes.language.depth import require_shallow
from panes.language.expressions import require_known
from panes.language.places import error_in
from panes.language.query import (
    AGGREGATE,
    DEFINING,
    KEY,
    WINDOW_COLUMNS,
    AggregateCall,
    Key,
    Output,
    Query,
    Window,
)
from panes.windows.spec import PerRow

_UNDERSTOOD = {"expressions", "from", "from_", "where", "group", "having", "kind", "hint"}


def read_select(
    select: exp.Select,
    *,
    text: str,
    streams: tuple[str, ...],
    aliases: frozenset[str],
    window: Window | None,
    user: Sequence[UserAggregate],
) -> Query:
    """The query a SELECT asks, given what was read before it.

    `aliases` are the names its streams go by, besides their own.
    """
    names = frozenset(n.lower() for n in (*streams, *aliases))
    refuse_the_rest(select)
    require_known(select, user)
    per_row = window is not None and isinstance(window.spec, PerRow)
    partition = () if window is None else window.partition
    group = select.args.get("group")
    if per_row and group is not None:
        raise error_in(
            group,
            "a per-row window gives one answer per row and has no groups",
            "partition the stream instead: [RANGE ... SLIDE 1 ROW PA item]",
        )
    keys = _Keys.of(select, () if per_row else partition, names)
    called = {item.alias.lower(): item.this for item in select.expressions if item.alias}
    taken = _Taken(user=user, keys=keys, per_row=per_row, called=called)
    outputs = tuple(
        Output(name_of(item), taken.rewrite(unqualified(item.unalias(), names)))
        for item in select.expressions
    )
    where = select.args.get("where")
    having = select.args.get("having")
    condition = None if having is None else taken.rewrite(_inlined(having.this, select, names))
    if not per_row:
        _refuse_window_names(keys.named(outputs), outputs)
    return Query(
        text=text,
        streams=streams,
        window=window,
        where=None
        if where is None
        else require_scalar(unqualified(where.this, names), "WHERE", user),
        keys=keys.named(outputs),
        key_order=keys.order(outputs),
        calls=tuple(taken.calls),
        outputs=outputs if per_row else _not_given(outputs),
        having=condition,
        defining=tuple(taken.defining),
    )


@dataclass(slots=True)
class _Keys:
    """The grouping expressions, in order: PA columns, then GROUP BY; each once."""

    expressions: list[exp.Expression]

    @classmethod
    def of(cls, select: exp.Select, partition: tuple[str, ...], names: frozenset[str]) -> _Keys:
        found: list[exp.Expression] = [
            exp.column(exp.to_identifier(p, quoted=True)) for p in partition
        ]
        group = select.args.get("group")
        if group is not None:
            for part in ("cube", "rollup", "grouping_sets", "all", "totals"):
                if group.args.get(part):
                    raise error_in(
                        group, "GROUP BY takes plain expressions here", "name them: GROUP BY item"
                    )
            found += [_resolve_key(e, select, names) for e in group.expressions]
            for written, tree in zip(group.expressions, found[len(partition) :], strict=True):
                _refuse_aggregate(written, tree)
        return cls([e for i, e in enumerate(found) if not any(_same(e, f) for f in found[:i])])

    def index(self, node: exp.Expression) -> int | None:
        for i, key in enumerate(self.expressions):
            if _same(key, node):
                return i
        return None

    def named(self, outputs: Sequence[Output]) -> tuple[Key, ...]:
        """Keys under the names they were selected with."""
        selected = self._selected(outputs)
        return tuple(Key(selected.get(i, name_of(e)), e) for i, e in enumerate(self.expressions))

    def order(self, outputs: Sequence[Output]) -> tuple[int, ...]:
        """Selected keys in the SELECT's order, then the others."""
        selected = self._selected(outputs)
        return (*selected, *(i for i in range(len(self.expressions)) if i not in selected))

    def _selected(self, outputs: Sequence[Output]) -> dict[int, str]:
        selected: dict[int, str] = {}
        for output in outputs:
            if _is_key(output):
                selected.setdefault(int(output.expression.name[len(KEY) :]), output.name)
        return selected


@dataclass(slots=True)
class _Taken:
    """Aggregate calls taken out of expressions, each one once."""

    user: Sequence[UserAggregate]
    keys: _Keys
    per_row: bool
    called: Mapping[str, exp.Expression]
    calls: list[AggregateCall] = field(default_factory=list)
    defining: list[exp.Expression] = field(default_factory=list)

    def rewrite(self, tree: exp.Expression) -> exp.Expression:
        """The expression with keys, aggregates and defining columns replaced by their columns."""
        if isinstance(tree, exp.Star):
            raise error_in(tree, "SELECT * has no meaning over a window", "name the aggregates")
        key = self.keys.index(tree)
        if key is not None:
            return exp.column(f"{KEY}{key}")
        call = self._call(tree)
        if call is not None:
            if call not in self.calls:
                self.calls.append(call)
            return exp.column(f"{AGGREGATE}{self.calls.index(call)}")
        if isinstance(tree, exp.Column):
            return self._bare(tree)
        copy = tree.copy()
        for child in list(copy.iter_expressions()):
            if isinstance(child, exp.Expression) and not isinstance(
                child, exp.Identifier | exp.DataType
            ):
                child.replace(self.rewrite(child))
        name_fields(copy, field_names(tree))
        return copy

    def _bare(self, column: exp.Column) -> exp.Expression:
        if self.per_row:  # answers name no windows, so any column is the row's own
            if column not in self.defining:
                self.defining.append(column.copy())
            return exp.column(f"{DEFINING}{self.defining.index(column)}")
        if column.name.lower() in WINDOW_COLUMNS:
            return exp.column(column.name.lower())
        meant = self.called.get(column.name.lower())
        raise error_in(
            column,
            f"`{column.name}` is neither grouped nor aggregated",
            f"add it to GROUP BY, or aggregate it: max({column.name})"
            if meant is None
            else f"beside what is called {column.name}, write what it is: {meant.sql('spark')}",
        )

    def _call(self, tree: exp.Expression) -> AggregateCall | None:
        """The aggregate call that a tree is, or None; its arguments are of single rows."""
        call = read_call(tree, self.user)
        if call is not None:
            for part in (*call.arguments, *([call.where] if call.where is not None else [])):
                require_scalar(part, f"the argument of {call.name}", self.user)
        return call


def require_scalar(
    tree: exp.Expression, where: str, user: Sequence[UserAggregate]
) -> exp.Expression:
    """A row-level expression, or a refusal if it aggregates."""
    for node in tree.walk():
        if isinstance(node, exp.Anonymous) and is_aggregate(node.name, user):
            hint = "filter answers with HAVING" if where == "WHERE" else None
            raise error_in(node, f"{where} cannot hold an aggregate, found {_sql(node)}", hint)
    return tree


def refuse_the_rest(select: exp.Select) -> None:
    """Refuse the parts of a SELECT that mean nothing here."""
    for name, value in select.args.items():
        if value and name not in _UNDERSTOOD:
            word = {"distinct": "SELECT DISTINCT", "order": "ORDER BY", "with_": "WITH"}.get(
                name, name.rstrip("_").upper()
            )
            hint = "answers come ordered by window and key" if name == "order" else None
            node = value[0] if isinstance(value, list) else value
            raise error_in(node, f"{word} is not understood in a window query", hint)


def _resolve_key(tree: exp.Expression, select: exp.Select, names: frozenset[str]) -> exp.Expression:
    """A GROUP BY item, seen through ordinals and aliases of the SELECT list.

    A column of the stream comes before an alias: ``lower(item) AS item`` groups by `item` itself.
    """
    if isinstance(tree, exp.Literal) and not tree.is_string:
        position = tree.this
        number = written_whole(position)
        if number is None or not 1 <= number <= len(select.expressions):
            raise error_in(tree, f"GROUP BY {position} names no selected column")
        return unqualified(select.expressions[number - 1].unalias(), names)
    named = _inlined(tree, select, names)
    aggregates = any(isinstance(n, exp.Anonymous) and is_aggregate(n.name) for n in named.walk())
    is_own = isinstance(tree, exp.Column) and any(
        not c.table and c.name.lower() == tree.name.lower() for c in named.find_all(exp.Column)
    )
    return unqualified(tree, names) if aggregates or is_own else named


def _refuse_aggregate(written: exp.Expression, tree: exp.Expression) -> None:
    """Refuse an aggregate as a key: it is known of a group, and not of a row."""
    for node in tree.walk():
        if isinstance(node, exp.Anonymous) and is_aggregate(node.name):
            raise error_in(
                written,
                f"rows are told apart by their own values, and {node.sql('spark')} is an aggregate",
                "leave out DISTINCT, or this item of GROUP BY: a window has one answer per group",
            )


def _inlined(tree: exp.Expression, select: exp.Select, names: frozenset[str]) -> exp.Expression:
    """The expression with aliases of the SELECT list replaced by what they stand for.

    Inside an aggregate a name is always a column of the stream.
    """
    meant = {i.alias.lower(): i.unalias() for i in select.expressions if isinstance(i, exp.Alias)}

    def inline(node: exp.Expression) -> exp.Expression:
        if not isinstance(node, exp.Column) or node.table or node.name.lower() not in meant:
            return node
        call = node.find_ancestor(exp.Anonymous)
        if call is not None and is_aggregate(call.name):
            return node
        target = meant[node.name.lower()]
        return node if _same(target, node) else exp.Paren(this=target.copy())

    inlined = unqualified(tree.copy().transform(inline).unnest(), names)
    require_shallow(inlined)
    return inlined


def unqualified(tree: exp.Expr, names: frozenset[str]) -> exp.Expression:
    """Columns without the name of their stream: there is only one. Other dots are left alone."""

    def strip(node: exp.Expression) -> exp.Expression:
        if isinstance(node, exp.Column) and node.table and node.parts[0].name.lower() in names:
            inside = (part.copy() for part in reversed(node.parts[1:]))
            return exp.Column(**dict(zip(("this", "table", "db"), inside, strict=False)))
        return node

    return tree.copy().transform(strip)


def _same(a: exp.Expr, b: exp.Expr) -> bool:
    """True if two expressions say the same; names in any case, literals as written."""
    return bool(_folded(a) == _folded(b))


def _folded(tree: exp.Expr) -> exp.Expr:
    def fold(node: exp.Expression) -> exp.Expression:
        if isinstance(node, exp.Identifier):
            return exp.to_identifier(node.name.lower(), quoted=True)
        if isinstance(node, exp.Anonymous):
            node.set("this", node.name.lower())
        return node

    return tree.copy().transform(fold)


def _not_given(outputs: Sequence[Output]) -> tuple[Output, ...]:
    """Outputs that the answers would not have anyway; a key selected again is an output."""
    seen: set[str] = set()
    found = []
    for output in outputs:
        name = output.expression.name
        if _is_given(output) and name not in seen:
            seen.add(name)
        else:
            found.append(output)
    return tuple(found)


def _refuse_window_names(keys: Sequence[Key], outputs: Sequence[Output]) -> None:
    grouped = (
        "answers are for each window already, so only keys are grouped by: GROUP BY item; a column "
        "of the stream with that name needs another"
    )
    taken = [(k.name, grouped) for k in keys]
    taken += [(o.name, f"give it another: AS my_{o.name}") for o in outputs if not _is_given(o)]
    for name, hint in taken:
        if name.lower() in WINDOW_COLUMNS:
            raise QueryError(f"`{name}` is the name of a column that every answer has", hint=hint)


def _is_key(output: Output) -> bool:
    tree = output.expression
    return isinstance(tree, exp.Column) and tree.name.startswith(KEY)


def _is_given(output: Output) -> bool:
    """True if the answers have this column anyway: a key, or a window column by its own name."""
    return _is_key(output) or (
        output.name.lower() in WINDOW_COLUMNS and output.expression.name == output.name.lower()
    )


def name_of(item: exp.Expression) -> str:
    """The name of a selected expression, unless something else of that name is selected."""
    return item.alias or (item.name if isinstance(item, exp.Column) else _sql(item))


def _sql(tree: exp.Expr) -> str:
    text: str = tree.sql(dialect="spark", normalize_functions=False)
    return text
