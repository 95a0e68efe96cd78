"""Expressions as Spark is asked them: text is never read as a moment by the clock.

Spark reads `now` and its like where text is a constant, and `12:30` everywhere as today's. What is
written is refused; a value is changed so that Spark cannot read it: an error, or NULL where the
cast is tried, as in one process.
"""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from panes.expressions.clock import HINT, IN_JAVA, REASON, reads_clock
from panes.expressions.table import RULES
from panes.expressions.types import (
    BINARY,
    DATE,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    as_spark,
    parse_type,
)
from panes.language.places import error_in

_MOMENTS = (DATE, TIMESTAMP, TIMESTAMP_NTZ)
_TEMPORAL = exp.DataType.TEMPORAL_TYPES
_TAKING_MOMENTS = """
    add_months date date_format date_part date_trunc dateadd datediff datepart extract
    from_utc_timestamp last_day months_between next_day sequence time_bucket timestamp
    timestamp_ltz timestamp_ntz timestampadd timestampdiff timediff to_char to_unix_timestamp
    to_utc_timestamp to_varchar trunc unix_nanos unix_timestamp
"""
_TAKING_A_PATTERN = """
    to_date to_timestamp to_timestamp_ltz to_timestamp_ntz try_to_date try_to_timestamp
"""
_OF_ONE_TYPE = """
    array array_append array_contains array_insert array_position array_prepend array_remove
    coalesce decode equal_null greatest if ifnull least map nullif nvl nvl2
"""
_READERS = {*_TAKING_MOMENTS.split()} | {
    name for name, rules in RULES.items()
    for rule in rules if {p.kind for p in rule.parameters} & {"date", "timestamp", "moment"}
}  # fmt: skip
"""Functions that read text among their arguments as a moment."""
_READERS_OF_ONE = {*_TAKING_A_PATTERN.split()}
"""The same, unless there is a pattern for it."""
_ALIKE = {*_OF_ONE_TYPE.split()}
"""Functions that bring their arguments to one type."""
_NODES_ALIKE = (
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ,
    exp.Between, exp.In, exp.Case, exp.If, exp.Sub,
)  # fmt: skip
_PARSERS = ("from_json", "from_csv")


def without_clock(tree: exp.Expression) -> exp.Expression:
    """An expression in which Spark reads no text by the clock."""
    guarded = tree.copy()
    for node in [*guarded.walk()][::-1]:
        for operand in _read_as_moments(node):
            _guard(operand, is_tried=bool(node.args.get("safe")))
        if isinstance(node, exp.Cast) and node.to.expressions:
            _guard_elements(node)
    return guarded


def _read_as_moments(node: exp.Expr) -> list[exp.Expr]:
    """The operands of a node that Spark reads as moments if they are text."""
    if isinstance(node, exp.Cast):
        return [node.this] if node.to.this in _TEMPORAL else []
    if isinstance(node, exp.Extract):
        return [node.expression]
    operands = [part for part in node.iter_expressions() if not isinstance(part, exp.If)]
    if isinstance(node, exp.Case):
        operands += [i.args[n] for i in node.args["ifs"] for n in ("this", "true")]
    if isinstance(node, exp.Anonymous):
        name = str(node.this).lower()
        _require_no_moments(node, name)
        if name in _READERS or (name in _READERS_OF_ONE and len(operands) == 1):
            return operands
        is_alike = name in _ALIKE
    else:
        is_alike = isinstance(node, _NODES_ALIKE)
    has_moment = is_alike and any(_kind(operand) in _MOMENTS for operand in operands)
    return operands if has_moment else []


def _guard_elements(node: exp.Cast) -> None:
    """The same for what is in an array."""
    if not any(part.this in _TEMPORAL for part in node.to.find_all(exp.DataType)):
        return
    element = node.to.expressions[0]
    is_plain = isinstance(element, exp.DataType) and element.this in _TEMPORAL
    if node.to.this != exp.DataType.Type.ARRAY or not is_plain:
        said = f"a cast to {node.to.sql(dialect='spark').lower()} may read text by the clock, and"
        raise error_in(node, f"{said} is refused", "cast what is inside, each to its type")
    node.this.replace(_unless_clock(node.this.copy(), is_tried=bool(node.args.get("safe"))))


