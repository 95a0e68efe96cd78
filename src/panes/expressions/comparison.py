"""Values compared in the type that holds both, and text compared with a pattern of LIKE."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from panes.expressions import types as t
from panes.expressions.calculation import literal_decimal
from panes.expressions.casts import cast
from panes.expressions.rules import built, coerced
from panes.expressions.table import RULES
from panes.expressions.typed import Typed, bound, failure, raises, refuse, unless_null, widened


def compared(sign: str, left: Typed, right: Typed) -> Typed:
    """`left sign right`."""
    one, other = alike(left, right)
    if sign in _ORDERING and (_is_beyond(left, right) or _is_beyond(right, left)):
        raise refuse("the order of whole numbers and of one beyond all of them is not translated",
                     hint="cast the column to decimal(38, 0)")  # fmt: skip
    if t.is_nested(one.type) and sign in _ORDERING:
        raise refuse(f"the order of {one.name} is not translated")
    if sign.startswith("IS") or not raises(other.text):
        return Typed(f"({one.text} {sign} {other.text})", t.BOOLEAN)
    return Typed(unless_null(one.text, lambda x: f"({x} {sign} {other.text})"), t.BOOLEAN)


_ORDERING = ("<", "<=", ">", ">=")


def _is_beyond(one: Typed, other: Typed) -> bool:
    """True if a written decimal is beyond the whole numbers, where Spark decides of NULL too."""
    number = other.constant
    is_vast = t.is_decimal(other.type) and isinstance(number, float) and abs(number) >= 2.0**63
    return t.is_integer(one.type) and not one.is_constant and is_vast


def alike(one: Typed, other: Typed) -> tuple[Typed, Typed]:
    """Two values in the type that they are compared in; text is read as the other's type."""
    wider = t.tightest if t.is_nested(one.type) else t.wider
    kind = wider(_meant(one, other), _meant(other, one))
    if kind is None and t.STRING in (one.type, other.type):
        kind = t.read_as(other.type if one.type == t.STRING else one.type)
        return cast(one, kind), cast(other, kind)
    if kind is None or t.is_map(kind):
        raise refuse(f"to compare {one.name} with {other.name} is not translated")
    return widened(one, kind), widened(other, kind)


def _meant(value: Typed, other: Typed) -> pa.DataType:
    """The type of a value in a comparison: beside a decimal, a written number has few digits."""
    if not (t.is_integer(value.type) and value.is_constant and t.is_decimal(other.type)):
        return value.type
    whole = t.decimal_of(value.type)
    holds_all = other.type.precision - other.type.scale >= whole.precision
    return whole if holds_all else literal_decimal(value)


def chosen(what: str, values: Sequence[Typed]) -> tuple[pa.DataType, list[Typed]]:
    """Values of which one is taken, in the type that holds all; text is read as a number."""
    kind = t.widest(value.type for value in values)
    if kind is None:
        others = [value.type for value in values if value.type != t.STRING]
        wide = t.widest(others)
        if wide is None or not (t.is_number(wide) or wide in (t.DATE, t.TIMESTAMP)):
            raise refuse(f"the values of `{what}` are of different types")
        kind = t.read_as(wide)
    return kind, [widened(v, kind) if v.type != t.STRING else cast(v, kind) for v in values]


def same_kind(value: Typed, members: Sequence[Typed]) -> list[Typed]:
    """A value and those it may be IN, in the one type that holds all of them."""
    kinds = [member.type for member in members if member.type != t.VOID]
    names = sorted({t.spark_name(kind) for kind in kinds})
    if len(names) > 1 and t.STRING in {value.type, *kinds}:
        raise refuse(f"a list of {', '.join(names)} beside text is not translated",
                     hint="cast the values of IN to one type")  # fmt: skip
    kind = t.widest([value.type, *kinds])
    if kind is None and len(kinds) == 1 and t.STRING in {value.type, *kinds}:
        kind = t.read_as(*({value.type, *kinds} - {t.STRING}))
        return [widened(v, kind) if v.type == t.VOID else cast(v, kind) for v in (value, *members)]
    if kind is None:
        return [value, *members]
    return [widened(each, kind) for each in (value, *members)]


def both(is_and: bool, one: str, other: str) -> Typed:
    """`one AND other`, or OR; what may fail is worked out only where the first does not decide."""
    word = "AND" if is_and else "OR"
    if not any(sign in other for sign in _MAY_FAIL):
        return Typed(f"({one} {word} {other})", t.BOOLEAN)
    decides = "FALSE" if is_and else "TRUE"
    text = bound(one, lambda x: f"CASE WHEN {x} IS NOT {decides} THEN ({x} {word} {other}) "
                                f"ELSE {decides} END")  # fmt: skip
    return Typed(text, t.BOOLEAN)


_MAY_FAIL = ("error(", " + ", " - ", " * ", "trunc(", "make_", "decode(", "from_base64(")


def matched(one: Typed, other: Typed, letter: str, *, is_ilike: bool) -> Typed:
    """`one LIKE other ESCAPE letter`."""
    value, pattern = coerced(one, t.STRING), coerced(other, t.STRING)
    if value is None or pattern is None:
        raise refuse("LIKE takes text and a pattern")
    if other.type == t.VOID:
        return widened(other, t.BOOLEAN)
    if not pattern.is_constant and not is_ilike:
        return _by_column(value, pattern, letter)
    if not isinstance(pattern.constant, str):
        raise refuse("ILIKE takes a pattern that is written in the query")
    written = pattern.constant
    _require_pattern(written, letter)
    if is_ilike:
        if not written.isascii():
            raise refuse("ILIKE takes a pattern in ASCII")
        value, written = built("lower", RULES["lower"], [value]), written.lower()
    escape = t.text_literal(letter)
    return Typed(f"({value.text} LIKE {t.text_literal(written)} ESCAPE {escape})", t.BOOLEAN)


def _by_column(value: Typed, pattern: Typed, letter: str) -> Typed:
    """`value LIKE pattern` with a pattern from a column, whose escapes are checked row by row."""
    if letter != "\\":
        raise refuse("LIKE by a pattern of a column takes no ESCAPE")
    wrong = failure("the pattern escapes what needs no escape")

    def body(p: str) -> str:
        fine = f"regexp_full_match({p}, '(?s)(?:[^\\\\]|\\\\[%_\\\\])*')"
        known = f"{p} IS NOT NULL AND {value.text} IS NOT NULL"
        return (f"CASE WHEN {fine} THEN {value.text} LIKE {p} ESCAPE '\\' "
                f"WHEN {known} THEN {wrong}::BOOLEAN END")  # fmt: skip

    return Typed(bound(pattern.text, body), t.BOOLEAN)


def _require_pattern(pattern: str, letter: str) -> None:
    """What is escaped in a pattern is `%`, `_` or the letter itself, as Spark asks."""
    at = 0
    while at < len(pattern):
        if pattern[at] == letter:
            if at + 1 >= len(pattern) or pattern[at + 1] not in ("%", "_", letter):
                raise refuse(f"the pattern {pattern!r} escapes what needs no escape")
            at += 1
        at += 1
