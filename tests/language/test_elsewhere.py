"""Words of other systems are refused with what to write, and what is written so is answered."""

from __future__ import annotations

import datetime as dt
import re

import pyarrow as pa
import pytest

import panes
from panes.language import elsewhere
from panes.language.elsewhere import FORMS, WORDS

NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
BIDS = pa.table(
    {
        "ts": pa.array([NOON, NOON + dt.timedelta(minutes=3)], pa.timestamp("us", "UTC")),
        "item": ["a", "a"],
        "price": [2.0, 3.0],
    }
)
TRIED = {
    "SELECT count(*) FROM HOP(bids, ts, 5, 10)": "[RANGE 10 minutes SLIDE 5 minutes WATTR ts]",
    "SELECT count(*) FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), 10))": "[TUMBLING 10 minutes",
    "SELECT count(*) FROM bids [HOP 5 minutes WATTR ts]": "[RANGE 10 minutes SLIDE 5 minutes",
    "SELECT count(*) FROM bids [SLIDING 10 minutes WATTR ts]": "SLIDE 5 minutes",
    "SELECT count(*) FROM bids [SESSION 5 minutes WATTR ts]": "no windows of sessions",
    "SELECT count(*) FROM bids GROUP BY SESSION(ts, 5)": "no windows of sessions",
    "SELECT count(*) FROM bids GROUP BY TUMBLE(ts, 10)": "[TUMBLING 10 minutes WATTR ts]",
    "SELECT count(*) FROM bids GROUP BY window(ts, '1 minute')": "[TUMBLING 10 minutes WATTR ts]",
    "SELECT count(*) FROM bids GROUP BY window(ts, '1 hour', '1 minute')": "SLIDE 1 minute WATTR",
    "SELECT count(*) FROM bids WINDOW TUMBLING (SIZE 10 SECONDS)": "[TUMBLING 10 minutes",
    "SELECT count(*) FROM bids [TUMBLING 1 hour OFFSET 9 WATTR ts]": "ORIGIN 30 minutes",
    "SELECT count(*) FROM bids [TUMBLING 1 day WATTR ts ZONE 'CET']": "those of UTC",
    "SELECT count(*) FROM bids [TUMBLING 1 day WATTR ts AT TIME ZONE 'CET']": "convert_timezone(",
    "SELECT count(*) FROM bids [TUMBLING 1 hour WATTR ts] QUALIFY rank() = 1": "HAVING",
    "SELECT count(*) FROM bids [TUMBLING 1 hour WATTR ts] LIMIT 5": "HAVING count(*) > 1",
    "SELECT count(*) FROM bids [TUMBLING 1 hour WATTR ts] GROUP BY window_start": "already",
    "SELECT b.item FROM bids b JOIN HOP(bids, ts) c ON b.item = c.item": "SLIDE 5 minutes",
}


@pytest.mark.parametrize("text", TRIED)
def test_a_word_of_another_system_is_told_what_to_write(text: str) -> None:
    with pytest.raises(panes.PanesError) as refused:
        panes.sql(text, bids=BIDS)
    assert TRIED[text] in str(refused.value).split("Hint: ")[1]


def test_a_window_that_is_called_is_no_matter_of_parentheses() -> None:
    text = "SELECT item, count(*) AS n FROM bids GROUP BY window(ts, '10 minutes'), item"
    with pytest.raises(panes.QueryError, match="a window is no function here, as Spark's"):
        panes.sql(text, bids=BIDS)


@pytest.mark.parametrize("hint", sorted(set(WORDS.values())))
def test_what_a_hint_says_is_answered(hint: str) -> None:
    asked = re.search(r"FROM bids \[.*?\]", hint)
    grouped = re.search(r"GROUP BY item( HAVING .*)?", hint.split(";")[-1].split("; ")[0])
    assert asked or "GROUP BY item" in hint
    window = asked[0] if asked else "FROM bids [TUMBLING 10 minutes WATTR ts]"
    groups = grouped[0] if grouped else ""
    assert len(panes.sql(f"SELECT count(*) AS n {window} {groups}", bids=BIDS))


WINDOW = "[TUMBLING 1 hour WATTR ts]"
INSTEAD = {
    "SELECT sum(price) OVER (PARTITION BY item ORDER BY ts) AS s FROM bids": elsewhere.OVER,
    f"SELECT max(price) OVER w AS s FROM bids {WINDOW} WINDOW w AS (ORDER BY ts)": elsewhere.OVER,
    f"SELECT max(s) AS m FROM (SELECT ts, sum(price) OVER () AS s FROM bids) {WINDOW}": (
        elsewhere.OVER
    ),
    f"SELECT max(m) AS m FROM (SELECT ts, max(price) AS m FROM bids GROUP BY ts) {WINDOW}": (
        elsewhere.WINDOW_INSIDE
    ),
    f"SELECT count(*) AS n FROM bids {WINDOW} WHERE item IN (SELECT item FROM bids)": (
        elsewhere.SUBQUERY
    ),
    f"SELECT count(*) AS n FROM bids {WINDOW} WHERE EXISTS (SELECT 1)": elsewhere.SUBQUERY,
}


