"""A query over a stream in this process: push, punctuate, finish.

Decides which rows count (rejected and late ones are kept apart, with the reason), what is
promised, and therefore which windows are closed. The work is the `Pipeline`'s.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.aggregates.custom import UserAggregate
from panes.axis import DAY, parse_duration, parse_instant
from panes.engine.pipeline import Pipeline
from panes.errors import InputError, OptionError, QueryError, UnknownStreamError
from panes.frames import to_table
from panes.language.parse import parse
from panes.planning.plan import Plan, plan
from panes.progress.promise import EVERYTHING, NOTHING, Promise, meld
from panes.windows.spec import Landmark, Sliding

Late: TypeAlias = Literal["open", "drop"]
Duration: TypeAlias = "str | int | dt.timedelta"
Instant: TypeAlias = "str | int | dt.datetime"


class OpenQuery:
    """A running query: rows go in, final answers come out.

    Answers are given once, when nothing can change them any more. Row order and the split into
    batches change no answer, as long as no row comes later than was promised.
    """

    def __init__(
        self,
        text: str,
        *,
        lateness: Duration | None = None,
        late: Late = "open",
        max_ahead: Duration | None = DAY,
        aggregates: Sequence[UserAggregate] = (),
        bounded: bool = False,
        now: Callable[[], int] = lambda: time.time_ns() // 1_000,
    ) -> None:
        self.query = parse(text, aggregates)
        self._aggregates = tuple(aggregates)
        if late not in ("open", "drop"):
            raise OptionError(
                f"late must be 'open' or 'drop', got {late!r}",
                hint="'open': a late row still counts in windows that are open; 'drop': in none",
            )
        self._late_policy = late
        ticks = None if lateness is None else parse_duration(lateness, option="lateness")
        if ticks is not None and ticks < 0:
            raise OptionError(f"lateness cannot be negative, got {lateness!r}")
        self.lateness = ticks
        self._promises = {name: Promise(ticks) for name in self.query.streams}
        self._max_ahead = (
            None if max_ahead is None else parse_duration(max_ahead, option="max_ahead")
        )
        self._now = now
        self._bounded = bounded
        self._schemas: dict[str, pa.Schema] = {}
        self._plan: Plan | None = None
        self._pipeline: Pipeline | None = None
        self._waiting: list[tuple[NDArray[np.int64], list[pa.Array]]] = []
        self._arrived = 0
        self._finished = False
        self._late: list[pa.Table] = []
        self._rejected: list[pa.Table] = []

    def push(self, **batches: object) -> pa.Table:
        """Take in a batch of each named stream; gives the answers that are final from now on."""
        self._require_running()
        tables = {name: to_table(batch, name) for name, batch in batches.items()}
        for name, table in tables.items():
            self._learn_schema(name, table)
        if self._plan is None:
            self._bind()
        newest = {name: self._take_in(name, table) for name, table in tables.items()}
        for name, at in newest.items():
            if at is not None:
                self._promises[name].observe(at)
        return self._advance()

    def punctuate(self, **promised: Instant) -> pa.Table:
        """Promise that no later row of a stream lies before an instant; gives what that closes."""
        self._require_running()
        for name, at in promised.items():
            if name not in self._promises:
                raise UnknownStreamError(name, streams=self._promises)
            self._promises[name].punctuate(parse_instant(at))
        return self._advance()

    def finish(self) -> pa.Table:
        """The stream has ended: gives all answers that are left, and forgets everything."""
        self._require_running()
        self._finished = True
        for promise in self._promises.values():
            promise.punctuate(EVERYTHING)
        if self._plan is None:
            raise InputError(
                f"the query has seen no batch of {self._names(self._promises)}, so its answers "
                "have no columns",
                hint="push an empty table with the stream's schema",
            )
        self._start_waiting()
        pipeline = self._pipeline
        if pipeline is None:
            return self._plan.schema().empty_table()
        if self._plan.axis.kind == "rows":
            answers = pipeline.advance(self._arrived)
        else:
            answers = pipeline.finish()
        self._pipeline = None
        return answers

    @property
    def late(self) -> pa.Table:
        """Rows that broke a promise, with the reason."""
        return self._set_apart(self._late)

    @property
    def rejected(self) -> pa.Table:
        """Rows that have no place on the axis, with the reason."""
        return self._set_apart(self._rejected)

    def _set_apart(self, rows: Sequence[pa.Table]) -> pa.Table:
        """Rows with the columns of their streams and the reason, even if there are none."""
        known = pa.unify_schemas([pa.schema([]), *self._schemas.values()]).remove_metadata()
        empty = known.append(pa.field("reason", pa.string())).empty_table()
        return pa.concat_tables([empty, *rows], promote_options="default")

    @property
    def progress(self) -> int:
        """What is promised of the whole input, in ticks of the axis."""
        return meld(self._promises.values())

    @property
    def state(self) -> Mapping[str, int]:
        """How much is held: partials, their bytes, and rows waiting for ``ORIGIN FIRST``."""
        pipeline = self._pipeline
        return {
            "partials": 0 if pipeline is None else pipeline.partials,
            "bytes": 0 if pipeline is None else pipeline.nbytes,
            "waiting_rows": sum(len(at) for at, _ in self._waiting),
        }

    @property
    def held_keys(self) -> int:
        """How many combinations of key values are remembered."""
        return 0 if self._pipeline is None else self._pipeline.keys

    @property
    def plan(self) -> Plan:
        """The plan, known from the first batch on."""
        if self._plan is None:
            raise InputError("the plan is not known before every stream has sent a batch")
        return self._plan

    def _require_running(self) -> None:
        if self._finished:
            raise QueryError("the query has finished; open it again to ask once more")

    def _learn_schema(self, name: str, table: pa.Table) -> None:
        if name not in self._promises:
            raise UnknownStreamError(name, streams=self._promises)
        known = self._schemas.setdefault(name, table.schema)
        if not table.schema.remove_metadata().equals(known.remove_metadata()):
            raise InputError(
                f"a batch of stream `{name}` has other columns than the first one: "
                f"{_differences(known, table.schema)}"
            )

    def _bind(self) -> None:
        """Plan as soon as one stream's schema is known; streams of a union have the same."""
        known = next(iter(self._schemas.values()))
        self._plan = plan(
            self.query, {n: self._schemas.get(n, known) for n in self._promises}, self._aggregates
        )
        require_paned(self._plan)
        if not self._bounded:
            _require_streamable(self._plan)
        if not self._plan.window.origin_first:
            self._pipeline = Pipeline(self._plan)

    def _take_in(self, name: str, table: pa.Table) -> int | None:
        """Sort out a batch's rows; gives its greatest position, if it has any."""
        at, table = self._positions(name, table)
        if not len(at):
            return None
        newest = int(at.max())
        promised = self._promises[name].at
        kept, columns = self.plan.rows(table)
        at = at if kept is None else at[kept]
        is_timed = self.plan.axis.kind != "rows" and promised != NOTHING
        if is_timed and (is_late := at < promised).any():
            self._report_late(table, kept, at, is_late, promised)
            if self._late_policy == "drop":
                on_time = np.flatnonzero(~is_late)
                at, columns = at[on_time], [c.take(pa.array(on_time)) for c in columns]
        if self._pipeline is None:
            self._waiting.append((at, columns))
        else:
            self._pipeline.add(at, columns)
        return newest

    def _positions(self, name: str, table: pa.Table) -> tuple[NDArray[np.int64], pa.Table]:
        """Where the rows lie; rows without a place are set apart."""
        axis = self.plan.axis
        if axis.kind == "rows":
            at = self._arrived + np.arange(len(table))
            self._arrived += len(table)
            return at, table
        column = table.column(axis.column).combine_chunks()
        ticks, missing = axis.ticks(column)
        if missing is not None:
            self._reject(table, missing, f"`{axis.column}` is NULL or outside the axis")
            table, ticks = _without(table, ticks, missing)
        if (
            self._promises[name].lateness is not None
            and axis.kind == "time"
            and self._max_ahead is not None
        ):
            ahead = ticks > self._now() + self._max_ahead
            if ahead.any():
                self._reject(
                    table, ahead, f"`{axis.column}` is further ahead of the clock than max_ahead"
                )
                table, ticks = _without(table, ticks, ahead)
        return ticks, table

    def _reject(self, table: pa.Table, which: NDArray[np.bool_], reason: str) -> None:
        rows = table.filter(pa.array(which))
        self._rejected.append(
            rows.append_column("reason", pa.array([reason] * len(rows), pa.string()))
        )

    def _report_late(
        self,
        table: pa.Table,
        kept: NDArray[np.int64] | None,
        at: NDArray[np.int64],
        is_late: NDArray[np.bool_],
        promised: int,
    ) -> None:
        which = np.flatnonzero(is_late)
        behind = f"behind progress {self.plan.axis.format(promised)}"
        still_open = np.zeros(len(which), dtype=np.bool_)
        if self._late_policy == "open" and self._pipeline is not None:
            still_open = self._pipeline.has_open_window(at[which])
        reasons = np.where(
            still_open,
            f"{behind}; counted in its open windows",
            f"{behind}; dropped"
            if self._late_policy == "drop"
            else f"{behind}; all its windows are closed",
        )
        rows = table.take(pa.array(which if kept is None else kept[which]))
        self._late.append(rows.append_column("reason", pa.array(reasons.tolist(), pa.string())))

    def _advance(self) -> pa.Table:
        if self._plan is None:
            return pa.table({})
        progress = self._arrived if self._plan.axis.kind == "rows" else self.progress
        oldest = min((int(at.min()) for at, _ in self._waiting if len(at)), default=EVERYTHING)
        if self._pipeline is None and oldest < progress:
            self._start_waiting()
        if self._pipeline is None or progress == NOTHING:
            return self._plan.schema().empty_table()
        return self._pipeline.advance(progress)

    def _start_waiting(self) -> None:
        """``ORIGIN FIRST``: nothing older can come, so the origin is known. Let the rows in."""
        if self._pipeline is not None or self._plan is None or not self._waiting:
            return
        rows, self._waiting = self._waiting, []
        oldest = min((int(at.min()) for at, _ in rows if len(at)), default=None)
        if oldest is None:
            return
        self._pipeline = Pipeline(self._plan, origin=oldest)
        for at, columns in rows:
            self._pipeline.add(at, columns)

    @staticmethod
    def _names(names: Mapping[str, object]) -> str:
        return ", ".join(f"`{n}`" for n in names)


