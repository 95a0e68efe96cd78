"""A register over shards gives, batch by batch, what a register in one process gives."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import panes
from panes.errors import StateError
from panes.planning.terms import Late, StreamOptions
from panes.process.register import Register
from panes.shards.register_shard import LIVE
from panes.shards.state import ABOUT
from panes.sharing.manifest import Manifest, QueryEntry, from_json, to_json
from panes.stores import codec
from tests.sharded_register import ShardedRegister
from tests.sharing.workload import QUERIES, SCHEMA, assert_same_answers, rows


@pytest.mark.parametrize("late", ["open", "drop"])
@pytest.mark.parametrize("forgets", [True, False])
def test_every_batch_gives_what_one_process_gives(late: Late, forgets: bool) -> None:
    alone = panes.register("s", lateness=4, late=late, schema=SCHEMA)
    sharded = ShardedRegister("s", StreamOptions(lateness=4, late=late), SCHEMA)
    sharded.forgets = forgets
    LIVE.clear()
    for name, text in QUERIES.items():
        alone.add(name, text)
        sharded.add(name, text)
    for number in range(8):
        batch = rows(number, 60, 30 * number)
        assert_same_answers(sharded.push(batch), alone.push(batch))
        assert len(sharded.late) == 0 or sum(map(len, sharded.late)) == len(alone.late)
    assert_same_answers(sharded.punctuate(300), alone.punctuate(300))
    assert_same_answers(sharded.finish(), alone.finish())


def test_queries_that_come_and_go_are_answered_by_what_is_there() -> None:
    alone = panes.register("s", lateness=4, schema=SCHEMA)
    sharded = ShardedRegister("s", StreamOptions(lateness=4), SCHEMA)
    for name in ("all", "long", "keyed"):
        alone.add(name, QUERIES[name])
        sharded.add(name, QUERIES[name])
    changes = {
        2: (["dear", "middle"], []),
        4: (["some"], ["keyed"]),
        5: (["keyed"], ["long"]),
        6: ([], ["dear", "middle", "some", "keyed"]),
        7: (["dear", "long"], []),
    }
    for number in range(10):
        added, removed = changes.get(number, ([], []))
        for name in removed:
            alone.remove(name)
            sharded.remove(name)
        for name in added:
            alone.add(name, QUERIES[name])
            sharded.add(name, QUERIES[name])
        for name in alone.queries():
            assert sharded.exact_from(name) == alone.exact_from(name), (number, name)
        batch = rows(number, 60, 30 * number)
        assert_same_answers(sharded.push(batch), alone.push(batch))
    assert_same_answers(sharded.finish(), alone.finish())


COMPUTED = {
    "some": "SELECT max(x + 1) AS m FROM s [TUMBLING 10 WATTR at] WHERE x > 5",
    "few": "SELECT k, max(x + 1) AS m FROM s [TUMBLING 10 WATTR at] WHERE x > 8 GROUP BY k",
    "all": "SELECT max(x + 1) AS m FROM s [RANGE 20 SLIDE 10 WATTR at]",
    "odd": "SELECT x % 2 AS odd, count(*) AS n FROM s [TUMBLING 10 WATTR at] WHERE x > 5"
    " GROUP BY x % 2",
    "both": "SELECT x % 2 AS odd, count(*) AS n FROM s [TUMBLING 10 WATTR at] GROUP BY x % 2",
}
"""Queries whose expressions are computed of some rows or of all."""


def test_shards_know_of_which_rows_an_expression_was_computed() -> None:
    """What comes later is exact from the same position on as in one process."""
    alone = panes.register("s", lateness=4, schema=SCHEMA)
    sharded = ShardedRegister("s", StreamOptions(lateness=4), SCHEMA)
    for register in (alone, sharded):
        register.add("some", COMPUTED["some"])
        register.add("odd", COMPUTED["odd"])
    changes = {
        1: (["all", "both"], []),
        3: (["few"], ["some"]),
        5: (["some"], ["all", "both"]),
        6: (["all", "both"], []),
    }
    for number in range(9):
        added, removed = changes.get(number, ([], []))
        for register in (alone, sharded):
            for name in removed:
                register.remove(name)
            for name in added:
                register.add(name, COMPUTED[name])
        for name in alone.queries():
            assert sharded.exact_from(name) == alone.exact_from(name), (number, name)
        batch = rows(number, 60, 30 * number)
        assert_same_answers(sharded.push(batch), alone.push(batch))
        for text in COMPUTED.values():
            asked = text.replace("TUMBLING 10", "RANGE 20").replace("RANGE 20 SLIDE 10", "RANGE 20")
            assert _asked(sharded, asked) == _asked(alone, asked)
    assert_same_answers(sharded.finish(), alone.finish())


def _asked(register: Register | ShardedRegister, text: str) -> str | list[dict[str, object]]:
    """The answer to a question, in some order; or why there is none."""
    try:
        return sorted(register.ask(text).to_pylist(), key=str)
    except panes.QueryError as refused:
        return str(refused)


def test_a_state_that_does_not_tell_of_which_rows_is_whole_for_what_comes_after_it() -> None:
    """As versions of panes wrote it that did not remember it."""
    register = ShardedRegister("s", StreamOptions(lateness=4), SCHEMA)
    register.add("all", COMPUTED["all"])
    register.push(rows(0, 60, 0))
    known = register.exact_from("all")
    for state in register.states:
        tables = codec.unpack(state[ABOUT])
        needs = tables["needs"]
        tables["needs"] = needs.filter(pc.not_equal(needs["what"], "computed"))
        assert len(tables["needs"]) < len(needs)
        state[ABOUT] = codec.pack(tables)
    register.add("again", COMPUTED["all"].replace("RANGE 20", "RANGE 10"))
    assert register.exact_from("all") == known
    assert register.exact_from("again") == 40
    assert "again" in register.push(rows(1, 60, 60))


def test_a_saved_register_goes_on(tmp_path: Path) -> None:
    alone = panes.register("s", lateness=4, schema=SCHEMA, keep_rows=10)
    saved = panes.register("s", lateness=4, schema=SCHEMA, keep_rows=10)
    for name in ("all", "long", "keyed", "middle", "some"):
        alone.add(name, QUERIES[name])
        saved.add(name, QUERIES[name])
    for number in range(8):
        batch = rows(number, 60, 30 * number)
        if number == 3:
            for register in (alone, saved):
                register.add("dear", QUERIES["dear"])
                register.remove("keyed")
        saved.save(tmp_path / "register")
        saved = panes.register("s", lateness=4, keep_rows=10, saved=tmp_path / "register")
        assert saved.queries() == alone.queries()
        assert all(saved.exact_from(n) == alone.exact_from(n) for n in alone.queries())
        assert_same_answers(saved.push(batch), alone.push(batch))
        assert saved.late.equals(alone.late)
        last = "SELECT sum(x) AS total FROM s [ROWS 7]"
        assert saved.ask(last).column("total") == alone.ask(last).column("total")
    assert_same_answers(saved.finish(), alone.finish())


def test_a_register_that_lost_all_its_queries_remembers_how_far_it_was(tmp_path: Path) -> None:
    register = panes.register("s", lateness=0, schema=SCHEMA)
    register.add("all", QUERIES["all"])
    register.push(rows(1, 60, 100))
    register.remove("all")
    register.save(tmp_path / "register")
    again = panes.register("s", lateness=0, saved=tmp_path / "register")
    assert again.progress == register.progress
    assert again.add("all", QUERIES["all"]).exact_from == 140


def test_questions_that_are_prepared_anew_know_nothing_of_rows_before(tmp_path: Path) -> None:
    """RANGE windows are refused until they begin after the rows that came before; ROWS are known
    from the rows that were kept."""
    register = panes.register("s", lateness=0, schema=SCHEMA, keep_rows=5)
    register.add("all", QUERIES["all"])
    register.push(rows(1, 60, 100))
    register.save(tmp_path / "register")
    again = panes.register("s", lateness=0, keep_rows=5, saved=tmp_path / "register")
    text = "SELECT count(*) AS n FROM s [RANGE 30 WATTR at]"
    again.prepare(text, within=1)
    with pytest.raises(panes.QueryError, match="what is prepared knows rows from"):
        again.ask(text, within=1)
    highest = "SELECT max(x) AS most FROM s [ROWS 5]"
    again.prepare(highest)
    assert again.ask(highest).column("most") == register.ask(highest).column("most")
    again.push(pa.table([[500, 510], ["a", "b"], [1, 2]], schema=SCHEMA))
    assert again.ask(text, within=1).column("n").to_pylist() == [2]


def test_what_is_no_saved_register_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"can be read from .*nothing: No such file"):
        panes.register("s", saved=tmp_path / "nothing")
    with pytest.raises(StateError, match="Is a directory"):
        panes.register("s", saved=tmp_path)
    register = panes.register("s", lateness=0, schema=SCHEMA)
    register.add("all", QUERIES["all"])
    register.save(tmp_path / "register")
    with pytest.raises(StateError, match=r"cannot be saved in .*: No such file"):
        register.save(tmp_path / "nowhere" / "register")
    with pytest.raises(StateError, match="stream was s, is t"):
        panes.register("t", saved=tmp_path / "register")
    (tmp_path / "register").write_bytes(b"PANE" + bytes(20))
    with pytest.raises(StateError, match=r"was saved in the format of panes 0\.1"):
        panes.register("s", saved=tmp_path / "register")


def test_a_saved_file_that_is_damaged_anywhere_is_refused_by_name(tmp_path: Path) -> None:
    register, path = panes.register("s", lateness=0), tmp_path / "register"
    for name, text in QUERIES.items():
        register.add(name, text)
    register.push(rows(1, 60, 0))
    register.save(path)
    whole = path.read_bytes()
    step = max(1, len(whole) // 400)
    damaged = [whole[:at] for at in range(0, len(whole), 5 * step)]
    damaged += [
        whole[:at] + bytes([whole[at] ^ (1 << at % 8)]) + whole[at + 1 :]
        for at in [*range(24), *range(0, len(whole), step)]
    ]
    for data in damaged:
        path.write_bytes(data)
        with pytest.raises(StateError, match=f"{path} is no saved register, or it is damaged"):
            panes.register("s", lateness=0, saved=path)
    path.write_bytes(whole)
    assert panes.register("s", lateness=0, saved=path).queries() == QUERIES


def test_a_manifest_that_is_damaged_anywhere_is_refused_by_name() -> None:
    entry = QueryEntry("a", "SELECT count(*) FROM s [RANGE 10 minutes WATTR ts]", 1)
    text = to_json(Manifest("s", shards=2, last=3, queries=[entry], removed={"b": "SELECT 1"}))
    assert from_json(text, "here").queries == [entry]
    for at in range(len(text)):
        for data in (text[:at], text[:at] + chr(ord(text[at]) ^ 1) + text[at + 1 :]):
            with pytest.raises(StateError, match=r"in here is damaged|was written in format"):
                from_json(data, "here")


def test_nothing_is_left_in_the_state_of_queries_that_are_gone() -> None:
    sharded = ShardedRegister("s", StreamOptions(lateness=0), SCHEMA, shards=1)
    sharded.add("keyed", QUERIES["keyed"])
    sharded.add("all", QUERIES["all"])
    sharded.push(rows(1, 60, 0))
    [state] = sharded.states
    before = set(state)
    sharded.remove("keyed")
    sharded.push(rows(2, 1, 40))
    stores = {name.split("/")[0] for name in state if "/" in name}
    assert len(stores) == 1
    assert {n.split("/")[0] for n in before if "/" in n} > stores


def test_a_list_of_queries_that_is_older_than_the_state_is_refused() -> None:
    """A list has the number after the one that was found, so after a loss a number comes again."""
    sharded = ShardedRegister("s", StreamOptions(lateness=0), SCHEMA, shards=1)
    sharded.number = 2
    sharded.add("all", QUERIES["all"])
    sharded.push(rows(1, 20, 0))
    sharded.push(rows(2, 20, 30))
    sharded.number = 3
    sharded.add("dear", QUERIES["dear"])
    sharded.push(rows(3, 20, 60))
    sharded.remove("dear")
    with pytest.raises(StateError, match=r"list 3 .* the newest list in panes-register is 2"):
        sharded.push(rows(4, 20, 90))
    sharded.number = 4
    sharded.remove("all")
    sharded.add("keyed", QUERIES["keyed"])
    sharded.push(rows(4, 20, 90))
