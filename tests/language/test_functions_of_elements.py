"""Functions that take functions may stand wherever an expression may, and make nothing longer."""

from __future__ import annotations

import pyarrow as pa
import pytest

import panes
from panes.errors import PanesError
from tests.support import answers_to

BIDS = pa.table(
    {
        "at": [1, 2, 3, 4],
        "i": [9, 2, 3, 9],
        "item": ["a", "b", "a", "b"],
        "prices": [[1, 5, 3], None, [], [4, None]],
    }
)
W = "[TUMBLING 10 WATTR at]"
ANSWERS: dict[str, tuple[str, list[dict[str, object]]]] = {
    "an argument": (
        f"SELECT max(size(filter(prices, p -> p > 2))) AS n FROM bids {W}", [{"n": 2}]),
    "WHERE": (f"SELECT count(*) AS n FROM bids {W} WHERE exists(prices, p -> p > i - 6)",
              [{"n": 2}]),
    "a key": (
        f"SELECT exists(prices, p -> p > 4) AS high, count(*) AS n FROM bids {W} "
        "GROUP BY exists(prices, p -> p > 4)",
        [{"high": False, "n": 1}, {"high": None, "n": 2}, {"high": True, "n": 1}]),
    "FILTER": (f"SELECT count(*) FILTER (WHERE forall(prices, p -> p > 0)) AS n FROM bids {W}",
               [{"n": 2}]),
    "around an aggregate": (
        f"SELECT aggregate(collect_list(i), 0L, (t, x) -> t + x) AS n FROM bids {W}", [{"n": 23}]),
    "HAVING": (
        f"SELECT item FROM bids {W} GROUP BY item HAVING exists(collect_list(i), x -> x = 2)",
        [{"item": "b"}]),
    "a SELECT inside FROM": (
        "SELECT sum(t) AS n FROM "
        f"(SELECT at, aggregate(prices, 0L, (t, p) -> t + p) AS t FROM bids) {W}", [{"n": 9}]),
    "a parameter named like a column": (
        f"SELECT count(*) AS n FROM bids {W} WHERE exists(prices, i -> i = 5)", [{"n": 1}]),
}  # fmt: skip


@pytest.mark.parametrize("place", ANSWERS)
def test_it_is_answered_wherever_an_expression_may_stand(place: str) -> None:
    text, answers = ANSWERS[place]
    assert sorted(answers_to(text, bids=BIDS), key=str) == sorted(answers, key=str)


REFUSED = {
    "filter(prices, p -> exists(prices, q -> q > p))": "all pairs of elements",
    "aggregate(prices, '', (t, p) -> t || t)": "must start with a number",
    "reduce(prices, array(), (t, p) -> concat(t, t))": "must start with a number",
    "filter(sequence(1, 1000), x -> repeat('a', 1000) = 'b')": "1,000,000 times as long",
    "transform(prices, p -> prices)": "much longer than its argument",
    "upper(p -> p)": "a function has no place here",
    "filter(prices, `p;` -> true)": "cannot be a parameter's name",
    "filter(prices, 1)": "not a function of these values",
    "filter(prices, p -> nothing > p)": "no column `nothing`",
}


@pytest.mark.parametrize("call", REFUSED)
def test_what_could_grow_is_refused(call: str) -> None:
    with pytest.raises(PanesError, match=REFUSED[call]):
        panes.sql(f"SELECT max({call}) AS n FROM bids {W}", bids=BIDS)
