"""Spark SQL expressions to DuckDB's text, with the types that Spark gives them.

Every node is translated by a rule: an operator here, a function by a line of `panes.scalar.table`.
What has no rule is refused by its name. Nothing else reaches DuckDB.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal

import pyarrow as pa
from sqlglot import exp

from panes.scalar import types as t
from panes.scalar.rules import built, coerced
from panes.scalar.table import RULES
from panes.scalar.casts import cast
from panes.scalar.typed import Typed, refuse, widened

_MOST_INT, _MOST_BIGINT = 2**31, 2**63


def translate(tree: exp.Expression, columns: Mapping[str, Typed]) -> Typed:
    """An expression over columns, which are given as DuckDB knows them."""
    return _Translation(columns).of(tree)


class _Translation:
    def __init__(self, columns: Mapping[str, Typed]) -> None:
        self._columns = columns

    def of(self, node: exp.Expression) -> Typed:
        """One node and all below it."""
        by_kind = _KINDS.get(type(node))
        if by_kind is None:
            raise refuse(f"`{node.sql(dialect='spark')}` is not translated")
        return by_kind(self, node)

    # Leaves

    def column(self, node: exp.Column) -> Typed:
        found = None if node.table else self._columns.get(node.name)
        if found is None:
            raise refuse(f"there is no column `{node.sql(dialect='spark')}`",
                         hint="columns are: " + ", ".join(self._columns))  # fmt: skip
        return found

    def literal(self, node: exp.Literal) -> Typed:
        if node.is_string:
            return Typed(t.text_literal(node.name), t.STRING, node.name, is_constant=True)
        text = node.name
        if "e" in text.lower():
            return Typed(f"CAST({text} AS DOUBLE)", t.DOUBLE, float(text), is_constant=True)
        if "." in text:
            return self._decimal(text)
        return self._integer(int(text))

    def _integer(self, value: int) -> Typed:
        if -_MOST_INT <= value < _MOST_INT:
            return Typed(f"CAST({value} AS INTEGER)", t.INT, value, is_constant=True)
        if -_MOST_BIGINT <= value < _MOST_BIGINT:
            return Typed(f"CAST({value} AS BIGINT)", t.BIGINT, value, is_constant=True)
        return self._decimal(str(value))

    @staticmethod
    def _decimal(text: str) -> Typed:
        number = Decimal(text)
        _, digits, exponent = number.as_tuple()
        scale = max(-int(exponent), 0)
        precision = max(len(digits), scale)
        if precision > 38:
            raise refuse(f"`{text}` has more than 38 digits")
        kind = pa.decimal128(max(precision, 1), scale)
        return Typed(f"CAST({number:f} AS {t.duckdb_name(kind)})", kind, float(number),
                     is_constant=True)  # fmt: skip

    def boolean(self, node: exp.Boolean) -> Typed:
        return Typed("true" if node.this else "false", t.BOOLEAN, bool(node.this), is_constant=True)

    def null(self, _: exp.Null) -> Typed:
        return Typed("NULL", t.VOID, None, is_constant=True)

    def hexadecimal(self, node: exp.HexString) -> Typed:
        digits = node.name if len(node.name) % 2 == 0 else "0" + node.name
        return Typed(f"unhex('{digits}')", t.BINARY, is_constant=True)

    def paren(self, node: exp.Paren) -> Typed:
        inner = self.of(node.this)
        return Typed(f"({inner.text})", inner.type, inner.constant, inner.is_constant)

    # Logic

    def truth(self, node: exp.Expression) -> str:
        value = coerced(self.of(node), t.BOOLEAN)
        if value is None:
            raise refuse(f"`{node.sql(dialect='spark')}` is not a condition")
        return value.text

    def logical(self, node: exp.And | exp.Or) -> Typed:
        word = "AND" if isinstance(node, exp.And) else "OR"
        return Typed(f"({self.truth(node.left)} {word} {self.truth(node.right)})", t.BOOLEAN)

    def negation(self, node: exp.Not) -> Typed:
        return Typed(f"(NOT {self.truth(node.this)})", t.BOOLEAN)

    def comparison(self, node: exp.Binary) -> Typed:
        one, other = self.alike(self.of(node.left), self.of(node.right), node)
        return Typed(f"({one.text} {_COMPARED[type(node)]} {other.text})", t.BOOLEAN)

    def alike(self, one: Typed, other: Typed, node: exp.Expression) -> tuple[Typed, Typed]:
        """Two values in the type that they are compared in."""
        kind = t.wider(one.type, other.type)
        if kind is None and t.STRING in (one.type, other.type):
            kind = other.type if one.type == t.STRING else one.type
            if t.is_integer(kind):
                kind = t.BIGINT
            return cast(one, kind), cast(other, kind)
        if kind is None or t.is_map(kind):
            raise refuse(
                f"`{node.sql(dialect='spark')}` compares {one.name} with {other.name}, which is not "
                "translated"
            )
        return widened(one, kind), widened(other, kind)

    def between(self, node: exp.Between) -> Typed:
        low = exp.GTE(this=node.this.copy(), expression=node.args["low"].copy())
        high = exp.LTE(this=node.this.copy(), expression=node.args["high"].copy())
        return self.logical(exp.And(this=low, expression=high))

    def member(self, node: exp.In) -> Typed:
        items = node.expressions
        if not items:
            raise refuse("IN needs a list of values")
        found = [exp.EQ(this=node.this.copy(), expression=item.copy()) for item in items]
        texts = [self.comparison(equal).text for equal in found]
        return Typed("(" + " OR ".join(texts) + ")", t.BOOLEAN)

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
        one, other = self.of(node.left), self.of(node.right)
        if isinstance(node, exp.Add | exp.Sub) and one.type == t.DATE and t.is_integer(other.type):
            return built("date_add", RULES["date_add" if isinstance(node, exp.Add) else "date_sub"],
                         (one, other))  # fmt: skip
        if isinstance(node, exp.Sub) and t.DATE in (one.type, other.type):
            raise refuse("a difference of dates is an interval", hint="datediff(a, b) is in days")
        for value in (one, other):
            if not t.is_number(value.type) and value.type != t.VOID:
                raise refuse(f"`{node.sql(dialect='spark')}` calculates with {value.name}, which is "
                             "not translated")  # fmt: skip
        return _calculated(type(node), one, other)

    def minus(self, node: exp.Neg) -> Typed:
        if isinstance(node.this, exp.Literal) and not node.this.is_string and node.this.is_int:
            return self._integer(-int(node.this.name))
        value = self.of(node.this)
        if not t.is_number(value.type):
            raise refuse(f"`{node.sql(dialect='spark')}` is not translated")
        return Typed(f"(- {value.text})", value.type)

    def bits(self, node: exp.Binary) -> Typed:
        one, other = self.of(node.left), self.of(node.right)
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
        value, pattern = (coerced(self.of(n), t.STRING) for n in (node.this, node.expression))
        if value is None or pattern is None or not isinstance(pattern.constant, str):
            raise refuse("LIKE takes text and a pattern that is written in the query")
        _require_pattern(pattern.constant, letter)
        word = "LIKE" if isinstance(node, exp.Like) else "ILIKE"
        text = f"({value.text} {word} {pattern.text} ESCAPE {t.text_literal(letter)})"
        return Typed(text, t.BOOLEAN)

    # Choices

    def case(self, node: exp.Case) -> Typed:
        subject = node.args.get("this")
        branches, default = node.args["ifs"], node.args.get("default")
        values = [self.of(b.args["true"]) for b in branches]
        values.append(self.of(default) if default is not None else Typed("NULL", t.VOID))
        kind = t.widest(v.type for v in values)
        if kind is None:
            raise refuse(f"the branches of `{node.sql(dialect='spark')}` are of different types")
        texts = [widened(v, kind).text for v in values]
        tests = [
            self.truth(b.this) if subject is None
            else self.comparison(exp.EQ(this=subject.copy(), expression=b.this.copy())).text
            for b in branches
        ]  # fmt: skip
        whens = " ".join(f"WHEN {a} THEN {b}" for a, b in zip(tests, texts, strict=False))
        return Typed(f"CASE {whens} ELSE {texts[-1]} END", kind)

    def if_(self, node: exp.If) -> Typed:
        return self.case(exp.Case(ifs=[node.copy()], default=node.args.get("false")))

    # Casts and calls

    def cast(self, node: exp.Cast) -> Typed:
        to = _data_type(node.args["to"])
        return cast(self.of(node.this), to, is_try=bool(node.args.get("safe")))

    def call(self, node: exp.Anonymous) -> Typed:
        return self.named(str(node.this).lower(), [self.of(a) for a in node.expressions])

    def named(self, name: str, arguments: list[Typed]) -> Typed:
        if name == "typeof" and len(arguments) == 1:
            return Typed(t.text_literal(arguments[0].name), t.STRING)
        if name in t.NAMES and len(arguments) == 1 and name not in RULES:
            return cast(arguments[0], t.NAMES[name])
        if name not in RULES:
            raise refuse(f"the function `{name}` is not translated")
        return built(name, RULES[name], arguments)

    def item(self, node: exp.Bracket) -> Typed:
        raise refuse(f"`{node.sql(dialect='spark')}` is not translated")

    def trimmed(self, node: exp.Trim) -> Typed:
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(node.args.get("position") or "", "trim")
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
        return self.named(node.name.lower(), [self.of(node.expression)])


def _calculated(kind: type[exp.Expression], one: Typed, other: Typed) -> Typed:
    """The four operations, `div` and `%`, in Spark's types; a division by zero is an error."""
    void = t.VOID in (one.type, other.type)
    wide = t.wider(one.type, other.type)
    assert wide is not None
    if wide == t.VOID:
        wide = t.INT
    if kind is exp.IntDiv:
        if not all(t.is_integer(v.type) or v.type == t.VOID for v in (one, other)):
            raise refuse("`div` of numbers that are not whole is not translated")
        a, b = widened(one, t.BIGINT).text, widened(other, t.BIGINT).text
        return Typed(_divided(f"({a} // {b})", b), t.BIGINT)
    if t.is_decimal(wide):
        return _of_decimals(kind, one, other)
    if kind is exp.Div:
        wide = t.DOUBLE
    a, b = widened(one, wide).text, widened(other, wide).text
    if kind is exp.Div:
        return Typed(_divided(f"({a} / {b})", b), wide)
    if kind is exp.Mod:
        return Typed(_divided(f"CAST({a} % {b} AS {t.duckdb_name(wide)})", b), wide)
    if void:
        return Typed(f"CAST(NULL AS {t.duckdb_name(wide)})", wide)
    return Typed(f"({a} {_SIGNS[kind]} {b})", wide)


