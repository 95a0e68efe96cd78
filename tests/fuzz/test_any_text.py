"""Any text is answered or refused in our own words, on every way in, and soon."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from panes.errors import QueryError
from panes.language.parse import parse
from tests.fuzz.corpus import corpus
from tests.fuzz.mutations import mutated
from tests.fuzz.outcomes import MOST_SECONDS, WAYS, outcome

WAY = st.sampled_from(sorted(WAYS))
_NO_HURRY = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


def texts(data: st.DataObject) -> str:
    """A text of the corpus, mutated as Hypothesis decides."""
    return mutated(corpus(), lambda count: data.draw(st.integers(0, count - 1)))


def require_ours(way: str, text: str) -> None:
    found = outcome(way, text)
    if found.seconds > MOST_SECONDS:  # the first text to need a loop waits until it is compiled
        found = outcome(way, text)
    assert not found.is_fault, f"{way}, {found.seconds:.1f} s, {found.error!r}: {text!r}"


@given(data=st.data(), way=WAY)
@settings(max_examples=150, suppress_health_check=_NO_HURRY)
def test_a_mutated_text_is_answered_or_refused(data: st.DataObject, way: str) -> None:
    require_ours(way, texts(data))


@pytest.mark.torture
@given(data=st.data(), way=WAY)
@settings(max_examples=6_000, suppress_health_check=_NO_HURRY, phases=[Phase.generate])
def test_many_mutated_texts_are_answered_or_refused(data: st.DataObject, way: str) -> None:
    require_ours(way, texts(data))


@given(text=st.text(max_size=200), way=WAY)
@settings(max_examples=30)
def test_a_text_of_any_characters_is_refused(text: str, way: str) -> None:
    require_ours(way, text)


@pytest.mark.long
def test_mutations_leave_some_texts_that_are_answered() -> None:
    """Otherwise nothing behind the grammar is tried."""
    answered = sum(outcome("table", text).kind == "answered" for text in corpus()[:40])
    assert answered > 20


# What fuzzing has found, each text as short as it can be.
FOUND = {
    "a builder of sqlglot's trusts its arguments": "SELECT max(x) * map(x) AS m FROM t",
    "a number that no machine has": "SELECT top_k(i, 340282366920938463463374607431768211456)"
    " AS c FROM bids [TUMBLING 5 WATTR at]",
    "an infinite number": "SELECT top_k(i, 1e400) AS c FROM bids [TUMBLING 5 WATTR at]",
    "a number of a type that only DuckDB has": "SELECT max_by(i, 340282366920938463463374607431"
    "768211456) AS c FROM bids [TUMBLING 5 WATTR at]",
    "a question for rows that selects nothing": "SELECT --x\nFROM bids [RANGE 10 WATTR at]",
    "all columns where one value is needed": "SELECT max_by(x, s) AS c, max_by(i, *) AS n FROM s "
    "[RANGE 20 SLIDE 10 WATTR at]",
    "a list of nothing": "SELECT listagg() AS c FROM bids [TUMBLING 5 WATTR at]",
    "a list of nothing in an order": "SELECT listagg() WITHIN GROUP (ORDER BY x) AS c FROM bids "
    "[TUMBLING 5 WATTR at]",
    "a map from values of no type": "SELECT histogram(NULL) AS c FROM bids [TUMBLING 5 WATTR at]",
    "streams in very many parentheses": "SELECT count(*) AS n FROM " + "(" * 3_000 + "bids"
    + ")" * 3_000 + " [TUMBLING 10 WATTR at]",
}  # fmt: skip
_NUMBERS = (
    "9" * 5_000,
    "0x" + "9" * 5_000,
    "1e999999999",
    "\u00b2",
    "\u0661",
    "99999999999999999999",
    "1e-999999999",
)
_WITH_NUMBERS = (
    "SELECT l.id AS i FROM l, r WHERE r.ts > l.ts - INTERVAL 3 SECONDS "
    "AND r.ts <= l.ts AND l.x > {}",
    "SELECT l.id AS i FROM l JOIN r ON r.at >= l.at - {} AND r.at <= l.at",
    "SELECT l.id AS i FROM l JOIN r ON r.ts >= l.ts - INTERVAL {} SECONDS AND r.ts <= l.ts",
    "SELECT l.id AS i FROM l JOIN r ON r.ts >= l.ts - INTERVAL '{} seconds' AND r.ts <= l.ts",
    "SELECT count(*) AS n FROM bids [RANGE {} SLIDE 5 WATTR at]",
    "SELECT count(*) AS n FROM bids [RANGE {} ROWS SLIDE 5 ROWS]",
    "SELECT count(*) AS n FROM bids [TUMBLING 5 WATTR at] GROUP BY {}",
    "SELECT count(*) AS n FROM bids [TUMBLING 5 WATTR at] WHERE x > {} AND i < {}",
    "SELECT max(repeat(k, {})) AS n FROM bids [TUMBLING 5 WATTR at]",
    "SELECT top_k(i, {}) AS n FROM bids [TUMBLING 5 WATTR at]",
    "SELECT * FROM bids [RANGE 30 WATTR at] LIMIT {}",
    "SELECT count(*) AS n FROM bids [TUMBLING 5 WATTR at] EMIT EARLY EVERY {}",
)


@pytest.mark.parametrize("text", _WITH_NUMBERS)
def test_a_number_is_never_more_than_a_query_can_bear(text: str) -> None:
    """Of too many digits, of too great a power, or in digits that only Unicode knows."""
    for number in _NUMBERS:
        for way in WAYS:
            require_ours(way, text.replace("{}", number))


@pytest.mark.parametrize("text", FOUND.values(), ids=FOUND)
@pytest.mark.parametrize("way", WAYS)
def test_what_fuzzing_has_found_is_refused(way: str, text: str) -> None:
    assert outcome(way, text).kind == "refused"


def test_a_window_of_very_many_words_is_read_in_time() -> None:
    """The axis of a side is not looked for anew at every word."""
    side = "SELECT k FROM s [RANGE 12 {} WATTR at]"
    require_ours("table", f"{side.format('')} INTERSECT {side.format('x ' * 15_000)}")


def test_many_froms_inside_parentheses_are_read_in_time() -> None:
    """Whether a parenthesis is open is not counted anew at every FROM."""
    columns = ", ".join(f"max(extract(hour FROM ts)) AS c{i}" for i in range(400))
    query = parse(f"SELECT {columns} FROM bids [TUMBLING 1 hour WATTR ts]")
    assert len(query.outputs) == 400
    with pytest.raises(QueryError, match="reads no stream"):
        parse("SELECT " + "(" + "FROM " * 20_000)
