"""A register of any queries that is stopped after every call: it says what it would have.

Queries share joins and nodes, come late, go before those that share with them, and lie on several
columns. Catches whatever a state leaves out, and whatever depends on how a graph came about.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import panes
from panes.errors import StateError
from panes.process.register import Register
from panes.stores.state_folder import StateFolder

Again = Callable[[Register], Register]
PEAKS = "SELECT k, max(v) AS m FROM s [TUMBLING 10 WATTR at] GROUP BY k"
NEAR = "s.k = u.k AND u.at BETWEEN s.at - 3 AND s.at + 5"
PAIRS = f"SELECT s.id AS i, u.id AS j FROM s LEFT JOIN u ON {NEAR}"
STREAMS = ("s", "u")
HISTORY: list[tuple[str, ...]] = [
    ("add", "early pairs", PAIRS),
    ("add", "sums", "SELECT k, sum(v) AS a FROM s [RANGE 20 SLIDE 10 WATTR at] GROUP BY k"),
    ("push", "s"),
    ("add", "peaks", PEAKS),
    ("add", "over", f"SELECT sum(m) AS n FROM ({PEAKS}) [TUMBLING 20]"),
    ("push",),
    ("add", "late pairs", PAIRS),
    ("add", "folded", f"SELECT s.k, s.at, sum(u.v) AS z FROM s LEFT JOIN u ON {NEAR} "
                      "GROUP BY s.k, s.at"),
    ("add", "above", f"SELECT s.k, count(*) AS n [TUMBLING 10 WATTR s.at] FROM s JOIN u ON {NEAR} "
                     "GROUP BY s.k"),
    ("add", "over again", f"SELECT max(m) AS n FROM ({PEAKS}) [TUMBLING 20]"),
    ("add", "other column", "SELECT count(*) AS n FROM s [TUMBLING 10 WATTR id]"),
    ("push",),
    ("remove", "early pairs"),
    ("remove", "over"),
    ("add", "united", "SELECT count(*) AS n FROM (s UNION ALL u) [TUMBLING 10 WATTR at]"),
    ("push",),
    ("remove", "sums"),
    ("push",),
]  # fmt: skip


def _rows(number: int) -> dict[str, pa.Table]:
    """Rows of both streams, some of them late."""
    at = [15 * number + (7 * n) % 20 - (25 if n == 9 else 0) for n in range(12)]
    ids = [12 * number + n for n in range(12)]
    rows = {"at": at, "k": [n % 3 for n in range(12)], "v": [n * n % 10 for n in ids], "id": ids}
    table = pa.table(rows)
    return {"s": table, "u": table.slice(2, 7)}


def _plain(answers: Mapping[str, Any]) -> dict[str, Any]:
    return {name: table.to_pylist() for name, table in answers.items()}


def _said(reg: Register, again: Again) -> Iterator[object]:
    """Everything that a register says; `again` is asked for it after every call."""
    number = 0
    for what, *given in HISTORY:
        if what == "push":
            rows = _rows(number)
            yield _plain(reg.push(**{name: rows[name] for name in given or STREAMS}))
            number += 1
        elif what == "add":
            yield repr(reg.add(*given))
        else:
            reg.remove(*given)
        reg = again(reg)
        yield from _seen(reg)
    yield _plain(reg.finish())


def _seen(reg: Register) -> Iterator[object]:
    state = {name: n for name, n in reg.state.items() if "bytes" not in name}
    yield {**state, "on_disk": 0}
    yield re.sub(r"measured .*", "measured", reg.explain().partition("\nkept ")[0].rstrip())
    yield [reg.late.to_pylist(), reg.progress, reg.queries(), reg.failed, reg.joined_rows]
    yield {name: reg.exact_from(name) for name in reg.queries()}


def _from_a_file(folder: Path) -> Again:
    def again(reg: Register) -> Register:
        reg.save(folder / "file")
        return panes.register(STREAMS, lateness=15, saved=folder / "file")

    return again


def _from_a_folder(folder: Path) -> Again:
    def again(reg: Register) -> Register:
        if reg._turn.keeper is not None:
            reg.close()
        return panes.register(STREAMS, lateness=15, state=folder)

    return again


@pytest.mark.parametrize("place", [_from_a_file, _from_a_folder])
def test_a_register_of_any_queries_says_the_same_wherever_it_is_stopped(
    place: Callable[[Path], Again], tmp_path: Path
) -> None:
    expected = list(_said(panes.register(STREAMS, lateness=15), lambda reg: reg))
    options: dict[str, Any] = {"state": tmp_path} if place is _from_a_folder else {}
    found = list(_said(panes.register(STREAMS, lateness=15, **options), place(tmp_path)))
    for number, (one, other) in enumerate(zip(found, expected, strict=True)):
        assert one == other, number


def test_a_call_that_waits_for_the_columns_of_a_join_is_kept(tmp_path: Path) -> None:
    plain = panes.register(STREAMS, lateness=15)
    reg = panes.register(STREAMS, lateness=15, state=tmp_path)
    for one in (plain, reg):
        one.add("pairs", PAIRS)
        one.push(s=_rows(0)["s"])
    reg.close()
    reg = panes.register(STREAMS, lateness=15, state=tmp_path)
    found, expected = (_plain(one.push(**_rows(1))) for one in (reg, plain))
    assert found == expected
    assert len(found["pairs"]) > 3


QUESTIONS = {
    "SELECT max(v) AS m FROM s [ROWS 7]": None,
    "SELECT sum(v) AS n, min(v) AS l FROM s [RANGE 30 WATTR at] WHERE k > 0": 2,
    "SELECT count(*) AS n FROM s [ROWS 9]": 1.5,
    "SELECT * FROM s [RANGE 30 WATTR at] WHERE k = 1": None,
}


def test_what_is_prepared_and_what_is_kept_of_rows_is_asked_as_before(tmp_path: Path) -> None:
    options: dict[str, Any] = {"lateness": 15, "keep_rows": 8}
    plain, reg = panes.register("s", **options), panes.register("s", **options, state=tmp_path)
    for one in (plain, reg):
        one.add("peaks", PEAKS)
        for text, within in QUESTIONS.items():
            one.prepare(text, within=within)
    for number in range(4):
        for one in (plain, reg):
            one.push(_rows(number)["s"])
        reg.close()
        reg = panes.register("s", **options, state=tmp_path)
        assert reg.prepared() == plain.prepared()
        for text, within in QUESTIONS.items():
            assert reg.ask(text, within=within).equals(plain.ask(text, within=within))
        kept = "SELECT id FROM s [ROWS 8]"
        assert reg.ask(kept).equals(plain.ask(kept))
        assert reg.state["rows"] == plain.state["rows"]


def test_what_changed_alone_is_written_of_a_register(tmp_path: Path) -> None:
    reg = panes.register("s", lateness=10**6, state=tmp_path)  # nothing is answered yet
    reg.add("long", "SELECT id, sum(v) AS a FROM s [RANGE 90000 SLIDE 10 WATTR at] GROUP BY id")
    folder, sizes = reg._turn.keeper.folder, []  # type: ignore[union-attr]
    assert isinstance(folder, StateFolder)
    for number in range(20):
        before = folder.written
        at = list(range(500 * number, 500 * number + 500))
        reg.push(pa.table({"at": at, "id": at, "v": [1.0] * 500}))
        sizes.append(folder.written - before)
    assert sorted(sizes)[10] < (reg.state["bytes"] + reg.state["key_bytes"]) / 6


def test_options_that_a_saved_register_may_have_others_of(tmp_path: Path) -> None:
    reg = panes.register("s", lateness=15)
    reg.add("peaks", PEAKS)
    reg.add("over", f"SELECT sum(m) AS n FROM ({PEAKS}) [TUMBLING 20]")
    reg.push(_rows(0)["s"])
    reg.save(tmp_path / "file")
    other = panes.register("s", lateness=2, late="drop", saved=tmp_path / "file")
    other.push(_rows(1)["s"])
    reg.push(_rows(1)["s"])
    assert other.progress == reg.progress + 13
    with pytest.raises(StateError, match="rows_late was None, is 4"):
        panes.register("s", rows_late=4, saved=tmp_path / "file")


def test_stores_are_known_again_whatever_the_order_of_queries_is(tmp_path: Path) -> None:
    """The query that made the first store goes, and one that comes last has it."""
    plain, reg = panes.register("s", lateness=0), panes.register("s", lateness=0, state=tmp_path)
    keyed = "SELECT k, sum(v) AS n FROM s [RANGE 20 SLIDE 5 WATTR at] GROUP BY k"
    for one in (plain, reg):
        one.add("first", keyed)
        one.add("second", "SELECT sum(v) AS n FROM s [RANGE 20 SLIDE 5 WATTR at]")
        one.push(_rows(0)["s"])
        one.add("third", keyed)
        one.remove("first")
        one.push(_rows(1)["s"])
    reg.close()
    reg = panes.register("s", lateness=0, state=tmp_path)
    assert _plain(reg.push(_rows(2)["s"])) == _plain(plain.push(_rows(2)["s"]))
