"""Rows that shards keep for questions: an answer is a filter of all rows, or it is refused.

Catches: a row too many or too few at the window's edge, rows forgotten a block early, a shard or a
run left out, rows at one position in another order, a column that was not kept from the start, and
anything that a restart forgets.
"""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import panes
from panes.errors import QueryError, StateError
from panes.planning.terms import Late, StreamOptions
from panes.shards.state import ABOUT
from panes.stores import codec
from tests.sharded_register import ShardedRegister
from tests.sharing.workload import QUERIES, SCHEMA, assert_same_answers, rows

EVERY = "SELECT * FROM s [RANGE 60 WATTR at]"
QUESTIONS = (
    EVERY,
    "SELECT * FROM s [RANGE 60 WATTR at] WHERE k = 'a' ORDER BY x LIMIT 10",
    "SELECT x, k FROM s [RANGE 25 WATTR at] WHERE x BETWEEN 2 AND 5 ORDER BY k DESC, x",
    "SELECT x * 2 AS twice FROM s [RANGE 1 WATTR at] ORDER BY twice DESC NULLS FIRST",
    "SELECT 1 AS one FROM s [RANGE 7 WATTR at] WHERE k IS NULL",
)


@pytest.mark.parametrize("late", ["open", "drop"])
@pytest.mark.parametrize("forgets", [True, False])
def test_every_question_gives_what_one_process_gives(late: Late, forgets: bool) -> None:
    alone = panes.register("s", lateness=4, late=late, schema=SCHEMA)
    sharded = ShardedRegister("s", StreamOptions(lateness=4, late=late), SCHEMA)
    sharded.forgets = forgets
    for register in (alone, sharded):
        register.add("keyed", QUERIES["keyed"])
        register.prepare(EVERY)
    for number in range(12):
        batch = rows(number, 60, 13 * number)
        assert_same_answers(sharded.push(batch), alone.push(batch))
        for text in QUESTIONS:
            assert sharded.ask_rows(text).equals(alone.ask(text)), (number, text)
    assert sum(map(len, sharded.late)) == len(alone.late) > 0
    assert len(alone.ask(EVERY)) > 100


def test_a_register_without_queries_keeps_rows_as_well() -> None:
    alone = panes.register("s", lateness=4, schema=SCHEMA)
    sharded = ShardedRegister("s", StreamOptions(lateness=4), SCHEMA)
    for register in (alone, sharded):
        register.prepare(EVERY)
    assert sharded.ask_rows(EVERY).equals(alone.ask(EVERY)), "nothing has come"
    for number in range(4):
        batch = rows(number, 60, 30 * number)
        assert sharded.push(batch) == {} == dict(alone.push(batch))
    assert sharded.ask_rows(EVERY).equals(alone.ask(EVERY))
    assert sharded.finish() == {}
    assert sharded.ask_rows(EVERY).equals(alone.ask(EVERY)), "they stay"


def test_a_batch_writes_what_is_new_and_leaves_the_rest() -> None:
    sharded = ShardedRegister("s", StreamOptions(lateness=4), SCHEMA, shards=1)
    sharded.prepare("SELECT x FROM s [RANGE 800 WATTR at]")
    for number in range(10):
        sharded.push(rows(number, 400, 100 * number))
    [state] = sharded.states
    before = dict(state)
    sharded.push(_at(941, 942))
    written = [n for n in state if n != ABOUT and state[n] != before.get(n)]
    assert len(before) > 8
    assert len(written) == 1
    assert len(state[written[0]]) * 10 < sum(map(len, state.values()))
    sharded.push(_at(1050))
    gone = before.keys() - state.keys()
    assert gone, "the oldest block, and those runs alone are gone"
    ledger = codec.unpack(before[ABOUT])["kept_runs"].to_pylist()
    assert all(r["high"] <= 1050 - 800 for r in ledger if f"kept/{r['run']}" in gone)


class Noting(dict[str, bytes]):
    """A state that notes what is written."""

    def __init__(self, state: dict[str, bytes]) -> None:
        super().__init__(state)
        self.written: set[str] = set()

    def __setitem__(self, name: str, data: bytes, /) -> None:
        self.written.add(name)
        super().__setitem__(name, data)


