"""Hashes by the bytes of their arguments: `crc32`, and `hash`, which is Murmur3 with the seed 42.

Numbers of 32 bits are held in 64 without a sign, in which a product of two of them has place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from panes.expressions import types as t
from panes.expressions.typed import Typed, over, refuse

Form = Callable[[Sequence[Typed]], Typed]
_MASK = "4294967295::UBIGINT"
_SEED = 42
_IN_INT = (t.BOOLEAN, t.TINYINT, t.SMALLINT, t.INT, t.DATE)


def _remainder(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (0xEDB88320 if byte & 1 else 0)
    return byte


_TABLE = [_remainder(byte) for byte in range(256)]


def _crc32(arguments: Sequence[Typed]) -> Typed:
    value = arguments[0] if len(arguments) == 1 else None
    if value is None or value.type not in (t.STRING, t.BINARY):
        raise refuse("`crc32` takes text or bytes")
    table = "[" + ", ".join(map(str, _TABLE)) + "]::BIGINT[]"

    def body(digits: str) -> str:
        byte = f"CAST('0x' || substr({digits}, 2 * CAST(i AS BIGINT) + 1, 2) AS BIGINT)"
        each = f"list_transform(range(length({digits}) // 2), lambda i: {byte})"
        step = f"xor(c >> 8, ({table})[(xor(c, b) & 255) + 1])"
        whole = f"list_reduce({each}, lambda c, b: {step}, 4294967295::BIGINT)"
        return f"xor({whole}, 4294967295::BIGINT)"

    return Typed(over(_hex(value.text, value.type), body), t.BIGINT)


def _hex(x: str, kind: object) -> str:
    return f"hex({x})" if kind == t.BINARY else f"hex(encode({x}))"


def _hash(arguments: Sequence[Typed]) -> Typed:
    if not arguments:
        raise refuse("`hash` takes a value")
    text = f"{_SEED}::UBIGINT"
    for value in arguments:
        text = over(text, _mixed_in(value))
    signed = "CASE WHEN {0} >= 2147483648 THEN CAST({0} AS BIGINT) - 4294967296 ELSE {0} END"
    return Typed(f"CAST({over(text, signed.format)} AS INTEGER)", t.INT)


def _mixed_in(value: Typed) -> Callable[[str], str]:
    """A hash after one more value; NULL does not change it."""
    if value.type == t.VOID:
        return lambda seed: seed

    def body(seed: str) -> str:
        return over(value.text, lambda x: f"CASE WHEN {x} IS NULL THEN {seed} ELSE "
                    f"{_murmur(Typed(x, value.type), seed)} END")  # fmt: skip

    _words("x", value.type)  # which refuses what has none
    return body


def _murmur(value: Typed, seed: str) -> str:
    words, length = _words(value.text, value.type)
    mixed = over(words, lambda w: f"list_reduce({w}, lambda h, k: {_mix('h', 'k')}, {seed})")
    return over(mixed, lambda h: _finished(f"xor({h}, CAST({length} AS UBIGINT))"))


def _words(x: str, kind: object) -> tuple[str, str]:
    """The words of 32 bits that a value is hashed by, and how many bytes it has."""
    if kind in _IN_INT:
        number = f"({x} - DATE '1970-01-01')" if kind == t.DATE else f"CAST({x} AS BIGINT)"
        return f"[{_unsigned(number)}]", "4"
    if kind in (t.BIGINT, t.TIMESTAMP, t.TIMESTAMP_NTZ):
        number = x if kind == t.BIGINT else f"epoch_us(CAST({x} AS TIMESTAMP))"
        return f"[{_unsigned(number)}, {_unsigned(f'({number} >> 32)')}]", "8"
    if kind in (t.STRING, t.BINARY):
        digits = _hex(x, kind)
        whole = "substr({0}, 8 * CAST(i AS BIGINT) + {1}, 2)"
        four = " || ".join(whole.format(digits, at) for at in (7, 5, 3, 1))
        last = f"CAST('0x' || substr({digits}, 2 * CAST(i AS BIGINT) + 1, 2) AS BIGINT)"
        bytes_ = f"(length({digits}) // 2)"
        first = f"list_transform(range({bytes_} // 4), lambda i: CAST('0x' || {four} AS UBIGINT))"
        rest = (f"list_transform(range({bytes_} // 4 * 4, {bytes_}), lambda i: "
                f"CAST(CASE WHEN {last} > 127 THEN {last} + 4294967040 ELSE {last} END "
                "AS UBIGINT))")  # fmt: skip
        return f"list_concat({first}, {rest})", bytes_
    raise refuse(f"`hash` of {t.spark_name(kind)} is not translated")


def _unsigned(number: str) -> str:
    return f"CAST({number} & 4294967295::BIGINT AS UBIGINT)"


def _mix(h: str, k: str) -> str:
    one = _times(k, 0xCC9E2D51)
    turned = over(one, lambda x: f"((({x} << 15) | ({x} >> 17)) & {_MASK})")
    two = f"xor({h}, {_times(turned, 0x1B873593)})"
    again = over(two, lambda x: f"((({x} << 13) | ({x} >> 19)) & {_MASK})")
    return f"(({again} * 5 + {0xE6546B64}) & {_MASK})"


def _finished(h: str) -> str:
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        h = _times(over(h, lambda x, n=shift: f"xor({x}, {x} >> {n})"), factor)  # type: ignore[misc]
    return over(h, lambda x: f"xor({x}, {x} >> 16)")


def _times(x: str, factor: int) -> str:
    return f"(({x} * {factor}::UBIGINT) & {_MASK})"


FORMS: dict[str, Form] = {"crc32": _crc32, "hash": _hash}
