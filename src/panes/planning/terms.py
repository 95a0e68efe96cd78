"""The terms of a stream: how late its rows may come, and what becomes of those that come later."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from numbers import Integral
from typing import Literal, TypeAlias

from panes.axis import DAY, Duration, parse_duration
from panes.errors import OptionError, QueryError
from panes.language.query import Query
from panes.planning.flush import Flush
from panes.planning.options import require_options
from panes.planning.plan import Plan
from panes.progress.bounds import Bound, Unbounded, WithinLateness, WithinRows
from panes.progress.heartbeat import Heartbeat
from panes.progress.stall import MOST_STALLED
from panes.stores.by_name import STORES
from panes.windows.limit import MOST_ANSWERS
from panes.windows.spec import Landmark, PanedSpec, Sliding, paned

Late: TypeAlias = Literal["open", "drop", "revise"]
_LATE = {
    "open": "a late row still counts in windows that are open",
    "drop": "it counts in none",
    "revise": "windows that are closed are answered again",
}
FAR = 10**17
FAR_IN_WINDOWS = 1_000_000
"""On an axis without a clock, a row this far ahead of all others is wrong: whichever is further."""


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """How a query is to be run over a stream, as the user said it; see `panes.sql`."""

    lateness: Duration | None = None
    late: Late = "open"
    revise_within: Duration | None = None
    rows_late: int | None = None
    max_ahead: Duration | None = "1 day"
    punctuation: str | None = None
    bounded: bool = False
    heartbeat: Duration | None = None
    shards: int | None = None
    levels: int | None = None
    with_late: bool = False
    name: str | None = None
    store: str | None = None
    flush: Flush | None = None
    why: bool = False
    max_answers: int | None = MOST_ANSWERS
    stall_rows: int | None = MOST_STALLED
    by_watermark: bool = False
    inside: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        require_options(**{f.name: getattr(self, f.name) for f in fields(self)})

    @property
    def trusts_rows(self) -> bool:
        """True if rows alone move progress, so that one from the future could close everything."""
        return self.lateness is not None or self.rows_late is not None


@dataclass(frozen=True, slots=True)
class CheckedOptions:
    """What a stream promises and what becomes of late rows: checked, and in ticks.

    `max_ahead` is how far ahead of the clock a row may be. On an axis without a clock, `max_step`
    is how far ahead of all other rows.
    `by_watermark`: only the host's own watermark moves progress, not the rows.
    `inside` are the streams that are answers of a query inside this one: they keep their promises.
    """

    lateness: int | None = None
    rows_late: int | None = None
    late: Late = "open"
    revise_within: int | None = None
    max_ahead: int | None = DAY
    max_step: int | None = None
    punctuation: str | None = None
    heartbeat: Heartbeat | None = None
    flush: Flush | None = None
    why: bool = False
    max_answers: int | None = MOST_ANSWERS
    by_watermark: bool = False
    inside: frozenset[str] = frozenset()

    def of(self, stream: str) -> CheckedOptions:
        """The options of one stream: nothing that is about rows holds for those from inside."""
        if stream not in self.inside:
            return self
        return replace(
            self, lateness=None, rows_late=None, punctuation=None, heartbeat=None, max_ahead=None,
            max_step=None,
        )  # fmt: skip

    @property
    def keeps(self) -> int | None:
        """The distance behind progress at which closed windows can be revised; None: any."""
        return self.revise_within if self.late == "revise" else 0

    @property
    def drops_late(self) -> bool:
        """True if late rows count in no window at all."""
        return self.late == "drop"

    @property
    def trusts_rows(self) -> bool:
        """True if rows alone move progress, so that one from the future could close everything."""
        return self.lateness is not None or self.rows_late is not None

    def step_on(self, axis: str) -> int | None:
        """The distance by which a row may be ahead of all others on such an axis; None: any."""
        return self.max_step if axis == "integer" else None

    @property
    def makes_progress(self) -> bool:
        """True if anything but the user's own punctuation moves progress."""
        return self.trusts_rows or self.punctuation is not None or self.heartbeat is not None

    def bound(self) -> Bound:
        """The bound on the disorder of one source, which has seen nothing yet."""
        if self.rows_late is not None:
            return WithinRows(self.rows_late)
        if self.lateness is None or self.by_watermark:
            return Unbounded()
        return WithinLateness(self.lateness)


