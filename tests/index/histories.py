"""Any history of a window index: rows come in any order, some late, and progress moves or jumps.

After every step each question must be answered as by a plain list. What is drawn is small and
interlocks: few values, short basic windows, buffers that begin with room for four rows, so that
they wrap and grow, and values that come and go, so that they are purged and come back.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import panes
from panes.index import domain, h_index, indexed_rows, row_ring, text_numbers
from panes.index.cost import candidates
from panes.index.kinds import Kind, Structure
from tests.index.plain_list import PlainWindow, Row, normal

UTC = dt.UTC
VALUES: dict[pa.DataType, tuple[Any, ...]] = {
    pa.float64(): (0.0, -0.0, 7.5, float("nan"), float("-inf"), -3.25, 1e300),
    pa.int64(): (0, 7, -7, 5, (1 << 63) - 1, -(1 << 63), 6),
    pa.string(): ("a", "", "b", "ab", "ä", "zz", "a\0"),
    pa.timestamp("us", "UTC"): tuple(dt.datetime(2026, 1, d, tzinfo=UTC) for d in range(1, 8)),
    pa.decimal128(10, 2): tuple(Decimal(n) / 100 for n in (0, 5, -5, 750, 99_999_999, -1, 10)),
    pa.decimal128(30, 2): tuple(Decimal(n) / 100 for n in (0, 5, -5, 10**25, -(10**25), -1, 10)),
    pa.uint64(): (0, 7, (1 << 64) - 1, 1 << 63, 5, 6, 8),
    pa.binary(): (b"", b"a", b"\xff", b"a\0", b"b", b"ba", b"c"),
    pa.bool_(): (False, True),
}
HISTORIES = settings(max_examples=12, stateful_step_count=10)


def begin_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Buffers that soon wrap and grow, and text that is forgotten as soon as it can be."""
    monkeypatch.setattr(row_ring, "_FIRST_SIZE", 4)
    monkeypatch.setattr(domain, "_FIRST_SIZE", 2)
    monkeypatch.setattr(domain, "_MERGED", 1)
    monkeypatch.setattr(h_index, "_FIRST_BITS", 1)
    monkeypatch.setattr(text_numbers, "_FIRST_SIZE", 2)
    monkeypatch.setattr(indexed_rows, "_FEW", 1)


def table_of(rows: list[Row], data_type: pa.DataType) -> pa.Table:
    at, value, name = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table(
        {
            "at": pa.array(at, pa.int64()),
            "value": pa.array(value, data_type),
            "name": pa.array(name, pa.string()),
        }
    )


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    return [(r["at"], normal(r["value"]), r["name"]) for r in table.to_pylist()]


def plain(rows: list[Row]) -> list[tuple[Any, ...]]:
    return [(at, normal(value), name) for at, value, name in rows]


