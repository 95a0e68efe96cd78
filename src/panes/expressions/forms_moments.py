"""`make_timestamp` and its kin: moments from numbers, or from a date and a time of day.

A part outside its range is an error, and NULL with `try_`. Sixty seconds are the next minute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from panes.expressions import types as t
from panes.expressions.rules import taken
from panes.expressions.typed import Typed, refuse, tried
from panes.expressions.zones import from_wall

Form = Callable[[Sequence[Typed]], Typed]


def _made(name: str, to: pa.DataType) -> Form:
    is_try = name.startswith("try_")

    def build(arguments: Sequence[Typed]) -> Typed:
        values, zone = list(arguments), None
        if to == t.TIMESTAMP and len(values) in (3, 7):
            zone = values.pop()
            if not isinstance(zone.constant, str):
                raise refuse(f"`{name}` takes a time zone that is written in the query")
        if len(values) <= 2:
            plain = _of_date(name, values)
        else:
            plain = _of_numbers(name, values, is_try=is_try)
        if zone is not None:
            return Typed(from_wall(plain, str(zone.constant)), to)
        return Typed(f"CAST({plain} AS {t.duckdb_name(to)})", to)

    return build


def _of_date(name: str, values: list[Typed]) -> str:
    if not values or (len(values) == 2 and values[1].type != t.TIME):
        raise refuse(f"`{name}` takes a date and a time of day")
    (day,) = taken(name, values[:1], "date")
    clock = f" + to_microseconds({values[1].text})" if len(values) == 2 else ""
    return f"(CAST({day.text} AS TIMESTAMP){clock})"


def _of_numbers(name: str, values: list[Typed], *, is_try: bool) -> str:
    if len(values) != 6:
        raise refuse(f"`{name}` takes a year, month, day, hour, minute and second")
    numbers = taken(name, values[:5], "int, int, int, int, int")
    numbers += _seconds(name, values[5])
    otherwise = "NULL" if is_try else "error('a part of the time is outside its range')"

    def body(texts: Sequence[str]) -> str:
        year, month, day, hour, minute, second = texts
        missing = " OR ".join(f"{text} IS NULL" for text in texts)
        micros = f"CAST({second} * 1000000 AS BIGINT)"
        inside = (
            f"{hour} BETWEEN 0 AND 23 AND {minute} BETWEEN 0 AND 59 AND {second} >= 0 "
            f"AND {second} <= 60 AND {year} BETWEEN 1 AND 9999"
        )
        clock = f"(({hour}::BIGINT * 60 + {minute}) * 60000000 + {micros})"
        moment = f"CAST(make_date({year}, {month}, {day}) AS TIMESTAMP) + to_microseconds({clock})"
        return f"CASE WHEN {missing} THEN NULL WHEN {inside} THEN {moment} ELSE {otherwise} END"

    return tried(numbers, body) if is_try else f"({body([n.text for n in numbers])})"


def _seconds(name: str, value: Typed) -> list[Typed]:
    kind = value.type
    if kind == t.VOID or t.is_integer(kind) or (t.is_decimal(kind) and kind.scale <= 6):
        return [Typed(f"CAST({value.text} AS DECIMAL(16, 6))", kind, is_constant=value.is_constant)]
    raise refuse(f"`{name}` takes seconds as a whole number or a decimal")


FORMS: dict[str, Form] = {
    f"{prefix}make_timestamp{suffix}": _made(f"{prefix}make_timestamp{suffix}", kind)
    for prefix in ("", "try_")
    for suffix, kind in (("", t.TIMESTAMP), ("_ltz", t.TIMESTAMP), ("_ntz", t.TIMESTAMP_NTZ))
}