@pytest.mark.parametrize("text", INSTEAD)
def test_each_form_of_sql_has_a_hint_of_its_own(text: str) -> None:
    with pytest.raises(panes.QueryError) as refused:
        panes.sql(text, bids=BIDS)
    assert refused.value.hint == INSTEAD[text]


ASKED_OF_A_REGISTER = {
    f"WITH b AS (SELECT * FROM bids) SELECT count(*) AS n FROM b {WINDOW}": elsewhere.WITH,
    f"SELECT max(m) AS m FROM (SELECT max(price) AS m FROM bids {WINDOW}) {WINDOW}": (
        elsewhere.WINDOW_INSIDE
    ),
    f"SELECT count(*) AS n FROM (SELECT b.ts FROM bids b LEFT OUTER JOIN bids c ON b.ts = c.ts) "
    f"{WINDOW}": elsewhere.JOIN_OUTSIDE,
}


@pytest.mark.parametrize("text", ASKED_OF_A_REGISTER)
def test_a_question_has_no_query_inside_and_says_what_takes_its_place(text: str) -> None:
    with pytest.raises(panes.QueryError) as refused:
        panes.register("bids").ask(text)
    assert refused.value.hint == ASKED_OF_A_REGISTER[text]


def test_a_register_takes_what_it_says_instead_of_with() -> None:
    register = panes.register("bids")
    register.add("q", elsewhere.WITH.partition(": ")[2])
    register.push(BIDS)
    assert len(register.finish()["q"])


@pytest.mark.parametrize("hint", FORMS)
def test_the_line_in_a_hint_runs(hint: str) -> None:
    text = re.search(r"SELECT [^;]* (?:AS|FROM) [^;]*", hint.partition(": ")[2])
    assert text is not None
    assert len(panes.sql(text[0], bids=BIDS))


@pytest.mark.parametrize("name", ["session", "hop", "size", "window"])
def test_a_column_may_have_any_of_these_names(name: str) -> None:
    rows = pa.table({"at": [1, 2], name: [5, 6]})
    text = f"SELECT max(`{name}`) AS high FROM s [TUMBLING 10 WATTR at]"
    assert panes.sql(text, s=rows)["high"].to_pylist() == [6]


def test_who_asks_for_the_first_few_is_told_of_the_most_frequent() -> None:
    with pytest.raises(panes.QueryError) as refused:
        panes.sql(
            "SELECT item FROM bids [TUMBLING 1 hour WATTR ts] GROUP BY item LIMIT 3", bids=BIDS
        )
    text = re.search(r"SELECT top_k.*?\]", str(refused.value))
    assert text
    assert panes.sql(text[0], bids=BIDS)["top"].to_pylist() == [[{"item": "a", "count": 2}]]


def test_a_window_may_be_named_without_being_taken_for_a_word_of_another_system() -> None:
    text = "SELECT item, window_end AS until FROM bids [TUMBLING 1 hour WATTR ts]"
    with pytest.raises(panes.QueryError, match=r"Hint: add it to GROUP BY, or aggregate it"):
        panes.sql(text, bids=BIDS)


def test_a_refusal_without_such_a_word_stays_as_it_is() -> None:
    with pytest.raises(panes.QueryError) as refused:
        panes.sql("SELECT count(*) FROM bids [TUMBLING 1 hour WATTR ts] ORDER BY n", bids=BIDS)
    assert "answers come ordered by window and key" in str(refused.value)


def test_the_function_size_is_no_word_of_another_system() -> None:
    with pytest.raises(panes.QueryError) as refused:
        panes.sql(
            "SELECT max(size(sequence(1, 1000000))) AS n FROM bids [TUMBLING 1 hour WATTR ts]",
            bids=BIDS,
        )
    assert "Hint" not in str(refused.value)


@pytest.mark.parametrize("moment", ["now()", "current_timestamp()", "unix_timestamp()"])
def test_a_clock_is_told_to_be_a_moment(moment: str) -> None:
    with pytest.raises(panes.QueryError) as refused:
        panes.sql(f"SELECT count(*) AS n FROM bids {WINDOW} WHERE ts > {moment}", bids=BIDS)
    [written, _] = re.findall(r"(?:TIMESTAMP|DATE) '.*?'", refused.value.hint or "")
    answers = panes.sql(f"SELECT count(*) AS n FROM bids {WINDOW} WHERE ts < {written}", bids=BIDS)
    assert answers["n"].to_pylist() == [2]


def test_months_are_told_where_they_are_added_up() -> None:
    with pytest.raises(panes.QueryError, match=r"local_days\.md adds up days"):
        panes.sql("SELECT count(*) AS n FROM bids [TUMBLING 1 month WATTR ts]", bids=BIDS)
