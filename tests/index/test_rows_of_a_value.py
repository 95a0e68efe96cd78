"""The rows of a value: columns of 64 bits that came in order are copied as DB finds them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import panes
from panes.index import db, row_links
from panes.index.kinds import KINDS, Kind
from tests.index.histories import begin_small

SIZE, BASIC = 40, 5


def follow(kind: Kind, seed: int) -> None:
    """A window of a stream, asked for the rows of every value while more rows wait to be sealed."""
    rng = np.random.default_rng(seed)
    empty = pa.table({name: pa.array([], pa.int64()) for name in ("at", "value", "n")})
    index = panes.window_index(empty.schema, at="at", size=SIZE, basic=BASIC, on="value", kind=kind)
    came = empty
    for turn in range(60):
        at = np.sort(rng.integers(3 * turn, 3 * turn + 3, rng.integers(0, 12)))
        value = rng.integers(0, rng.choice([2, 9]), len(at))
        rows = pa.table({"at": at, "value": value, "n": np.arange(len(at)) + len(came)})
        came = pa.concat_tables([came, rows])
        index.add(rows)
        index.advance(3 * turn + 3)
        end = (3 * turn + 3) // BASIC * BASIC
        seen = (came["at"].to_numpy() < end) & (came["at"].to_numpy() >= end - SIZE)
        for asked in range(10):
            wanted = came.filter(pa.array(seen & (came["value"].to_numpy() == asked)))
            assert index.rows(asked).to_pylist() == wanted.to_pylist()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "group"])
def test_rows_of_every_value_after_every_batch(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    begin_small(monkeypatch)
    for seed in range(3):
        follow(kind, seed)


def test_it_would_show_if_rows_were_given_before_they_are_sealed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = db._copy_rows

    def hidden_rows_too(entry: Any, count: Any, links: Any, mask: Any, heads: Any, *_: Any) -> Any:
        shown = heads.copy()
        shown[:, row_links.HIDDEN] = 0
        return right(entry, count, links, mask, shown, *_)

    monkeypatch.setattr(db, "_copy_rows", hidden_rows_too)
    with pytest.raises(AssertionError):
        follow("db", 0)


def test_a_ring_that_lost_a_row_is_not_answered() -> None:
    """Links and counts are held against each other."""
    index = panes.window_index(
        pa.schema([("at", pa.int64()), ("value", pa.int64())]),
        at="at", size=SIZE, basic=BASIC, on="value", kind="db",
    )  # fmt: skip
    index.add(pa.table({"at": [1, 2, 3], "value": [7, 7, 7]}))
    index.advance(BASIC)
    assert len(index.rows(7)) == 3
    heads = index._window.index.heads  # type: ignore[attr-defined]
    heads[heads[:, 0] == 2, 1] = -1
    with pytest.raises(panes.PanesError, match="damaged"):
        index.rows(7)
