"""Conditions that Arrow can tell by itself, as DuckDB would.

A filter that many queries share is asked of every row, and most filters compare a column with a
constant. Arrow does that in place, many times faster than a round trip through SQL. Only what
means exactly the same in both is taken: NaN is greater than every number, NULL is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from panes.arrays.columns import column_of
from panes.expressions.projection import Projection
from panes.stores.filter_regions import Threshold

Condition = Callable[[pa.Table], pa.Array]


Compared = Mapping[str, Set[Threshold]]
_EXACT_DIGITS = 15
_COMPARE: dict[type[exp.Expression], Callable[[pa.Array, pa.Scalar], pa.Array]] = {
    exp.EQ: pc.equal,
    exp.NEQ: pc.not_equal,
    exp.LT: pc.less,
    exp.LTE: pc.less_equal,
    exp.GT: lambda column, value: pc.invert(pc.less_equal(column, value)),
    exp.GTE: lambda column, value: pc.invert(pc.less(column, value)),
}
_ORDERED = (exp.LT, exp.LTE, exp.GT, exp.GTE)
_BELOW, _UP_TO = False, True
_PARTS: dict[type[exp.Expression], tuple[bool, ...]] = {
    exp.EQ: (_BELOW, _UP_TO),
    exp.NEQ: (_BELOW, _UP_TO),
    exp.LT: (_BELOW,),
    exp.GTE: (_BELOW,),
    exp.LTE: (_UP_TO,),
    exp.GT: (_UP_TO,),
}


def condition(tree: exp.Expression, schema: pa.Schema) -> Condition:
    """A function from a table to whether the condition holds of each row: true, false or NULL."""
    plain = _plain(tree, schema)
    if plain is not None:
        return plain
    projection = Projection((exp.cast(tree.copy(), "boolean"),), None)
    return lambda table: projection(table)[1][0]


def is_plain(tree: exp.Expression, schema: pa.Schema) -> bool:
    """True if Arrow alone can tell.

    >>> from sqlglot import parse_one
    >>> schema = pa.schema({"x": pa.float64()})
    >>> is_plain(parse_one("x > 3 AND x < 4.5"), schema), is_plain(parse_one("x % 2 = 0"), schema)
    (True, False)
    """
    return _plain(tree, schema) is not None


def compared(tree: exp.Expression, schema: pa.Schema) -> Compared | None:
    """Where a condition parts the values of each column; None if Arrow alone cannot tell.

    Rows that no bound parts, or that are NULL alike, agree on the condition.

    >>> from sqlglot import parse_one
    >>> compared(parse_one("x >= 3 OR x IS NULL"), pa.schema({"x": pa.float64()}))
    {'x': {Threshold(value=3.0, up_to=False)}}
    """
    if _plain(tree, schema) is None:
        return None
    found: dict[str, set[Threshold]] = {c.name: set() for c in tree.find_all(exp.Column)}
    for node in tree.find_all(*_COMPARE):
        value = _constant(node.args["expression"], _type(node.this, schema))
        assert value is not None
        found[node.this.name] |= {Threshold(value.as_py(), up_to) for up_to in _PARTS[type(node)]}
    return found


def _plain(tree: exp.Expression, schema: pa.Schema) -> Condition | None:
    if isinstance(tree, exp.Paren):
        return _plain(tree.this, schema)
    if isinstance(tree, exp.And | exp.Or):
        return _both(tree, schema)
    if isinstance(tree, exp.Not):
        inner = _plain(tree.this, schema)
        return None if inner is None else lambda table: pc.invert(inner(table))
    if isinstance(tree, exp.Is) and isinstance(tree.expression, exp.Null):
        return _is_null(tree.this, schema)
    if isinstance(tree, exp.Column) and _type(tree, schema) == pa.bool_():
        return lambda table: column_of(table, tree.name)
    return _comparison(tree, schema)


def _both(tree: exp.Expression, schema: pa.Schema) -> Condition | None:
    left, right = _plain(tree.this, schema), _plain(tree.args["expression"], schema)
    if left is None or right is None:
        return None
    join = pc.and_kleene if isinstance(tree, exp.And) else pc.or_kleene
    return lambda table: join(left(table), right(table))


def _is_null(tree: exp.Expression, schema: pa.Schema) -> Condition | None:
    if not isinstance(tree, exp.Column) or _type(tree, schema) is None:
        return None
    return lambda table: pc.is_null(column_of(table, tree.name))


def _comparison(tree: exp.Expression, schema: pa.Schema) -> Condition | None:
    compare = _COMPARE.get(type(tree))
    if compare is None or not isinstance(tree.this, exp.Column):
        return None
    value = _constant(tree.args["expression"], _type(tree.this, schema))
    if value is None or (pa.types.is_string(value.type) and isinstance(tree, _ORDERED)):
        return None
    name = tree.this.name
    return lambda table: compare(column_of(table, name), value)


def _constant(tree: exp.Expression, data_type: pa.DataType | None) -> pa.Scalar | None:
    """A constant in the type of the column, if the comparison is the same there."""
    sign = 1
    if isinstance(tree, exp.Neg):
        tree, sign = tree.this, -1
    if data_type is None or not isinstance(tree, exp.Literal):
        return None
    if tree.is_string:
        return pa.scalar(tree.name) if pa.types.is_string(data_type) and sign == 1 else None
    if sum(c.isdigit() for c in tree.name) > _EXACT_DIGITS or not _is_decimal(tree.name):
        return None
    if pa.types.is_float64(data_type):
        return pa.scalar(sign * float(tree.name))
    if pa.types.is_int64(data_type) and tree.is_int:
        return pa.scalar(sign * int(tree.name))
    return None


def _is_decimal(text: str) -> bool:
    return text.isascii() and text.replace(".", "", 1).isdigit()


def _type(column: exp.Expression, schema: pa.Schema) -> pa.DataType | None:
    """The type of a column of the schema; a field of one, as in ``s.x``, is none of its columns."""
    is_own = column.name in schema.names and not column.args.get("table")
    return schema.field(column.name).type if is_own else None