def _guard(operand: exp.Expr, *, is_tried: bool) -> None:
    """Change an operand so that what it has of the clock cannot be read."""
    if isinstance(operand, exp.Literal | exp.RawString):
        if operand.is_string and reads_clock(operand.name):
            raise error_in(operand, f"`'{operand.name}'` as a moment {REASON}", HINT)
        return
    kind = _kind(operand)
    if kind == STRING:
        text = exp.Anonymous(this="regexp_replace", expressions=[
            operand.copy(), exp.Literal.string(IN_JAVA), exp.Literal.string("by the clock: $0"),
        ])  # fmt: skip
        operand.replace(text)
    elif kind is None:
        one = exp.Anonymous(this="array", expressions=[operand.copy()])
        first = exp.Literal.number(0)
        operand.replace(
            exp.Bracket(this=_unless_clock(one, is_tried=is_tried), expressions=[first])
        )


def _unless_clock(array: exp.Expr, *, is_tried: bool) -> exp.Expr:
    """An array of any type, worked out once; text of the clock in it is an error, or NULL."""
    text = exp.cast(exp.column("v"), "string")
    is_clock = exp.RegexpLike(this=text, expression=exp.Literal.string(IN_JAVA))
    said = exp.Literal.string(f"text is read as a moment, which {REASON}")
    error = exp.Null() if is_tried else exp.Anonymous(this="raise_error", expressions=[said])
    body = exp.Case().when(is_clock, error).else_(exp.column("v"))
    each = exp.Lambda(this=body, expressions=[exp.to_identifier("v")])
    return exp.Anonymous(this="transform", expressions=[array, each])


def _kind(node: exp.Expr) -> pa.DataType | None:
    """The type of an expression as far as it matters; None: it could be any."""
    if isinstance(node, exp.Column):
        found = node.meta.get("arrow")
        return None if found is None else as_spark(found) or BINARY
    if isinstance(node, exp.Literal | exp.RawString):
        return STRING if node.is_string else BINARY
    if isinstance(node, exp.Paren):
        return _kind(node.this)
    if isinstance(node, exp.Cast):
        return parse_type(node.to.sql(dialect="spark").lower())
    if isinstance(node, exp.DPipe | exp.Trim | exp.Substring | exp.Overlay):
        return STRING
    if isinstance(node, exp.Add | exp.Sub):
        kinds = [_kind(node.left), _kind(node.right)]
        return next((k for k in kinds if k in _MOMENTS), BINARY)
    if isinstance(node, exp.Case | exp.If):
        branches = node.args["ifs"] if isinstance(node, exp.Case) else [node]
        others = [node.args.get("default"), node.args.get("false")]
        return _of_all([*(b.args["true"] for b in branches), *filter(None, others)])
    if isinstance(node, exp.Anonymous):
        return _of_call(str(node.this).lower(), node.expressions)
    return None if isinstance(node, exp.Dot | exp.Bracket | exp.Identifier) else BINARY


def _of_call(name: str, arguments: list[exp.Expr]) -> pa.DataType | None:
    if name in ("coalesce", "nvl", "ifnull", "greatest", "least"):
        return _of_all(arguments)
    if name in _READERS_OF_ONE | {"make_timestamp", "try_make_timestamp", "date_trunc"}:
        return TIMESTAMP
    kinds = {parse_type(r.result) for r in RULES.get(name, []) if r.result[0].islower()}
    return kinds.pop() if len(kinds) == 1 and len(RULES[name]) > 0 else None


def _of_all(nodes: list[exp.Expr]) -> pa.DataType | None:
    kinds = [_kind(node) for node in nodes if not isinstance(node, exp.Null)]
    if None in kinds:
        return None
    return next((k for k in kinds if k in _MOMENTS), STRING if STRING in kinds else BINARY)


def _require_no_moments(node: exp.Anonymous, name: str) -> None:
    """Refuse to parse text with moments in it, which are read by the clock as well."""
    if name in _PARSERS and any("timestamp" in a.name.lower().replace("timestamp_ntz", "")
                                for a in node.expressions[1:2]):  # fmt: skip
        raise error_in(
            node,
            f"`{name}` of a timestamp {REASON}, where the text is only a time of day",
            "read it as a string, and then: to_timestamp(from_json(...).at)",
        )
