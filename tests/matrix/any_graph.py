"""A random query with rows for its streams, and what loops over these rows answer."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from hypothesis import strategies as st

from tests.matrix import drawn
from tests.matrix.drawn import Drawn
from tests.matrix.plain_rows import Rows

DISORDER = 15
ROW = st.tuples(st.integers(-30, 90), st.sampled_from([1, 1, 2, 3, None]), st.integers(0, 9))
ROWS = st.lists(st.tuples(ROW, st.integers(0, DISORDER)), min_size=1, max_size=25)


def arrived(rows: list[tuple[tuple[int, int | None, int], int]]) -> pa.Table:
    """Rows in the order in which they come, each behind by its own delay."""
    ordered = [row for row, _ in sorted(rows, key=lambda r: r[0][0] + r[1])]
    at, k, v = zip(*ordered, strict=True)
    types = {"at": pa.int64(), "k": pa.int64(), "v": pa.int64()}
    return pa.table([list(at), list(k), list(v)], schema=pa.schema(types))


def case(data: st.DataObject) -> tuple[Drawn, dict[str, pa.Table]]:
    """A query, and rows of its streams as they come."""
    query = drawn.query(data)
    return query, {name: arrived(data.draw(ROWS)) for name in sorted(query.streams)}


def plain(query: Drawn, streams: Mapping[str, pa.Table]) -> Rows:
    return query.answers({name: table.to_pylist() for name, table in streams.items()})


def assert_answers(found: pa.Table, wanted: Rows, text: str) -> None:
    """The same rows; of the loops, as many columns as the query gives."""
    names = found.column_names
    mine = sorted((tuple(row.values()) for row in found.to_pylist()), key=repr)
    assert mine == sorted((tuple(row[n] for n in names) for row in wanted), key=repr), text
