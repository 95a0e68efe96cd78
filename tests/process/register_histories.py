"""Any history of a register of any queries: they come, go, fail and come back as rows are pushed.

Every query has a twin that runs alone and has seen all rows. After each step a query has given
exactly what its twin has, of windows that start at `exact_from` or later; of joined rows, nothing
that the twin has not, and everything that lies there.
"""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st

import panes
from panes.process.register import Register

SCHEMA = pa.schema([(name, pa.int64()) for name in ("at", "o", "k", "x")])
LATENESS, BEFORE = 6, -(10**6)
PEAKS = "(SELECT k, max(x) AS m FROM s [RANGE {size} SLIDE {slide} WATTR at] GROUP BY k)"

SHARED = [
    "SELECT max(x + 1) AS n FROM s [TUMBLING 4 WATTR at] WHERE x > 2",
    "SELECT count(*) FILTER (WHERE x % 2 = 1) AS n, sum(x + k) AS m FROM s [RANGE 6 SLIDE 2 "
    "WATTR at] GROUP BY x % 3",
    "SELECT k, sum(x) AS n FROM s [RANGE 12 SLIDE 4 WATTR at] GROUP BY k",
    "SELECT count(*) AS n FROM s [TUMBLING 5 WATTR at] WHERE x > 3",
    "SELECT max(x) AS n FROM s [RANGE 3 SLIDE 7 WATTR at]",
]
BESIDE = [
    "SELECT k, min(x) AS n FROM s [RANGE 5 ROWS SLIDE 2 ROWS] GROUP BY k",
    "SELECT at, k, sum(x) AS n FROM s [RANGE 7 SLIDE 1 ROW RATTR at]",
    "SELECT sum(y) AS n FROM (SELECT at, x + 1 AS y FROM s WHERE x > 2) [TUMBLING 6 WATTR at]",
    "SELECT sum(x) AS n FROM (SELECT at + 5 AS at, x FROM s) [TUMBLING 6 WATTR at]",
    "SELECT count(*) AS n FROM (SELECT DISTINCT at, k FROM s) [RANGE 9 SLIDE 3 WATTR at]",
    "SELECT count(*) AS n FROM s [TUMBLING 8 WATTR at] EMIT EARLY",
    "SELECT count(*) AS n FROM (SELECT at, k FROM s WHERE x > 4 UNION ALL SELECT at, k FROM s) "
    "[TUMBLING 6 WATTR at]",
    f"SELECT avg(m) AS n FROM {PEAKS.format(size=4, slide=4)} [TUMBLING 12]",
    f"SELECT k, sum(m) AS n FROM {PEAKS.format(size=4, slide=4)} [RANGE 16 SLIDE 4] GROUP BY k",
    f"SELECT max(m) AS n FROM {PEAKS.format(size=6, slide=3)} [RANGE 9 SLIDE 3 WATTR window_start]",
    f"SELECT window_end, sum(m) AS n FROM {PEAKS.format(size=4, slide=4)} "
    "[RANGE 8 SLIDE 1 ROW RATTR window_end]",
    "SELECT sum(n) AS n FROM (SELECT k, avg(m) AS n FROM "
    f"{PEAKS.format(size=4, slide=2)} [TUMBLING 8] GROUP BY k) [RANGE 24 SLIDE 8]",
]
ONLY_FROM_THE_START = [
    "SELECT count(*) AS n FROM s [RANGE ALL SLIDE 5 WATTR at]",
    "SELECT count(*) AS n FROM s [RANGE 9 SLIDE 5 WATTR at ORIGIN FIRST]",
    "SELECT k, sum(x) AS n FROM s [PA k RANGE 3 ROWS SLIDE 1 ROW]",
    "SELECT count(*) AS n FROM s [TUMBLING 10 WATTR o]",
    f"SELECT count(*) AS n FROM {PEAKS.format(size=4, slide=4)} [RANGE ALL SLIDE 8]",
    "SELECT p.m FROM (SELECT k, max(x) AS m FROM s [TUMBLING 4 WATTR at] GROUP BY k) p JOIN "
    "(SELECT k, min(x) AS m FROM s [TUMBLING 4 WATTR at] GROUP BY k) q "
    "ON p.k = q.k AND p.window_end = q.window_end",
]
JOINED = ["SELECT a.at AS p, b.at AS q, a.x FROM s a JOIN s b ON a.k = b.k "
          "AND b.at BETWEEN a.at AND a.at + 2"]  # fmt: skip
