"""Queries inside queries over shards: parts at several levels, which hand on rows and promises.

Every nested graph of the matrix is asked of shards alone, of several queries at once, and of those
that come later; what they give is what the oracle gives over all rows.
"""

from __future__ import annotations

import pytest

from panes.sharing.failures import QueriesFailed
from tests.matrix.arrivals import usual
from tests.shards.level_histories import NESTED, host_of, nested_comes_later, nested_together


@pytest.mark.parametrize("order", ["in order", "shuffled", "late"])
@pytest.mark.parametrize("name", NESTED)
def test_shards_answer_as_the_oracle(name: str, order: str) -> None:
    nested_together({"q": NESTED[name]}, order)


def test_all_of_them_together_and_twice() -> None:
    nested_together({f"{name} {i}": NESTED[name] for name in NESTED for i in range(2)}, "shuffled")


@pytest.mark.parametrize("is_read", [False, True], ids=["new", "read before"])
@pytest.mark.parametrize(
    "name",
    ["windows over windows", "three levels", "named", "per row over windows",
     "selects of selects of windows"],
)  # fmt: skip
def test_a_query_that_comes_later_answers_what_it_has_seen_in_full(
    name: str, is_read: bool
) -> None:
    nested_comes_later(name, is_read=is_read)


def test_what_would_read_answers_of_a_join_comes_before_the_first_row() -> None:
    come, host = usual(("s", "u"), "in order"), host_of(("s", "u"))
    host.add("first", "SELECT max(v) AS m FROM s [TUMBLING 10 WATTR at]")
    host.add("second", "SELECT max(v) AS m FROM u [TUMBLING 10 WATTR at]")
    host.push(**come.batches[0])
    host.add("q", NESTED["windows over a join"].text)
    with pytest.raises(QueriesFailed, match="rows have come before this query") as failed:
        host.push(**come.batches[1])
    assert list(failed.value.reasons) == ["q"]


def test_nothing_is_kept_of_a_part_that_nobody_reads() -> None:
    come, host = usual(("s",), "in order"), host_of(("s",))
    host.add("first", "SELECT max(v) AS m FROM s [TUMBLING 10 WATTR at]")
    host.push(**come.batches[0])
    host.add("q", NESTED["three levels"].text)
    host.push(**come.batches[1])
    host.remove("q")
    host.push(**come.batches[2])
    above = {name for level in host.states[1:] for state in level for name in state}
    assert above == {"ledger", "queries/missed"}
