"""Tables of panes are kept from burst to burst, and are never older than the store.

Each history drives one register and, for every query, a stream of its own. Catches: rows that come
late into panes already read, keys, classes, NULLs and panes that were not there when a table was
made, panes that are gone, and queries that come and go in between. Where there is no room to keep
tables, or for few of them at a time, answers are the same.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

import panes
from panes.sharing import pane_tables, roll_together
from tests.support import assert_same

SCHEMA = pa.schema({"at": pa.int64(), "k": pa.string(), "x": pa.float64()})
CALLS = ("count(*) AS n, sum(x) AS s", "min(x) AS low, avg(x) AS mean", "var_pop(x) AS v")
WHERES = ("", "WHERE x > 3", "WHERE x > 3 AND x <= 6")


def queries(*windows: tuple[int, int]) -> list[str]:
    """All calls under all filters, over windows of these sizes and slides."""
    return [
        f"SELECT k, {call} FROM t [RANGE {size} SLIDE {slide} WATTR at] {where} GROUP BY k"
        for size, slide in windows
        for call in CALLS
        for where in WHERES
    ]


QUERIES = queries((20, 10), (12, 4), (100, 50))
ASKED = {"folded": QUERIES, "not folded": queries((24, 8), (12, 4))}

Row = tuple[int, str, float | None]


def table(*rows: Row) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, r, strict=True)) for r in rows], SCHEMA)


def steady(begin: int, end: int, keys: str = "ab", most: int = 8) -> list[Row]:
    """A row for every position and key; values go round."""
    return [(at, k, float((at * 3 + ord(k)) % most)) for at in range(begin, end) for k in keys]


# What comes, push by push, with a lateness of 30.
HISTORIES: dict[str, list[list[Row]]] = {
    "in order": [steady(i, i + 40) for i in range(0, 400, 40)],
    "late rows in panes already read": [
        steady(0, 100),
        steady(100, 160),
        [(75, "a", 5.0), (131, "b", 4.0), *steady(160, 200)],
        [(171, "a", 2.0), *steady(200, 330)],
    ],
    "a key that is new": [steady(0, 100), steady(100, 200), steady(200, 300, "aab0"), []],
    "a key that is gone": [
        steady(0, 100, "abc"),
        *(steady(i, i + 50) for i in range(100, 600, 50)),
    ],
    "classes that are new": [
        steady(0, 100, most=2),
        steady(100, 200, most=5),
        steady(200, 300, most=9),
    ],
    "a pane between two others": [
        [r for r in steady(0, 200) if r[0] not in range(176, 188)],
        [(180, "a", 1.0), *steady(200, 230)],
        [(185, "b", 4.0), *steady(230, 300)],
    ],
    "NULLs that come late": [
        steady(0, 100),
        [(at, k, None if at % 3 else x) for at, k, x in steady(100, 160)],
        [(140, "a", None), *steady(160, 220)],
        steady(220, 330),
    ],
    "NULLs at first": [
        [(at, k, None) for at, k, _ in steady(0, 50)],
        steady(50, 90),
        steady(90, 200),
    ],
    "nothing for long": [steady(0, 60), steady(1_000, 1_060), steady(1_060, 1_200)],
}


@pytest.mark.parametrize("room", ["room", "no room", "little room"])
@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
@pytest.mark.parametrize("pushes", HISTORIES.values(), ids=HISTORIES)
def test_every_burst_gives_what_each_query_gets_alone(
    pushes: list[list[Row]], asked: list[str], room: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if room == "no room":
        monkeypatch.setattr(pane_tables, "_MOST_STORED", 0)
    if room == "little room":
        monkeypatch.setattr(pane_tables, "_MOST_STORED", 1_000)
        monkeypatch.setattr(roll_together, "_MOST_CELLS", 100)
        monkeypatch.setattr(roll_together, "_FEW_ANSWERS", 20)
        monkeypatch.setattr(roll_together, "_MOST_ANSWERS", 40)
    reg = panes.register("t", lateness=30, schema=SCHEMA)
    alone = [panes.open(text, lateness=30) for text in asked]
    for i, text in enumerate(asked):
        reg.add(str(i), text)
    for rows in pushes:
        batch = table(*rows)
        found = reg.push(batch)
        for i, stream in enumerate(alone):
            want = stream.push(t=batch)
            assert_same(found.get(str(i), want.slice(0, 0)), want)
    found = reg.finish()
    for i, stream in enumerate(alone):
        want = stream.finish()
        assert_same(found.get(str(i), want.slice(0, 0)), want)


def test_queries_come_and_go_between_bursts() -> None:
    reg = panes.register("t", lateness=30, schema=SCHEMA)
    reg.add("all", QUERIES[0])
    reg.add("some", QUERIES[1])
    streams = {"all": panes.open(QUERIES[0], lateness=30)}

    def push(begin: int, end: int) -> None:
        batch = table(*steady(begin, end))
        found = reg.push(batch)
        for name, stream in streams.items():
            want = stream.push(t=batch)
            assert_same(found.get(name, want.slice(0, 0)), want)

    push(0, 100)
    reg.remove("some")
    push(100, 150)
    # Over panes that are there, from the first window that they answer in full.
    begun = reg.add("more", QUERIES[0].replace("SLIDE 10", "SLIDE 20")).exact_from
    push(150, 200)
    reg.add("other", QUERIES[5])
    push(200, 300)
    assert isinstance(begun, int)
    found = reg.finish()
    whole = table(*steady(0, 300))
    want = panes.oracle(QUERIES[0].replace("SLIDE 10", "SLIDE 20"), t=whole).to_pylist()
    left = [r for r in want if r["window_end"] > 270]
    assert found["more"].to_pylist() == left


@pytest.mark.parametrize(
    ("then", "is_kept"),
    [
        (lambda reg: reg.push(table(*steady(100, 200))), True),
        (lambda reg: reg.push(table((75, "a", 5.0), *steady(100, 200))), True),
        (lambda reg: reg.push(table(*steady(100, 200, "abc"))), False),
        (lambda reg: reg.push(table(*steady(100, 200, most=20))), False),
        (lambda reg: reg.push(table((99, "a", None), *steady(100, 200))), False),
        (lambda reg: reg.add("new", QUERIES[4]) and reg.push(table(*steady(100, 200))), False),
    ],
    ids=["new panes", "late rows", "a new key", "a new class", "a first NULL", "a new piece"],
)
def test_tables_are_kept_unless_panes_keys_or_classes_move(
    then: Callable[[panes.Register], object], is_kept: bool
) -> None:
    reg = panes.register("t", lateness=30, schema=SCHEMA)
    reg.add("steady", QUERIES[0])
    reg.add("filtered", QUERIES[0].replace("GROUP", "WHERE NOT x >= 10 OR x IS NULL GROUP"))
    reg.push(table(*steady(0, 100)))
    (store,) = reg.stores
    before = store.panes.tables
    assert before is not None
    then(reg)
    assert (store.panes.tables is before) == is_kept


def test_counts_are_one_while_there_is_no_null() -> None:
    """They are kept, made into tables and rolled once, through every merge of fragments."""
    reg = panes.register("t", lateness=30, schema=SCHEMA)
    reg.add("all", QUERIES[0])

    def arrays() -> int:
        (store,) = reg.stores
        return len({id(p) for p in store.panes.fragments.everything().partials})

    for begin in range(0, 400, 40):
        reg.push(table(*steady(begin, begin + 40)))
        assert arrays() == 2, "count(*), which is count(x), and sum(x)"
    reg.push(table((399, "a", None), *steady(400, 440)))
    assert arrays() == 3