def _of_decimals(kind: type[exp.Expression], one: Typed, other: Typed) -> Typed:
    a, b = (t.decimal_of(v.type) for v in (one, other))
    if kind is exp.Mul:
        to = t.bounded_decimal(a.precision + b.precision + 1, a.scale + b.scale)
        if a.precision + b.precision + 1 > 38:
            raise refuse("a product of decimals of more than 38 digits is not translated",
                         hint="cast one of them to double")  # fmt: skip
        return Typed(f"CAST({widened(one, a).text} * {widened(other, b).text} AS "
                     f"{t.duckdb_name(to)})", to)  # fmt: skip
    if kind in (exp.Add, exp.Sub):
        scale = max(a.scale, b.scale)
        precision = max(a.precision - a.scale, b.precision - b.scale) + scale + 1
        if precision > 38:
            raise refuse("a sum of decimals of more than 38 digits is not translated",
                         hint="cast one of them to double")  # fmt: skip
        to = pa.decimal128(precision, scale)
        return Typed(f"({widened(one, to).text} {_SIGNS[kind]} {widened(other, to).text})", to)
    raise refuse("a division of decimals is not translated", hint="cast one of them to double")


def _divided(text: str, by: str) -> str:
    return f"CASE WHEN {by} = 0 THEN error('division by zero') ELSE {text} END"