TWO = [
    "SELECT sum(x) AS n FROM (SELECT at, x FROM s UNION ALL SELECT at, x FROM r) "
    "[RANGE 8 SLIDE 4 WATTR at]",
    "SELECT k, sum(x) AS n FROM r [RANGE 12 SLIDE 4 WATTR at] GROUP BY k",
    "SELECT k, count(*) AS n FROM r [TUMBLING 5 WATTR at] GROUP BY k EMIT EARLY",
]
JOINED_TWO = ["SELECT a.at AS p, b.at AS q, b.x FROM s a JOIN r b ON a.k = b.k "
              "AND b.at BETWEEN a.at - 1 AND a.at + 3"]  # fmt: skip
FAILS = [
    "SELECT sum(y) AS n FROM (SELECT at, 10 / x AS y FROM s) [TUMBLING 6 WATTR at]",
    "SELECT sum(10 / x) AS n FROM s [TUMBLING 6 WATTR at]",
    "SELECT count(*) AS n FROM s [RANGE 12 SLIDE 4 WATTR at] WHERE 10 / x > 2",
    "SELECT count(*) FILTER (WHERE 10 / x > 2) AS n FROM s [RANGE 12 SLIDE 4 WATTR at]",
    "SELECT 10 / x AS g, count(*) AS n FROM s [TUMBLING 5 WATTR at] GROUP BY 10 / x",
    "SELECT at, k, sum(10 / x) AS n FROM s [RANGE 7 SLIDE 1 ROW RATTR at]",
    "SELECT a.at AS p, b.at AS q, 10 / a.x AS n FROM s a JOIN s b ON a.k = b.k "
    "AND b.at BETWEEN a.at AND a.at + 2",
]
"""They fail as soon as a row with x = 0 has come."""
QUESTIONS = [
    "SELECT k, sum(x) AS n FROM s [RANGE {} WATTR at] GROUP BY k",
    "SELECT count(*) AS n FROM s [RANGE {} WATTR at] WHERE x > 3",
    "SELECT max(x + 1) AS n FROM s [RANGE {} WATTR at]",
    "SELECT count(*) FILTER (WHERE x % 2 = 1) AS n FROM s [RANGE {} WATTR at]",
    "SELECT sum(x + k) AS n FROM s [RANGE {} WATTR at] GROUP BY x % 3",
]


def rows(data: st.DataObject, around: int) -> pa.Table:
    """A few rows near a position; some are late."""
    found = data.draw(
        st.lists(
            st.tuples(
                st.integers(-10, 14), st.integers(0, 4), st.integers(1, 2), st.integers(0, 6)
            ),
            max_size=7,
        )
    )
    values = [(max(around + d, 0), 2 * max(around + d, 0) + o, k, x) for d, o, k, x in found]
    columns = list(zip(*values, strict=True)) or [()] * 4
    return pa.table([pa.array(c, pa.int64()) for c in columns], schema=SCHEMA)


@dataclass
class Life:
    """A query while it is there, and its twin; what each has given so far."""

    name: str
    text: str
    twin: Any
    begins: object
    given: Counter[str] = field(default_factory=Counter)
    wanted: Counter[str] = field(default_factory=Counter)
    sure: Counter[str] = field(default_factory=Counter)


