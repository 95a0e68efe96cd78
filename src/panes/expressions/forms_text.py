"""Functions of text whose meaning depends on a constant, or that take bytes as well as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from panes.expressions import types as t
from panes.expressions.rules import taken
from panes.expressions.typed import Typed, bound, failure, refuse, widened

Form = Callable[[Sequence[Typed]], Typed]


def _bytes_or_text(name: str, arguments: Sequence[Typed], count: int, rest: str) -> list[Typed]:
    """Arguments whose first `count` are all bytes or all text."""
    first = "binary" if arguments and arguments[0].type == t.BINARY else "string"
    return taken(name, arguments, ", ".join([first] * count + [rest]) if rest else first)


def _cut(x: str, start: str, length: str | None, *, of_bytes: bool) -> str:
    """Characters or bytes from a position, which counts from 1, or from the end if negative."""
    if of_bytes:
        first = f"CASE WHEN {start} > 0 THEN 2 * {start}::BIGINT - 1 " \
                f"WHEN {start} = 0 THEN 1 ELSE 2 * {start}::BIGINT END"  # fmt: skip
        more = "" if length is None else f", 2 * (greatest({length}, 0) + 0 * {length})::BIGINT"
        return f"unhex(substr(hex({x}), {first}{more}))"
    more = "" if length is None else f", greatest({length}, 0) + 0 * {length}"
    return f"substr({x}, CASE WHEN {start} = 0 THEN 1 ELSE {start} END{more})"


def _substring(arguments: Sequence[Typed]) -> Typed:
    value, start, *length = _bytes_or_text("substring", arguments, 1, "int, int?")
    size = length[0].text if length else None
    if size is None and not (isinstance(start.constant, int) and start.constant > -_MOST):
        size = f"{_MOST}"  # what is cut off before the text counts, as in Spark
    return Typed(_cut(value.text, start.text, size, of_bytes=value.type == t.BINARY), value.type)


_MOST = 2**31 - 1


def _left(arguments: Sequence[Typed]) -> Typed:
    value, size = taken("left", arguments, "binary, int")
    return Typed(_cut(value.text, "1", size.text, of_bytes=True), t.BINARY)


def overlay(arguments: Sequence[Typed]) -> Typed:
    """`overlay(text PLACING new FROM at FOR length)`."""
    value, new, at, *length = _bytes_or_text("overlay", arguments, 2, "int, int?")
    of_bytes = value.type == t.BINARY
    measured = f"octet_length({new.text})" if of_bytes else f"length({new.text})"
    size = measured
    if length:
        given = length[0].text
        size = f"CASE WHEN {given} < 0 THEN {measured} ELSE {given} END"
    position = f"CAST({at.text} AS BIGINT)"
    before = _cut(value.text, "1", f"({position} - 1)", of_bytes=of_bytes)
    after = _cut(value.text, f"({position} + CAST({size} AS BIGINT))", None, of_bytes=of_bytes)
    return Typed(f"({before} || {new.text} || {after})", value.type)


def _pad(name: str) -> Form:
    def build(arguments: Sequence[Typed]) -> Typed:
        of_bytes = bool(arguments) and arguments[0].type == t.BINARY
        values = list(arguments)
        if len(values) == 2:
            values.append(Typed("unhex('00')", t.BINARY) if of_bytes else Typed("' '", t.STRING))
        first = "binary" if of_bytes else "string"
        x, size, fill = (v.text for v in taken(name, values, f"{first}, int, {first}"))
        if of_bytes:
            x, fill, size = f"hex({x})", f"hex({fill})", f"(2 * {size})"
        text = (
            f"CASE WHEN {size} IS NULL OR {fill} IS NULL THEN NULL "
            f"WHEN {fill} = '' OR {size} <= length({x}) THEN left({x}, greatest({size}, 0)) "
            f"ELSE {name}({x}, {size}, {fill}) END"
        )
        return Typed(f"unhex({text})", t.BINARY) if of_bytes else Typed(text, t.STRING)

    return build


def _substring_index(arguments: Sequence[Typed]) -> Typed:
    value, by, count = taken("substring_index", arguments, "string, #string, int")
    mark = by.constant
    if not isinstance(mark, str) or any(mark.startswith(mark[n:]) for n in range(1, len(mark))):
        raise refuse("`substring_index` by a mark that overlaps itself is not translated")
    if mark == "":
        return Typed(f"CASE WHEN {value.text} IS NOT NULL AND {count.text} IS NOT NULL THEN '' END",
                     t.STRING)  # fmt: skip

    def body(parts: str) -> str:
        n, mark_text = count.text, t.text_literal(str(mark))
        first = f"array_to_string({parts}[1:{n}], {mark_text})"
        last = f"array_to_string({parts}[greatest(len({parts}) + {n} + 1, 1):], {mark_text})"
        return f"CASE WHEN {n} = 0 AND {parts} IS NOT NULL THEN '' WHEN {n} > 0 THEN {first} " \
               f"WHEN {n} < 0 THEN {last} END"  # fmt: skip

    return Typed(bound(f"string_split({value.text}, {by.text})", body), t.STRING)


def _concat(arguments: Sequence[Typed]) -> Typed:
    if not arguments:
        return Typed("''", t.STRING)
    kind = t.widest(a.type for a in arguments)
    if kind is not None and (t.is_array(kind) or kind == t.BINARY):
        values = [widened(a, kind) for a in arguments]
    else:
        kind = t.STRING
        values = taken("concat", arguments, "string, string*")
    if t.is_array(kind):
        missing = " OR ".join(f"{v.text} IS NULL" for v in values)
        joined = f"list_concat({', '.join(v.text for v in values)})"
        return Typed(f"CASE WHEN {missing} THEN NULL ELSE {joined} END", kind)
    return Typed("(" + " || ".join(v.text for v in values) + ")", kind)


def _concat_ws(arguments: Sequence[Typed]) -> Typed:
    if not arguments:
        raise refuse("`concat_ws` takes a separator")
    by, *rest = arguments
    (mark,) = taken("concat_ws", [by], "string")
    if rest and not any(t.is_array(value.type) for value in rest):
        texts = [taken("concat_ws", [value], "string")[0].text for value in rest]
        return Typed(f"concat_ws({mark.text}, {', '.join(texts)})", t.STRING)
    if not mark.is_constant:
        raise refuse("`concat_ws` of arrays takes a separator that is written in the query")
    lists = []
    for value in rest:
        if t.is_array(value.type):
            (found,) = taken("concat_ws", [value], "array<string>")
            lists.append(f"coalesce({found.text}, []::VARCHAR[])")
        else:
            (found,) = taken("concat_ws", [value], "string")
            lists.append(f"[{found.text}]::VARCHAR[]")
    joined = (
        f"list_concat({', '.join(lists)})" if len(lists) > 1 else (lists or ["[]::VARCHAR[]"])[0]
    )
    text = f"coalesce(array_to_string({joined}, {mark.text}), '')"
    return Typed(f"CASE WHEN {mark.text} IS NOT NULL THEN {text} END", t.STRING)


def _elt(arguments: Sequence[Typed]) -> Typed:
    if len(arguments) < 2:
        raise refuse("`elt` takes a number and texts")
    (at,) = taken("elt", arguments[:1], "int")
    kinds = {a.type for a in arguments[1:]}
    values = (
        arguments[1:] if kinds == {t.BINARY} else taken("elt", arguments[1:], "string, string*")
    )
    whens = " ".join(f"WHEN {at.text} = {n} THEN {v.text}" for n, v in enumerate(values, 1))
    error = failure("`elt` has no text at that position")
    return Typed(f"CASE {whens} WHEN {at.text} IS NOT NULL THEN {error} END", values[0].type)


def _translated(arguments: Sequence[Typed]) -> Typed:
    value, old, new = taken("translate", arguments, "string, #string, #string")
    letters, others = old.constant, new.constant
    if not isinstance(letters, str) or not isinstance(others, str):
        raise refuse("`translate` takes letters that are written in the query")
    if len(set(letters)) != len(letters) or "\0" in letters + others:
        raise refuse("`translate` of a letter that is named twice is not translated")
    return Typed(f"translate({value.text}, {old.text}, {t.text_literal(others[: len(letters)])})",
                 t.STRING)  # fmt: skip


def _mask(arguments: Sequence[Typed]) -> Typed:
    if not 1 <= len(arguments) <= 5:
        raise refuse("`mask` takes a text and up to four letters")
    (value,) = taken("mask", arguments[:1], "string")
    signs: list[str | None] = ["X", "x", "n", None]
    for at, given in enumerate(arguments[1:]):
        sign = given.constant
        if not given.is_constant or not (
            sign is None or (isinstance(sign, str) and len(sign) == 1)
        ):
            raise refuse("`mask` takes letters that are written in the query")
        signs[at] = sign
    old = new = ""
    for code in range(1, 128):
        letter = chr(code)
        sign = signs[0 if letter.isupper() else 1 if letter.islower() else
                     2 if letter.isdigit() else 3]  # fmt: skip
        if sign is not None:
            old, new = old + letter, new + sign
    text = f"translate({{0}}, {t.text_literal(old)}, {t.text_literal(new)})" if old else "{0}"
    outside = failure("`mask` of text outside ASCII is not translated")
    return Typed(bound(value.text, lambda x: "CASE WHEN regexp_matches("
                       f"{x}, '[^\\x01-\\x7F]') THEN {outside} ELSE {text.replace('{0}', x)} END"),
                 t.STRING)  # fmt: skip


FORMS: dict[str, Form] = {
    "substring": _substring, "substr": _substring, "left": _left, "overlay": overlay,
    "lpad": _pad("lpad"), "rpad": _pad("rpad"), "substring_index": _substring_index,
    "concat": _concat, "concat_ws": _concat_ws, "elt": _elt, "translate": _translated,
    "mask": _mask,
}  # fmt: skip
