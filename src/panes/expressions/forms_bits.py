"""Functions of the bits of whole numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from panes.expressions import types as t
from panes.expressions.rules import taken
from panes.expressions.typed import Typed, bound

Form = Callable[[Sequence[Typed]], Typed]


def _shift(name: str) -> Form:
    """Bits shifted as Java shifts them: by the lowest five or six bits, without overflow."""

    def build(arguments: Sequence[Typed]) -> Typed:
        is_long = bool(arguments) and arguments[0].type == t.BIGINT
        value, by = taken(name, arguments, "bigint, int" if is_long else "int, int")
        bits = 64 if is_long else 32
        kind = t.BIGINT if is_long else t.INT
        count = f"({by.text} & {bits - 1})"
        if name == "shiftright":
            text = f"(CAST({value.text} AS BIGINT) >> {count})"
            return Typed(f"CAST({text} AS {t.duckdb_name(kind)})", kind)
        all_bits = f"{2**bits - 1}::HUGEINT"
        if name == "shiftleft":
            raw = f"((CAST({value.text} AS HUGEINT) * (1::HUGEINT << {count})) & {all_bits})"
        else:
            raw = f"((CAST({value.text} AS HUGEINT) & {all_bits}) // (1::HUGEINT << {count}))"
        text = bound(raw, lambda x: f"CASE WHEN {x} >= {2 ** (bits - 1)}::HUGEINT "
                                    f"THEN {x} - {2**bits}::HUGEINT ELSE {x} END")  # fmt: skip
        return Typed(f"CAST({text} AS {t.duckdb_name(kind)})", kind)

    return build


def _bitmap(name: str) -> Form:
    """The number of the map of 32768 bits that a number is in, or its place there."""

    def build(arguments: Sequence[Typed]) -> Typed:
        (value,) = taken(name, arguments, "bigint")
        x = value.text
        if name == "bitmap_bit_position":
            text = f"CASE WHEN {x} > 0 THEN ({x} - 1) % 32768 ELSE -({x} % 32768) END"
        else:
            text = f"CASE WHEN {x} > 0 THEN 1 + ({x} - 1) // 32768 ELSE {x} // 32768 END"
        return Typed(text, t.BIGINT)

    return build


FORMS: dict[str, Form] = {
    **{name: _shift(name) for name in ("shiftleft", "shiftright", "shiftrightunsigned")},
    **{name: _bitmap(name) for name in ("bitmap_bit_position", "bitmap_bucket_number")},
}
