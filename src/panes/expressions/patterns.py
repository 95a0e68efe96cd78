"""Patterns of dates and times: those letters whose meaning is certain, for writing and for reading.

Writing takes years from 1 to 9999. Reading takes texts that have exactly the digits of the pattern.
"""

from __future__ import annotations

import re
from itertools import pairwise

from panes.expressions import types as t
from panes.expressions.typed import Typed, failure, refuse

_TOKEN = re.compile(r"([A-Za-z])\1*|'((?:[^']|'')*)'|[^A-Za-z']+")
_LITERAL = re.compile(r"[ /:.,\-_T]*")
_YEAR = failure("to write a year outside 1 to 9999 is not translated")
_NUMBERS = {"M": "month", "d": "day", "H": "hour", "m": "minute", "s": "second"}


def written(moment: str, pattern: str) -> str:
    """DuckDB's text for a moment (of type TIMESTAMP) written by a pattern."""
    pieces = [_piece(moment, part, pattern) for part in _parts(pattern)]
    return f"CASE WHEN {moment} IS NOT NULL THEN {' || '.join(pieces or [repr('')])} END"


def _parts(pattern: str) -> list[str]:
    found = [match.group(0) for match in _TOKEN.finditer(pattern)]
    if "".join(found) != pattern:
        raise _unknown(pattern)
    return found


def _piece(moment: str, part: str, pattern: str) -> str:
    letter, width = part[0], len(part)
    if letter == "'":
        return t.text_literal("'" if part == "''" else part[1:-1].replace("''", "'"))
    if not letter.isalpha():
        if not _LITERAL.fullmatch(part):
            raise _unknown(pattern)
        return t.text_literal(part)
    if letter == "y" and width in (1, 4):
        year = f"CAST(year({moment}) AS VARCHAR)"
        year = f"lpad({year}, 4, '0')" if width == 4 else year
        return f"CASE WHEN year({moment}) NOT BETWEEN 1 AND 9999 THEN {_YEAR} ELSE {year} END"
    if letter in _NUMBERS and width <= 2:
        number = f"CAST({_NUMBERS[letter]}({moment}) AS VARCHAR)"
        return f"lpad({number}, 2, '0')" if width == 2 else number
    if letter == "S" and width <= 6:
        return f"left(lpad(CAST(microsecond({moment}) % 1000000 AS VARCHAR), 6, '0'), {width})"
    if part in ("MMM", "MMMM"):
        return _shortened(f"monthname({moment})", is_short=width == 3)
    if letter == "E" and width <= 4:
        return _shortened(f"dayname({moment})", is_short=width <= 3)
    if part in _OTHERS:
        return _OTHERS[part].format(moment)
    raise _unknown(pattern)


def _shortened(name: str, *, is_short: bool) -> str:
    return f"left({name}, 3)" if is_short else name


_HOUR = "((hour({0}) + 11) % 12 + 1)"
_OTHERS = {
    "h": f"CAST({_HOUR} AS VARCHAR)", "hh": f"lpad(CAST({_HOUR} AS VARCHAR), 2, '0')",
    "a": "CASE WHEN hour({0}) < 12 THEN 'AM' ELSE 'PM' END",
    "yy": f"CASE WHEN year({{0}}) NOT BETWEEN 1 AND 9999 THEN {_YEAR} ELSE "
          "lpad(CAST(year({0}) % 100 AS VARCHAR), 2, '0') END",
    "D": "CAST(dayofyear({0}) AS VARCHAR)", "DDD": "lpad(CAST(dayofyear({0}) AS VARCHAR), 3, '0')",
    "q": "CAST(quarter({0}) AS VARCHAR)", "Q": "CAST(quarter({0}) AS VARCHAR)",
    "XXX": "'Z'", "X": "'Z'", "XX": "'Z'", "xxx": "'+00:00'",
}  # fmt: skip
"""Letters of few uses; a zone is always that of UTC."""


def read(text: Typed, pattern: str, *, is_try: bool) -> str:
    """DuckDB's text for a moment (TIMESTAMP) that is read by a pattern; else NULL or an error."""
    form = ""
    groups: dict[str, int] = {}
    for part in _parts(pattern):
        piece = _read_piece(part, pattern)
        if piece.startswith("("):
            if part[0] in groups:
                raise _unknown(pattern)
            groups[part[0]] = len(groups) + 1
        form += piece
    for one, other in pairwise(_parts(pattern)):
        if {one, other} & _FREE and one[0].isalpha() and other[0].isalpha():
            raise _unknown(pattern)
    if "y" not in groups or ("d" in groups and "M" not in groups):
        raise _unknown(pattern)
    regex = t.text_literal(f"^{form}$")
    x = text.text

    def number(letter: str, default: str) -> str:
        if letter not in groups:
            return default
        return f"CAST(regexp_extract({x}, {regex}, {groups[letter]}) AS BIGINT)"

    day = f"make_date({number('y', '1970')}, {number('M', '1')}, {number('d', '1')})"
    clock = f"({number('H', '0')} * 3600 + {number('m', '0')} * 60 + {number('s', '0')})"
    fraction = "0"
    if "S" in groups:
        digits = f"regexp_extract({x}, {regex}, {groups['S']})"
        fraction = f"CAST(rpad({digits}, 6, '0') AS BIGINT)"
    moment = f"(CAST({day} AS TIMESTAMP) + to_microseconds({clock} * 1000000 + {fraction}))"
    otherwise = "NULL" if is_try else failure(f"the text is not of the form {pattern}")
    return f"CASE WHEN regexp_full_match({x}, {regex}) THEN {moment} " \
           f"WHEN {x} IS NOT NULL THEN {otherwise} END"  # fmt: skip


_READ = {"yyyy": r"(\d{4})", "MM": r"(\d{2})", "dd": r"(\d{2})",
         "M": r"(0{0,17}\d{1,2})", "d": r"(0{0,17}\d{1,2})", "H": r"(0{0,17}(?:[01]?\d|2[0-3]))",
         "HH": r"([01]\d|2[0-3])", "mm": r"([0-5]\d)", "ss": r"([0-5]\d)",
         **{"S" * n: rf"(\d{{{n}}})" for n in range(1, 7)}}  # fmt: skip


_FREE = {"M", "d", "H"}
"""Numbers of as many digits as there are: beside another, where they end is not certain."""


def _read_piece(part: str, pattern: str) -> str:
    if part in _READ:
        return _READ[part]
    if part[0] == "'" and len(part) > 2:
        return re.escape(part[1:-1].replace("''", "'"))
    if not part[0].isalpha() and _LITERAL.fullmatch(part):
        return re.escape(part)
    raise _unknown(pattern)


def _unknown(pattern: str) -> Exception:
    return refuse(f"the pattern '{pattern}' is not translated", "patterns such as yyyy-MM-dd "
                  "HH:mm:ss are")  # fmt: skip
