"""Very many keys, columns and filters, and very long keys: answered by the rows, or refused."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import panes
from panes.aggregates.aggregate import Rows
from panes.aggregates.monoid import Monoid
from panes.answers import lower
from panes.arrays import key_numbers
from panes.arrays.workers import workers
from panes.errors import LimitError
from panes.nodes import steps
from panes.process.in_turn import Turn
from panes.stores.fill import ALL_ROWS, fill
from panes.stores.fragment import merged
from panes.stores.fragments import Fragments
from panes.windows.cut import cut
from panes.windows.spec import Sliding

BY_KEY = "SELECT k, count(*) AS n FROM s [{}] GROUP BY k"


# Memory by rows, not by combinations


@pytest.mark.parametrize("combinations", [10**6, 10**13])
def test_partials_are_sized_by_rows(combinations: int) -> None:
    """Keys times sets of filters are numbers of groups, of which few occur."""
    at = np.array([3, 14, 3, 25, 3_000_000])
    groups = np.array([7, combinations - 1, 7, 7, 0])
    filled = fill(
        Rows(at, ()),
        groups,
        combinations,
        cut=cut(Sliding(size=20, slide=10)),
        pieces=[ALL_ROWS],
        executor=workers(),
    )
    assert filled.starts.tolist() == [0, 10, 20, 3_000_000]
    assert filled.groups.tolist() == [7, combinations - 1, 7, 0]
    assert filled.partials[0].tolist() == [[2, 1, 1, 1]]
    monoids: list[Monoid] = [ALL_ROWS.monoid]
    twice = merged([filled, filled], monoids)
    assert twice.groups.tolist() == filled.groups.tolist()
    assert twice.partials[0].tolist() == [[4, 2, 2, 2]]
    stored = Fragments(monoids)
    stored.add(filled)
    assert stored.live_groups().tolist() == [0, 7, combinations - 1]


def test_codes_beyond_64_bits_are_merged() -> None:
    far = 1 << 61
    one = fill(
        Rows(np.arange(0, 100, 10), ()),
        np.array([far, 5] * 5),
        far + 1,
        cut=cut(Sliding(size=10, slide=10)),
        pieces=[ALL_ROWS],
        executor=workers(),
    )
    both = merged([one, one], [ALL_ROWS.monoid])
    assert both.groups.tolist() == [far, 5] * 5
    assert both.starts.tolist() == list(range(0, 100, 10))
    assert both.partials[0].tolist() == [[2] * 10]


def test_filters_of_few_rows_are_answered_as_they_would_be_alone() -> None:
    """Fourteen thousand keys and forty filters: each lets through a fortieth of the rows."""
    rng = np.random.default_rng(3)
    rows = 14_000
    table = pa.table(
        {
            "at": np.sort(rng.integers(0, 60, rows)),
            "k": rng.permutation(rows),
            "x": rng.integers(0, 40, rows),
        }
    )
    text = "SELECT k, count(*) AS n, max(x) FILTER (WHERE x > 2) AS m FROM s " \
        "[RANGE 20 SLIDE 10 WATTR at]{} GROUP BY k"  # fmt: skip
    filters = {f"q{i}": f" WHERE x = {i}" for i in range(40)} | {"all": "", "most": " WHERE x > 2"}
    reg = panes.register("s", lateness=0)
    for name, where in filters.items():
        reg.add(name, text.format(where))
    found = [reg.push(table.slice(0, rows // 2)), reg.push(table.slice(rows // 2)), reg.finish()]
    for name in ("q0", "q7", "q39", "all", "most"):
        got = pa.concat_tables([answers[name] for answers in found if name in answers])
        want = panes.sql(text.format(filters[name]), s=table)
        by = [(c, "ascending") for c in ("window_end", "k")]
        assert got.sort_by(by).combine_chunks().equals(want.sort_by(by).combine_chunks())


# Long keys


def test_keys_of_more_text_than_a_column_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_numbers, "_MOST_BYTES", 100_000)
    query = panes.open(BY_KEY.format("TUMBLING 10 WATTR at"), lateness=0)
    query.push(s=pa.table({"at": [1], "k": ["a" * 60_000]}))
    with pytest.raises(LimitError, match=r"the distinct values of a key take .* string holds"):
        query.push(s=pa.table({"at": [2], "k": ["b" * 60_000]}))
    assert query.state["partials"] == 1
    wide = pa.table({"at": [1, 2], "k": pa.array(["a" * 60_000, "b" * 60_000], pa.large_string())})
    assert len(panes.sql(BY_KEY.format("TUMBLING 10 WATTR at"), s=wide)) == 2


def test_answers_that_repeat_long_keys_come_in_batches_or_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lower, "_MOST_BYTES", 1_000_000)
    monkeypatch.setattr(steps, "_BYTES_A_STEP", 500_000)
    table = pa.table({"at": [1, 2], "k": ["a" * 100_000, "b" * 100_000]})
    text = BY_KEY.format("RANGE 40 SLIDE 1 WATTR at")
    with pytest.raises(LimitError, match=r"keys of 80 answers take 8,000,000 bytes"):
        panes.sql(text, s=table)
    sizes = [len(batch) for batch in panes.sql(text, s=table, batches=True)]
    assert sum(sizes) == 80
    assert max(sizes) <= 5


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError(), "not enough memory"),
        (np.exceptions.__dict__.get("_ArrayMemoryError", MemoryError)("x"), "not enough memory"),
        (pa.ArrowMemoryError("realloc of size 9 failed"), "realloc of size 9"),
        (pa.ArrowInvalid("offset overflow while concatenating arrays"), "2 GB"),
        (pa.ArrowCapacityError("array cannot contain more than 2147483646 bytes"), "2 GB"),
    ],
)
def test_what_memory_cannot_take_is_ours(error: Exception, words: str) -> None:
    def step() -> None:
        with Turn(None).taken():
            raise error

    with pytest.raises(LimitError, match=words):
        step()


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt(), pa.ArrowInvalid("no")])
def test_other_errors_are_as_they_were(error: BaseException) -> None:
    def step() -> None:
        with Turn(None).taken():
            raise error

    with pytest.raises(type(error)):
        step()


@pytest.mark.slow
def test_keys_of_ten_megabytes() -> None:
    keys = ["x" * 10_000_000 + str(i) for i in range(12)]
    table = pa.table({"at": list(range(12)), "k": keys})
    assert len(panes.sql(BY_KEY.format("TUMBLING 4 WATTR at"), s=table)) == 12
    text = BY_KEY.format("RANGE 40 SLIDE 1 WATTR at")
    with pytest.raises(LimitError, match="480 answers"):
        panes.sql(text, s=table)
    assert sum(len(batch) for batch in panes.sql(text, s=table, batches=True)) == 480


# Very many


@pytest.mark.slow
def test_five_million_keys() -> None:
    rows = 5_000_000
    table = pa.table(
        {"at": np.arange(rows) // 1_000, "k": np.random.default_rng(1).permutation(rows) * 7}
    )
    text = BY_KEY.format("RANGE 2000 SLIDE 1000 WATTR at")
    total = 0
    for batch in panes.sql(text, s=table, batches=True):
        assert len(batch) <= 2_000_000
        total += len(batch)
    assert total == 2 * rows


@pytest.mark.slow
def test_two_thousand_columns() -> None:
    table = pa.table(
        {"at": [1, 2, 12], **{f"c{i}": pa.array([i, None, -i], pa.int64()) for i in range(2_000)}}
    )
    columns = ", ".join(f"max(c{i}) AS m{i}" for i in range(2_000))
    found = panes.sql(f"SELECT {columns} FROM s [TUMBLING 10 WATTR at]", s=table)
    assert found.shape == (2, 2_002)
    assert found.column("m1999").to_pylist() == [1999, -1999]