class History:
    """A register, and a twin for every query.

    With a `state`, the register is killed and goes on, or closed and goes on, whenever it is told.
    """

    def __init__(self, streams: tuple[str, ...], state: Path | None = None, **options: Any) -> None:
        self.streams, self.options, self.state = streams, options, state
        self.reg = self._register()
        self.lives: dict[str, Life] = {}
        self.failed: dict[str, str] = {}
        self.before: list[tuple[str, Any]] = []
        self.number = 0
        self.came = False
        self.newest = BEFORE
        self.rows = SCHEMA.empty_table()

    def _register(self) -> Register:
        kept: dict[str, Any] = {} if self.state is None else {"state": self.state}
        return panes.register(
            self.streams[0] if len(self.streams) == 1 else self.streams, **self.options, **kept
        )

    def again(self, *, is_killed: bool) -> None:
        """Go on in another process; one that is killed has what its last push wrote."""
        seen = self.reg.queries(), {name: self.reg.exact_from(name) for name in self.reg.queries()}
        keeper = self.reg._turn.keeper
        assert keeper is not None
        if is_killed:
            keeper.folder.close()
        else:
            self.reg.close()
        self.reg = self._register()
        assert seen == (
            self.reg.queries(), {name: self.reg.exact_from(name) for name in self.reg.queries()}
        )  # fmt: skip

    def pool(self) -> list[str]:
        mine = [*SHARED, *BESIDE, *ONLY_FROM_THE_START, *JOINED, *FAILS]
        return mine if len(self.streams) == 1 else [*mine, *TWO, *JOINED_TWO]

    def add(self, text: str) -> None:
        """One more query; it may be refused if it could only be answered from the start."""
        self.number += 1
        name = f"q{self.number}"
        refused = ""
        try:
            added = self.reg.add(name, text)
        except panes.QueryError as error:
            refused = str(error)
        if refused:
            assert self.came, (text, refused)
            assert text in ONLY_FROM_THE_START or "nobody knows" in refused, (text, refused)
            assert name not in self.reg.queries()
            return
        self.live(name, text, added.exact_from)

    def put_back(self, name: str) -> None:
        """A query that failed comes back under its name."""
        text = self.failed.pop(name)
        self.live(name, text, self.reg.put_back(name).exact_from)

    def live(self, name: str, text: str, begins: object) -> None:
        """A query is there from now on; its twin catches up, and never fails."""
        harmless = text.replace("10 / x", "try_divide(10, x)").replace(
            "10 / a.x", "try_divide(10, a.x)")  # fmt: skip
        life = Life(name, text, self.opened(harmless), begins)
        self.lives[name] = life
        for call, given in self.before:
            self.twin(life, call, given)

    def opened(self, text: str) -> Any:
        return panes.open(text, **self.options)

    def twin(self, life: Life, call: str, given: Any) -> None:
        """The twin makes a step; what it gives is wanted, from where the query is whole."""
        words = life.text.replace("(", " ").replace(")", " ").split()
        reads = {name: one for name, one in given.items() if name in words}
        if given and not reads:
            return
        try:
            found = getattr(life.twin, call)(**reads)
        except panes.PanesError:
            assert call == "finish", life.text
            return
        for row in found.to_pylist():
            life.wanted[repr(row)] += 1
            life.sure[repr(row)] += self.lies(life, row)

    def lies(self, life: Life, row: dict[str, Any]) -> bool:
        """Whether an answer lies where the query is whole."""
        if row.get("status") == "early":  # given with each batch, and not again
            return False
        if life.begins is None:
            return True
        if "window_start" in row:
            return bool(row["window_start"] >= life.begins)
        if "q" in row:
            return bool(min(row["p"], row["q"]) >= life.begins)
        if "window_end" in row:
            return bool(row["window_end"] - 8 + 1 >= life.begins)
        return bool(row["at"] - 7 + 1 >= life.begins)

    def remove(self, name: str) -> None:
        self.reg.remove(name)
        del self.lives[name]

    def step(self, call: str, **given: Any) -> None:
        """A step of the register and of all twins."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", panes.FailedQueryWarning)
            one = len(self.streams) == 1 and given
            found = getattr(self.reg, call)(*given.values()) if one else \
                getattr(self.reg, call)(**given)  # fmt: skip
        zeros = self.note(**given)
        if call != "finish":
            self.before.append((call, given))
            self.came |= any(len(t) for t in given.values() if isinstance(t, pa.Table))
        for name in self.reg.failed:
            life = self.lives.pop(name, None)
            if life is not None:
                assert life.text in FAILS or call == "finish", self.reg.failed
                self.failed[name] = life.text
        assert not zeros or not [n for n, one in self.lives.items() if one.text in FAILS[:-1]]
        for life in self.lives.values():
            self.twin(life, call, given)
            table = found.get(life.name)
            for row in [] if table is None else table.to_pylist():
                life.given[repr(row)] += 1
            self.compare(life)

    def note(self, s: pa.Table | None = None, **_: pa.Table) -> bool:
        """Rows of `s` have come; whether any of them that counts has x = 0."""
        if s is None:
            return False
        counts = pc.greater_equal(s["at"], self.newest - LATENESS)
        on_time = s.filter(counts)
        self.rows = pa.concat_tables([self.rows, on_time if self.options["late"] == "drop" else s])
        self.newest = max([self.newest, *s["at"].to_pylist()])
        return 0 in on_time["x"].to_pylist()

    def ask(self, text: str, size: int) -> None:
        """Whatever is answered now is the truth over a window that holds the newest row."""
        try:
            found = self.reg.ask(text.format(size))
        except panes.QueryError:
            return
        if not len(found):
            return
        [start] = set(found["window_start"].to_pylist())
        assert start <= self.newest < start + size
        whole = text.format(f"{size} SLIDE {size}").replace("WATTR at", f"WATTR at ORIGIN {start}")
        wanted = panes.oracle(whole, s=self.rows)
        of_now = wanted.filter(pc.equal(wanted["window_start"], start))
        assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, of_now.to_pylist())), text

    def compare(self, life: Life) -> None:
        assert life.given <= life.wanted, (life.text, life.begins, life.given - life.wanted)
        assert life.given >= life.sure, (life.text, life.begins, life.sure - life.given)
        if life.text not in [*JOINED, *JOINED_TWO, FAILS[-1]] and "EARLY" not in life.text:
            assert life.given == life.sure, (life.text, life.begins)


def any_history(
    data: st.DataObject, streams: tuple[str, ...], late: str, state: Path | None = None
) -> None:
    """Queries come and go while batches are pushed, in any order; then the streams end.

    With a `state`, the register is stopped and opened again behind pushes and other calls.
    """
    history = History(streams, state, lateness=LATENESS, late=late)
    for text in data.draw(st.lists(st.sampled_from(history.pool()), min_size=1, max_size=5)):
        history.add(text)
    for stream in streams:  # every stream is read from the start
        history.add(SHARED[1].replace("FROM s", f"FROM {stream}"))
    around = 0
    for _ in range(data.draw(st.integers(1, 6))):
        batches = {name: rows(data, around) for name in streams}
        is_one_silent = data.draw(st.booleans())
        if len(streams) > 1 and history.before and is_one_silent:
            batches.pop(data.draw(st.sampled_from(streams)))
        history.step("push", **batches)
        if state is not None and data.draw(st.booleans()):
            history.again(is_killed=True)
        around += data.draw(st.integers(0, 12))
        for text in data.draw(st.lists(st.sampled_from(history.pool()), max_size=2)):
            history.add(text)
        comes_back = data.draw(st.booleans())
        if history.failed and comes_back:
            history.put_back(data.draw(st.sampled_from(sorted(history.failed))))
        if len(streams) == 1:
            history.ask(data.draw(st.sampled_from(QUESTIONS)), data.draw(st.integers(1, 14)))
        goes = data.draw(st.booleans())
        if history.lives and goes:
            history.remove(data.draw(st.sampled_from(sorted(history.lives))))
        if state is not None and data.draw(st.booleans()):
            history.again(is_killed=False)
    history.step("finish")
