"""Regular expressions that Java and RE2 read alike; all others are refused.

Taken are letters, `.`, `^` and `$` at the ends, classes, groups, alternatives (both prefer the left
one), and greedy or lazy repetition. Not taken are looks around, back references, possessive
repetition, flags, classes within classes, word boundaries, and POSIX or Unicode classes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

import pyarrow as pa

from panes.expressions import types as t
from panes.expressions.rules import taken
from panes.expressions.typed import Typed, bound, refuse

Form = Callable[[Sequence[Typed]], Typed]
_CLASS = r"\[\^?(?:\\[\\dDwW.\-\]\[^$|()*+?{}/tnr]|[^\\\[\]&^])+\]"
_ESCAPE = r"\\[\\dDwWsS.\-\[\]^$|()*+?{}/tnr]"
_TOKEN = re.compile(
    rf"{_CLASS}|{_ESCAPE}|\((?:\?:)?|\)|\||[*+?]\??|\{{\d{{1,3}}(?:,\d{{0,3}})?\}}\??|\.|\^|\$"
    r"|[^\\\[\](){}*+?|.^$]"
)


def agreed(name: str, pattern: Typed) -> str:
    """A pattern that both read alike, as DuckDB's text; NULL too."""
    written = pattern.constant
    if not isinstance(written, str) or not pattern.is_constant:
        raise refuse(f"`{name}` takes a pattern that is written in the query")
    tokens = [match.group(0) for match in _TOKEN.finditer(written)]
    repeats = [token[0] in "*+?{" for token in tokens]
    is_twice = any(one and other for one, other in pairwise(repeats))
    at_start = bool(tokens) and repeats[0]
    after_open = any(other and (one[0] in "(|^") for one, other in
                     zip(tokens, repeats[1:], strict=False))  # fmt: skip
    inner = "^" in tokens[1:] or "$" in tokens[:-1]
    if "".join(tokens) != written or is_twice or at_start or after_open or inner:
        raise refuse(f"the pattern '{written}' is not translated: Java may read it differently")
    try:
        re.compile(written)
    except re.error as error:
        raise refuse(f"the pattern '{written}' cannot be read: {error}") from None
    return written


def groups_of(pattern: str) -> int:
    """The number of groups in a pattern."""
    return re.compile(pattern).groups


def _may_be_empty(pattern: str) -> bool:
    bare = pattern.removeprefix("^").removesuffix("$")
    return re.compile(bare).fullmatch("") is not None


def like(value: Typed, pattern: Typed) -> Typed:
    """`value RLIKE pattern`."""
    (text,) = taken("rlike", [value], "string")
    found = t.text_literal(_written(agreed("rlike", pattern)))
    return Typed(f"regexp_matches({text.text}, {found})", t.BOOLEAN)


_ENDS = r"\n\r\x{85}\x{2028}\x{2029}"
_MEANINGS = {
    ".": f"[^{_ENDS}]", "$": rf"(?:\r\n|[{_ENDS}])?\z",
    r"\s": r"[ \t\n\x0B\f\r]", r"\S": r"[^ \t\n\x0B\f\r]",
}  # fmt: skip


def _written(pattern: str) -> str:
    """A pattern with Java's ends of lines and blanks: `.` stops there, `$` is before the last."""
    tokens = [match.group(0) for match in _TOKEN.finditer(pattern)]
    return "".join(_MEANINGS.get(token, token) for token in tokens)


def _prepared(name: str, arguments: Sequence[Typed], rest: str) -> tuple[list[Typed], str, str]:
    values = taken(name, arguments, f"string, #string{rest}")
    pattern = agreed(name, values[1])
    if pattern.endswith("$") and not pattern.endswith("\\$") and name != "regexp_instr":
        raise refuse(f"`{name}` with `$` is not translated")
    if _may_be_empty(pattern):
        raise refuse(f"`{name}` by a pattern that may match nothing is not translated")
    return values, pattern, t.text_literal(_written(pattern))


def _group(name: str, values: list[Typed], pattern: str) -> int:
    group = values[2].constant if len(values) > 2 else 1
    if not isinstance(group, int) or not 0 <= group <= groups_of(pattern):
        raise refuse(f"`{name}` takes a group that its pattern has")
    if group and re.search(r"\)[*+?{]|\|", pattern):
        raise refuse(f"`{name}` of a group that may be left out is not translated")
    return group


def _extract(arguments: Sequence[Typed]) -> Typed:
    values, pattern, found = _prepared("regexp_extract", arguments, ", #int?")
    group = _group("regexp_extract", values, pattern)
    return Typed(f"regexp_extract({values[0].text}, {found}, {group})", t.STRING)


