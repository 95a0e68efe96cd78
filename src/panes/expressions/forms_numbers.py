"""Functions of numbers that a line of the table cannot say: types follow from values or scales.

Integers that would overflow are an error, as in Spark's ANSI mode; `try_` gives NULL instead, but
only for the operation itself: an error of an argument stays an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from panes.expressions import types as t
from panes.expressions.calculation import calculated
from panes.expressions.rules import taken
from panes.expressions.typed import Typed, bound, failure, over, refuse, widened

Form = Callable[[Sequence[Typed]], Typed]


def _digits(name: str, arguments: Sequence[Typed]) -> int:
    """The digits that a number is rounded to, written in the query."""
    if len(arguments) == 1:
        return 0
    scale = arguments[1].constant if len(arguments) == 2 else None
    if not isinstance(scale, int) or isinstance(scale, bool) or abs(scale) > 38:
        raise refuse(f"`{name}` takes a number of digits that is written in the query")
    return scale


def _rounding(name: str) -> Form:
    word = {"round": "round", "bround": "round_even"}[name]

    def build(arguments: Sequence[Typed]) -> Typed:
        scale = _digits(name, arguments)
        value = arguments[0]
        kind = value.type
        if t.is_integer(kind):
            if scale >= 0:
                return value
            text = bound(value.text, lambda x: _whole_rounded(x, -scale, even=name == "bround"))
            return Typed(f"CAST({text} AS {t.duckdb_name(kind)})", kind)
        if t.is_float(kind) and name == "round" and 0 <= scale <= 18:
            text = bound(f"CAST({value.text} AS DOUBLE)", lambda x: _digits_rounded(x, scale))
            return Typed(f"CAST({text} AS {t.duckdb_name(kind)})", kind)
        if not t.is_decimal(kind):
            raise refuse(f"`{name}` of {value.name} is not translated", "cast it to a decimal")
        if scale < 0:
            raise refuse(f"`{name}` of decimals before the point is not translated")
        digits = min(scale, kind.scale)
        to = pa.decimal128(min(kind.precision - kind.scale + 1 + digits, 38), digits)
        return Typed(f"CAST({word}({value.text}, {digits}) AS {t.duckdb_name(to)})", to)

    return build


def _digits_rounded(x: str, scale: int) -> str:
    """A double rounded by the digits that it is written with, as Spark does."""
    digits = f"CAST(CAST({x} AS VARCHAR) AS DECIMAL(38, {scale}))"
    exact = f"CAST(CAST({digits} AS VARCHAR) AS DOUBLE)"
    return f"CASE WHEN isnan({x}) OR abs({x}) >= 1e17 THEN {x} ELSE {exact} END"


def _whole_rounded(x: str, digits: int, *, even: bool) -> str:
    if digits > 18:
        return f"0 * {x}"
    unit = 10**digits
    x = f"CAST({x} AS HUGEINT)"
    rest, half = f"abs({x} % {unit})", unit // 2
    up = f"{rest} >= {half}"
    if even:
        up = f"({rest} > {half} OR ({rest} = {half} AND abs({x} // {unit}) % 2 = 1))"
    return f"({x} - {x} % {unit} + CASE WHEN {up} THEN {unit} * sign({x}) ELSE 0 END)"


def _to_whole(name: str) -> Form:
    """`ceil` and `floor`: of a decimal a decimal, with a scale if one is given."""
    word = {"ceil": "ceil", "ceiling": "ceil", "floor": "floor"}[name]

    def build(arguments: Sequence[Typed]) -> Typed:
        value = arguments[0]
        kind = value.type
        if not t.is_decimal(kind):
            raise refuse(f"`{name}` of {value.name} with digits is not translated")
        if len(arguments) == 1:
            to = t.bounded_decimal(kind.precision - kind.scale + 1, 0)
            if kind.scale == 0:
                return widened(value, to)
            return Typed(f"CAST({word}({value.text}) AS {t.duckdb_name(to)})", to)
        scale = _digits(name, arguments)
        if scale < 0:
            whole = max(kind.precision - kind.scale + 1, -scale + 1)
            to = pa.decimal128(min(whole, 38), 0)
            if whole > 18:
                raise refuse(f"`{name}` of so many digits is not translated")
            unit = 10**-scale
            return Typed(_by_unit(word, value.text, unit, to), to)
        digits = min(scale, kind.scale)
        precision = kind.precision - kind.scale + 1 + digits
        if precision > 18 or kind.precision > 18:
            raise refuse(f"`{name}` of so many digits is not translated")
        to = pa.decimal128(precision, digits)
        if digits == 0:
            return Typed(f"CAST({word}({value.text}) AS {t.duckdb_name(to)})", to)
        scaled = (
            f"CAST({value.text} AS DECIMAL(19, {kind.scale})) * "
            f"CAST({10**digits} AS DECIMAL({digits + 1}, 0))"
        )
        return Typed(_shifted(f"{word}({scaled})", digits, to), to)

    return build


def _by_unit(word: str, x: str, unit: int, to: pa.DataType) -> str:
    whole = f"CAST({word}({x}) AS HUGEINT)"
    step = f"({whole} - (({whole} % {unit}) + {unit}) % {unit})"
    if word == "floor":
        return f"CAST({step} AS {t.duckdb_name(to)})"
    return (f"CAST({step} + CASE WHEN {whole} = {step} THEN 0 ELSE {unit} END AS "
            f"{t.duckdb_name(to)})")  # fmt: skip


def _shifted(whole: str, digits: int, to: pa.DataType) -> str:
    """A whole number over a power of ten, exactly."""
    unit = pa.decimal128(digits + 1, digits)
    one = "0." + "0" * (digits - 1) + "1"
    product = f"CAST({whole} AS DECIMAL(20, 0)) * CAST({one} AS {t.duckdb_name(unit)})"
    return f"CAST({product} AS {t.duckdb_name(to)})"


def _pmod(arguments: Sequence[Typed]) -> Typed:
    if len(arguments) != 2 or not all(t.is_number(a.type) for a in arguments):
        raise refuse("`pmod` takes two numbers")
    if not all(t.is_integer(a.type) for a in arguments):
        return _positive_rest(*arguments)
    kind = t.wider(arguments[0].type, arguments[1].type)
    assert kind is not None
    a, n = (f"CAST({v.text} AS HUGEINT)" for v in arguments)
    rest = f"({a} % {n})"
    text = (
        f"CASE WHEN {n} = 0 AND {a} IS NOT NULL THEN {failure('division by zero')}::HUGEINT "
        f"WHEN {n} < 0 AND {rest} < 0 AND {rest} + {n} < -128 "
        f"THEN {failure('`pmod` by a large negative number is not translated')}::HUGEINT "
        f"WHEN {rest} < 0 THEN ({rest} + {n}) % {n} ELSE {rest} END"
    )
    return Typed(f"CAST({text} AS {t.duckdb_name(kind)})", kind)


def _positive_rest(one: Typed, other: Typed) -> Typed:
    """`pmod` of numbers that are not whole."""
    rest = calculated("%", one, other)

    def body(r: str) -> str:
        again = calculated("%", calculated("+", Typed(r, rest.type), other), other)
        lifted = f"CAST({again.text} AS {t.duckdb_name(rest.type)})"
        return f"CASE WHEN {r} < 0 THEN {lifted} ELSE {r} END"

    return Typed(over(rest.text, body), rest.type)


def _calculation(name: str) -> Form:
    """`try_add` and its like, and `mod`."""

    def build(arguments: Sequence[Typed]) -> Typed:
        if len(arguments) != 2:
            raise refuse(f"`{name}` takes two numbers")
        return calculated(_SIGNS[name], *arguments, is_try=name.startswith("try_"))

    return build


_SIGNS = {"try_add": "+", "try_subtract": "-", "try_multiply": "*", "try_divide": "/",
          "try_mod": "%", "mod": "%"}  # fmt: skip


def _conv(arguments: Sequence[Typed]) -> Typed:
    """Digits of one base in another: only digits that are all valid and fit 63 bits."""
    value, source, target = taken("conv", arguments, "string, #int, #int")
    one, two = source.constant, target.constant
    if not isinstance(one, int) or not isinstance(two, int):
        raise refuse("`conv` takes bases that are written in the query")
    if not (2 <= one <= 36 and 2 <= abs(two) <= 36):
        raise refuse("`conv` takes bases from 2 to 36")
    letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[:one]
    most = {2: 62, 8: 20, 10: 18, 16: 15, 36: 12}.get(one, 12)
    digits = "'" + f"[{letters}{letters.lower()}]{{1,{most}}}" + "'"
    signed = two < 0

    def whole(x: str) -> str:
        parts = f"string_split(upper(ltrim({x}, '-')), '')"
        return (f"list_reduce({parts}, lambda s, c: s * {one} + instr('{letters}', c) - 1, "
                f"0::BIGINT)")  # fmt: skip

    def body(x: str) -> str:
        minus = "-?" if signed else ""
        pattern = f"'{minus}' || {digits}"
        sign = (
            f"CASE WHEN {x} LIKE '-%' AND {whole(x)} <> 0 THEN '-' ELSE '' END || "
            if signed
            else ""
        )
        return (f"CASE WHEN regexp_full_match({x}, {pattern}) THEN {sign}to_base({whole(x)}, "
                f"{abs(two)}) WHEN {x} IS NOT NULL THEN "
                f"{failure('`conv` of these digits is not translated')} END")  # fmt: skip

    return Typed(bound(value.text, body), t.STRING)


def _width_bucket(arguments: Sequence[Typed]) -> Typed:
    kinds = {a.type for a in arguments[:3]}
    passing = kinds <= {t.DAYS} or kinds <= {t.MONTHS}
    parts = "any, any, any, bigint" if passing else "double, double, double, bigint"
    v, low, high, count = (a.text for a in taken("width_bucket", arguments, parts))
    v, low, high = (f"CAST({x} AS DOUBLE)" for x in (v, low, high))
    wrong = f"{count} <= 0 OR {count} = 9223372036854775807 OR isnan({v}) OR {low} = {high} OR " \
            f"isnan({low}) OR isnan({high}) OR isinf({low}) OR isinf({high})"  # fmt: skip

    def place(one: str, other: str, outside: str) -> str:
        share = f"{count}::DOUBLE * ({one}) / ({other})"
        return f"CASE {outside} ELSE CAST(trunc({share}) AS BIGINT) + 1 END"

    up = place(f"{v} - {low}", f"{high} - {low}",
               f"WHEN {v} < {low} THEN 0 WHEN {v} >= {high} THEN {count} + 1")  # fmt: skip
    down = place(f"{low} - {v}", f"{low} - {high}",
                 f"WHEN {v} > {low} THEN 0 WHEN {v} <= {high} THEN {count} + 1")  # fmt: skip
    null = " OR ".join(f"{x} IS NULL" for x in (v, low, high, count))
    return Typed(f"CASE WHEN {null} OR {wrong} THEN NULL WHEN {low} < {high} THEN {up} "
                 f"ELSE {down} END", t.BIGINT)  # fmt: skip


def _sign(arguments: Sequence[Typed]) -> Typed:
    if len(arguments) == 1 and arguments[0].type in (t.DAYS, t.MONTHS):
        return Typed(f"CAST(sign({arguments[0].text}) AS DOUBLE)", t.DOUBLE)
    raise refuse("`sign` takes a number or an interval")


FORMS: dict[str, Form] = {
    "round": _rounding("round"), "bround": _rounding("bround"),
    **{name: _to_whole(name) for name in ("ceil", "ceiling", "floor")},
    **{name: _calculation(name) for name in _SIGNS},
    "pmod": _pmod, "conv": _conv, "width_bucket": _width_bucket, "sign": _sign, "signum": _sign,
}  # fmt: skip
