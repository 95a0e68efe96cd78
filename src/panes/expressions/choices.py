"""Functions that choose by comparing: `decode`, `nullif`, `equal_null`, and LIKE as a call."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from panes.expressions import types as t
from panes.expressions.comparison import chosen, compared, matched
from panes.expressions.forms_bytes import decoded
from panes.expressions.literals import integer
from panes.expressions.typed import Typed, refuse, widened

Form = Callable[[Sequence[Typed]], Typed]


def _decode(arguments: Sequence[Typed]) -> Typed:
    """`decode(value, search, result, ..., default)`; of bytes and a charset, text."""
    if len(arguments) < 3:
        return decoded(arguments)
    value, *rest = arguments
    default = rest.pop() if len(rest) % 2 else Typed("NULL", t.VOID)
    results = [*rest[1::2], default]
    kind = t.widest(r.type for r in results)
    if kind is None:
        raise refuse("`decode` to different types is not translated")
    texts = [widened(r, kind).text for r in results]
    tests = [compared("IS NOT DISTINCT FROM", value, search).text for search in rest[::2]]
    whens = " ".join(f"WHEN {a} THEN {b}" for a, b in zip(tests, texts, strict=False))
    return Typed(f"CASE {whens} ELSE {texts[-1]} END", kind)


def _null_if(arguments: Sequence[Typed]) -> Typed:
    if len(arguments) != 2:
        raise refuse("`nullif` takes two values")
    equal = compared("=", *arguments)
    return Typed(f"CASE WHEN {equal.text} THEN NULL ELSE {arguments[0].text} END",
                 arguments[0].type)  # fmt: skip


def _zero_if_null(arguments: Sequence[Typed]) -> Typed:
    if len(arguments) != 1:
        raise refuse("`zeroifnull` takes one value")
    return _coalesce("coalesce")([*arguments, integer(0)])


def _equal_null(arguments: Sequence[Typed]) -> Typed:
    if len(arguments) != 2:
        raise refuse("`equal_null` takes two values")
    return compared("IS NOT DISTINCT FROM", *arguments)


def _like(arguments: Sequence[Typed]) -> Typed:
    if len(arguments) != 2:
        raise refuse("`like` takes a text and a pattern")
    return matched(arguments[0], arguments[1], "\\", is_ilike=False)


def _ilike(arguments: Sequence[Typed]) -> Typed:
    if len(arguments) != 2:
        raise refuse("`ilike` takes a text and a pattern")
    return matched(arguments[0], arguments[1], "\\", is_ilike=True)


def _coalesce(name: str) -> Form:
    """Of text and numbers; others are a line of the table."""

    def build(arguments: Sequence[Typed]) -> Typed:
        if not arguments or (name != "coalesce" and len(arguments) != 2):
            raise refuse(f"`{name}` does not take {len(arguments)} values")
        kind, values = chosen(name, arguments)
        return Typed(f"coalesce({', '.join(v.text for v in values)})", kind)

    return build


FORMS: dict[str, Form] = {
    **{name: _coalesce(name) for name in ("coalesce", "nvl", "ifnull")},
    "decode": _decode, "nullif": _null_if, "zeroifnull": _zero_if_null, "equal_null": _equal_null,
    "like": _like, "ilike": _ilike,
}  # fmt: skip