def check_options(query: Query, run: StreamOptions) -> CheckedOptions:
    """The terms that these options mean for a query."""
    if run.late not in _LATE:
        raise OptionError(
            f"late must be 'open', 'drop' or 'revise', got {run.late!r}",
            hint="; ".join(f"{word!r}: {meaning}" for word, meaning in _LATE.items()),
        )
    if run.late == "revise" or query.emits_early:
        _require_replaceable(query)
    if run.revise_within is not None and run.late != "revise":
        raise OptionError("revise_within is for late='revise'")
    if run.store is not None and run.store not in STORES:
        raise OptionError(f"there is no store {run.store!r}", hint=f"one of {', '.join(STORES)}")
    if run.rows_late is not None and run.lateness is not None:
        raise OptionError(
            "rows_late and lateness both say how late a row may be",
            hint=f"leave one of them out: rows_late={run.rows_late!r}, lateness={run.lateness!r}",
        )
    if run.rows_late is not None and run.rows_late < 0:
        raise OptionError(
            f"rows_late must be 0 or more, got {run.rows_late!r}", hint="rows_late=100"
        )
    measure = "time" if query.window is None else query.window.measure
    is_ordered = measure == "rows" and query.window is not None and query.window.column is not None
    lateness = run.lateness
    if not is_ordered:  # there, the column that orders the rows has yet to be seen
        require_lateness(lateness, measure)
    if run.punctuation is not None and measure == "rows" and not is_ordered:
        raise OptionError("rows are counted as they arrive, so there is nothing to promise of them")
    if run.heartbeat is not None and measure != "time" and not is_ordered:
        raise OptionError("a heartbeat follows the clock, and the window has no time axis")
    if not is_ordered:
        _require_units(run, measure)
    heartbeat = _ticks(run.heartbeat, "heartbeat")
    return CheckedOptions(
        lateness=_ticks(lateness, "lateness"),
        rows_late=run.rows_late,
        late=run.late,
        revise_within=_ticks(run.revise_within, "revise_within"),
        max_ahead=_ticks(run.max_ahead, "max_ahead"),
        max_step=_step(run, query, "ordered" if is_ordered else measure),
        punctuation=run.punctuation,
        heartbeat=None if heartbeat is None else Heartbeat(heartbeat),
        flush=run.flush,
        why=run.why,
        max_answers=run.max_answers,
        by_watermark=run.by_watermark,
        inside=run.inside,
    )


def _step(run: StreamOptions, query: Query, measure: str) -> int | None:
    """The distance by which a row may be ahead of others on an axis without a clock; None: any."""
    if isinstance(run.max_ahead, Integral) and measure == "rows":
        raise OptionError("rows are counted as they arrive, so none is ahead: leave out max_ahead")
    return furthest_step(run, None if query.window is None else paned(query.window.spec))


def furthest_step(run: StreamOptions, spec: PanedSpec | None) -> int | None:
    """The same, of windows that are known.

    Unless somebody said how far, that is far enough for any gap, and less than most wrong numbers
    are ahead.
    """
    if isinstance(run.max_ahead, Integral):
        return int(run.max_ahead)
    if run.max_ahead is None or not (run.trusts_rows or isinstance(spec, Landmark)):
        return None
    return max(FAR, FAR_IN_WINDOWS * (spec.size if isinstance(spec, Sliding) else 1))


def furthest_instant(run: StreamOptions, now: int) -> int | None:
    """Behind this position, a row is too far ahead of the clock; None: none is."""
    if not run.trusts_rows or run.max_ahead is None or isinstance(run.max_ahead, Integral):
        return None
    return now + parse_duration(run.max_ahead, option="max_ahead")


