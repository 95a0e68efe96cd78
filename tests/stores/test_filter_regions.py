"""Rows are told classed by any filters, however many, as each filter would by itself."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp, parse_one

import panes
from panes.planning.condition import compared, condition
from panes.sharing.columns import SharedRows
from panes.stores import filter_regions
from panes.stores.filter_classes import Classes, to_words
from tests.support import assert_same

SCHEMA = pa.schema({"x": pa.float64(), "i": pa.int64(), "s": pa.string(), "b": pa.bool_()})
CONDITIONS = (
    *(f"x {op} {c}" for op in ("<", "<=", ">", ">=", "=", "<>") for c in (0, 1.5, 2)),
    *(f"i {op} {c}" for op in ("<", ">", "=") for c in (-1, 0, 3)),
    "s = 'p'",
    "s <> 'q'",
    "b",
    "NOT b",
    "x IS NULL",
    "s IS NULL OR i > 1",
    "x > 1 AND NOT (i < 2 OR b)",
    "i % 2 = 0",
    "s LIKE 'p%'",
)
VALUES: dict[str, list[object]] = {
    "x": [None, float("nan"), float("inf"), -0.0, 0.0, 1.0, 1.5, 2.0, 9.0],
    "i": [None, *range(-3, 5)],
    "s": [None, "p", "q", "pq"],
    "b": [None, True, False],
}
every_row = [dict(zip(VALUES, row, strict=True)) for row in product(*VALUES.values())]
rows = st.sampled_from(every_row)
one_thread = ThreadPoolExecutor(1)


def tree(text: str) -> exp.Expression:
    parsed = parse_one(text, read="spark")
    assert isinstance(parsed, exp.Expression)
    return parsed


def classed_as(table: pa.Table, texts: list[str]) -> tuple[list[int], list[int]]:
    """The set of filters of each row, as it is told; and the number of each filter."""
    shared = SharedRows(SCHEMA, (), ())
    numbers = [shared.number_filter(tree(t)) for t in texts]
    classed = shared.classify(table, shared.read(table), len(table), one_thread)
    classes = Classes()
    numbered = classes.number(classed.sets)[classed.index]
    sets = classes.sets()
    return [sets[c] for c in numbered[classed.codes].tolist()], numbers


def each_says(table: pa.Table, texts: list[str], numbers: list[int]) -> list[int]:
    """The set of filters of each row, as each filter says it."""
    want = [0] * len(table)
    for number, text in zip(numbers, texts, strict=True):
        holds = pc.fill_null(condition(tree(text), SCHEMA)(table), False)
        want = [w | h << number for w, h in zip(want, holds.to_pylist(), strict=True)]
    return want


def told(table: pa.Table, texts: list[str]) -> tuple[list[int], list[int]]:
    """The set of filters of each row, as it is told and as each filter says it."""
    found, numbers = classed_as(table, texts)
    return found, each_says(table, texts, numbers)


@pytest.mark.parametrize("text", CONDITIONS)
def test_each_filter_tells_all_rows_classed(text: str) -> None:
    """A bound on the wrong side of its value would put rows together that the filter parts."""
    found, want = told(pa.Table.from_pylist(every_row, SCHEMA), [text])
    assert found == want


@given(
    given_rows=st.lists(rows, max_size=20),
    texts=st.lists(st.sampled_from(CONDITIONS), unique=True, max_size=12),
)
def test_rows_are_told_classed_as_each_filter_would(
    given_rows: list[dict[str, object]], texts: list[str]
) -> None:
    found, want = told(pa.Table.from_pylist(given_rows, SCHEMA), texts)
    assert found == want


@pytest.mark.long
def test_so_they_are_where_codes_have_to_be_numbered_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """There are more regions than codes of the second width."""
    rng = np.random.default_rng(4)
    count = 3_000
    table = pa.table(
        {
            "x": rng.integers(0, 200, count) / 2,
            "i": rng.integers(0, 100, count),
            "s": rng.choice(["p", "q", "r"], count),
            "b": rng.random(count) < 0.5,
        },
        schema=SCHEMA,
    )
    texts = [f"x > {k}" for k in range(90)] + [f"i = {k} AND x < {k}" for k in range(80)]
    texts += ["b", "s = 'q'", "i % 3 = 0", "x * 2 > i"]
    want: list[int] = []
    for widest in (1 << 62, 1 << 12):
        monkeypatch.setattr(filter_regions, "_WIDE", widest)
        found, numbers = classed_as(table, texts)
        want = want or each_says(table, texts, numbers)
        assert found == want


@given(sets=st.lists(st.integers(0, 1 << 200)), more=st.lists(st.integers(0, 1 << 70)))
def test_classes_are_numbered_as_they_come(sets: list[int], more: list[int]) -> None:
    classes = Classes()
    numbers = [*classes.number(to_words(more)), *classes.number(to_words(sets))]
    known = list(dict.fromkeys([*more, *sets]))
    assert classes.sets() == known
    assert numbers == [known.index(s) for s in (*more, *sets)]
    for f in (0, 63, 64, 130):
        assert classes.holding(f).tolist() == [bool(s >> f & 1) for s in known]


@pytest.mark.long
def test_more_classes_than_sixteen_bits_can_tell() -> None:
    """Seventeen independent filters and as many rows: nearly every row is a class of its own."""
    count, bits = 1 << 17, 17
    rng = np.random.default_rng(2)
    columns = {f"c{f}": rng.random(count) for f in range(bits)}
    table = pa.table({"at": np.arange(count), "k": rng.integers(0, 2, count), **columns})
    reg = panes.register("t", schema=table.schema)
    asked = {
        f"q{f}": f"SELECT k, count(*) AS n, max(c{f}) AS m "
        f"FROM t [RANGE 40000 SLIDE 20000 WATTR at] WHERE c{f} > 0.5 GROUP BY k"
        for f in range(bits)
    }
    for name, text in asked.items():
        reg.add(name, text)
    first, rest = reg.push(table.slice(0, 70_000)), reg.push(table.slice(70_000))
    assert len(reg.stores[0].panes.classes) > 1 << 16
    last = reg.finish()
    for name, text in asked.items():
        given = [answers[name] for answers in (first, rest, last) if name in answers]
        assert_same(pa.concat_tables(given), panes.sql(text, t=table))


def test_a_field_of_a_struct_is_not_taken_for_the_column_of_its_name() -> None:
    """Spark's plans leave ``s.x`` as it was written."""
    schema = pa.schema({"x": pa.int64(), "s": pa.struct({"x": pa.int64()})})
    assert compared(tree("x > 3"), schema) == {"x": {(3, True)}}
    for text in ("s.x > 3", "x > 3 AND s.x > 3", "s.x IS NULL"):
        assert compared(tree(text), schema) is None
