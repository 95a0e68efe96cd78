"""The operations of arithmetic, in Spark's types, of numbers, dates, moments and intervals.

What overflows, or is divided by zero, is an error; with `is_try` it is NULL, while an error of an
operand stays an error. Decimals have Spark's digits; what needs more than 38 is refused.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from panes.expressions import types as t
from panes.expressions.casts import cast
from panes.expressions.intervals import DAY_MICROS, ONE_DAY
from panes.expressions.typed import (
    Typed,
    bound,
    failure,
    over,
    raises,
    refuse,
    tried,
    unless_null,
    widened,
)

_ZERO = failure("division by zero")
_FAR = failure("a date so far away is not translated")
_MOST_DAYS = 1_000_000_000
_LONG = 19
"""DuckDB multiplies shorter decimals in 18 digits, and fails where a product has more."""


def calculated(sign: str, one: Typed, other: Typed, *, is_try: bool = False) -> Typed:
    """`one sign other` for + - * / % and `div`."""
    if sign in "+-" and {one.type, other.type} & {t.DATE, t.TIMESTAMP, t.TIMESTAMP_NTZ}:
        return _of_moments(sign, one, other, is_try=is_try)
    if {one.type, other.type} & {t.DAYS, t.MONTHS}:
        return _of_intervals(sign, one, other, is_try=is_try)
    for value in (one, other):
        if not t.is_number(value.type) and value.type != t.VOID:
            raise refuse(f"`{sign}` of {one.name} and {other.name} is not translated")
    wide = t.wider(one.type, other.type)
    assert wide is not None
    wide = t.INT if wide == t.VOID else wide
    if sign == "div":
        if t.is_integer(wide):
            return _whole(sign, one, other, t.BIGINT, is_try=is_try)
        raise refuse("`div` of numbers that are not whole is not translated")
    if t.is_decimal(wide):
        return _of_decimals(sign, one, other, is_try=is_try)
    if sign == "/":
        wide = t.DOUBLE
    if t.is_integer(wide):
        return _whole(sign, one, other, wide, is_try=is_try)
    a, b = widened(one, wide).text, widened(other, wide).text
    if sign in "/%" and not _divides_safely(other):
        return Typed(divided(a, b, lambda x, y: f"{x} {sign} {y}", is_try=is_try), wide)
    return Typed(f"({a} {sign} {b})", wide)


def in_order(sign: str, one: Typed, other: Typed) -> Typed:
    """`one sign other`, where what stands beside a NULL is not worked out, and so cannot fail.

    Spark looks at the first operand first, and at a divisor before what it divides.
    """
    is_division = sign not in "+-*"
    first, second = (other, one) if is_division else (one, other)
    found = calculated(sign, one, other)
    if first.is_constant or not raises(second.text):
        return found

    def body(x: str) -> str:
        known = Typed(x, first.type, first.constant)
        pair = (one, known) if is_division else (known, other)
        return calculated(sign, *pair).text

    return Typed(unless_null(first.text, body), found.type)


def read_beside(one: Typed, other: Typed) -> tuple[Typed, Typed]:
    """Two operands; text beside a number is read as one."""

    def read(value: Typed, beside: Typed) -> Typed:
        if value.type != t.STRING or not t.is_number(beside.type):
            return value
        return cast(value, t.read_as(beside.type))

    return read(one, other), read(other, one)


def _whole(sign: str, one: Typed, other: Typed, kind: pa.DataType, *, is_try: bool) -> Typed:
    """Whole numbers: in a wider type where an overflow is NULL, so that only it is tried."""
    name = t.duckdb_name(kind)
    a, b = widened(one, kind).text, widened(other, kind).text
    if t.VOID in (one.type, other.type):
        return Typed(f"CAST(NULL AS {name})", kind)
    if sign in "+-*":
        if is_try:
            wide = f"CAST({a} AS HUGEINT) {sign} CAST({b} AS HUGEINT)"
            return Typed(f"TRY_CAST({wide} AS {name})", kind)
        return Typed(f"({a} {sign} {b})", kind)
    if _divides_safely(other):
        return Typed(f"({a} {'%' if sign == '%' else '//'} {b})", kind)
    if sign == "%":
        text = divided(a, b, _rest, is_try=is_try)
        return Typed(f"CAST({text} AS {name})", kind)
    return Typed(divided(a, b, lambda x, y: f"{x} // {y}", is_try=is_try), kind)


def divided(a: str, b: str, quotient: Callable[[str, str], str], *, is_try: bool = False) -> str:
    """`quotient` of a and b; 0 divides NULL alone, and what is NULL either way is NULL."""
    if is_try:
        return bound(b, lambda y: f"CASE WHEN {y} = 0 THEN NULL ELSE {quotient(a, y)} END")

    def guarded(x: str, y: str) -> str:
        return f"CASE WHEN {y} = 0 AND {x} IS NOT NULL THEN {_ZERO} ELSE {quotient(x, y)} END"

    return bound(a, lambda x: bound(b, lambda y: guarded(x, y)))


def _rest(x: str, y: str) -> str:
    """The rest of a division of whole numbers, which overflows for -1."""
    return f"CASE WHEN {x} IS NULL THEN NULL WHEN {y} = -1 THEN 0 * {y} ELSE {x} % {y} END"


def _divides_safely(divisor: Typed) -> bool:
    """True if a divisor is a number that is written, with which nothing can go wrong."""
    number = divisor.constant
    return divisor.is_constant and isinstance(number, int) and number not in (0, -1)


def literal_decimal(value: Typed) -> pa.DataType:
    """The decimal of an operand: a written whole number has only the digits it is written with."""
    if value.is_constant and t.is_integer(value.type) and value.constant is None:
        raise refuse("a whole number with a suffix beside a decimal is not translated",
                     hint="write it without the suffix or cast")  # fmt: skip
    if value.is_constant and t.is_integer(value.type) and isinstance(value.constant, int):
        return pa.decimal128(len(str(abs(value.constant))), 0)
    return t.decimal_of(value.type)


def _of_decimals(sign: str, one: Typed, other: Typed, *, is_try: bool) -> Typed:
    if t.VOID in (one.type, other.type):
        raise refuse("arithmetic of a decimal and NULL is not translated")
    a, b = literal_decimal(one), literal_decimal(other)
    scale = max(a.scale, b.scale)
    if sign == "*":
        scale, precision = a.scale + b.scale, a.precision + b.precision + 1
    elif sign in "+-":
        precision = max(a.precision - a.scale, b.precision - b.scale) + scale + 1
    elif sign == "%":
        precision = min(a.precision - a.scale, b.precision - b.scale) + scale
    else:
        return _quotient(widened(one, a), widened(other, b), is_try=is_try)
    both = max(a.precision - a.scale, b.precision - b.scale) + scale
    if max(precision, both) > 38:
        raise refuse(f"`{sign}` of decimals of more than 38 digits is not translated",
                     hint="cast one of them to double")  # fmt: skip
    to = pa.decimal128(max(precision, 1), scale)
    name = t.duckdb_name(to)
    if sign == "*":
        wide = pa.decimal128(max(a.precision, _LONG), a.scale)
        return Typed(f"CAST({widened(one, wide).text} * {widened(other, b).text} AS {name})", to)
    if sign in "+-":
        text = f"{widened(one, to).text} {sign} {widened(other, to).text}"
        return Typed(f"CAST({text} AS {name})", to)
    wide = pa.decimal128(both, scale)
    x, y = widened(one, wide).text, widened(other, wide).text
    text = divided(x, y, lambda x, y: f"{x} % {y}", is_try=is_try)
    return Typed(f"CAST({text} AS {name})", to)


def _quotient(one: Typed, other: Typed, *, is_try: bool) -> Typed:
    """A division of decimals by their digits: whole numbers, and what is left rounded half up.

    Spark rounds at 38 digits and then to the scale; with no more digits than are taken here a first
    rounding never makes a half.
    """
    a, b = one.type, other.type
    scale = max(6, a.scale + b.precision + 1)
    precision = a.precision - a.scale + b.scale + scale
    shift = scale + b.scale - a.scale
    longest = max(precision, a.precision + shift, b.precision + scale + 1,
                  a.precision + a.scale + 1, b.precision + b.scale + 1)  # fmt: skip
    if longest > 37:
        raise refuse("a division of decimals of so many digits is not translated",
                     hint="cast one of them to double")  # fmt: skip
    to = pa.decimal128(precision, scale)
    top = f"({_digits(one)} * {10**shift}::HUGEINT)"

    def rounded(x: str, y: str) -> str:
        up = f"CASE WHEN 2 * abs({x} % {y}) >= abs({y}) THEN sign({x}) * sign({y}) ELSE 0 END"
        return f"({x} // {y} + {up})"

    def written(q: str) -> str:
        digits = f"lpad(CAST(abs({q}) AS VARCHAR), {precision + 1}, '0')"
        sign = f"CASE WHEN {q} < 0 THEN '-' ELSE '' END"
        parts = f"left({digits}, {precision + 1 - scale}) || '.' || right({digits}, {scale})"
        return f"CAST({sign} || {parts} AS {t.duckdb_name(to)})"

    def quotient(x: str, y: str) -> str:
        return over(rounded(x, y), written)

    def whole(x: str) -> str:
        return over(_digits(other), lambda y: divided(x, y, quotient, is_try=is_try))

    return Typed(over(top, whole), to)


def _digits(value: Typed) -> str:
    """The digits of a decimal, as a whole number."""
    scale = value.type.scale
    wide = widened(value, pa.decimal128(max(value.type.precision, _LONG), scale))
    return f"CAST({wide.text} * CAST({10**scale} AS DECIMAL({scale + 1}, 0)) AS HUGEINT)"


def _of_moments(sign: str, one: Typed, other: Typed, *, is_try: bool) -> Typed:
    """A date or moment moved by days or by an interval; a difference of moments is one."""
    if sign == "+" and other.type in (t.DATE, t.TIMESTAMP, t.TIMESTAMP_NTZ):
        one, other = other, one
    if sign == "-" and other.type in (t.DATE, t.TIMESTAMP, t.TIMESTAMP_NTZ):
        wide = t.wider(one.type, other.type)
        if wide is None:
            raise refuse(f"`-` of {one.name} and {other.name} is not translated")
        a, b = widened(one, wide).text, widened(other, wide).text
        if wide == t.DATE:
            return Typed(f"(CAST({a} - {b} AS BIGINT) * {DAY_MICROS})", t.DAYS, ONE_DAY)
        return Typed(f"(epoch_us({a}) - epoch_us({b}))", t.DAYS)
    if one.type == t.DATE and other.type == t.DAYS and other.constant != ONE_DAY:
        one = widened(one, t.TIMESTAMP)
    kind, name = one.type, t.duckdb_name(one.type)
    if kind == t.DATE and t.is_integer(other.type) and other.type != t.BIGINT:
        by = widened(other, t.INT)
        is_far = f"abs(CAST({{1}} AS BIGINT)) > {_MOST_DAYS}"
        days = f"CASE WHEN {is_far} THEN {_FAR}::INTEGER ELSE {{1}} END"
    elif kind == t.DATE and other.constant == ONE_DAY:
        by, days = other, f"CAST({{1}} // {DAY_MICROS} AS INTEGER)"
    elif other.type == t.MONTHS:
        by, days = other, f"to_months({sign if sign == '-' else ''}{{1}})"
    elif other.type == t.DAYS and kind != t.DATE:
        by, days = other, f"to_microseconds({sign if sign == '-' else ''}{{1}})"
    else:
        raise refuse(f"`{sign}` of {one.name} and {other.name} is not translated")
    shape = f"CAST({{0}} {sign} {days} AS {name})"
    if "to_" in days:  # months are counted in the calendar of UTC
        shape = f"CAST(CAST({{0}} AS TIMESTAMP) + {days} AS {name})"
    if is_try and not t.is_integer(by.type):  # days beyond all dates are no NULL in Spark
        return Typed(tried([one, by], lambda texts: shape.format(*texts)), kind)
    return Typed(shape.format(one.text, by.text), kind)


def _of_intervals(sign: str, one: Typed, other: Typed, *, is_try: bool) -> Typed:
    if is_try:
        raise refuse("trying arithmetic of intervals is not translated")
    if sign in "+-" and one.type == other.type:
        return Typed(f"({one.text} {sign} {other.text})", one.type)
    if sign == "*" and t.is_integer(one.type):
        one, other = other, one
    if sign == "*" and t.is_integer(other.type):
        return Typed(f"({one.text} * {other.text})", one.type)
    if sign == "div" and one.type == other.type:
        text = divided(one.text, other.text, lambda x, y: f"{x} // {y}")
        return Typed(f"CAST({text} AS BIGINT)", t.BIGINT)
    raise refuse(f"`{sign}` of {one.name} and {other.name} is not translated")
