"""The generated streams are what the thesis says of its own."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.papers.disorder import SECOND, Arrivals, band, block_sorted, max_disorder
from lab.papers.skew import (
    LARGE_ROWS,
    MEDIUM_ROWS,
    SMALL_SHARE,
    arrivals_of,
    dataset,
    group_counts,
    skewed_links,
)
from panes.sample_streams import START

SCHEMA = pa.schema(
    {"ts": pa.timestamp("us", "UTC"), "srcIP": pa.int64(), "len": pa.int64()}.items()
)

SMALL = st.fixed_dictionaries(
    {"rows": st.integers(1, 300), "seconds": st.floats(1, 100), "seed": st.integers(0, 99)}
)


def at_of(rows: pa.Table) -> np.ndarray:
    return rows["ts"].cast(pa.int64()).to_numpy()


def assert_promises_hold(arrivals: Arrivals) -> None:
    at = at_of(arrivals.rows)
    for promise in arrivals.punctuation:
        assert (at[promise.after :] >= promise.at).all()


@given(SMALL, st.floats(0.1, 20), st.floats(0.5, 20))
@settings(max_examples=60, deadline=None)
def test_band_disorder_stays_in_the_band(sizes: dict[str, int], bound: float, every: float) -> None:
    stream = band(**sizes, max_disorder=bound, every=every)
    assert stream.rows.schema == SCHEMA
    assert max_disorder(at_of(stream.rows)) <= bound * SECOND
    assert_promises_hold(stream)


def test_band_punctuation_comes_as_early_as_it_can() -> None:
    stream = band(20_000, seconds=640, max_disorder=3.2, every=6.4)
    at = at_of(stream.rows)
    assert 0.6 * 3.2 * SECOND < max_disorder(at) <= 3.2 * SECOND
    assert len(stream.punctuation) in (99, 100)
    for promise in stream.punctuation:
        assert at[promise.after - 1] < promise.at


@given(SMALL, st.floats(1, 50))
@settings(max_examples=60, deadline=None)
def test_blocks_come_in_order_and_end_with_a_punctuation(
    sizes: dict[str, int], block: float
) -> None:
    stream = block_sorted(**sizes, block=block)
    assert stream.rows.schema == SCHEMA
    assert_promises_hold(stream)
    number = (at_of(stream.rows) - START) // int(block * SECOND)
    assert (np.diff(number) >= 0).all()
    assert [p.after for p in stream.punctuation] == [
        *np.flatnonzero(np.diff(number)) + 1,
        len(number),
    ]


def test_inside_a_block_there_is_no_order() -> None:
    stream = block_sorted(5_000, seconds=4_900, block=490)
    assert len(stream.punctuation) == 10
    assert 0.9 * 490 * SECOND < max_disorder(at_of(stream.rows)) < 490 * SECOND


def test_steps_give_every_row_once_and_every_promise() -> None:
    stream = block_sorted(100, seconds=100, block=30)
    steps = list(stream.steps())
    assert pa.concat_tables(rows for rows, _ in steps).equals(stream.rows)
    assert [promise for _, promise in steps] == [p.at for p in stream.punctuation]


# Table 6-2: percent of small, medium and large groups.
TABLE_6_2 = {
    "DS1": (39, 51, 10),
    "DS2": (66, 28, 6),
    "DS3": (77, 19, 4),
    "DS4": (82, 15, 3),
    "DS5": (87, 11, 2),
}


@pytest.mark.parametrize("name", TABLE_6_2)
def test_data_sets_have_the_groups_of_table_6_2(name: str) -> None:
    rows = dataset(name, 60_000, seconds=60)
    assert rows.schema == SCHEMA
    assert (np.diff(at_of(rows)) >= 0).all()
    sizes = np.bincount(rows["srcIP"].to_numpy())
    counts = group_counts(60_000, SMALL_SHARE[name])
    small, medium, large = np.split(sizes, np.cumsum([counts.small, counts.medium]))
    assert (small == 1).all()
    assert medium.mean() == pytest.approx(MEDIUM_ROWS, rel=0.01)
    assert large.mean() == pytest.approx(LARGE_ROWS, rel=0.01)
    assert sizes.min() > 0
    found = [100 * len(kind) / len(sizes) for kind in (small, medium, large)]
    assert found == pytest.approx(TABLE_6_2[name], abs=2)
    assert found == pytest.approx([100 * share for share in counts.shares])


def test_two_links_are_busy_and_control_is_late() -> None:
    links = skewed_links(seconds=20, delay=5)
    assert {name: len(link.rows) for name, link in links.items()} == {
        "Main1": 80_000,
        "Main2": 80_000,
        "Control": 10,
    }
    for name, link in links.items():
        late = link.arrival - at_of(link.rows)
        assert set(late) == {5 * SECOND if name == "Control" else 0}


def test_arrivals_give_every_packet_once_and_none_early() -> None:
    links = skewed_links(seconds=10, delay=3, rate=50, control_rate=1)
    steps = list(arrivals_of(links, every=1))
    for name, link in links.items():
        assert pa.concat_tables(came[name] for _, came in steps).equals(link.rows)
    for now, came in steps:
        newest = pc.max(came["Control"]["ts"].cast(pa.int64())).as_py()
        assert newest is None or newest + 3 * SECOND < now


def test_the_same_seed_gives_the_same_rows() -> None:
    assert dataset("DS3", 500, seconds=5).equals(dataset("DS3", 500, seconds=5))
    assert not dataset("DS3", 500, seconds=5).equals(dataset("DS3", 500, seconds=5, seed=2))