class IndexHistories(RuleBasedStateMachine):
    """Two window indexes of any kinds, and what a plain list says of each."""

    structures: tuple[Structure, ...] = tuple(candidates())
    types: tuple[pa.DataType, ...] = tuple(VALUES)

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        self.type = data.draw(st.sampled_from(self.types), label="type")
        self.front, self.names = 0, 0
        self.pairs: list[tuple[panes.WindowIndex, PlainWindow]] = []
        for _ in range(2):
            made = data.draw(st.sampled_from(self.structures), label="index")
            basic, length = data.draw(st.sampled_from(((1, 3), (2, 1), (3, 4), (2, 7))))
            index = panes.window_index(
                table_of([], self.type).schema,
                at="at",
                size=basic * length,
                basic=basic,
                on="value",
            )
            index._window._choose = lambda _, made=made: Structure(  # type: ignore[misc]
                made.kind, made.form, made.domain, groups=3
            )
            self.pairs.append((index, PlainWindow(basic, length)))

    @rule(
        data=st.data(),
        offsets=st.lists(st.integers(-6, 9), min_size=1, max_size=9),
        both=st.booleans(),
        in_order=st.booleans(),
        step=st.sampled_from((0, 1, 2, 3, 5)),
    )
    def add(
        self, data: st.DataObject, offsets: list[int], both: bool, in_order: bool, step: int
    ) -> None:
        """Rows on both sides of the front, which then moves on a little."""
        values = st.sampled_from((None, *VALUES[self.type]))
        rows: list[Row] = []
        for offset in sorted(offsets) if in_order else offsets:
            self.names += 1
            at = None if offset == -6 else self.front + offset
            rows.append((at, data.draw(values), None if offset == 3 else f"row {self.names}"))
        for index, model in self.pairs if both else self.pairs[:1]:
            index.add(table_of(rows, self.type))
            model.add(rows)
        self.advance(step)

    @rule(step=st.sampled_from((-4, 1, 3, 8, 40)))
    def advance(self, step: int) -> None:
        self.front += max(step, 0)
        for index, model in self.pairs:
            index.advance(self.front + min(step, 0))
            model.advance(self.front + min(step, 0))

    @invariant()
    def values_and_counts_agree(self) -> None:
        for index, model in getattr(self, "pairs", ()):
            want = model.values()
            got = index.values()
            assert len(index) == len(model.window)
            found = [(normal(r["value"]), r["count"]) for r in got.to_pylist()]
            assert found == want
            asked = list(VALUES[self.type])
            counts = [len(model.with_value(v)) for v in asked]
            assert [index.count(v) for v in asked] == counts
            assert index.count(asked).to_pylist() == counts
            assert [index.rank(v) for v in asked] == [model.smaller(v) for v in asked]
            top = [(normal(r["value"]), r["count"]) for r in index.top(2).to_pylist()]
            assert top == sorted(want, key=lambda pair: -pair[1])[:2]
            shares = (0.0, 0.25, 0.5, 1.0)
            quantiles = index.quantiles(shares)["value"].to_pylist()
            assert [normal(v) for v in quantiles] == [model.quantile(s) for s in shares]

    @invariant()
    def rows_agree(self) -> None:
        for index, model in getattr(self, "pairs", ()):
            asked = VALUES[self.type]
            for value in asked:
                assert rows_of(index.rows(value)) == plain(model.with_value(value))
            some = list(asked[:3])
            several = [r for r in model.valued if normal(r[1]) in [normal(v) for v in some]]
            assert rows_of(index.rows(some)) == plain(several)
            low, high = asked[0], asked[-1]
            assert rows_of(index.between(low, high)) == plain(model.between(low, high))
            assert rows_of(index.sorted()) == plain(model.sorted())
            falling = model.sorted(descending=True)
            assert rows_of(index.sorted(descending=True, limit=3)) == plain(falling[:3])
            assert rows_of(index.sorted(limit=2)) == plain(model.sorted()[:2])
            assert index.count(None) == 0
            assert len(index.rows(None)) == 0

    @invariant()
    def two_windows_agree(self) -> None:
        if not hasattr(self, "pairs"):
            return
        (one, model), (other, other_model) = self.pairs
        here, there = [v for v, _ in model.values()], [v for v, _ in other_model.values()]
        both = [normal(v) for v in one.intersection(other)["value"].to_pylist()]
        only = [normal(v) for v in one.difference(other)["value"].to_pylist()]
        assert both == [v for v in here if v in there]
        assert only == [v for v in here if v not in there]
        asked = table_of([(1, v, "") for v in (None, *VALUES[self.type])], self.type)
        found = {normal(v) for v in other.semi_join(asked)["value"].to_pylist()}
        assert found == set(there)
        absent = other.semi_join(asked, anti=True)["value"].to_pylist()
        assert {normal(v) for v in absent} == {normal(v) for v in VALUES[self.type]} - set(there)

    @invariant()
    def nothing_is_lost(self) -> None:
        for index, model in getattr(self, "pairs", ()):
            late = rows_of(index.late.drop_columns("reason"))
            assert sorted(late, key=str) == sorted(plain(model.late), key=str)
            assert rows_of(index.rejected.drop_columns("reason")) == plain(model.rejected)
            end = None if model.open_from is None else model.open_from * model.basic
            assert index.end == end


def histories(
    kind: Kind | None = None, data_type: pa.DataType | None = None
) -> type[IndexHistories]:
    """Histories of indexes of one kind, over all its forms, and of one type of values."""
    made = tuple(s for s in candidates() if kind is None or s.kind == kind)
    types = tuple(VALUES) if data_type is None else (data_type,)
    return type("Histories", (IndexHistories,), {"structures": made, "types": types})
