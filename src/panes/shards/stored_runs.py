"""Rows in a host's state: runs of blocks of time, as bytes.

They are those of one side of a join, or those that a register keeps for questions.

A run is written once and then left alone: what a batch brings is a new run, and what it marks as
joined is written beside the run. Rows that have passed are left out when their run is read, and
their bytes go with the block, or once half of the run has passed. So a batch writes what is new,
and reads only runs that its rows can reach.

Invariant: the ledger lists exactly the runs that the state has, each with at least one row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from panes.axis import BEGINNING, FOREVER
from panes.errors import StateError
from panes.join.sorted_rows import SortedRows
from panes.join.time_blocks import TimeBlocks
from panes.shards.recall import Recall, digest
from panes.shards.run_bytes import mark_columns, marks_of, packed, unpacked
from panes.shards.state import State
from panes.stores import codec

RECALL: Recall[SortedRows] = Recall()
"""Runs that this process has read or written lately, by the digests of their bytes."""
_MARKS = "marks"


@dataclass(slots=True)
class _Run:
    """What is known of a run without reading it, and its rows once they have been read.

    `number` is None until the run is written; one that `is_due` is written again under the same.
    With `is_marked`, its marks stand beside it.
    """

    rows: int
    low: int
    high: int
    number: int | None = None
    nbytes: int = 0
    digest: bytes = b""
    is_marked: bool = False
    held: SortedRows | None = None
    has_new_marks: bool = False
    is_due: bool = False

    @classmethod
    def of(cls, rows: SortedRows) -> _Run:
        return cls(len(rows), int(rows.at.min()), int(rows.at.max()), held=rows)


@dataclass(slots=True)
class _Ledger:
    """The runs of each block, and those to be deleted from the state."""

    blocks: dict[int, list[_Run]] = field(default_factory=dict)
    dropped: list[_Run] = field(default_factory=list)

    def drop(self, run: _Run) -> None:
        if run.number is not None:
            self.dropped.append(run)

    def __iter__(self) -> Iterator[_Run]:
        for block in sorted(self.blocks):
            yield from self.blocks[block]


class StoredRuns(TimeBlocks):
    """Rows under one name, read as they are needed; `write` puts back what is new.

    Rows before `passed` are forgotten, whether their bytes are gone or not.
    """

    def __init__(self, name: str, reach: int, state: State) -> None:
        super().__init__(reach)
        self.name, self._state = name, state
        self.passed = BEGINNING
        self._ledger = _Ledger()
        self._next = 0

    def __len__(self) -> int:
        return sum(run.rows for run in self._ledger)

    @property
    def nbytes(self) -> int:
        """Bytes of all runs in the state."""
        return sum(run.nbytes for run in self._ledger)

    @property
    def oldest(self) -> int:
        """No row lies before."""
        return min((max(run.low, self.passed) for run in self._ledger), default=FOREVER)

    def add(self, rows: SortedRows) -> None:
        """Take in rows; those that have passed are forgotten at once."""
        kept = rows.at >= self.passed
        super().add(rows if kept.all() else rows.where(kept))

    def runs(self, first: int, last: int) -> Iterator[SortedRows]:
        """The runs that may have rows at ``first <= at <= last``, oldest blocks first."""
        for run in list(self._ledger):
            if run.low <= last and first <= run.high and len(rows := self._read(run)):
                yield rows

    def everything(self) -> Iterator[SortedRows]:
        """All runs."""
        yield from self.runs(BEGINNING, FOREVER)

    def replace(self, old: SortedRows, new: SortedRows) -> None:
        """Put other rows in the place of a run; without rows, it is gone."""
        for runs in self._ledger.blocks.values():
            for place, run in enumerate(runs):
                if run.held is old:
                    if run.number is not None and len(new) == run.rows:
                        run.held, run.has_new_marks = new, True
                    else:
                        self._ledger.drop(run)
                        runs[place : place + 1] = [_Run.of(new)] if len(new) else []
                    self._forget_empty()
                    return

    def drop_before(self, at: int, *, exactly: bool = False) -> None:  # noqa: ARG002
        """Forget rows before a position; bytes of a run go when half of it has passed."""
        if at <= self.passed:
            return
        self.passed = at
        for block in list(self._ledger.blocks):
            kept: list[_Run] = []
            for run in self._ledger.blocks[block]:
                if run.high < at:
                    self._ledger.drop(run)
                elif run.low < at and at - run.low > run.high - at:
                    self._ledger.drop(run)
                    kept.append(_Run.of(self._read(run)))
                else:
                    kept.append(run)
            self._ledger.blocks[block] = kept
        self._forget_empty()

    def rewrite(self, change: Callable[[SortedRows], SortedRows] = lambda rows: rows) -> None:
        """Let all runs be written again, with whatever `change` makes of their columns.

        Rows that are joined are never rewritten: no run has marks.
        """
        for runs in self._ledger.blocks.values():
            for place, run in enumerate(runs):
                assert not run.is_marked
                assert not run.has_new_marks
                again = _Run.of(change(self._read(run)))
                again.number, again.is_due = run.number, True
                runs[place] = again

    def write(self) -> None:
        """Put what is new into the state, and take out what is gone."""
        for run in self._ledger.dropped:
            del self._state[self._key(run)]
            if run.is_marked:
                del self._state[f"{self._key(run)}/{_MARKS}"]
        self._ledger.dropped.clear()
        for run in self._ledger:
            if run.number is None or run.is_due:
                self._write_rows(run)
            elif run.has_new_marks:
                self._write_marks(run)

    # What is remembered of it

    def ledger(self) -> list[dict[str, object]]:
        """What is written of each run."""
        return [
            {
                "side": self.name,
                "block": block,
                "run": run.number,
                "rows": run.rows,
                "low": run.low,
                "high": run.high,
                "nbytes": run.nbytes,
                "digest": run.digest,
                "is_marked": run.is_marked,
            }
            for block, runs in self._ledger.blocks.items()
            for run in runs
        ]

    def about(self) -> dict[str, object]:
        """What is written of all runs together."""
        return {"side": self.name, "width": self._width, "passed": self.passed, "next": self._next}

    def restore(self, about: dict[str, object], ledger: Iterable[dict[str, object]]) -> None:
        """Go on where `about` and `ledger` were written.

        The end of a stream forgets all rows, and says nothing of those that come after it.
        """
        self._width, self.passed, self._next = (
            int(str(about[name])) for name in ("width", "passed", "next")
        )
        self.passed = BEGINNING if self.passed >= FOREVER else self.passed
        names = ("rows", "low", "high", "nbytes", "digest", "is_marked")
        for row in ledger:
            run = _Run(number=row["run"], **{n: row[n] for n in names})  # type: ignore[arg-type]
            self._ledger.blocks.setdefault(int(str(row["block"])), []).append(run)

    # Within

    def _append(self, block: int, rows: SortedRows) -> None:
        runs = self._ledger.blocks.setdefault(block, [])
        while runs and 2 * len(rows) >= runs[-1].rows:
            older = runs.pop()
            rows = self._read(older).merged(rows)
            self._ledger.drop(older)
        runs.append(_Run.of(rows))

    def _numbers(self) -> Iterator[int]:
        yield from self._ledger.blocks

    def _widen(self) -> None:
        self._width *= 2
        wider: dict[int, list[_Run]] = {}
        for block in sorted(self._ledger.blocks):
            wider.setdefault(block // 2, []).extend(self._ledger.blocks[block])
        self._ledger.blocks = wider

    def _forget_empty(self) -> None:
        blocks = self._ledger.blocks
        for block in [b for b, runs in blocks.items() if not runs]:
            del blocks[block]

    def _key(self, run: _Run) -> str:
        return f"{self.name}/{run.number}"

    def _read(self, run: _Run) -> SortedRows:
        """The rows of a run that have not passed."""
        if run.held is None:
            rows = RECALL.get(run.digest)
            if rows is None:
                rows = unpacked(self._bytes(self._key(run)))
                RECALL.put(run.digest, rows, run.nbytes)
            if run.is_marked:
                marks = codec.unpack(self._bytes(f"{self._key(run)}/{_MARKS}"))[_MARKS]
                rows = rows.marked(marks_of(marks))
            run.held = rows
        if run.low < self.passed:
            kept = run.held.at >= self.passed
            if not kept.all():
                run.held = run.held.where(kept)
        return run.held

    def _bytes(self, key: str) -> bytes:
        data = self._state.get(key)
        if data is None:
            raise StateError(f"rows {key} are missing from the state")
        return data

    def _write_rows(self, run: _Run) -> None:
        assert run.held is not None
        if run.number is None:
            run.number, self._next = self._next, self._next + 1
        run.is_due = False
        data = packed(run.held)
        self._state[self._key(run)] = data
        run.nbytes, run.digest = len(data), digest(data)
        RECALL.put(run.digest, run.held, run.nbytes)

    def _write_marks(self, run: _Run) -> None:
        assert run.held is not None
        assert run.held.marks is not None
        data = codec.pack({_MARKS: pa.table(mark_columns(run.held.marks))})
        self._state[f"{self._key(run)}/{_MARKS}"] = data
        run.is_marked, run.has_new_marks = True, False


def about_table(several: Iterable[StoredRuns]) -> pa.Table:
    """What is written of all runs of each name."""
    return pa.Table.from_pylist([stored.about() for stored in several], schema=_ABOUT)


def ledger_table(several: Iterable[StoredRuns]) -> pa.Table:
    """What is written of each run of each name."""
    runs = [run for stored in several for run in stored.ledger()]
    return pa.Table.from_pylist(runs, schema=_LEDGER)


_ABOUT = pa.schema(
    {"side": pa.string(), "width": pa.int64(), "passed": pa.int64(), "next": pa.int64()}
)
_LEDGER = pa.schema(
    {
        "side": pa.string(),
        "block": pa.int64(),
        "run": pa.int64(),
        "rows": pa.int64(),
        "low": pa.int64(),
        "high": pa.int64(),
        "nbytes": pa.int64(),
        "digest": pa.binary(),
        "is_marked": pa.bool_(),
    }
)