def _require_pattern(pattern: str, letter: str) -> None:
    """What is escaped in a pattern is `%`, `_` or the letter itself, as Spark asks."""
    at = 0
    while at < len(pattern):
        if pattern[at] == letter:
            if at + 1 >= len(pattern) or pattern[at + 1] not in ("%", "_", letter):
                raise refuse(f"the pattern {pattern!r} escapes what needs no escape")
            at += 1
        at += 1


def _data_type(node: exp.DataType) -> pa.DataType:
    found = t.parse_type(node.sql(dialect="spark").lower())
    if found is None:
        raise refuse(f"a cast to {node.sql(dialect='spark').lower()} is not translated")
    return found


_COMPARED: dict[type[exp.Expression], str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
}  # fmt: skip
_SIGNS: dict[type[exp.Expression], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}
_KINDS: dict[type[exp.Expression], Callable[..., Typed]] = {
    exp.Column: _Translation.column,
    exp.Literal: _Translation.literal,
    exp.Boolean: _Translation.boolean,
    exp.Null: _Translation.null,
    exp.HexString: _Translation.hexadecimal,
    exp.Paren: _Translation.paren,
    exp.And: _Translation.logical,
    exp.Or: _Translation.logical,
    exp.Not: _Translation.negation,
    **dict.fromkeys(_COMPARED, _Translation.comparison),
    exp.Between: _Translation.between,
    exp.In: _Translation.member,
    exp.Is: _Translation.is_,
    exp.Add: _Translation.arithmetic,
    exp.Sub: _Translation.arithmetic,
    exp.Mul: _Translation.arithmetic,
    exp.Div: _Translation.arithmetic,
    exp.IntDiv: _Translation.arithmetic,
    exp.Mod: _Translation.arithmetic,
    exp.Neg: _Translation.minus,
    exp.BitwiseAnd: _Translation.bits,
    exp.BitwiseOr: _Translation.bits,
    exp.BitwiseXor: _Translation.bits,
    exp.BitwiseNot: _Translation.bit_not,
    exp.DPipe: _Translation.joined,
    exp.Like: _Translation.like,
    exp.ILike: _Translation.like,
    exp.Escape: _Translation.escaped,
    exp.Case: _Translation.case,
    exp.If: _Translation.if_,
    exp.Cast: _Translation.cast,
    exp.TryCast: _Translation.cast,
    exp.Anonymous: _Translation.call,
    exp.Bracket: _Translation.item,
    exp.Trim: _Translation.trimmed,
    exp.Substring: _Translation.part_of_text,
    exp.StrPosition: _Translation.placed,
    exp.Extract: _Translation.extracted,
}
