"""Texts made of other texts: what a grammar, a typing error or a broken disk would do to them.

Every decision is asked of a `Choose`, so that Hypothesis, atheris and a seeded generator drive the
same mutations.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from panes.aggregates.catalog import CATALOG
from tests.fuzz.tables import COLUMNS
from tests.hostile import ATTACKS, HOSTILE_NAMES
from tests.support import AGGREGATES, ORDERED, PARTITIONED, PER_ROW, WINDOWS

Choose = Callable[[int], int]
"""Chooses one of so many: a number from zero on."""

_HOW_OFTEN = (1, 1, 1, 1, 1, 1, 2, 2, 3, 6)
_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_NUMBERS = (
    *(
        "0",
        "1",
        "2",
        "3",
        "7",
        "0.5",
        "1.5",
        "-1",
        "00012",
        "1e3",
        "1e400",
        "1e-400",
        "0x10",
        "1_0",
    ),
    *(str(1 << bits) for bits in (15, 31, 32, 53, 61, 62, 63, 64, 128)),
    *(str((1 << bits) - 1) for bits in (31, 61, 63)),
    *("1000000", "99999999", "9" * 40, "9" * 5000, "1L", "1S", "1BD", "1.0f", "1e5D", "NaN"),
)
_WORDS = (
    *(
        "SELECT",
        "FROM",
        "WHERE",
        "GROUP BY",
        "HAVING",
        "ORDER BY",
        "LIMIT",
        "DISTINCT",
        "AS",
        "FILTER",
    ),
    *("RANGE", "SLIDE", "TUMBLING", "ROWS", "ROW", "ALL", "WATTR", "WA", "RATTR", "SATTR", "PA"),
    *("ORIGIN", "FIRST", "ALIGN START", "rank(at)", "EMIT EARLY", "EVERY", "UNION ALL", "UNION"),
    *("second", "minutes", "hour", "days", "microsecond", "weeks", "month", "tuples", "row_num"),
    *("CASE WHEN", "THEN", "ELSE", "END", "CAST(", "AS INT)", "AS DECIMAL(38, 18))", "AS STRING)"),
    *("AND", "OR", "NOT", "IN (1, 2)", "BETWEEN", "LIKE '%a'", "IS NULL", "IGNORE NULLS", "NULL"),
    *(
        "TRUE",
        "INTERVAL 1 day",
        "DATE '2026-01-01'",
        "TIMESTAMP '9999-12-31'",
        "X'ff'",
        "'a'",
        "''",
    ),
    *(
        "JOIN",
        "LEFT JOIN",
        "ON",
        "ASOF",
        "FULL OUTER",
        "WITH q AS (",
        "OVER (",
        "PARTITION BY",
        "*",
        "USING (k)",
        "SEMI JOIN",
        "ANTI JOIN",
        "INTERSECT",
        "EXCEPT",
        "l.",
        "r.",
    ),
    *(
        "(",
        ")",
        "[",
        "]",
        ",",
        ";",
        "--",
        "/*",
        "*/",
        "`",
        '"',
        "'",
        "\\",
        ".",
        "::",
        "||",
        "->",
        "@",
    ),
    *(
        "+",
        "-",
        "/",
        "%",
        "<=>",
        "!=",
        "<",
        "=",
        "~",
        "^",
        "&",
        "|",
        "∪",
        "GROUP-BY",
        "{",
        "}",
        "?",
    ),
    *(
        "upper(",
        "substr(",
        "repeat('a', ",
        "concat(",
        "coalesce(",
        "abs(",
        "pow(",
        "log(",
        "date_add(",
    ),
    *(
        "lpad(",
        "extract(hour FROM",
        "date_trunc('hour', ",
        "split(",
        "regexp_replace(",
        "round(",
        "if(",
    ),
    *("\0", "\ud800", "\u202e", "\ufeff", "\r\n", "\t", "é", "𝔘"),
)
_UNITS = ("microsecond", "second", "seconds", "minute", "minutes", "hour", "days", "ROWS", "ROW")
_CLAUSES = (*WINDOWS, *PARTITIONED, *PER_ROW, *ORDERED)
_KINDS = (COLUMNS, tuple(CATALOG), AGGREGATES, _UNITS, _CLAUSES)
_DEEP = (("(", ")"), ("-", ""), ("NOT ", ""), ("abs(", ")"), ("CASE WHEN b THEN ", " END"))


def mutated(texts: Sequence[str], choose: Choose) -> str:
    """One of the texts, changed at a few places."""
    text = texts[choose(len(texts))]
    for _ in range(_HOW_OFTEN[choose(len(_HOW_OFTEN))]):
        text = _MUTATIONS[choose(len(_MUTATIONS))](text, texts, choose)
    return text[:100_000]


def _change_token(text: str, _: Sequence[str], choose: Choose) -> str:
    return _replaced(text, choose, _new_token(choose))


def _insert_token(text: str, _: Sequence[str], choose: Choose) -> str:
    tokens = _TOKEN.findall(text)
    tokens.insert(choose(len(tokens) + 1), f" {_new_token(choose)} ")
    return "".join(tokens)


def _drop_tokens(text: str, _: Sequence[str], choose: Choose) -> str:
    tokens = _TOKEN.findall(text)
    begin = choose(len(tokens) + 1)
    del tokens[begin : begin + 1 + choose(4)]
    return "".join(tokens)


def _repeat_tokens(text: str, _: Sequence[str], choose: Choose) -> str:
    tokens = _TOKEN.findall(text)
    begin = choose(len(tokens) + 1)
    tokens[begin:begin] = tokens[begin : begin + 1 + choose(12)] * (1 + choose(3))
    return "".join(tokens)


def _swap_tokens(text: str, _: Sequence[str], choose: Choose) -> str:
    tokens = _TOKEN.findall(text)
    if not tokens:
        return text
    one, other = choose(len(tokens)), choose(len(tokens))
    tokens[one], tokens[other] = tokens[other], tokens[one]
    return "".join(tokens)


def _change_number(text: str, _: Sequence[str], choose: Choose) -> str:
    places = list(_NUMBER.finditer(text))
    if not places:
        return text
    place = places[choose(len(places))]
    return text[: place.start()] + _NUMBERS[choose(len(_NUMBERS))] + text[place.end() :]


def _change_alike(text: str, _: Sequence[str], choose: Choose) -> str:
    """A column, an aggregate, a unit or a whole clause becomes another of its kind."""
    kind = _KINDS[choose(len(_KINDS))]
    places = [m for m in re.finditer("|".join(map(re.escape, kind)), text) if _is_word(m)]
    if not places:
        return text
    place = places[choose(len(places))]
    return text[: place.start()] + kind[choose(len(kind))] + text[place.end() :]


def _is_word(place: re.Match[str]) -> bool:
    """Whether what was found is not a part of a longer word."""
    text, edges = place.string, (place.start() - 1, place.end())
    return not any(0 <= at < len(text) and (text[at].isalnum() or text[at] == "_") for at in edges)


def _splice(text: str, texts: Sequence[str], choose: Choose) -> str:
    """The beginning of one text and the end of another."""
    other = _TOKEN.findall(texts[choose(len(texts))])
    tokens = _TOKEN.findall(text)
    return "".join(tokens[: choose(len(tokens) + 1)] + other[choose(len(other) + 1) :])


def _nest(text: str, _: Sequence[str], choose: Choose) -> str:
    before, after = _DEEP[choose(len(_DEEP))]
    depth = (1, 3, 30, 300, 3_000)[choose(5)]
    tokens = _TOKEN.findall(text)
    at = choose(len(tokens) + 1)
    tokens[at : at + 1] = [before * depth, *tokens[at : at + 1], after * depth]
    return "".join(tokens)


def _flip_bit(text: str, _: Sequence[str], choose: Choose) -> str:
    raw = bytearray(text.encode("utf-8", "surrogatepass"))
    if raw:
        raw[choose(len(raw))] ^= 1 << choose(8)
    return raw.decode("utf-8", "surrogateescape" if choose(2) else "replace")


def _cut_off(text: str, _: Sequence[str], choose: Choose) -> str:
    return text[: choose(len(text) + 1)]


_MUTATIONS = (
    *(_change_alike, _change_alike, _change_alike, _change_alike, _change_number, _change_number),
    *(_change_token, _insert_token, _drop_tokens, _repeat_tokens, _swap_tokens),
    *(_splice, _nest, _flip_bit, _cut_off),
)


def _new_token(choose: Choose) -> str:
    kind = (_WORDS, _NUMBERS, COLUMNS, tuple(CATALOG), tuple(ATTACKS.values()), HOSTILE_NAMES)
    weights = (0, 0, 0, 1, 2, 2, 3, 3, 4, 5)
    words = kind[weights[choose(len(weights))]]
    return words[choose(len(words))]


def _replaced(text: str, choose: Choose, new: str) -> str:
    tokens = _TOKEN.findall(text)
    if not tokens:
        return new
    words = [i for i, token in enumerate(tokens) if not token.isspace()] or [0]
    tokens[words[choose(len(words))]] = new
    return "".join(tokens)
