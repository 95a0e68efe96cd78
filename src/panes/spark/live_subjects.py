"""What a live page on Spark is about: a query, or a register.

Spark's reports say how a stream runs (`panes.spark.live_feed`). A subject says the rest: what was
asked, its windows, and the answers and rows set aside that the driver has seen of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from panes.axis import BEGINNING
from panes.language.query import Query
from panes.language.query_graph import read_graph
from panes.live.answer_history import AnswerHistory
from panes.live.feed import Look
from panes.live.register_feed import COST, MOST_LOOKED
from panes.live.register_shown import (
    as_counted,
    axis_shown,
    by_cost,
    in_partials,
    keys_of,
    register_shown,
    register_text,
    so_many,
    specs_of,
)
from panes.live.snapshot import AnswersShown, AxisShown, SetAsideShown, Snapshot, WindowsShown
from panes.live.windows_near import windows_of
from panes.planning.explain import explain_unbound
from panes.spark.live_rows import LiveRows
from panes.spark.register.register import SparkRegister
from panes.windows.spec import Landmark, PanedSpec, Sliding

_NOT_SHOWN = "answers are where the stream writes them; LiveRows shows them here too"


class Subject(Protocol):
    """What is shown beside what Spark reports."""

    @property
    def title(self) -> str:
        """What the page is called unless it is given a name."""

    def fill(self, shown: Snapshot, look: Look) -> Snapshot:
        """The same snapshot with all that the subject knows."""

    def close(self) -> None:
        """Nobody looks any more."""


class OneQuery:
    """A streaming query, and the sinks that its rows pass through on their way."""

    def __init__(
        self, text: str, answers: LiveRows | None, late: LiveRows | None, rejected: LiveRows | None
    ) -> None:
        self._text, self._asked = text, read_graph(text).asked if text else None
        self._answers: AnswerHistory | None = None if answers is None else answers.history
        self._set_aside = late or rejected
        if late and rejected and rejected.apart is not late.apart:
            rejected.apart.pour_into(late.apart)
            rejected.apart = late.apart

    @property
    def title(self) -> str:
        """The streams, if they are known."""
        return "a stream on Spark" if self._asked is None else " + ".join(self._asked.streams)

    def fill(self, shown: Snapshot, look: Look) -> Snapshot:
        """What was asked, and what has passed through the sinks."""
        window = self._asked.window if isinstance(self._asked, Query) else None
        axis, specs = AxisShown(), dict[str, PanedSpec]()
        if window is not None:
            axis = AxisShown(window.measure, window.column)
            specs = {"": window.spec} if isinstance(window.spec, Sliding | Landmark) else {}
        answers = AnswersShown(note=_NOT_SHOWN)
        return replace(
            shown,
            text=self._text,
            axis=axis,
            windows=_windows(specs, shown),
            answers=answers if self._answers is None else self._answers.shown(look.answers),
            set_aside=self._set_aside.apart.shown() if self._set_aside else SetAsideShown(),
            explain=explain_unbound(self._asked) if isinstance(self._asked, Query) else "",
        )

    def close(self) -> None:
        """Sinks go on."""


class ManyQueries:
    """A register. The cost of a query is counted as in one process, from what shards tell.

    Where there may be joins, shards do not tell what a query takes, so its answers are counted.
    """

    def __init__(self, register: SparkRegister, *, can_edit: bool) -> None:
        self._register, self._can_edit = register, can_edit
        self._version: tuple[int, ...] | None = None
        self._view = register.view()
        register.tap.followed.follow_first(keys_of(self._view.queries))
        register.tap.open()

    @property
    def title(self) -> str:
        """The streams."""
        return " + ".join(self._register.streams)

    def fill(self, shown: Snapshot, look: Look) -> Snapshot:
        """The queries, the costliest first, and the answers of the one that is looked at."""
        if self._version != self._register.version:
            self._version, self._view = self._register.version, self._register.view()
        view, tap = self._view, self._register.tap
        cost_of = (as_counted if view.of_joins else in_partials)(tap.given)
        dearest = by_cost(view, cost_of)
        on_spark = f"{so_many(len(view.queries), 'query', 'queries')} on Spark"
        windows = _windows(specs_of(dearest[:MOST_LOOKED]), shown)
        return replace(
            shown,
            text=register_text(view) if view.of_joins else on_spark,
            axis=axis_shown(view),
            windows=WindowsShown() if view.of_joins else windows,
            answers=tap.followed.shown(keys_of(dearest), look),
            set_aside=tap.apart.shown(),
            register=register_shown(
                view, dearest, tap.given, cost_of, look.queries,
                cost=_JOINS_COST if view.of_joins else _COST,
                can_edit=self._can_edit,
            ),
            explain=self._register.explain(),
        )  # fmt: skip

    def close(self) -> None:
        """One page fewer looks."""
        self._register.tap.close()


_COST = f"{COST}, before HAVING, since the register began in this process"
_JOINS_COST = "answers that it gave; shards do not tell what they took"


def _windows(specs: Mapping[str, PanedSpec], shown: Snapshot) -> WindowsShown:
    newest = BEGINNING if shown.newest is None else shown.newest
    progress = BEGINNING if shown.progress is None else shown.progress
    return windows_of(specs, progress, newest, newest)
