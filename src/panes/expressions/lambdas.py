"""Functions that take functions: `filter`, `exists`, `aggregate`, ... over arrays and maps.

A function's body is translated like any expression, with its parameters as further columns. NULL is
an element like others; positions count from zero. Only those are here whose result is no longer
than what they are given (`panes.language.growth`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import pyarrow as pa
from sqlglot import exp

from panes.expressions import types as t
from panes.expressions.forms_collections import map_argument
from panes.expressions.rules import coerced
from panes.expressions.typed import Typed, refuse


class Scope(Protocol):
    """What translates an expression, and what does so with parameters beside its columns."""

    def of(self, node: exp.Expr) -> Typed: ...

    def within(self, names: dict[str, Typed]) -> Scope: ...

    def fresh(self) -> str: ...


def _body(scope: Scope, node: exp.Expr, values: Sequence[Typed]) -> Typed:
    """A function's body over values; it may take fewer than there are."""
    if not isinstance(node, exp.Lambda) or not 1 <= len(node.expressions) <= len(values):
        raise refuse(f"`{node.sql(dialect='spark')}` is not a function of these values")
    names = [parameter.name.lower() for parameter in node.expressions]
    return scope.within(dict(zip(names, values, strict=False))).of(node.this)


def _array(scope: Scope, node: exp.Expr) -> Typed:
    value = scope.of(node)
    if not t.is_array(value.type):
        raise refuse(f"`{node.sql(dialect='spark')}` is {value.name}, not an array")
    return value


def _each(scope: Scope, array: Typed, function: exp.Expr) -> tuple[str, Typed]:
    """The names that DuckDB gives an element and its position, and the body over them."""
    element, at = scope.fresh(), scope.fresh()
    values = [Typed(element, array.type.value_type), Typed(f"CAST({at} - 1 AS INTEGER)", t.INT)]
    body = _body(scope, function, values)
    takes_both = len(function.expressions) == 2
    return f"{element}, {at}" if takes_both else element, body


def _truth(value: Typed) -> str:
    found = coerced(value, t.BOOLEAN)
    if found is None:
        raise refuse("the function gives no condition")
    return found.text


def _filter(scope: Scope, nodes: list[exp.Expr]) -> Typed:
    array = _array(scope, nodes[0])
    names, body = _each(scope, array, nodes[1])
    return Typed(f"list_filter({array.text}, lambda {names}: {_truth(body)})", array.type)


def _some(word: str, otherwise: str) -> Callable[[Scope, list[exp.Expr]], Typed]:
    def build(scope: Scope, nodes: list[exp.Expr]) -> Typed:
        array = _array(scope, nodes[0])
        names, body = _each(scope, array, nodes[1])
        if "," in names:
            raise refuse("the function takes an element alone")
        found = f"list_transform({array.text}, lambda {names}: {_truth(body)})"
        return Typed(
            f"CASE WHEN {array.text} IS NULL THEN NULL WHEN list_contains({found}, {word}) "
            f"THEN {word} WHEN len({found}) <> list_count({found}) THEN NULL "
            f"ELSE {otherwise} END",
            t.BOOLEAN,
        )

    return build


def _aggregate(scope: Scope, nodes: list[exp.Expr]) -> Typed:
    array, start = _array(scope, nodes[0]), scope.of(nodes[1])
    total, element = scope.fresh(), scope.fresh()
    kind = array.type.value_type
    own = f"CAST({element} AS {t.duckdb_name(kind)})"  # a list is reduced in the type of its start
    body = _body(scope, nodes[2], [Typed(total, start.type), Typed(own, kind)])
    if body.type != start.type or not _holds(start.type, kind):
        raise refuse("`aggregate` from one type to another is not translated")
    wide = f"CAST({array.text} AS {t.duckdb_name(pa.list_(start.type))})"
    text = f"list_reduce({wide}, lambda {total}, {element}: {body.text}, {start.text})"
    if len(nodes) == 3:
        return Typed(text, start.type)
    name = scope.fresh()
    finished = _body(scope, nodes[3], [Typed(name, start.type)])
    last = f"list_transform([{text}], lambda {name}: {finished.text})[1]"
    return Typed(f"CASE WHEN {array.text} IS NOT NULL THEN {last} END", finished.type)


def _holds(wide: pa.DataType, kind: pa.DataType) -> bool:
    """True if every value of a type comes back from the wider one as it was."""
    if wide == kind or kind == t.VOID:
        return True
    if t.is_integer(wide):
        return t.is_integer(kind) and t.wider(wide, kind) == wide
    return wide == t.DOUBLE and kind in (t.TINYINT, t.SMALLINT, t.INT, t.FLOAT)


def _entries(scope: Scope, node: exp.Expr) -> tuple[Typed, str, list[Typed]]:
    value = map_argument("this function", scope.of(node))
    name = scope.fresh()
    return value, name, [Typed(f"{name}.key", value.type.key_type),
                         Typed(f"{name}.value", value.type.item_type)]  # fmt: skip


def _map_filter(scope: Scope, nodes: list[exp.Expr]) -> Typed:
    value, name, values = _entries(scope, nodes[0])
    body = _truth(_body(scope, nodes[1], values))
    kept = f"list_filter(map_entries({value.text}), lambda {name}: {body})"
    return Typed(f"map_from_entries({kept})", value.type)


FUNCTIONS: dict[str, tuple[tuple[int, ...], Callable[[Scope, list[exp.Expr]], Typed]]] = {
    "filter": ((2,), _filter), "map_filter": ((2,), _map_filter),
    "exists": ((2,), _some("true", "false")), "forall": ((2,), _some("false", "true")),
    "aggregate": ((3, 4), _aggregate), "reduce": ((3, 4), _aggregate),
}  # fmt: skip
