"""Any history of a register: queries come and go, rows come late, progress moves, it is restarted.

After every step the register must have said exactly what `tests.reference.alone` says of each
query: no window missing, none twice, none too early, in order. What is drawn is small and
interlocks, so that queries meet: windows from 1 to 60 long, whose edges fall together or not, short
ones beside long ones (old panes are folded), expressions that are evaluated for some rows and fail
for others, and rows around the front of the stream, on both sides of what was promised. Keys change
as the stream goes on, so that old ones vanish. Queries that fail may come back.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import panes
from panes.arrays import key_numbers as groups
from panes.language.query import WINDOW_COLUMNS
from panes.process.register import Register
from panes.reference.compare import same
from tests.reference.alone import (
    CALLS,
    COMPUTED,
    CONDITIONS,
    EVERYTHING,
    GROUPINGS,
    NOTHING,
    Question,
    Row,
    answers,
    table_of,
    window_of,
)

SHORT = ((1, 1), (2, 1), (3, 1), (2, 2), (4, 2), (3, 2), (1, 3))
MIDDLE = ((6, 3), (7, 4), (5, 5), (8, 4), (9, 3), (10, 5), (3, 6))
LONG = ((20, 20), (12, 4), (16, 8), (20, 10), (24, 6), (30, 10), (40, 20), (23, 10))
NAMES = ("a", "b", "c", "d", "e", "f")
LETTERS = "mnopqrs"
KEPT = 5
"""How many of the last rows are kept, to be asked for."""


CHANGES = ("stay", "stay", "stay", "add", "add", "exchange", "remove", "put_back", "step_aside")
MOVES = (
    "stay",
    "push_in_order",
    "push_in_order",
    "push_around",
    "push_around",
    "push_one_by_one",
    "punctuate",
    "punctuate",
    "pass_everything",
)
HISTORIES = settings(max_examples=100, stateful_step_count=30)


def forget_keys_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys that nothing is held of are forgotten at once, not only where there are thousands."""
    monkeypatch.setattr(groups, "_FEW", 1)


def restarted(register: Register, **terms: Any) -> Register:
    """The register after its process was stopped and started again."""
    with TemporaryDirectory() as folder:
        register.save(Path(folder) / "register")
        return panes.register(register.stream, saved=Path(folder) / "register", **terms)


def windows(extents: Sequence[tuple[int, int]]) -> st.SearchStrategy[Question]:
    """Queries of which only the window matters."""
    origins = st.sampled_from((0, 0, 0, 0, 1, -3))
    return st.builds(
        lambda extent, origin: Question(size=extent[0], slide=extent[1], origin=origin),
        st.sampled_from(extents),
        origins,
    )