def _require_replaceable(query: Query) -> None:
    """An answer that may be given again needs windows that every answer of them names."""
    asked = "EMIT EARLY" if query.emits_early else "late='revise'"
    if query.having is not None:
        raise QueryError(
            f"with {asked}, HAVING could keep an answer back that replaces one already given",
            hint="leave HAVING out, and filter the answers",
        )
    if len(query.shown_keys) < len(query.keys):
        raise QueryError(
            f"with {asked}, every key is in the answers under its own name",
            hint="give what you select another name than the key's",
        )
    window = query.window
    if window is None or window.measure == "rows" or not isinstance(window.spec, Sliding):
        raise QueryError(f"{asked} is for sliding and tumbling windows over a column")


def require_terms(run: StreamOptions, query: Query, measure: str) -> None:
    """Everything that is measured on the axis is measured as positions are."""
    require_lateness(run.lateness, measure)
    if measure == "time":
        _require_units(run, measure)
        return
    within = None if run.flush is None else run.flush.within
    given = {
        "revise_within": run.revise_within,
        "a flush's within": within,
        "max_ahead": None if run.max_ahead == StreamOptions().max_ahead else run.max_ahead,
    }
    for name, length in given.items():
        if length is not None and not isinstance(length, Integral):
            raise OptionError(f"the window has no time axis, so {name} is a whole number")
    if query.early is not None and query.early.unit == "time":
        raise QueryError("the window has no time axis, so EMIT EARLY EVERY takes a whole number")


def _require_units(run: StreamOptions, measure: str) -> None:
    """Refuse a bare number where a length of time is meant: nobody means microseconds by it."""
    if measure != "time":
        return
    given = {
        "lateness": run.lateness,
        "revise_within": run.revise_within,
        "max_ahead": run.max_ahead,
        "heartbeat": run.heartbeat,
        "within": None if run.flush is None else run.flush.within,
    }
    for name, length in given.items():
        if isinstance(length, Integral) and length:
            raise OptionError(
                f"the window has a time axis, so {name} needs a unit, got {length!r}",
                hint=f'{name}="{length} seconds", or a datetime.timedelta',
            )


def require_lateness(lateness: Duration | None, measure: str) -> None:
    """Lateness is measured as positions are."""
    if measure == "time":
        _require_units(StreamOptions(lateness=lateness), measure)
    if lateness is not None and measure != "time" and not isinstance(lateness, Integral):
        raise OptionError(
            f"the window has no time axis, so lateness is a whole number, got {lateness!r}"
        )


def stalled(rows: int, terms: CheckedOptions, least: str) -> str:
    """A warning about a stream whose progress does not move, and the input that holds it back."""
    why = f"`{least}` has not moved"
    if not terms.makes_progress:
        why = "give a lateness, a punctuation column or a heartbeat, or call punctuate"
    return (
        f"{rows:,} rows have come since progress last moved, so no window closes and all are kept: "
        f"{why}. stall_rows=None turns this warning off"
    )


def require_clock(run: StreamOptions) -> None:
    """Refuse on Spark what only one process knows: how far all rows of a stream have come."""
    if isinstance(run.max_ahead, Integral):
        raise OptionError(
            "on Spark max_ahead is measured against the clock, and an integer axis has none",
            hint="leave out max_ahead, and filter wrong positions out of the DataFrame",
        )


def require_streamable(plan: Plan) -> None:
    """Refuse what only makes sense once all rows are there."""
    if isinstance(plan.window.spec, Landmark):
        for call, aggregate in zip(plan.query.calls, plan.aggregates, strict=True):
            if aggregate.kind == "holistic":
                raise QueryError(
                    f"an exact {call.sql} over RANGE ALL would keep every value for ever",
                    hint="use an approx_ aggregate, or a window with an end",
                )


def _ticks(given: Duration | None, option: str) -> int | None:
    if given is None:
        return None
    ticks = parse_duration(given, option=option)
    if ticks < 0:
        raise OptionError(f"{option} cannot be negative, got {given!r}")
    return ticks
