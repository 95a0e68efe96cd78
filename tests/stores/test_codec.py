"""Bytes that are sent and kept: read back exactly, or refused."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panes.errors import StateError
from panes.stores import codec
from tests.strategies import streams

FIRST_VERSION = (
    "50414e450100dce4a67effffffffb80000001000000000000a000e000600050008000a00000000010400100000"
    "0000000a000c000000040008000a0000004000000004000000010000000c00000008000c000400080008000000"
    "1400000004000000050000006d61726b730000000b00000070616e65732e7461626c6500010000001400000010"
    "0014000800060007000c00000010001000000000000102100000001c0000000400000000000000020000006174"
    "000008000c0008000700080000000000000140000000ffffffff8800000014000000000000000c001600060005"
    "0008000c000c0000000003040018000000200000000000000000000a0018000c00040008000a0000003c000000"
    "100000000300000000000000000000000200000000000000000000000100000000000000080000000000000018"
    "000000000000000000000001000000030000000000000001000000000000000300000000000000010000000000"
    "000002000000000000000000000000000000ffffffff00000000"
)
TABLES = {"marks": pa.table({"at": [1, 2, None]}), "none": pa.table({"x": pa.array([], "int64")})}


@given(table=streams)
@settings(max_examples=20)
def test_tables_are_read_back_as_they_were(table: pa.Table) -> None:
    found = codec.unpack(codec.pack({"a": table, "b": table.slice(1)}))
    assert list(found) == ["a", "b"]
    assert found["a"].schema == table.schema
    assert found["a"].equals(table) or "nan" in str(table.to_pydict())
    assert len(found["b"]) == max(len(table) - 1, 0)


@given(data=st.data())
@settings(max_examples=60)
def test_a_changed_byte_is_noticed(data: st.DataObject) -> None:
    packed = bytearray(codec.pack(TABLES))
    place = data.draw(st.integers(0, len(packed) - 1))
    packed[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(StateError):
        codec.unpack(bytes(packed))


@pytest.mark.parametrize("length", [0, 3, 9, 10, 40])
def test_bytes_cut_short_are_noticed(length: int) -> None:
    with pytest.raises(StateError):
        codec.unpack(codec.pack(TABLES)[:length])


def test_a_later_version_is_named() -> None:
    packed = bytearray(codec.pack(TABLES))
    packed[4] = codec.VERSION + 1
    with pytest.raises(StateError, match=f"format {codec.VERSION + 1}"):
        codec.unpack(bytes(packed))


def test_the_first_version_stays_readable() -> None:
    """What an old checkpoint holds: these bytes were written once and must not change meaning."""
    kept = bytes.fromhex(FIRST_VERSION)
    assert codec.unpack(kept)["marks"].to_pydict() == {"at": [1, 2, None]}
