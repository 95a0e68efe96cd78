"""Names for Arrow types that are written into states and files, and never change.

How Arrow prints a type may change with its version; what is written here may not: a state is
recognised by these names. A type that has no name here is written as Arrow prints it.
"""

from __future__ import annotations

import pyarrow as pa

_PLAIN: dict[pa.DataType, str] = {
    pa.null(): "null",
    pa.bool_(): "bool",
    pa.int8(): "int8",
    pa.int16(): "int16",
    pa.int32(): "int32",
    pa.int64(): "int64",
    pa.uint8(): "uint8",
    pa.uint16(): "uint16",
    pa.uint32(): "uint32",
    pa.uint64(): "uint64",
    pa.float16(): "half",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "large_string",
    pa.binary(): "binary",
    pa.large_binary(): "large_binary",
    pa.date32(): "date32",
    pa.date64(): "date64",
}


def type_name(data_type: pa.DataType) -> str:
    """The written name of a type; different types have different names.

    >>> [type_name(t) for t in (pa.float64(), pa.decimal128(10, 2), pa.timestamp("us", "UTC"))]
    ['double', 'decimal128(10, 2)', 'timestamp(us, UTC)']
    """
    plain = _PLAIN.get(data_type)
    if plain is not None:
        return plain
    if pa.types.is_decimal(data_type):
        return f"decimal{data_type.bit_width}({data_type.precision}, {data_type.scale})"
    if pa.types.is_timestamp(data_type):
        return f"timestamp({data_type.unit}, {data_type.tz or 'no zone'})"
    if pa.types.is_time(data_type):
        return f"time{data_type.bit_width}({data_type.unit})"
    if pa.types.is_duration(data_type):
        return f"duration({data_type.unit})"
    if pa.types.is_list(data_type):
        return f"list({type_name(data_type.value_type)})"
    if pa.types.is_struct(data_type):
        return f"struct({', '.join(f'{f.name} {type_name(f.type)}' for f in data_type)})"
    if pa.types.is_map(data_type):
        return f"map({type_name(data_type.key_type)}, {type_name(data_type.item_type)})"
    return str(data_type)
