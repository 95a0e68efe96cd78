"""Texts of any depth, and of any length: conditions over `v`, a number, and `s`, a text."""

from __future__ import annotations

from collections.abc import Callable

LONG: dict[str, Callable[[int], str]] = {
    "OR": lambda n: " OR ".join(f"v = {i}" for i in range(n)),
    "AND": lambda n: " AND ".join(f"v <> {i + 9}" for i in range(n)),
    "IN": lambda n: f"v IN ({', '.join(map(str, range(n)))})",
    "IN of text": lambda n: f"s IN ({', '.join(repr(str(i)) for i in range(n))})",
    "LIKE ANY": lambda n: f"s LIKE ANY ({', '.join(repr(f'{i}%') for i in range(n))})",
    "of brackets": lambda n: " AND ".join(f"(v = {i} OR s = 'b')" for i in range(n)),
    "CASE": lambda n: f"CASE {' '.join(f'WHEN v = {i} THEN 1' for i in range(n))} END = 1",
}
"""They may be as long as one likes."""

DEEP: dict[str, Callable[[int], str]] = {
    "brackets": lambda n: "(" * n + "v = 1" + ")" * n,
    "calls": lambda n: "abs(" * n + "v" + ")" * n + " = 1",
    "arrays": lambda n: "size(" + "array(" * n + "v" + ")" * n + ") = 1",
    "CASE": lambda n: "CASE WHEN v = 1 THEN 1 ELSE " * n + "v" + " END" * n + " = 1",
    "conditions of CASE": lambda n: "CASE WHEN " * n + "v = 1" + " THEN true ELSE false END" * n,
    "NOT": lambda n: "NOT " * n + "v = 1",
    "NOT between": lambda n: " = ".join(["NOT s = s"] * n),
    "signs": lambda n: "- " * n + "v = 1",
    "signs and brackets": lambda n: "- - (" * n + "v" + ")" * n + " = 1",
    "types": lambda n: f"CAST(NULL AS {'ARRAY<' * n}INT{' >' * n}) IS NULL",
    "OR in brackets": lambda n: "(" * n + "v = 1" + "".join(f" OR v = {i})" for i in range(n)),
    "a pattern": lambda n: f"s RLIKE '{'(' * n}a{')' * n}'",
    "a pattern in a call": lambda n: f"regexp_count(s, '{'(' * n}a{')' * n}') = 1",
    "+": lambda n: "v" + " + v" * 6 * n + " = 1",
    "||": lambda n: "s" + " || s" * 6 * n + " = 'a'",
    "items": lambda n: "array(v)" + "[0]" * 6 * n + " = 1",
    "fields": lambda n: "s" + ".s" * 6 * n + " = 1",
    "INTERVAL": lambda n: "INTERVAL " * 6 * n + "1 DAY = 1",
    "casts": lambda n: "v" + "::INT" * 6 * n + " = 1",
}
"""Of these there is a bound, which 40 passes."""


def asked(condition: str) -> str:
    """A query with a condition."""
    return f"SELECT count(*) AS n FROM t [TUMBLING 10 WATTR at] WHERE {condition}"