def few(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    """One, seldom two."""
    return st.one_of(*(st.lists(values, min_size=n, max_size=n) for n in (1, 1, 1, 2)))


conditions = st.sampled_from(tuple(CONDITIONS))
calls = st.one_of(st.sampled_from(tuple(CALLS)), st.sampled_from(COMPUTED))


# What the queries of one history are put together from: little, so that they share and interlock.
choices = st.fixed_dictionaries(
    {
        "windows": st.tuples(
            windows(SHORT), windows(LONG), windows(MIDDLE), windows((*SHORT, *MIDDLE, *LONG))
        ).flatmap(st.permutations),
        "groups": few(st.sampled_from(GROUPINGS)),
        "wheres": st.one_of(few(conditions), conditions.map(lambda where: ["", where])),
        "calls": few(st.lists(calls, min_size=1, max_size=2, unique=True).map(tuple)),
        "least": st.sampled_from((0, 0, 0, 2)),
    }
)


def questions(
    choice: dict[str, Any], window: Question | None = None
) -> st.SearchStrategy[Question]:
    """Any query that is put together from some choices, with this window or any of them."""
    return st.builds(
        replace,
        st.sampled_from(choice["windows"] if window is None else [window]),
        group=st.sampled_from(choice["groups"]),
        where=st.sampled_from(choice["wheres"]),
        calls=st.sampled_from(choice["calls"]),
        least=st.sampled_from((0, choice["least"])),
    )


# Positions are counted from the front of the stream, more of them behind it than ahead. Values are
# few, so that NULLs and equal ones are common, and quarters, whose sums are exact in any order.
offsets = st.integers(-24, 14)
values = st.tuples(
    st.one_of(st.none(), st.sampled_from((0, 0, 1))),
    st.sampled_from((True, False, None)),
    st.one_of(st.none(), st.integers(-2, 4)),
    st.one_of(st.none(), st.integers(0, 9).map(lambda n: n / 4)),
)
batches = st.lists(st.tuples(offsets, values), max_size=8)
terms = st.fixed_dictionaries(
    {
        "lateness": st.sampled_from((0, 3, 8, 20, None)),
        "late": st.sampled_from(("open", "drop")),
        "schema": st.sampled_from((None, table_of([]).schema)),
    }
)


@dataclass
class Life:
    """A query and from where on it is answered: not known before the stream's columns are."""

    question: Question
    exact_from: int | None = None


class Histories(RuleBasedStateMachine):
    """A register beside the plain list of rows that have counted so far."""

    READS_DROPPED = False
    """Whether expressions are evaluated of late rows that are dropped."""

    @initialize(terms=terms, choice=choices, data=st.data())
    def begin(self, terms: dict[str, Any], choice: dict[str, Any], data: st.DataObject) -> None:
        self.questions = questions(choice)
        self.lateness, self.drops = terms["lateness"], terms["late"] == "drop"
        self.is_bound = terms["schema"] is not None
        self.handed: dict[str, pa.Table] = {}
        self.terms = {"keep_rows": KEPT, "hand_over": lambda *given: self.hand(*given), **terms}
        self.reg = self.opened()
        self.rows: list[Row] = []
        self.late: list[tuple[Row, int, bool]] = []
        self.newest = self.progress = NOTHING
        self.lives: dict[str, Life] = {}
        self.failed: dict[str, Question] = {}
        for window in choice["windows"][: data.draw(st.integers(1, 3))]:
            self.register(data, questions(choice, window))
        count = data.draw(st.sampled_from((0, 10, 30)))
        if count:
            self.take_in([plain_row(n, 0) for n in range(count)])

    def opened(self) -> Any:
        """The register, before anything has come."""
        return panes.register("t", **self.terms)

    @rule(change=st.sampled_from(CHANGES), move=st.sampled_from(MOVES), data=st.data())
    def step(self, change: str, move: str, data: st.DataObject) -> None:
        """Both in one rule: of several, hypothesis would leave out half in every history."""
        getattr(self, change)(data)
        getattr(self, move)(data)

    def stay(self, data: st.DataObject) -> None:
        """Do nothing."""

    # Queries

    def add(self, data: st.DataObject) -> None:
        if len(self.lives) < len(NAMES):
            self.register(data, self.questions)

    def register(self, data: st.DataObject, some: st.SearchStrategy[Question]) -> None:
        name = data.draw(st.sampled_from([n for n in NAMES if n not in self.lives]))
        question = data.draw(some)
        self.reg.add(name, question.text, deadline=question.size % 3 or None)
        self.failed.pop(name, None)
        self.live(name, question)

    def live(self, name: str, question: Question) -> None:
        """A query is there from now on."""
        life = Life(question)
        if self.is_bound:
            self.settle(name, life)
        self.lives[name] = life

    def put_back(self, data: st.DataObject) -> None:
        """A query that failed comes back; one that is given up is forgotten."""
        if self.failed and len(self.lives) < len(NAMES):
            name = data.draw(st.sampled_from(sorted(self.failed)))
            question = self.failed.pop(name)
            self.reg.put_back(name)
            self.live(name, question)

    def settle(self, name: str, life: Life) -> None:
        """What a query is told of its first answer is true, and no more careful than need be."""
        said, question = self.reg.exact_from(name), life.question
        assert said is None or isinstance(said, int)
        life.exact_from = NOTHING if said is None else said
        if said is not None:
            assert (said + question.size - question.origin) % question.slide == 0
        if self.progress > NOTHING:
            assert life.exact_from >= self.first_window(question, NOTHING), "closed already"
        enough = [NOTHING if self.newest == NOTHING else self.newest + 1]
        enough += [
            o.exact_from
            for o in self.lives.values()
            if o.exact_from is not None and has_all_of(o.question, question)
        ]
        assert life.exact_from <= self.first_window(question, min(enough)), "too careful"

    def first_window(self, question: Question, low: int) -> int:
        """The start of the oldest window that is open and starts at or after a position."""
        if low == NOTHING == self.progress:
            return NOTHING
        after = max(self.progress, low + question.size - 1)
        return next(question.ends(after, after + question.slide)) - question.size

    def exchange(self, data: st.DataObject) -> None:
        self.remove(data)
        self.add(data)

    def remove(self, data: st.DataObject) -> None:
        if self.lives:
            name = data.draw(st.sampled_from(sorted(self.lives)))
            self.reg.remove(name)
            del self.lives[name]

    # The stream

    def push_in_order(self, data: st.DataObject) -> None:
        """A row at every position from the front on."""
        count, salt = data.draw(st.integers(1, 16)), data.draw(st.integers(0, 40))
        self.take_in([plain_row(self.front + n, salt) for n in range(count)])

    def push_around(self, data: st.DataObject) -> None:
        """Rows on both sides of what was promised, in any order."""
        self.take_in(self.placed(data.draw(batches)))

    def push_one_by_one(self, data: st.DataObject) -> None:
        for row in self.placed(data.draw(batches)[:4]):
            self.take_in([row])

    def punctuate(self, data: st.DataObject) -> None:
        """A promise that goes further than the one before, seldom as far back as that."""
        known = self.front - 12 if self.progress == NOTHING else self.progress
        self.promise(known + data.draw(st.integers(-1, 12)))

    def pass_everything(self, data: st.DataObject) -> None:
        """Once all windows that hold a row have closed, nothing is held."""
        reach = [life.question.size + life.question.slide for life in self.lives.values()]
        self.promise(self.front + 1 + max(reach, default=0))
        self.it_is_empty()

    @property
    def front(self) -> int:
        """Where the stream is."""
        return max(self.newest, self.progress) if self.has_begun else 0

    @property
    def has_begun(self) -> bool:
        return max(self.newest, self.progress) > NOTHING

    def placed(self, batch: list[tuple[int, Any]]) -> list[Row]:
        at = [self.front + offset for offset, _ in batch]
        return [Row(a, letter(a, key), *r) for a, (_, (key, *r)) in zip(at, batch, strict=True)]

    def take_in(self, batch: list[Row]) -> None:
        """A late row is one that breaks a promise made before its batch came."""
        if not (self.is_bound or self.lives):
            with pytest.raises(panes.PanesError, match="no query yet"):
                self.reg.push(table_of(batch))
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", panes.FailedQueryWarning)
            given = self.reg.push(table_of(batch))
        before = self.progress
        read = [r for r in batch if r.at >= before or not self.drops or self.READS_DROPPED]
        for name in [n for n, life in self.lives.items() if life.question.fails_of(read)]:
            self.failed[name] = self.lives.pop(name).question
        if not self.is_bound:
            self.is_bound = True
            for name, life in self.lives.items():
                self.settle(name, life)
        for row in batch:
            if row.at < before:
                self.late.append((row, before, self.is_awaited(row)))
            if row.at >= before or not self.drops:
                self.rows.append(row)
        self.newest = max(self.newest, *(row.at for row in batch), NOTHING)
        if self.lateness is not None and batch:
            self.progress = max(before, self.newest - self.lateness)
        self.compare(given, after=before, until=self.progress)

    def promise(self, at: int) -> None:
        if not (self.is_bound or self.lives):
            with pytest.raises(panes.PanesError, match="no query yet"):
                self.reg.punctuate(at)
            return
        given = self.reg.punctuate(at)
        before, self.progress = self.progress, max(self.progress, at)
        if self.is_bound:
            self.compare(given, after=before, until=self.progress)

    def is_awaited(self, row: Row) -> bool:
        """Whether a window that is still to be answered holds a row."""
        return any(
            end - life.question.size <= row.at and end - life.question.size >= life.exact_from
            for life in self.lives.values()
            if life.exact_from is not None
            for end in life.question.ends(max(self.progress, row.at), row.at + life.question.size)
        )

    def compare(self, given: dict[str, pa.Table], *, after: int, until: int) -> None:
        """Progress has moved: every query has got what closed on the way, and nothing else."""
        self.took(given)
        assert given.keys() <= self.lives.keys()
        for name, life in self.lives.items():
            assert life.exact_from is not None
            every = answers(life.question, self.rows, after=after, until=until)
            want = self.ordered([a for a in every if a[0] >= life.exact_from])
            got = self.ordered(lines_of(given.get(name)))
            assert same(got, want), f"{got} instead of {want}"

    def took(self, given: dict[str, pa.Table]) -> None:
        """The sink has the same answers as the caller."""
        assert given == self.handed
        self.handed.clear()

    def ordered(self, lines: list[list[Any]]) -> list[list[Any]]:
        """Answers in the order in which they are to come."""
        return lines

    def hand(self, name: str, table: pa.Table) -> None:
        assert name not in self.handed
        self.handed[name] = table

    # Asking, and what is refused

    ASIDE: Sequence[str] = (
        *("restart", "refuse", "ask rows", "ask", "ask"),
        *("prepare", "ask plain rows", "ask plain rows"),
    )

    def step_aside(self, data: st.DataObject) -> None:
        """What must change nothing."""
        aside = data.draw(st.sampled_from(self.ASIDE))
        if aside == "restart" and self.is_bound:
            self.reg = restarted(self.reg, **self.terms)
        elif aside == "refuse" and self.lives:
            self.refuse()
        elif aside == "ask rows" and self.is_bound:
            self.ask_rows(replace(data.draw(self.questions), size=data.draw(st.integers(1, KEPT))))
        elif aside == "ask":
            self.ask(replace(data.draw(self.questions), size=data.draw(st.integers(1, 30))))
        elif aside in ("prepare", "ask plain rows"):
            sized = replace(data.draw(self.questions), size=data.draw(st.integers(1, 12)))
            self.prepare(sized) if aside == "prepare" else self.ask_plain_rows(sized)

    def ask(self, question: Question) -> None:
        """Where it is answered at all, it is the truth, over a window that holds the newest row."""
        try:
            table = self.reg.ask(question.once)
        except panes.QueryError:
            return
        ends = range(self.newest + 1, self.newest + 1 + 20)
        if len(table):
            ends = range(table["window_end"][0].as_py(), table["window_end"][0].as_py() + 1)
            assert ends[0] > self.newest
        windows = (window_of(question, self.rows, end - question.size, end) for end in ends)
        got = self.ordered(lines_of(table))
        assert any(same(got, self.ordered(window)) for window in windows)

    def ask_rows(self, question: Question) -> None:
        numbered = [row._replace(at=n) for n, row in enumerate(self.rows)]
        end = len(numbered)
        want = window_of(question, numbered, end - question.size, end)
        assert_lines(self.reg.ask(question.of_rows), want)

    def prepare(self, question: Question) -> None:
        """From now on rows are kept for a question; a restart forgets that."""
        if self.is_bound or self.lives:
            self.reg.prepare(question.of_plain_rows)

    def ask_plain_rows(self, question: Question) -> None:
        """All rows of the window, or none, where some that it may hold are not kept any more."""
        if not self.is_bound:
            return
        start, holds = self.newest + 1 - question.size, CONDITIONS[question.where]
        try:
            table = self.reg.ask(question.of_plain_rows)
        except panes.QueryError:
            assert any(row.at >= start for row in self.rows[:-KEPT]), "all of them are kept"
            return
        inside = sorted((r for r in self.rows if r.at >= start and holds(r)), key=lambda r: r.at)
        assert_lines(table.drop(list(WINDOW_COLUMNS)), [[r.at, r.i, r.x] for r in inside])

    def refuse(self) -> None:
        with pytest.raises(panes.PanesError):
            self.reg.push(pa.table({"other": [1]}))
        with pytest.raises(panes.PanesError, match="already registered"):
            self.reg.add(min(self.lives), "SELECT count(*) AS n FROM t [TUMBLING 1 WATTR at]")
        if self.is_bound:
            with pytest.raises(panes.PanesError, match="nowhere"):
                self.reg.add("z", "SELECT sum(nowhere) AS n FROM t [TUMBLING 1 WATTR at]")

    # What always holds

    @invariant()
    def it_says_what_is_so(self) -> None:
        state = self.reg.state
        assert state["queries"] == len(self.lives)
        assert self.reg.failed.keys() == self.failed.keys()
        assert self.reg.queries() == {n: life.question.text for n, life in self.lives.items()}
        assert max(self.reg.progress, NOTHING) == self.progress
        if not self.lives:
            assert state["partials"] == state["stores"] == state["bytes"] == 0

    @invariant()
    def exact_from_stays(self) -> None:
        for name, life in self.lives.items():
            if life.exact_from is not None:
                said = self.reg.exact_from(name)
                assert (NOTHING if said is None else said) == life.exact_from

    @invariant()
    def late_rows_are_those_that_broke_a_promise(self) -> None:
        late = self.reg.late.to_pylist()
        reasons = [row.pop("reason") for row in late]
        assert late == [row._asdict() for row, _, _ in self.late]
        for reason, (_, promised, is_awaited) in zip(reasons, self.late, strict=True):
            assert reason.startswith(f"behind progress {promised}; ")
            assert reason.endswith("dropped") == self.drops
            if is_awaited and not self.drops:
                assert reason.endswith("counted in its open windows")

    def teardown(self) -> None:
        if not hasattr(self, "reg"):
            return
        given = self.reg.finish()
        if self.is_bound:
            self.compare(given, after=self.progress, until=EVERYTHING)
        self.it_is_empty()
        self.exact_from_stays()

    def it_is_empty(self) -> None:
        """Once all is answered, nothing is held."""
        assert self.reg.state["partials"] == 0


def letter(at: int, key: int | None) -> str | None:
    """A key: two at a time come up, and others later on."""
    return None if key is None else LETTERS[(at // 8 + key) % len(LETTERS)]


def plain_row(at: int, salt: int) -> Row:
    """Some row at a position."""
    n = at * 7 + at // 5 + salt
    i, x = (None if m == 0 else m - 2 for m in (n % 7, n % 6))
    return Row(at, letter(at, (0, 1, None)[n % 3]), (True, False, None)[n % 4 % 3], i, x)


def has_all_of(one: Question, other: Question) -> bool:
    """Whether whatever another query needs is kept for this one already, as long as it is needed.

    The same rows and aggregates, ends only where this one has ends, starts only where it has edges,
    and no longer windows.
    """
    alike = (one.group, one.where) == (other.group, other.where)
    has_ends = other.slide % one.slide == 0 and (other.origin - one.origin) % one.slide == 0
    has_starts = other.size % one.slide in (0, one.size % one.slide)
    is_long = other.size <= one.size
    return alike and {*other.calls} <= {*one.calls} and has_ends and has_starts and is_long


def lines_of(table: pa.Table | None) -> list[list[Any]]:
    return [] if table is None else [list(row.values()) for row in table.to_pylist()]


def assert_lines(table: pa.Table | None, want: list[list[Any]]) -> None:
    got = lines_of(table)
    assert same(got, want), f"{got} instead of {want}"
