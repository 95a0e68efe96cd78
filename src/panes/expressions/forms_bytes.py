"""Functions from text to bytes and back: charsets, forms of writing bytes, digests."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from panes.expressions import types as t
from panes.expressions.casts import cast
from panes.expressions.forms_dates import FORMS as DATES
from panes.expressions.rules import coerced, taken
from panes.expressions.typed import Typed, failure, refuse

Form = Callable[[Sequence[Typed]], Typed]


def _charset(name: str, value: Typed) -> None:
    if not isinstance(value.constant, str) or value.constant.lower() != "utf-8":
        raise refuse(f"`{name}` is translated for 'utf-8'")


def _encode(arguments: Sequence[Typed]) -> Typed:
    value, charset = taken("encode", arguments, "string, #string")
    _charset("encode", charset)
    return Typed(f"encode({value.text})", t.BINARY)


def decoded(arguments: Sequence[Typed]) -> Typed:
    """Text from bytes; the other `decode`, of several values, is translated with comparisons."""
    value, charset = taken("decode", arguments, "binary, #string")
    _charset("decode", charset)
    return Typed(f"decode({value.text})", t.STRING)


def _to_char(arguments: Sequence[Typed]) -> Typed:
    if len(arguments) == 2 and arguments[0].type in (t.DATE, t.TIMESTAMP, t.TIMESTAMP_NTZ):
        return DATES["date_format"](arguments)
    value, form = taken("to_char", arguments, "binary, #string")
    shapes = {"base64": "base64({0})", "hex": "hex({0})", "utf-8": "decode({0})"}
    shape = shapes.get(str(form.constant).lower())
    if shape is None:
        raise refuse(f"`to_char` to {form.constant} is not translated")
    return Typed(shape.format(value.text), t.STRING)


_HEX = "'[0-9a-fA-F]*'"
_BASE64 = "'(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?'"


def _to_binary(name: str) -> Form:
    def build(arguments: Sequence[Typed]) -> Typed:
        values = list(arguments)
        if len(values) == 1:
            values.append(Typed("'hex'", t.STRING, "hex", is_constant=True))
        value, form = taken(name, values, "string, #string")
        kind, x = str(form.constant).lower(), value.text
        otherwise = "NULL" if name.startswith("try_") else failure("the text is not of that form")
        if kind in ("utf-8", "utf8"):
            return Typed(f"encode({x})", t.BINARY)
        if kind == "hex":
            even = f"CASE WHEN length({x}) % 2 = 1 THEN '0' || {x} ELSE {x} END"
            return Typed(f"CASE WHEN regexp_full_match({x}, {_HEX}) THEN unhex({even}) "
                         f"WHEN {x} IS NOT NULL THEN {otherwise} END", t.BINARY)  # fmt: skip
        if kind == "base64":
            doubt = failure("base64 that is not padded is not translated")
            return Typed(f"CASE WHEN regexp_full_match({x}, {_BASE64}) THEN from_base64({x}) "
                         f"WHEN regexp_matches({x}, '[^A-Za-z0-9+/=\\s]') THEN {otherwise} "
                         f"WHEN {x} IS NOT NULL THEN {doubt} END", t.BINARY)  # fmt: skip
        if name.startswith("try_"):
            return Typed("CAST(NULL AS BLOB)", t.BINARY)
        raise refuse(f"`{name}` from {form.constant} is not translated")

    return build


def _sha2(arguments: Sequence[Typed]) -> Typed:
    value, bits = arguments if len(arguments) == 2 else (None, None)
    if value is None or bits is None or bits.constant not in (0, 256):
        raise refuse("`sha2` is translated for 256 bits")
    data = coerced(value, t.STRING) if value.type != t.BINARY else value
    if data is None:
        raise refuse("`sha2` takes text or bytes")
    return Typed(f"sha256({data.text})", t.STRING)


def _btrim(arguments: Sequence[Typed]) -> Typed:
    """Bytes are trimmed as the text that they are."""
    values = [cast(a, t.STRING) if a.type == t.BINARY else a for a in arguments]
    value, *letters = taken("btrim", values, "string, string?")
    return Typed(f"trim({value.text}, {letters[0].text if letters else repr(' ')})", t.STRING)


FORMS: dict[str, Form] = {
    "encode": _encode, "to_char": _to_char, "to_varchar": _to_char,
    "to_binary": _to_binary("to_binary"), "try_to_binary": _to_binary("try_to_binary"),
    "sha2": _sha2, "btrim": _btrim,
}  # fmt: skip
