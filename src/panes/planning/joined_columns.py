"""The columns of a join: which side a name means, and what joined columns are called.

Joined rows have the columns of all sides, each under the name of its side and its own, ``l.ts``. An
expression of the query is rewritten to these names once; from there on it is an expression over
one table like any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import pyarrow as pa
from sqlglot import exp

from panes.errors import QueryError, UnknownColumnError
from panes.expressions.field_names import field_names, name_fields
from panes.expressions.projection import find_column
from panes.language.join_query import Join, Side
from panes.language.places import error_in
from panes.language.query import WINDOW_COLUMNS


@dataclass(frozen=True, slots=True)
class JoinedColumns:
    """The columns of some sides, from left to right.

    `names` are the names that each side goes by. `using` are columns that several sides have and
    that mean the same in each, with the expression that gives their value. Names of `aliases` that
    no side has are left alone: they mean what the SELECT list says. Sides that are `hidden` are
    those whose columns a SEMI or ANTI JOIN does not give: a name can only mean another side.
    """

    names: tuple[tuple[str, ...], ...]
    schemas: tuple[pa.Schema, ...]
    using: Mapping[str, exp.Expression] = field(default_factory=dict)
    has_windows: bool = False
    aliases: frozenset[str] = frozenset()
    hidden: frozenset[int] = frozenset()

    def given_by(self, join: Side) -> JoinedColumns:
        """The columns as an expression over the rows of a join may name them."""
        hidden = set()
        while isinstance(join, Join):
            if join.how in ("semi", "anti"):
                hidden.add(len(join.sources) - 1)
            join = join.left
        return replace(self, hidden=frozenset(hidden))

    @property
    def given(self) -> list[int]:
        """The sides whose columns are there."""
        return [side for side in range(len(self.names)) if side not in self.hidden]

    def schema(self) -> pa.Schema:
        """All joined columns with their types."""
        return pa.schema(
            [
                (joined_name(names[0], f.name), f.type)
                for names, schema in zip(self.names, self.schemas, strict=True)
                for f in schema
            ]
        )

    def qualified(self, tree: exp.Expression) -> exp.Expression:
        """The expression over joined columns."""

        def name_columns(node: exp.Expression) -> exp.Expression:
            return self._joined(node) if isinstance(node, exp.Column) else node

        copy = _with_fields_named(tree.copy())
        return name_columns(copy) if isinstance(copy, exp.Column) else copy.transform(name_columns)

    def side_of(self, name: str) -> int | None:
        """The side that goes by a name: it is called so, or reads a stream so called.

        Where an alias of one side is the name of another's stream, the alias is meant.
        """
        for side, names in enumerate(self.names):
            if name.lower() == names[0].lower():
                return side
        others = [side for side, names in enumerate(self.names)
                  if name.lower() in (n.lower() for n in names)]  # fmt: skip
        if len(others) > 1:
            called = " or ".join(f"`{self.names[side][0]}`" for side in others)
            raise QueryError(
                f"`{name}` could be any of {len(others)} sides of the join", hint=f"say {called}"
            )
        return next(iter(others), None)

    def sides_of(self, tree: exp.Expression) -> set[int]:
        """The sides whose columns a rewritten expression reads."""
        owners = {
            joined_name(names[0], f.name): side
            for side, (names, schema) in enumerate(zip(self.names, self.schemas, strict=True))
            for f in schema
        }
        return {owners[c.name] for c in tree.find_all(exp.Column) if c.name in owners}

    def column(self, side: int, name: str) -> str:
        """The joined name of a column of one side, whatever the case it is written in."""
        found = find_column(name, self.schemas[side], stream=self.names[side][0])
        return joined_name(self.names[side][0], found)

    def has(self, side: int, name: str) -> bool:
        """True if a side has a column of a name, whatever the case it is written in."""
        return name.lower() in (n.lower() for n in self.schemas[side].names)

    def _joined(self, node: exp.Column) -> exp.Expression:
        path = [p.name for p in node.parts]
        if len(path) > 1 and (side := self.side_of(path[0])) is not None:
            self.require_given(side, node)
            return _inside(self.column(side, path[1]), path[2:])
        name = path[0]
        if len(path) == 1 and self.has_windows and name.lower() in WINDOW_COLUMNS:
            return exp.column(exp.to_identifier(name.lower(), quoted=True))
        if len(path) == 1 and name.lower() in self.using:
            return self.using[name.lower()].copy()
        holders = list(self._holders(name))
        if not holders and len(path) == 1 and name.lower() in self.aliases:
            return node
        if not holders and name in self.schema().names:
            owner, _, own = name.partition(".")
            raise error_in(
                node, f"`{name}` in one pair of backticks is one name", f"`{owner}`.`{own}`"
            )
        if not holders:
            there = replace(
                self,
                names=tuple(self.names[side] for side in self.given),
                schemas=tuple(self.schemas[side] for side in self.given),
            )
            raise UnknownColumnError(
                ".".join(path), stream=there._described(), columns=there.schema().names
            )
        if len(holders) > 1:
            sides = ", ".join(f"`{self.names[side][0]}.{name}`" for side in holders)
            raise error_in(node, f"`{name}` could be any of {sides}", "say which")
        return _inside(self.column(holders[0], name), path[1:])

    def require_given(self, side: int, node: exp.Expression) -> None:
        """Refuse a column of a side that is only asked whether it has partners."""
        if side in self.hidden:
            raise error_in(
                node,
                f"a SEMI or ANTI JOIN gives no columns of `{self.names[side][0]}`",
                "use LEFT JOIN for columns of both sides, or ask for it in ON",
            )

    def _holders(self, name: str) -> Iterator[int]:
        return (side for side in self.given if self.has(side, name))

    def _described(self) -> str:
        return " and ".join(names[0] for names in self.names)


def joined_name(side: str, column: str) -> str:
    """The name of a side's column among joined columns."""
    return f"{side}.{column}"


