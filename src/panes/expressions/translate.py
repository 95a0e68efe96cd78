"""Spark SQL expressions to DuckDB's text, with the types that Spark gives them.

Every node is translated by a rule: an operator here, a function by a line of
`panes.expressions.table`. What has no rule is refused by its name. Nothing else reaches DuckDB.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import pyarrow as pa
from sqlglot import exp

from panes.expressions import types as t
from panes.expressions.balance import folded
from panes.expressions.calculation import in_order, read_beside
from panes.expressions.casts import cast
from panes.expressions.comparison import (
    both,
    chosen,
    compared,
    matched,
    same_kind,
)
from panes.expressions.dialect import UnsignedShift
from panes.expressions.forms import FORMS
from panes.expressions.forms_collections import arrays_zip, struct
from panes.expressions.forms_dates import part
from panes.expressions.forms_text import overlay
from panes.expressions.forms_units import by_unit
from panes.expressions.intervals import read_interval, written_time
from panes.expressions.lambdas import FUNCTIONS
from panes.expressions.literals import boolean, hexadecimal, integer, literal, null, raw
from panes.expressions.measured import measured
from panes.expressions.regexes import like
from panes.expressions.rules import built, coerced, fitting
from panes.expressions.table import RULES
from panes.expressions.typed import Typed, failure, over, raises, refuse, widened


def translate(tree: exp.Expr, columns: Mapping[str, Typed]) -> Typed:
    """An expression over columns, which are given as DuckDB knows them."""
    found = Translation(columns).of(tree)
    if t.is_passing(found.type):
        seconds = "timestampdiff(SECOND, start, end) is a whole number of seconds"
        raise refuse(
            f"`{tree.sql(dialect='spark')}` is {found.name}, which is no column here",
            seconds if found.type == t.DAYS else None,
        )
    return found


def translate_condition(tree: exp.Expr, columns: Mapping[str, Typed]) -> str:
    """DuckDB's text for a condition over columns."""
    return Translation(columns).truth(tree)


