"""Tables as bytes, to be sent or stored: a short header, then plain Arrow streams. No pickle.

The header names the format and its version and carries a checksum of the rest, so bytes that are
damaged, cut short or written by a later version are refused instead of misread.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping

import pyarrow as pa

from panes.errors import StateError

VERSION = 1

_MAGIC = b"PANE"
_HEADER = struct.Struct("<4sHI")
_NAME = b"panes.table"


def pack(tables: Mapping[str, pa.Table]) -> bytes:
    """Named tables as bytes."""
    sink = pa.BufferOutputStream()
    for name, table in tables.items():
        named = table.replace_schema_metadata({_NAME: name.encode()})
        with pa.ipc.new_stream(sink, named.schema) as writer:
            writer.write_table(named)
    body = sink.getvalue()
    return _HEADER.pack(_MAGIC, VERSION, zlib.crc32(body)) + body.to_pybytes()


def unpack(data: bytes) -> dict[str, pa.Table]:
    """The tables that `pack` was given; their columns are views of the bytes.

    >>> unpack(pack({"marks": pa.table({"at": [1, 2]})}))["marks"].to_pydict()
    {'at': [1, 2]}
    """
    if len(data) < _HEADER.size:
        raise StateError(f"{len(data)} bytes are too few to be tables of panes")
    magic, version, checksum = _HEADER.unpack_from(data)
    if magic != _MAGIC:
        raise StateError("these bytes are not tables of panes")
    if version != VERSION:
        raise StateError(
            f"these tables were written in format {version}; this version of panes reads {VERSION}",
            hint="run the version of panes that wrote them",
        )
    body = pa.py_buffer(data).slice(_HEADER.size)
    if zlib.crc32(body) != checksum:
        raise StateError("the bytes of these tables are damaged: the checksum differs")
    source = pa.BufferReader(body)
    tables = {}
    while source.tell() < body.size:
        with pa.ipc.open_stream(source) as reader:
            table = reader.read_all()
        tables[table.schema.metadata[_NAME].decode()] = table.replace_schema_metadata(None)
    return tables
