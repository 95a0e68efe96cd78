"""Functions of arrays, maps and structs whose types follow from their arguments.

The keys of a map are told apart as Spark does, and a key that comes twice is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from panes.expressions import types as t
from panes.expressions.rules import taken
from panes.expressions.typed import Typed, bound, failure, refuse, widened

Form = Callable[[Sequence[Typed]], Typed]
_AWAY = failure("the steps of the sequence lead away from its end")


def _same(name: str, values: Sequence[Typed]) -> tuple[pa.DataType, list[Typed]]:
    kind = t.widest(v.type for v in values)
    if kind is None:
        raise refuse(f"`{name}` of different types is not translated")
    return kind, [widened(v, kind) for v in values]


def struct(names: Sequence[str], values: Sequence[Typed]) -> Typed:
    """A struct of named values."""
    if not values:
        raise refuse("a struct of nothing is not translated")
    if len({name.lower() for name in names}) < len(names):
        raise refuse("a struct with a name that comes twice is not translated")
    parts = ", ".join(f"{t.quoted(n)} := {v.text}" for n, v in zip(names, values, strict=True))
    return Typed(f"struct_pack({parts})",
                 pa.struct([(n, v.type) for n, v in zip(names, values, strict=True)]))  # fmt: skip


def _named_struct(arguments: Sequence[Typed]) -> Typed:
    names = [a.constant for a in arguments[::2]]
    if len(arguments) % 2 or not all(isinstance(name, str) for name in names):
        raise refuse("`named_struct` takes names that are written in the query, each with a value")
    return struct([str(name) for name in names], arguments[1::2])


def map_of(keys: str, values: str, key: pa.DataType, value: pa.DataType) -> Typed:
    """A map from a list of keys and one of values."""
    if t.is_float(key) or t.is_map(key) or key == t.VOID:
        raise refuse(f"a map with keys of {t.spark_name(key)} is not translated")
    kind = pa.map_(key, value)
    return Typed(f"CAST(map({keys}, {values}) AS {t.duckdb_name(kind)})", kind)


def _map(arguments: Sequence[Typed]) -> Typed:
    if len(arguments) % 2 or not arguments:
        raise refuse("`map` takes keys and values")
    key, keys = _same("map", arguments[::2])
    value, values = _same("map", arguments[1::2])
    return map_of(f"[{', '.join(k.text for k in keys)}]", f"[{', '.join(v.text for v in values)}]",
                  key, value)  # fmt: skip


def _map_from_arrays(arguments: Sequence[Typed]) -> Typed:
    keys, values = taken("map_from_arrays", arguments, "array, array")
    return map_of(keys.text, values.text, keys.type.value_type, values.type.value_type)


def _map_from_entries(arguments: Sequence[Typed]) -> Typed:
    (entries,) = taken("map_from_entries", arguments, "array")
    kind = entries.type.value_type
    if not t.is_struct(kind) or kind.num_fields != 2:
        raise refuse("`map_from_entries` takes an array of pairs")
    x, (one, two) = entries.text, (t.quoted(field.name) for field in kind)
    keys, values = (f"list_transform({x}, lambda e: e.{name})" for name in (one, two))
    found = map_of(keys, values, kind.field(0).type, kind.field(1).type)
    missing = f"len({x}) <> len(list_filter({x}, lambda e: e IS NOT NULL))"
    return Typed(f"CASE WHEN {x} IS NOT NULL AND NOT ({missing}) THEN {found.text} END", found.type)


def map_argument(name: str, value: Typed) -> Typed:
    """An argument that is a map."""
    if not t.is_map(value.type):
        raise refuse(f"`{name}` of {value.name} is not translated")
    return value


def _map_concat(arguments: Sequence[Typed]) -> Typed:
    kind, maps = _same("map_concat", [map_argument("map_concat", a) for a in arguments])
    if kind == t.VOID:
        raise refuse("`map_concat` takes maps")
    keys = "list_concat(" + ", ".join(f"map_keys({m.text})" for m in maps) + ")"
    values = "list_concat(" + ", ".join(f"map_values({m.text})" for m in maps) + ")"
    missing = " OR ".join(f"{m.text} IS NULL" for m in maps)
    found = map_of(keys, values, kind.key_type, kind.item_type)
    return Typed(f"CASE WHEN {missing} THEN NULL ELSE {found.text} END", found.type)


def _map_part(name: str) -> Form:
    def build(arguments: Sequence[Typed]) -> Typed:
        if len(arguments) != 1:
            raise refuse(f"`{name}` takes a map")
        value = map_argument(name, arguments[0])
        key, item = value.type.key_type, value.type.item_type
        pair = pa.struct([("key", key), ("value", item)])
        kind = {"map_keys": pa.list_(key), "map_values": pa.list_(item),
                "map_entries": pa.list_(pair)}[name]  # fmt: skip
        return Typed(f"CAST({name}({value.text}) AS {t.duckdb_name(kind)})", kind)

    return build


def _size(arguments: Sequence[Typed]) -> Typed:
    value = map_argument("size", arguments[0])
    return Typed(f"CAST(len(map_keys({value.text})) AS INTEGER)", t.INT)


def _key(name: str, arguments: Sequence[Typed]) -> tuple[Typed, Typed]:
    if len(arguments) != 2:
        raise refuse(f"`{name}` takes a map and a key")
    value = map_argument(name, arguments[0])
    if t.tightest(value.type.key_type, arguments[1].type) != value.type.key_type:
        raise refuse(f"`{name}` of {value.name} by {arguments[1].name} is not translated")
    return value, widened(arguments[1], value.type.key_type)


def _element_at(arguments: Sequence[Typed]) -> Typed:
    value, key = _key("element_at", arguments)
    return Typed(f"{value.text}[{key.text}]", value.type.item_type)


def _contains_key(arguments: Sequence[Typed]) -> Typed:
    value, key = _key("map_contains_key", arguments)
    return Typed(f"CASE WHEN {value.text} IS NOT NULL AND {key.text} IS NOT NULL THEN "
                 f"list_contains(map_keys({value.text}), {key.text}) END", t.BOOLEAN)  # fmt: skip


def arrays_zip(names: Sequence[str], arguments: Sequence[Typed]) -> Typed:
    """Arrays side by side, as an array of structs; what is shorter ends in NULL."""
    arrays = [taken("arrays_zip", [a], "array")[0] for a in arguments]
    if not arrays:
        raise refuse("`arrays_zip` takes arrays")
    if len({name.lower() for name in names}) < len(names):
        raise refuse("arrays with the same name are not zipped")
    fields = [(n, a.type.value_type) for n, a in zip(names, arrays, strict=True)]
    missing = " OR ".join(f"{a.text} IS NULL" for a in arrays)
    longest = f"greatest({', '.join(f'len({a.text})' for a in arrays)})"
    parts = ", ".join(f"{t.quoted(n)} := {a.text}[i]" for n, a in zip(names, arrays, strict=True))
    text = f"list_transform(range(1, {longest} + 1), lambda i: struct_pack({parts}))"
    kind = pa.list_(pa.struct(fields))
    return Typed(f"CASE WHEN {missing} THEN NULL ELSE {text} END", kind)


def _flatten(arguments: Sequence[Typed]) -> Typed:
    (value,) = taken("flatten", arguments, "array")
    if not t.is_array(value.type.value_type):
        raise refuse("`flatten` takes an array of arrays")
    x = value.text
    return Typed(f"CASE WHEN len({x}) = len(list_filter({x}, lambda e: e IS NOT NULL)) "
                 f"THEN flatten({x}) END", value.type.value_type)  # fmt: skip


def _sequence(arguments: Sequence[Typed]) -> Typed:
    if len(arguments) == 3 and arguments[2].type == t.MONTHS:
        return _months_apart(arguments)
    kind = t.widest(a.type for a in arguments)
    if kind is None or not t.is_integer(kind) or len(arguments) not in (2, 3):
        raise refuse("`sequence` is translated for whole numbers, and for dates by months")
    values = [widened(a, t.BIGINT).text for a in arguments]
    first, last = values[:2]
    step = values[2] if len(values) == 3 else f"CASE WHEN {first} <= {last} THEN 1 ELSE -1 END"

    def body(by: str) -> str:
        wrong = f"({by} > 0 AND {first} > {last}) OR ({by} < 0 AND {first} < {last}) OR " \
                f"({by} = 0 AND {first} <> {last})"  # fmt: skip
        one = f"CASE WHEN {by} = 0 THEN [{first}] ELSE generate_series({first}, {last}, {by}) END"
        missing = " OR ".join(f"{v} IS NULL" for v in values)
        return f"CASE WHEN {missing} THEN NULL WHEN {wrong} THEN {_AWAY} ELSE {one} END"

    name = t.duckdb_name(pa.list_(kind))
    return Typed(f"CAST({bound(step, body)} AS {name})", pa.list_(kind))


def _months_apart(arguments: Sequence[Typed]) -> Typed:
    """Dates months apart: each is counted from the first, so that a month's end stays one."""
    first, last, step = arguments
    if first.type != t.DATE or last.type != t.DATE:
        raise refuse("`sequence` by months is translated for dates")
    a, b, by = first.text, last.text, step.text
    steps = f"abs((year({b}) - year({a})) * 12 + month({b}) - month({a})) // abs({by})"
    months = f"to_months(CAST(i * {by} AS INTEGER))"
    dates = f"list_transform(range(0, {steps} + 1), lambda i: CAST({a} + {months} AS DATE))"
    inside = f"CASE WHEN {by} > 0 THEN e <= {b} ELSE e >= {b} END"
    wrong = f"{by} = 0 OR ({by} > 0 AND {a} > {b}) OR ({by} < 0 AND {a} < {b})"
    return Typed(f"CASE WHEN {a} IS NULL OR {b} IS NULL THEN NULL WHEN {wrong} THEN "
                 f"{_AWAY} ELSE "
                 f"list_filter({dates}, lambda e: {inside}) END", pa.list_(t.DATE))  # fmt: skip


FORMS: dict[str, Form] = {
    "named_struct": _named_struct, "map": _map, "flatten": _flatten,
    "map_from_arrays": _map_from_arrays, "map_from_entries": _map_from_entries,
    "map_concat": _map_concat, "size": _size, "cardinality": _size, "element_at": _element_at,
    "try_element_at": _element_at, "map_contains_key": _contains_key,
    "sequence": _sequence,
    **{name: _map_part(name) for name in ("map_keys", "map_values", "map_entries")},
}  # fmt: skip