def test_two_batches_after_a_change_all_rows_are_written_again() -> None:
    """A host may have kept what a batch that was given up wrote, and not what came in its place."""
    sharded = ShardedRegister("s", StreamOptions(lateness=4), SCHEMA, shards=1)
    sharded.prepare(EVERY)
    for number in range(3):
        sharded.push(rows(number, 60, 13 * number))
    sharded.add("all", QUERIES["all"])
    for number, is_whole in ((3, True), (4, True), (5, False)):
        state = sharded.states[0] = Noting(sharded.states[0])
        sharded.push(rows(number, 60, 13 * number))
        runs = {name for name in state if name.startswith("kept/")}
        assert (runs <= state.written) is is_whole, number


def test_only_the_columns_that_questions_read_are_kept() -> None:
    sharded = ShardedRegister("s", StreamOptions(lateness=4), SCHEMA, shards=1)
    sharded.prepare("SELECT x FROM s [RANGE 60 WATTR at] WHERE x > 3")
    sharded.push(rows(1, 60, 0))
    kept = codec.unpack(sharded.states[0][ABOUT])["kept_columns"]
    assert kept["name"].to_pylist() == ["x"]
    with pytest.raises(QueryError, match="`k` is not among the columns") as refused:
        sharded.ask_rows("SELECT x FROM s [RANGE 60 WATTR at] ORDER BY k")
    assert "Hint: reg.prepare(...) the same question" in str(refused.value)


def test_what_was_prepared_late_is_whole_from_then_on() -> None:
    """Rows lie at 0 to 9, then the question comes: windows are whole once they begin at 10."""
    sharded = ShardedRegister("s", StreamOptions(lateness=0), SCHEMA)
    sharded.add("all", QUERIES["all"])
    sharded.push(_at(*range(10)))
    with pytest.raises(QueryError, match=r"keeps no rows\n\nHint: reg\.prepare"):
        sharded.ask_rows(EVERY)
    text = "SELECT at FROM s [RANGE 5 WATTR at]"
    sharded.prepare(text)
    with pytest.raises(QueryError, match="begins at 5, and what is prepared knows rows from 10 on"):
        sharded.ask_rows(text)
    sharded.push(_at(10, 11, 13))
    with pytest.raises(QueryError, match="once windows begin there: 1 from now"):
        sharded.ask_rows(text)
    sharded.push(_at(14))
    assert sharded.ask_rows(text)["at"].to_pylist() == [10, 11, 13, 14]
    with pytest.raises(QueryError, match=r"reach back so far\n\nHint: reg\.prepare"):
        sharded.ask_rows("SELECT at FROM s [RANGE 6 WATTR at]")


def test_a_column_of_another_type_is_another_column() -> None:
    text = "SELECT x FROM s [RANGE 5 WATTR at]"
    sharded = ShardedRegister("s", StreamOptions(lateness=0), SCHEMA)
    sharded.prepare(text)
    sharded.push(_at(1, 2, 3))
    wider = SCHEMA.set(2, pa.field("x", pa.float64()))
    again = ShardedRegister("s", StreamOptions(lateness=0), wider)
    again.states = sharded.states
    again.prepare(text)
    with pytest.raises(QueryError, match="knows rows from 4 on"):
        again.ask_rows(text)
    again.push(_at(8, 9).cast(wider))
    assert again.ask_rows(text)["x"].to_pylist() == [8.0, 9.0]


def test_rows_that_are_missing_from_a_state_are_missed() -> None:
    sharded = ShardedRegister("s", StreamOptions(lateness=0), SCHEMA, shards=1)
    sharded.prepare(EVERY)
    sharded.push(_at(1))
    del sharded.states[0]["kept/0"]
    with pytest.raises(StateError, match="rows kept/0 are missing from the state"):
        sharded.push(_at(2))


def test_nothing_is_left_of_rows_that_are_kept_no_longer() -> None:
    sharded = ShardedRegister("s", StreamOptions(lateness=0), SCHEMA, shards=1)
    sharded.add("all", QUERIES["all"])
    sharded.prepare(EVERY)
    sharded.push(_at(1, 2, 3))
    assert any(name.startswith("kept/") for name in sharded.states[0])
    sharded.forget(EVERY)
    sharded.push(_at(4))
    assert not any(name.startswith("kept/") for name in sharded.states[0])
    sharded.prepare(EVERY)
    with pytest.raises(QueryError, match="knows rows from 5 on"):
        sharded.ask_rows(EVERY)


def _at(*positions: int) -> pa.Table:
    rows = [{"at": at, "k": "a", "x": at} for at in positions]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