def _extract_all(arguments: Sequence[Typed]) -> Typed:
    values, pattern, found = _prepared("regexp_extract_all", arguments, ", #int?")
    group = _group("regexp_extract_all", values, pattern)
    return Typed(f"regexp_extract_all({values[0].text}, {found}, {group})", pa.list_(t.STRING))


def _count(arguments: Sequence[Typed]) -> Typed:
    values, _, found = _prepared("regexp_count", arguments, "")
    return Typed(f"CAST(len(regexp_extract_all({values[0].text}, {found}, 0)) AS INTEGER)", t.INT)


def _substr(arguments: Sequence[Typed]) -> Typed:
    values, _, found = _prepared("regexp_substr", arguments, "")
    return Typed(bound(values[0].text, lambda x: f"CASE WHEN regexp_matches({x}, {found}) THEN "
                       f"regexp_extract({x}, {found}, 0) END"), t.STRING)  # fmt: skip


def _instr(arguments: Sequence[Typed]) -> Typed:
    values, pattern, _ = _prepared("regexp_instr", arguments, "")
    bare = pattern.removeprefix("^")
    if "|" in bare:
        raise refuse("`regexp_instr` with alternatives is not translated")
    if pattern.startswith("^"):
        return Typed(f"CAST({like(values[0], values[1]).text} AS INTEGER)", t.INT)
    if pattern.endswith("$") and not pattern.endswith("\\$"):
        raise refuse("`regexp_instr` with `$` is not translated")
    before = t.text_literal(f"(?s)^(.*?){_written(pattern)}")
    found = t.text_literal(_written(pattern))

    def place(x: str) -> str:
        at = f"length(regexp_extract({x}, {before}, 1))"
        return (
            f"CAST(CASE WHEN regexp_matches({x}, {found}) THEN {at} + 1 "
            f"WHEN {x} IS NOT NULL THEN 0 END AS INTEGER)"
        )

    return Typed(bound(values[0].text, place), t.INT)


def _replace(arguments: Sequence[Typed]) -> Typed:
    values, pattern, found = _prepared("regexp_replace", arguments, ", #string")
    new = values[2].constant
    pieces = re.fullmatch(r"(?:[^$\\]|\$\d(?!\d))*", new) if isinstance(new, str) else None
    if pieces is None:
        raise refuse("`regexp_replace` by such a text is not translated")
    if any(int(group) > groups_of(pattern) for group in re.findall(r"\$(\d)", pieces[0])):
        raise refuse("`regexp_replace` puts in a group that its pattern does not have")
    by = t.text_literal(re.sub(r"\$(\d)", r"\\\1", pieces[0]))
    return Typed(f"regexp_replace({values[0].text}, {found}, {by}, 'g')", t.STRING)


def _split(arguments: Sequence[Typed]) -> Typed:
    values, pattern, found = _prepared("split", arguments, ", #int?")
    limit = values[2].constant if len(values) > 2 else -1
    x, kind = values[0].text, pa.list_(t.STRING)
    if "^" in pattern[:1]:
        raise refuse("`split` at a beginning is not translated")
    if isinstance(limit, int) and limit <= 0:
        return Typed(f"string_split_regex({x}, {found})", kind)
    if not isinstance(limit, int):
        raise refuse("`split` takes a limit that is written in the query")

    def body(text: str) -> str:
        parts = f"string_split_regex({text}, {found})"
        marks = f"regexp_extract_all({text}, {found}, 0)"
        used = f"list_sum(list_transform({parts}[1:{limit - 1}], lambda e: length(e)))"
        cut = f"list_sum(list_transform({marks}[1:{limit - 1}], lambda e: length(e)))"
        rest = f"substr({text}, CAST(coalesce({used}, 0) + coalesce({cut}, 0) + 1 AS BIGINT))"
        return f"CASE WHEN len({parts}) <= {limit} THEN {parts} WHEN {text} IS NOT NULL THEN " \
               f"list_append({parts}[1:{limit - 1}], {rest}) END"  # fmt: skip

    return Typed(bound(x, body), kind)


def _like_call(arguments: Sequence[Typed]) -> Typed:
    if len(arguments) != 2:
        raise refuse("`rlike` takes a text and a pattern")
    return like(arguments[0], arguments[1])


FORMS: dict[str, Form] = {
    "regexp": _like_call, "rlike": _like_call, "regexp_like": _like_call,
    "regexp_extract": _extract, "regexp_extract_all": _extract_all, "regexp_count": _count,
    "regexp_substr": _substr, "regexp_instr": _instr, "regexp_replace": _replace, "split": _split,
}  # fmt: skip