def column(name: str) -> exp.Column:
    """A joined column as an expression."""
    return exp.column(exp.to_identifier(name, quoted=True))


def of_side(tree: exp.Expression, side: str) -> exp.Expression:
    """An expression over joined columns of one side, as one over the side's own columns."""
    prefix = joined_name(side, "")

    def shorten(node: exp.Expression) -> exp.Expression:
        if isinstance(node, exp.Column):
            return column(node.name.removeprefix(prefix))
        return node

    copy = tree.copy()
    return shorten(copy) if isinstance(copy, exp.Column) else copy.transform(shorten)


def conjuncts(tree: exp.Expression | None) -> Iterator[exp.Expression]:
    """The conditions that all have to hold."""
    if tree is None:
        return
    if isinstance(tree, exp.Paren):
        yield from conjuncts(tree.this)
    elif isinstance(tree, exp.And):
        for part in operands(tree):
            yield from conjuncts(part)
    elif isinstance(tree, exp.Between) and not tree.args.get("symmetric"):
        yield exp.GTE(this=tree.this.copy(), expression=tree.args["low"].copy())
        yield exp.LTE(this=tree.this.copy(), expression=tree.args["high"].copy())
    else:
        yield tree


def all_of(conditions: Sequence[exp.Expression]) -> exp.Expression | None:
    """One condition that holds where all of them do; None if there is nothing to ask."""
    if not conditions:
        return None
    found = conditions[0].copy()
    for condition in conditions[1:]:
        found = exp.And(this=_enclosed(found), expression=_enclosed(condition.copy()))
    return found


def operands(tree: exp.Binary) -> tuple[exp.Expression, exp.Expression]:
    """The expressions left and right of an operator."""
    return cast(exp.Expression, tree.left), cast(exp.Expression, tree.right)


def _with_fields_named(tree: exp.Expression) -> exp.Expression:
    """The expression, in which fields made of columns have their own names, not those of sides."""
    for node in list(tree.find_all(exp.Anonymous, exp.Tuple)):
        name_fields(node, field_names(node))
    return tree


def _enclosed(tree: exp.Expression) -> exp.Expression:
    return exp.Paren(this=tree) if isinstance(tree, exp.Or) else tree


def _inside(name: str, fields: Sequence[str]) -> exp.Expression:
    """A column, or a field inside it."""
    tree: exp.Expression = column(name)
    for each in fields:
        tree = exp.Dot(this=tree, expression=exp.to_identifier(each, quoted=True))
    return tree