ASKED = {
    "SELECT at, k FROM s [RANGE 20 WATTR at] WHERE k = 'a'": (20, {"at", "k"}),
    "SELECT at, x FROM s [RANGE 9 WATTR at] WHERE x > 2 ORDER BY x DESC LIMIT 3": (9, {"at", "x"}),
    "SELECT at FROM s [RANGE 45 WATTR at]": (45, {"at"}),
}
"""Questions: how far each reaches back, and what it reads."""


class AnyHistory(RuleBasedStateMachine):
    """Rows come in any order; questions come and go, and so do queries and processes."""

    @initialize(late=st.sampled_from(["open", "drop"]), shards=st.integers(1, 3))
    def begin(self, late: Late, shards: int) -> None:
        self.late, self.lateness = late, 6
        self.register = ShardedRegister(
            "s", StreamOptions(lateness=6, late=late), SCHEMA, shards=shards
        )
        self.register.add("all", QUERIES["all"])
        self.rows: list[tuple[int, str | None, int]] = []
        self.newest: int | None = None
        self.prepared: set[str] = set()
        self.since: dict[str, int] = {}
        self.kept: dict[str, int] = {}
        self.passed = -1000

    @rule(
        drawn=st.lists(
            st.tuples(st.integers(-30, 12), st.sampled_from(["a", "b", None]), st.integers(0, 5)),
            min_size=1, max_size=12,
        )
    )  # fmt: skip
    def push(self, drawn: list[tuple[int, str | None, int]]) -> None:
        newest = 0 if self.newest is None else self.newest
        batch = [(newest + step, k, x) for step, k, x in drawn]
        self.register.push(pa.table([list(c) for c in zip(*batch, strict=True)], schema=SCHEMA))
        self.kept = {name: self.kept.get(name, self._now()) for name in self._columns()}
        self.since = dict(self.kept)
        promised = -1000 if self.newest is None else self.newest - self.lateness
        self.rows += [r for r in batch if self.late == "open" or r[0] >= promised]
        self.newest = max([r[0] for r in batch] + ([] if self.newest is None else [self.newest]))
        if self.prepared:
            size = max(ASKED[text][0] for text in self.prepared)
            self.passed = max(self.passed, self.newest + 1 - size)
        else:
            self.passed = -1000

    @rule(text=st.sampled_from(sorted(ASKED)))
    def prepare(self, text: str) -> None:
        self.register.prepare(text)
        self.prepared.add(text)

    @precondition(lambda self: self.prepared)
    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        text = data.draw(st.sampled_from(sorted(self.prepared)))
        self.register.forget(text)
        self.prepared.remove(text)

    @rule(name=st.sampled_from(["keyed", "dear"]))
    def add_or_remove(self, name: str) -> None:
        if name in self.register.queries():
            self.register.remove(name)
        else:
            self.register.add(name, QUERIES[name])

    @rule(forgets=st.booleans())
    def restart(self, forgets: bool) -> None:
        self.register.forgets = forgets

    @invariant()
    def asked(self) -> None:
        for text in ASKED:
            wanted = self._wanted(text)
            if wanted is None:
                with pytest.raises(QueryError):
                    self.register.ask_rows(text)
            else:
                found = self.register.ask_rows(text).to_pylist()
                assert [tuple(row.values())[2:] for row in found] == wanted, text

    def _now(self) -> int:
        """From where on everything that is kept now is known."""
        return -1000 if self.newest is None else self.newest + 1

    def _columns(self) -> set[str]:
        return {"rows", *(c for text in self.prepared for c in ASKED[text][1])} - (
            set() if self.prepared else {"rows"}
        )

    def _wanted(self, text: str) -> list[tuple[object, ...]] | None:
        """What a filter of all rows gives; None if not all of them can be known."""
        size, columns = ASKED[text]
        if not columns <= self._columns():
            return None
        if size > max(ASKED[other][0] for other in self.prepared):
            return None
        if self.newest is None:
            return []
        start = self.newest + 1 - size
        known = [self.since.get(name, self._now()) for name in {"rows", *columns}]
        if max(self.passed, *known) > start:
            return None
        inside = sorted((r for r in self.rows if r[0] >= start), key=lambda r: r[0])
        if "k = 'a'" in text:
            return [(at, k) for at, k, _ in inside if k == "a"]
        if "x > 2" in text:
            dear = sorted(((at, x) for at, _, x in inside if x > 2), key=lambda r: -r[1])
            return [*dear[:3]]
        return [(at,) for at, _, _ in inside]


AnyHistory.TestCase.settings = settings(max_examples=150, stateful_step_count=25, deadline=None)
TestAnyHistory = AnyHistory.TestCase
