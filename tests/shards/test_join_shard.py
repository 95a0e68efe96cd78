"""Shards of a join, with their state in a dict: what Spark will host, without Spark.

Every batch is split over tasks, every shard is built anew from its bytes, and what each batch gives
must be what the same query gives in one process, batch by batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes
from panes.errors import StateError
from panes.language.query_graph import read_graph
from panes.shards.state import ABOUT
from panes.shards.stored_runs import RECALL
from panes.stores import codec
from tests.join_queries import AS_OF, BANDS, WINDOWS, L, R
from tests.shards.join_host import FAR, TABLES, Host, require_late_after_an_end
from tests.support import assert_rows

HOSTED = [
    q
    for q in (*BANDS, *WINDOWS, *AS_OF)
    if not any(w in q for w in ("RANGE ALL", "k AND r.at >= l.at", "SELECT at + 1"))
    and not q.endswith("AND r.at <= l.at")
]


def batches_of(seed: int, count: int, within: int) -> list[dict[str, pa.Table]]:
    """Rows in the order of their positions, but for `within`, in some batches."""
    rng = np.random.default_rng(seed)
    parts: list[dict[str, pa.Table]] = [{} for _ in range(count)]
    for name, table in TABLES.items():
        at = np.array([0 if v is None else v for v in table["at"].to_pylist()])
        order = np.argsort(at + rng.integers(0, within + 1, len(table)), kind="stable")
        cuts = np.sort(rng.integers(0, len(table), count - 1))
        for part, which in zip(parts, np.split(order, cuts), strict=True):
            part[name] = table.take(which)
    return parts


def lateness_of(text: str, seconds: int | None) -> Any:
    """A lateness as the axis of the query measures it, for the library and for a shard."""
    if seconds is None:
        return None, None
    is_time = "WATTR ts" in text or ".ts" in text
    return (f"{seconds} seconds", seconds * 1_000_000) if is_time else (seconds, seconds)


@pytest.mark.parametrize("text", HOSTED)
@settings(max_examples=4)
@given(
    seed=st.integers(0, 99),
    count=st.integers(1, 5),
    within=st.integers(0, 30),
    lateness=st.one_of(st.none(), st.integers(0, 12)),
    late=st.sampled_from(["open", "drop"]),
)
def test_every_batch_gives_what_it_gives_in_one_process(
    text: str, seed: int, count: int, within: int, lateness: int | None, late: Any
) -> None:
    given_, ticks = lateness_of(text, lateness)
    alone = panes.open(text, lateness=given_, late=late, max_ahead=None)
    host = Host(text, lateness=ticks, late=late)
    for batch in batches_of(seed, count, within):
        mine = {name: batch[name] for name in read_graph(text).streams}
        outcomes = host.push(**mine)
        assert_rows(host.answers(outcomes), alone.push(**mine))
        assert sum(len(o.late) for o in outcomes) == alone.late.num_rows
        alone.take_late()
    assert_rows(host.answers(host.finish()), alone.finish())
    assert all(set(state) == {ABOUT} for state in host.states)


def test_a_batch_writes_only_what_is_new() -> None:
    text = "SELECT l.id FROM l JOIN r ON l.k = r.k AND r.at BETWEEN l.at - 500 AND l.at + 500"
    host = Host(text, tasks=1, lateness=0)
    written: list[set[str]] = []
    many = L.take(np.tile(np.arange(len(L)), 50))
    host.push(l=many, r=many)
    before = [dict(state) for state in host.states]
    host.push(l=L.slice(0, 20), r=R.slice(0, 20))
    for old, new in zip(before, host.states, strict=True):
        written.append({name for name in new if old.get(name) != new[name]} - {ABOUT})
        assert all(new.get(name) == data for name, data in old.items() if name != ABOUT)
    assert sum(map(len, written)) <= 2 * len(host.states)


def test_the_state_returns_to_nothing_when_both_sides_have_passed() -> None:
    text = BANDS[2]
    host = Host(text, lateness=2)
    outcomes = host.push(l=L, r=R)
    assert sum(o.partials for o in outcomes) > 0
    far = pa.table({**dict(zip(L.column_names, L.slice(0, 1).columns, strict=True)), "at": [9_999]})
    outcomes = host.push(l=far, r=far)
    outcomes = host.push(l=far, r=far)
    assert sum(o.partials for o in outcomes) <= 4


def test_every_shard_makes_the_same_promise_of_joined_rows() -> None:
    host = Host(BANDS[2], along=["left"], lateness=2)
    promises = {o.promised["left"] for o in host.push(l=L, r=R)}
    left, right = (max(v for v in t["at"].to_pylist() if v is not None) - 2 for t in (L, R))
    assert promises == {min(left, right - 4)}
    assert all(o.has_ended for o in host.finish())


@pytest.mark.parametrize(
    "text",
    [
        *(FAR.format(kind) for kind in ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL OUTER JOIN")),
        "SELECT l.id AS i, r.id AS j, t.id AS m FROM l JOIN r ON r.at BETWEEN l.at - 9 "
        "AND l.at - 7 RIGHT JOIN t ON r.k = t.k AND t.at BETWEEN r.at + 20 AND r.at + 21",
        "SELECT l.id AS i, r.id AS j FROM l FULL JOIN r ON l.k = r.k [TUMBLING 7 WATTR at]",
        "SELECT l.id AS i, r.id AS j FROM l ASOF LEFT JOIN r ON r.at >= l.at - 65 "
        "AND r.at <= l.at - 60",
    ],
)
def test_what_could_be_joined_with_rows_before_the_end_is_late_in_the_next_run(
    text: str,
) -> None:
    require_late_after_an_end(text)


def test_the_state_of_another_join_is_refused() -> None:
    host = Host(BANDS[2], lateness=2)
    host.push(l=L, r=R)
    other = Host(BANDS[3], lateness=2)
    with pytest.raises(StateError, match="the join of l and r was inner, is left"):
        other.shard(host.states[0])


def test_damaged_rows_are_refused() -> None:
    host = Host(BANDS[2], lateness=2)
    host.push(l=L, r=R)
    state = next(state for state in host.states if len(state) > 1)
    name = next(n for n in state if n != ABOUT)
    del state[name]
    RECALL.clear()
    with pytest.raises(StateError, match=f"rows {name} are missing"):
        host.push(l=L, r=R)
    assert codec.unpack(state[ABOUT])


def test_joins_without_a_common_key_have_one_shard() -> None:
    texts = {
        "FROM l [RANGE 3 WATTR at], r [RANGE 3 WATTR at], t [RANGE 5 WATTR at] "
        "WHERE l.k = r.k AND r.k = t.k": 1,
        "FROM l [RANGE 3 WATTR at], r [RANGE 3 WATTR at], t [RANGE 5 WATTR at] "
        "WHERE l.k = r.k AND r.s = t.s": 0,
    }
    for text, keys in texts.items():
        host = Host(f"SELECT l.id {text}", lateness=2)
        assert [len(k.types) for k in host.keys] == [keys] * 3
