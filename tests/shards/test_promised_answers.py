"""What shards of windows promise of answers to come: the same in every shard, and kept.

Catches: a promise one pane too early or too late, shards that promise different things, a promise
that a shard without rows does not make.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes
from panes.axis import BEGINNING
from panes.nodes.sliding import SlidingPipeline
from panes.shards.outcome import ShardOutcome
from tests.sharded_query import ShardedQuery
from tests.strategies import streams
from tests.support import PER_ROW, WINDOWS, in_turns, open_query

NODES = tuple(w for w in (*WINDOWS, *PER_ROW[:2]) if "ROWS" not in w and "FIRST" not in w)


def positions(host: ShardedQuery, outcomes: Sequence[ShardOutcome]) -> list[int]:
    """Where the answers of a batch lie, on the column that promises are about."""
    answers = host.answers(outcomes)
    name = "window_end" if "window_end" in answers.column_names else "at"
    return np.array(answers.column(name).cast(pa.int64())).tolist()


def kept(host: ShardedQuery, batches: Sequence[pa.Table]) -> None:
    """Push batches, and look at every promise with every answer that comes after it."""
    promised, by_row = BEGINNING, "ROW" in host.plan.query.text
    for batch in batches:
        outcomes = host.push(s=batch)
        if not outcomes:
            continue
        assert len({o.promised["end"] for o in outcomes}) == 1
        assert all(at + by_row >= promised for at in positions(host, outcomes))
        assert outcomes[0].promised["end"] >= promised
        promised = outcomes[0].promised["end"]
        progress = outcomes[0].progress
        if progress > BEGINNING and "ALL" not in host.plan.query.text and not by_row:
            spec = host.plan.spec
            assert promised > progress, "what is complete is promised in the same batch"
            assert promised - spec.slide <= progress
    ended = host.finish()
    assert ended
    assert all(o.has_ended for o in ended)
    assert all(at + by_row >= promised for at in positions(host, ended))


def text_over(window: str) -> str:
    if "ROW" in window:
        return f"SELECT at, count(*) AS n FROM s [{window}]"
    return f"SELECT k, count(*) AS n FROM s [{window}] WHERE b OR i > 0 GROUP BY k"


@pytest.mark.parametrize(("window", "late"), in_turns(NODES, ["open", "drop"]))
@given(
    stream=streams,
    cuts=st.lists(st.integers(0, 40), max_size=5),
    lateness=st.integers(0, 30),
)
@settings(max_examples=20)
def test_every_shard_keeps_the_same_promise(
    window: str, late: panes.Late, stream: pa.Table, cuts: list[int], lateness: int
) -> None:
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    batches = [stream.slice(a, b - a) for a, b in itertools.pairwise(edges)]
    host = ShardedQuery(text_over(window), lateness=lateness, late=late)
    kept(host, batches)
    query = open_query(text_over(window), lateness=lateness, late=late)
    for batch in batches:
        query.push(s=batch)
    fresh = ShardedQuery(text_over(window), lateness=lateness, late=late)
    outcomes = [o for batch in batches for o in fresh.push(s=batch)]
    if outcomes:
        assert max(o.promised["end"] for o in outcomes) == query._windows.next_end, (
            "as one process promises"
        )


@pytest.mark.parametrize("by", [-1, 1])
def test_a_promise_a_pane_off_is_seen(by: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault, so that the test above is known to tell."""
    of_class = vars(SlidingPipeline)["next_end"]

    def wrong(pipeline: SlidingPipeline) -> int:
        return int(of_class.fget(pipeline)) + by * pipeline.spec.slide

    monkeypatch.setattr(SlidingPipeline, "next_end", property(wrong))
    at = [5, 15, 25, 35, 45, 55]
    rows = pa.table({"at": at, "k": ["a", "b"] * 3, "i": [1] * 6, "b": [True] * 6})
    host = ShardedQuery(text_over("TUMBLING 10 WATTR at"), rows.schema, lateness=0)
    with pytest.raises(AssertionError):
        kept(host, [rows.slice(i, 1) for i in range(6)])