class Translation:
    """Translates nodes; `within` a function, its parameters are known beside the columns."""

    def __init__(
        self, columns: Mapping[str, Typed], names: dict[str, Typed] | None = None,
        counter: Iterator[int] | None = None,
    ) -> None:  # fmt: skip
        self._columns = columns
        self._names = names or {}
        self._counter = counter or count()

    def within(self, names: dict[str, Typed]) -> Translation:
        """The same, with parameters of a function."""
        return Translation(self._columns, {**self._names, **names}, self._counter)

    def fresh(self) -> str:
        """A name that no other parameter has."""
        return f"p{next(self._counter)}"

    def parameter(self, node: exp.Identifier) -> Typed:
        found = self._names.get(node.name.lower()) or self._columns.get(node.name)
        if found is None:
            raise refuse(f"there is no column `{node.name}`")
        return found

    def of(self, node: exp.Expr) -> Typed:
        """One node and all below it."""
        by_kind = _KINDS.get(type(node))
        is_negated = node.args.get("negate") and not isinstance(node, exp.Like | exp.ILike)
        if by_kind is None or is_negated:
            raise refuse(f"`{node.sql(dialect='spark')}` is not translated")
        return by_kind(self, node)

    # Leaves

    def column(self, node: exp.Column) -> Typed:
        found = None if node.table else (self._names.get(node.name.lower())
                                         or self._columns.get(node.name))  # fmt: skip
        if found is None:
            raise refuse(f"there is no column `{node.sql(dialect='spark')}`",
                         hint="columns are: " + ", ".join(self._columns))  # fmt: skip
        return found

    def paren(self, node: exp.Paren) -> Typed:
        inner = self.of(node.this)
        return Typed(f"({inner.text})", inner.type, inner.constant, inner.is_constant)

    # Logic

    def truth(self, node: exp.Expr) -> str:
        return self.as_truth(self.of(node), node)

    def as_truth(self, value: Typed, node: exp.Expr) -> str:
        """The text of a value that is a condition; `node` is how it was written."""
        truth = coerced(value, t.BOOLEAN)
        if truth is None:
            raise refuse(f"`{node.sql(dialect='spark')}` is not a condition")
        return truth.text

    def logical(self, node: exp.And | exp.Or) -> Typed:
        return both(isinstance(node, exp.And), self.truth(node.left), self.truth(node.right))

    def negation(self, node: exp.Not) -> Typed:
        return Typed(f"(NOT {self.truth(node.this)})", t.BOOLEAN)

    def comparison(self, node: exp.Binary) -> Typed:
        return compared(_COMPARED[type(node)], self.of(node.left), self.of(node.right))

    def between(self, node: exp.Between) -> Typed:
        low = exp.GTE(this=node.this.copy(), expression=node.args["low"].copy())
        high = exp.LTE(this=node.this.copy(), expression=node.args["high"].copy())
        return self.logical(exp.And(this=low, expression=high))

    def member(self, node: exp.In) -> Typed:
        items = node.expressions
        if not items:
            raise refuse("IN needs a list of values")
        value, *members = same_kind(self.of(node.this), [self.of(item) for item in items])

        def equal_to_one(value: Typed) -> str:
            texts = [compared("=", value, member).text for member in members]
            if not any(raises(text) for text in texts):
                return "(" + " OR ".join(texts) + ")"
            return folded(texts, lambda one, other: both(False, one, other).text)

        if not raises(value.text):
            return Typed(equal_to_one(value), t.BOOLEAN)
        return Typed(over(value.text, lambda x: equal_to_one(replace(value, text=x))), t.BOOLEAN)

    def is_(self, node: exp.Is) -> Typed:
        value, what = self.of(node.this), node.expression
        if isinstance(what, exp.Null):
            return Typed(f"({value.text} IS NULL)", t.BOOLEAN)
        if isinstance(what, exp.Boolean):
            word = "true" if what.this else "false"
            return Typed(f"({self.truth(node.this)} IS NOT DISTINCT FROM {word})", t.BOOLEAN)
        raise refuse(f"`{node.sql(dialect='spark')}` is not translated")

    # Numbers

    def arithmetic(self, node: exp.Binary) -> Typed:
        sign, one, other = _SIGNS[type(node)], self.of(node.left), self.of(node.right)
        return in_order(sign, *read_beside(one, other))

    def minus(self, node: exp.Neg) -> Typed:
        written = node.this
        if isinstance(written, exp.Literal) and not written.is_string and written.name.isdigit():
            literal(written)  # which refuses what is too long
            return integer(-int(written.name))
        inner = node.this
        if (
            isinstance(inner, exp.Cast)
            and inner.this.is_int
            and inner.to.this in exp.DataType.INTEGER_TYPES
            and not inner.args.get("safe")
        ):
            inner = inner.copy()  # -2L is one number; -0D has a sign, which -0 has not
            inner.set("this", exp.Neg(this=inner.this))
            return self.cast(inner)
        value = self.of(node.this)
        if not t.is_number(value.type) and value.type not in (t.DAYS, t.MONTHS):
            raise refuse(f"`{node.sql(dialect='spark')}` is not translated")
        return Typed(f"(- {value.text})", value.type)

    def interval(self, node: exp.Interval) -> Typed:
        return read_interval(node).typed()

    def bits(self, node: exp.Binary) -> Typed:
        if any(isinstance(n, tuple(_SHIFTS) + _BITS) and type(n) is not type(node)
               for n in (node.left, node.right)):  # fmt: skip
            raise refuse(f"`{node.sql(dialect='spark')}` mixes operators of bits",
                         hint="put parentheses around the inner one")  # fmt: skip
        one, other = self.of(node.left), self.of(node.right)
        if type(node) in _SHIFTS:
            return self.named(_SHIFTS[type(node)], [one, other])
        kind = t.wider(one.type, other.type)
        if kind is None or not t.is_integer(kind):
            raise refuse(f"`{node.sql(dialect='spark')}` is not translated")
        a, b = widened(one, kind), widened(other, kind)
        if isinstance(node, exp.BitwiseXor):
            return Typed(f"xor({a.text}, {b.text})", kind)
        sign = "&" if isinstance(node, exp.BitwiseAnd) else "|"
        return Typed(f"({a.text} {sign} {b.text})", kind)

    def bit_not(self, node: exp.BitwiseNot) -> Typed:
        value = self.of(node.this)
        if not t.is_integer(value.type):
            raise refuse(f"`{node.sql(dialect='spark')}` is not translated")
        return Typed(f"(~ {value.text})", value.type)

    # Text

    def joined(self, node: exp.DPipe) -> Typed:
        return self.named("concat", [self.of(node.left), self.of(node.right)])

    def like(self, node: exp.Like | exp.ILike) -> Typed:
        return self._like(node, "\\")

    def escaped(self, node: exp.Escape) -> Typed:
        letter = node.expression.name
        if not isinstance(node.this, exp.Like | exp.ILike) or len(letter) != 1:
            raise refuse(f"`{node.sql(dialect='spark')}` is not translated")
        return self._like(node.this, letter)

    def _like(self, node: exp.Like | exp.ILike, letter: str) -> Typed:
        found = matched(self.of(node.this), self.of(node.expression), letter,
                        is_ilike=isinstance(node, exp.ILike))  # fmt: skip
        return Typed(f"(NOT {found.text})", t.BOOLEAN) if node.args.get("negate") else found

    def matches(self, node: exp.RegexpLike) -> Typed:
        return like(self.of(node.this), self.of(node.expression))

    # Choices

    def case(self, node: exp.Case) -> Typed:
        subject = node.args.get("this")
        branches, default = node.args["ifs"], node.args.get("default")
        values = [self.of(b.args["true"]) for b in branches]
        values.append(self.of(default) if default is not None else _NULL)
        kind, values = chosen(node.sql(dialect="spark"), values)
        if subject is None:
            conditions = [self.of(branch.this) for branch in branches]
            if any(condition.type == t.VOID for condition in conditions):
                raise refuse("a condition of CASE is NULL, which Spark does not take",
                             hint="write false, or CAST(NULL AS BOOLEAN)")  # fmt: skip
            tests = [self.as_truth(c, b.this) for c, b in zip(conditions, branches, strict=True)]
        else:
            value = self.of(subject)
            tests = [compared("=", value, self.of(branch.this)).text for branch in branches]
        return _cases(tests, values, kind)

    def if_(self, node: exp.If) -> Typed:
        false = node.args.get("false")
        values = [self.of(node.args["true"]), self.of(false) if false is not None else _NULL]
        kind, values = chosen(node.sql(dialect="spark"), values)
        return _cases([self.truth(node.this)], values, kind)

    # Casts and calls

    def cast(self, node: exp.Cast) -> Typed:
        to = node.args["to"]
        if to.this == exp.DataType.Type.TIME and isinstance(node.this, exp.Literal):
            return written_time(node.this.name)
        found = cast(self.of(node.this), _data_type(to), is_try=bool(node.args.get("safe")))
        written = node.this.this if isinstance(node.this, exp.Neg) else node.this
        if isinstance(written, exp.Literal) and written.is_int and t.is_integer(found.type):
            # `2L` and `CAST(2 AS BIGINT)` are one here, though not in Spark: see `calculation`
            return Typed(found.text, found.type, is_constant=True)
        return found

    def call(self, node: exp.Anonymous) -> Typed:
        name, nodes = str(node.this).lower(), node.expressions
        if name in FUNCTIONS:
            counts, build = FUNCTIONS[name]
            if len(nodes) not in counts:
                raise refuse(f"`{name}` does not take {len(nodes)} arguments")
            return build(self, nodes)
        if name in ("struct", "arrays_zip"):
            return self.fields(name, nodes)
        if nodes and isinstance(nodes[0], exp.Var):
            return by_unit(name, nodes[0].name, [self.of(a) for a in nodes[1:]])
        return self.named(name, [self.of(a) for a in nodes])

    def fields(self, name: str, nodes: list[exp.Expr]) -> Typed:
        """A struct; what has a name keeps it."""
        numbered = [f"col{at}" for at in range(1, len(nodes) + 1)]
        if name == "arrays_zip":
            numbered = [str(at) for at in range(len(nodes))]
        named = (exp.Column, exp.Identifier, exp.Alias)
        names = [n.alias_or_name if isinstance(n, named) else given
                 for n, given in zip(nodes, numbered, strict=True)]  # fmt: skip
        values = [self.of(n.unalias()) for n in nodes]
        return struct(names, values) if name == "struct" else arrays_zip(names, values)

    def tuple(self, node: exp.Tuple) -> Typed:
        return self.fields("struct", node.expressions)

    def named(self, name: str, arguments: list[Typed]) -> Typed:
        if name == "typeof" and len(arguments) == 1:
            return Typed(t.text_literal(arguments[0].name), t.STRING)
        if name in t.NAMES and len(arguments) == 1 and name not in RULES:
            return cast(arguments[0], t.NAMES[name])
        if name == "decimal" and len(arguments) == 1:
            return cast(arguments[0], pa.decimal128(10, 0))
        return measured(name, arguments, lambda known: _called(name, known))

    def item(self, node: exp.Bracket) -> Typed:
        value = self.of(node.this)
        if len(node.expressions) != 1:
            raise refuse(f"`{node.sql(dialect='spark')}` is not translated")
        key = self.of(node.expressions[0])
        if t.is_map(value.type):
            return FORMS["element_at"]([value, key])
        if not t.is_array(value.type) or not t.is_integer(key.type) or key.type == t.BIGINT:
            raise refuse(f"`{node.sql(dialect='spark')}` is not translated")
        outside = failure("the array has no element at that position")
        return Typed(f"CASE WHEN {key.text} < 0 OR {key.text} >= len({value.text}) THEN {outside} "
                     f"ELSE {value.text}[{key.text} + 1] END", value.type.value_type)  # fmt: skip

    def field(self, node: exp.Dot) -> Typed:
        """`s.x`, whichever case the name is written in."""
        value, name = self.of(node.this), node.expression.name
        if t.is_map(value.type) and value.type.key_type == t.STRING:
            return FORMS["element_at"]([value, Typed(t.text_literal(name), t.STRING, name, True)])
        fields = list(value.type) if t.is_struct(value.type) else []
        alike = [f for f in fields if f.name.lower() == name.lower()]
        if len(alike) != 1:
            known = ", ".join(f.name for f in fields)
            raise refuse(f"`{node.sql(dialect='spark')}` names no field of {value.name}",
                         hint=f"fields are: {known}" if known else None)  # fmt: skip
        inside = f"struct_extract({value.text}, {t.text_literal(alike[0].name)})"
        return Typed(inside, alike[0].type)

    def trimmed(self, node: exp.Trim) -> Typed:
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(
            node.args.get("position") or "", "trim"
        )
        value = coerced(self.of(node.this), t.STRING)
        letters = Typed("' '", t.STRING)
        if node.expression is not None:
            letters = coerced(self.of(node.expression), t.STRING) or letters
        if value is None:
            raise refuse("TRIM takes text")
        return Typed(f"{name}({value.text}, {letters.text})", t.STRING)

    def part_of_text(self, node: exp.Substring) -> Typed:
        arguments = [node.this, node.args["start"], *filter(None, [node.args.get("length")])]
        return self.named("substring", [self.of(a) for a in arguments])

    def placed(self, node: exp.StrPosition) -> Typed:
        arguments = [node.args["substr"], node.this, *filter(None, [node.args.get("position")])]
        return self.named("locate", [self.of(a) for a in arguments])

    def extracted(self, node: exp.Extract) -> Typed:
        return part(node.name, self.of(node.expression))

    def overlaid(self, node: exp.Overlay) -> Typed:
        parts = [node.this, node.expression, node.args["from_"], node.args.get("for_")]
        return overlay([self.of(p) for p in parts if p is not None])


