"""Keys of all types and numbers, with DuckDB's own joins as a second opinion."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes
from tests.join.histories import HOWS, WORDS
from tests.join.nested_loops import How

VALUES: dict[str, tuple[pa.DataType, list[object]]] = {
    "int8": (pa.int8(), [1, 2, -1]),
    "int64": (pa.int64(), [1, 2**53 + 1, -(2**62)]),
    "uint64": (pa.uint64(), [1, 2**63 + 5, 2**64 - 1]),
    "float": (pa.float64(), [0.0, -0.0, math.nan, math.inf, 1.5]),
    "text": (pa.string(), ["", "a", "a ", "é", "A"]),
    "decimal": (pa.decimal128(9, 2), [Decimal("1.10"), Decimal("-1.10"), Decimal("0.00")]),
    "date": (pa.date32(), [dt.date(2026, 1, 1), dt.date(1969, 12, 31)]),
    "time": (pa.timestamp("us", "UTC"), [dt.datetime(2026, 1, 1, tzinfo=dt.UTC)]),
    "bool": (pa.bool_(), [True, False]),
    "bytes": (pa.binary(), [b"", b"\x00", b"a"]),
}
ENDS = {"semi": "SEMI", "anti": "ANTI"}


def sides(kinds: list[str]) -> st.SearchStrategy[pa.Table]:
    keys = [st.one_of(st.none(), *([st.sampled_from(VALUES[k][1])] * 3)) for k in kinds]
    rows = st.lists(st.tuples(st.integers(0, 6), *keys), max_size=8)

    def table(drawn: list[tuple[object, ...]]) -> pa.Table:
        columns = {"at": pa.array([r[0] for r in drawn], pa.int64())}
        columns["id"] = pa.array(range(len(drawn)), pa.int64())
        for n, kind in enumerate(kinds, start=1):
            columns[f"k{n}"] = pa.array([r[n] for r in drawn], VALUES[kind][0])
        return pa.table(columns)

    return rows.map(table)


def told(found: pa.Table) -> list[str]:
    return sorted(map(repr, zip(*(c.to_pylist() for c in found.columns), strict=True)))


@pytest.mark.parametrize(
    "kinds", [*([kind] for kind in VALUES), ["int64", "text"], ["float", "bool", "date"], []],
    ids=lambda kinds: "+".join(kinds) or "none",
)  # fmt: skip
@settings(max_examples=12)
@given(data=st.data(), how=st.sampled_from(HOWS))
def test_duckdb_joins_the_same_rows(kinds: list[str], data: st.DataObject, how: How) -> None:
    left, right = data.draw(sides(kinds)), data.draw(sides(kinds))
    given_columns = "l.id AS a" + ("" if how in ENDS else ", r.id AS b")
    equal = [f"l.k{n} = r.k{n}" for n in range(1, len(kinds) + 1)]
    asked = " AND ".join([*equal, "r.at BETWEEN l.at - 1 AND l.at + 2", "l.id + r.id <> 5"])
    got = panes.sql(f"SELECT {given_columns} FROM l {WORDS[how]} r ON {asked}", l=left, r=right)
    word = ENDS.get(how, how.upper())
    with duckdb.connect(config={"threads": "1"}) as connection:
        connection.register("l", left)
        connection.register("r", right)
        want = connection.sql(f"SELECT {given_columns} FROM l {word} JOIN r ON {asked}")
        assert told(got) == told(want.to_arrow_table())


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (pa.array([1, 2, None], pa.int8()), pa.array([2, 1, None], pa.int64())),
        (pa.array([1, 2**53 + 1]), pa.array([1.0, float(2**53)])),
        (pa.array([1, 2**63 + 5], pa.uint64()), pa.array([1, -1])),
        (pa.array([math.nan, 0.1, 1.0], pa.float32()), pa.array([math.nan, 0.1, 1.0])),
        (pa.array(["a", "b"]), pa.array(["b", "a"], pa.large_string())),
        (pa.array(["a", "b"]).dictionary_encode(), pa.array(["b", "a"])),
        (pa.array([Decimal("1.10"), Decimal("2.00")]), pa.array([1, 2])),
        (pa.array([Decimal("1.10")]), pa.array([Decimal("1.1")])),
        (pa.array([dt.date(2026, 1, 1)]), pa.array([dt.datetime(2026, 1, 1)])),
        (pa.array([[1], [2]]), pa.array([[1], [3]])),
        (pa.nulls(2), pa.array([1, 2])),
    ],
    ids=lambda column: str(column.type),
)
def test_keys_of_unlike_types_are_compared_as_the_oracle_compares_them(
    left: pa.Array, right: pa.Array
) -> None:
    streams = {
        name: pa.table({"at": [0] * len(k), "k": k, "id": list(range(len(k)))})
        for name, k in (("l", left), ("r", right))
    }
    for how in ("JOIN", "FULL JOIN"):
        text = f"SELECT l.id, r.id AS o FROM l {how} r ON l.k = r.k AND r.at BETWEEN l.at AND l.at"
        assert told(panes.sql(text, **streams)) == told(panes.oracle(text, **streams))


def test_one_hot_key_gives_every_pair_once() -> None:
    rows = pa.table({"at": [n % 50 for n in range(300)], "k": ["hot"] * 300, "id": range(300)})
    text = (
        "SELECT l.id AS a, r.id AS b FROM l JOIN r ON l.k = r.k AND r.at BETWEEN l.at AND l.at + 3"
    )
    query = panes.open(text)
    parts = [query.push(l=rows.slice(0, 0), r=rows.slice(0, 0))]
    for start in range(0, 300, 60):
        parts.append(query.push(r=rows.slice(start, 60)))
        parts.append(query.push(l=rows.slice(240 - start, 60)))
    found = pa.concat_tables([*parts, query.finish()])
    pairs = list(zip(found["a"].to_pylist(), found["b"].to_pylist(), strict=True))
    want = {(a, b) for a in range(300) for b in range(300) if a % 50 <= b % 50 <= a % 50 + 3}
    assert len(pairs) == len(want)
    assert set(pairs) == want


INTERVALS = pa.array([(1, 2, 3), None], pa.month_day_nano_interval())
PAIRS = pa.table({"at": [1, 2], "x": [1, 2], "list": [[1], [2]], "step": INTERVALS})


@pytest.mark.parametrize("asked", ["l.step = r.step", "l.list > r.x", "upper(l.x, r.x) = 'A'"])
@pytest.mark.parametrize("how", ["JOIN", "LEFT JOIN"])
def test_what_cannot_be_asked_of_pairs_is_refused_when_the_query_is_described(
    asked: str, how: str
) -> None:
    text = f"SELECT l.at FROM l {how} r ON {asked} AND r.at BETWEEN l.at AND l.at + 3"
    schemas = {"l": PAIRS.schema, "r": PAIRS.schema}
    with pytest.raises(panes.QueryError, match=r"which expressions do not read|not translated"):
        panes.open(text, schema=schemas)
    with pytest.raises(panes.QueryError):
        panes.explain(text, l=PAIRS, r=PAIRS)
    with pytest.raises(panes.QueryError):
        panes.sql(text, l=PAIRS, r=PAIRS)