def require_paned(bound: Plan) -> None:
    """Refuse window kinds that have no panes, naming what can answer them."""
    window = bound.window
    if not isinstance(window.spec, Sliding | Landmark):
        raise QueryError(
            f"{type(window.spec).__name__} windows are answered by panes.oracle only, as yet"
        )


def _require_streamable(bound: Plan) -> None:
    """Refuse what only makes sense once all rows are there."""
    if bound.axis.kind == "rows" and bound.axis.column is not None:
        raise QueryError(
            f"a stream arrives row by row, so its ROWS window cannot be ordered by "
            f"`{bound.axis.column}`",
            hint="leave out WATTR to count rows as they arrive",
        )
    if isinstance(bound.spec, Landmark):
        for call, aggregate in zip(bound.query.calls, bound.aggregates, strict=True):
            if aggregate.kind == "holistic":
                raise QueryError(
                    f"an exact {call.sql} over RANGE ALL would keep every value for ever",
                    hint="use an approx_ aggregate, or a window with an end",
                )


def _without(
    table: pa.Table, at: NDArray[np.int64], which: NDArray[np.bool_]
) -> tuple[pa.Table, NDArray[np.int64]]:
    return table.filter(pa.array(~which)), at[~which]


def _differences(known: pa.Schema, other: pa.Schema) -> str:
    before = {(f.name, str(f.type)) for f in known}
    after = {(f.name, str(f.type)) for f in other}
    gone = [f"`{n}` {t} is missing" for n, t in sorted(before - after)]
    new = [f"`{n}` {t} is new" for n, t in sorted(after - before)]
    return "; ".join(gone + new) or "the same columns in another order"