def _called(name: str, arguments: list[Typed]) -> Typed:
    """A call of a function of the table, or of one that is a form."""
    found = fitting(RULES.get(name, ()), arguments)
    if found is not None:
        return found
    if name in FORMS:
        return FORMS[name](arguments)
    if name not in RULES:
        raise refuse(f"the function `{name}` is not translated")
    return built(name, RULES[name], arguments)


def _cases(tests: Sequence[str], values: Sequence[Typed], kind: pa.DataType) -> Typed:
    """The first value whose test holds; the last one, if none does."""
    whens = " ".join(f"WHEN {a} THEN {b.text}" for a, b in zip(tests, values, strict=False))
    return Typed(f"CASE {whens} ELSE {values[-1].text} END", kind)


def _leaf(read: Callable[[Any], Typed]) -> Callable[..., Typed]:
    """A translation of a node that needs no columns."""
    return lambda _, node: read(node)


def _data_type(node: exp.DataType) -> pa.DataType:
    found = t.parse_type(node.sql(dialect="spark").lower())
    if found is None:
        raise refuse(f"a cast to {node.sql(dialect='spark').lower()} is not translated")
    return found


_COMPARED: dict[type[exp.Expr], str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM", exp.NullSafeNEQ: "IS DISTINCT FROM",
}  # fmt: skip
_SIGNS: dict[type[exp.Expr], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.IntDiv: "div", exp.Mod: "%",
}  # fmt: skip
_SHIFTS: dict[type[exp.Expr], str] = {
    exp.BitwiseLeftShift: "shiftleft", exp.BitwiseRightShift: "shiftright",
    UnsignedShift: "shiftrightunsigned",
}  # fmt: skip
_NULL = Typed("NULL", t.VOID)
_BITS = (exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor)
_KINDS: dict[type[exp.Expr], Callable[..., Typed]] = {
    exp.Column: Translation.column,
    exp.Literal: _leaf(literal),
    exp.RawString: _leaf(raw),
    exp.Boolean: _leaf(boolean),
    exp.Null: _leaf(null),
    exp.HexString: _leaf(hexadecimal),
    exp.Paren: Translation.paren,
    exp.And: Translation.logical,
    exp.Or: Translation.logical,
    exp.Not: Translation.negation,
    **dict.fromkeys(_COMPARED, Translation.comparison),
    exp.Between: Translation.between,
    exp.In: Translation.member,
    exp.Is: Translation.is_,
    **dict.fromkeys(_SIGNS, Translation.arithmetic),
    exp.Neg: Translation.minus,
    exp.Interval: Translation.interval,
    exp.Identifier: Translation.parameter,
    exp.Tuple: Translation.tuple,
    exp.RegexpLike: Translation.matches,
    exp.Overlay: Translation.overlaid,
    **dict.fromkeys(_SHIFTS, Translation.bits),
    exp.BitwiseAnd: Translation.bits,
    exp.BitwiseOr: Translation.bits,
    exp.BitwiseXor: Translation.bits,
    exp.BitwiseNot: Translation.bit_not,
    exp.DPipe: Translation.joined,
    exp.Like: Translation.like,
    exp.ILike: Translation.like,
    exp.Escape: Translation.escaped,
    exp.Case: Translation.case,
    exp.If: Translation.if_,
    exp.Cast: Translation.cast,
    exp.TryCast: Translation.cast,
    exp.Anonymous: Translation.call,
    exp.Bracket: Translation.item,
    exp.Dot: Translation.field,
    exp.Trim: Translation.trimmed,
    exp.Substring: Translation.part_of_text,
    exp.StrPosition: Translation.placed,
    exp.Extract: Translation.extracted,
}
