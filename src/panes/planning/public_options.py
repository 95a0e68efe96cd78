"""The options of `panes.sql`, `open`, `register` and `window_index`: one table for all.

Signatures, the check of names, what `help` and the commands say, and the tables of the reference
page are made from it. A default is that of `StreamOptions`, or stands in `_DEFAULTS`.
"""

from __future__ import annotations

import datetime as dt
import inspect
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypedDict, TypeVar, get_args, get_type_hints

import pyarrow as pa

from panes.aggregates.custom import UserAggregate
from panes.axis import Duration
from panes.errors import OptionError, did_you_mean
from panes.index.g_index import GROUPS
from panes.planning.flush import Flush
from panes.planning.terms import Late, StreamOptions


class EveryQueryOptions(TypedDict, total=False):
    """Options of `sql`, `open` and `register`."""

    lateness: Annotated[
        Duration | None,
        "A duration, for example `'10 seconds'`: how far a row may be behind the newest one (the "
        "watermark delay); 0 for a stream in order. Without it, windows close only by a "
        "punctuation, a heartbeat or the end of the stream.",
    ]
    late: Annotated[
        Late,
        "What to do with a row that comes later than that. `'open'`: count it in its windows that "
        "are still open. `'drop'`: do not count it. `'revise'`: also answer its closed windows "
        "again (not in a register on Spark). See [late data](../guides/late_data.md).",
    ]
    revise_within: Annotated[
        Duration | None,
        "With `late='revise'`, how far behind progress a window can still be answered again. None: "
        "always, and nothing is ever deleted.",
    ]
    max_ahead: Annotated[
        Duration | None,
        "With a lateness, reject rows that are further ahead of the clock than this; one wrong "
        "timestamp then cannot close all windows. An integer axis has no clock: rows are rejected "
        "that are further ahead of all rows so far than this whole number, or than 10^17 ([late "
        "data](../guides/late_data.md#positions-far-ahead)). None accepts all.",
    ]
    punctuation: Annotated[
        str | None,
        "A column with watermarks: its value promises that no older row will come. A row without "
        "a position of its own is such a promise and nothing else.",
    ]
    heartbeat: Annotated[
        Duration | None,
        "A duration: while no rows come, progress follows the clock, this far behind it. In a "
        "register it is for Spark and for joins.",
    ]
    aggregates: Annotated[
        Sequence[UserAggregate], "Your own aggregates: `CustomAggregate` and `WindowFunction`."
    ]
    max_answers: Annotated[
        int | None,
        "Refuse a step that would give more answers at once; a register sets such a query aside. "
        "None gives all. See [limits](../guides/sizing.md#how-many-answers).",
    ]


class OneQueryOptions(TypedDict, total=False):
    """Options of `sql` and `open`."""

    store: Annotated[
        str | None,
        "How rows are stored until their windows close. All stores give the same answers; without "
        "this option, Panes chooses. See [stores](stores.md).",
    ]
    flush: Annotated[
        Flush | None,
        "A `SlowFlush` or `LazyFlush`: spread the answers of a window with very many keys over "
        "several steps.",
    ]
    why: Annotated[bool, "Add a column `closed_by` that says what closed the window."]


class InProcessOptions(TypedDict, total=False):
    """Options of `open` and `register`."""

    rows_late: Annotated[
        int | None, "In one process, instead of `lateness`: how many rows late a row may come."
    ]
    stall_rows: Annotated[
        int | None,
        "In one process: warn (`NoProgressWarning`) when so many rows have come since progress "
        "last moved. None: never.",
    ]
    schema: Annotated[
        pa.Schema | Mapping[str, pa.Schema] | None,
        "In one process: the columns of the stream, a pyarrow Schema, or in `open` those of each "
        "stream by its name. A query is checked at once then. None: the columns are those of the "
        "first batch.",
    ]
    state: Annotated[
        str | Path | None,
        "In one process: a folder that a query or register is kept in. If it is killed, the same "
        "call goes on where it was. See [restarts](../guides/restarts.md#in-one-process).",
    ]
    checkpoint_every: Annotated[
        int, "With `state`: after how many calls of `push` and the like the folder is written."
    ]


class OnSparkOptions(TypedDict, total=False):
    """Options of `sql` and `register`."""

    shards: Annotated[
        int | None,
        "On a Spark stream: how many parts the state has. None: one per shuffle partition.",
    ]
    name: Annotated[
        str | None,
        "On a Spark stream: the name of the query's metrics in Spark's progress reports. None: "
        "`panes_` and eight letters that follow from the query and what it reads.",
    ]


class SqlOptions(EveryQueryOptions, OneQueryOptions, OnSparkOptions, total=False):
    """The options of `sql`."""

    bounded: Annotated[
        bool,
        "On a Spark stream: it is run to its end (`trigger(availableNow=True)`), and then every "
        "window is answered.",
    ]
    with_late: Annotated[
        bool,
        "On a Spark stream: also return late and rejected rows; the DataFrame has the columns "
        "`answer` and `apart`, and `panes.spark.split` writes each to its own sink.",
    ]
    batches: Annotated[
        bool,
        "Of tables: give the answers as a `pyarrow.RecordBatchReader`, in the same order. Windows "
        "are closed while it is read, so the answers need not fit in memory "
        "([limits](../guides/sizing.md#more-answers-than-memory)). `max_answers` is for each "
        "batch then, and 100 such batches for all of them.",
    ]


class OpenOptions(EveryQueryOptions, OneQueryOptions, InProcessOptions, total=False):
    """The options of `open`."""


class RegisterOptions(EveryQueryOptions, InProcessOptions, OnSparkOptions, total=False):
    """The options of `register`."""

    levels: Annotated[
        int | None,
        "On Spark: how many levels of states the register has, one behind the other. Windows over "
        "windows take 2, joins 2, windows over a join of windows 3; the number is fixed when a "
        "checkpoint is first used. None: as many as the queries need that it is started with. See "
        "[levels](../guides/many_queries.md#levels).",
    ]
    keep_rows: Annotated[
        int,
        "One stream, in one process: how many of the newest rows are stored, so that "
        "`Register.ask` can answer `[ROWS n]` and questions for rows. Questions given to "
        "`Register.prepare` do not need it.",
    ]
    hand_over: Annotated[
        Callable[[str, pa.Table], None] | None,
        "One stream, in one process: a function that gets the name and the answers of each query "
        "as soon as they are ready, the nearest deadline first. Without it, `push` returns all "
        "answers together.",
    ]
    saved: Annotated[
        str | Path | None,
        "In one process: a file written by `Register.save`. The register continues from there, "
        "with its queries.",
    ]


class _IndexNeeds(TypedDict):
    at: Annotated[
        str | None,
        "The column that rows are ordered by: a timestamp, date or integer. None: rows count in "
        "the order they come, `size` and `basic` are numbers of rows, and basic windows are sealed "
        "as they fill up.",
    ]
    size: Annotated[Duration, "How long the window is: a whole number of basic windows."]
    basic: Annotated[Duration, "How long a basic window is: the window slides by it."]
    on: Annotated[str, "The column whose values are asked for."]


class IndexOptions(_IndexNeeds, total=False):
    """The options of `window_index`."""

    kind: Annotated[
        str | None,
        "The index: `'list'`, `'tree'`, `'hash'`, `'group'`, `'ring'`, `'aux'`, `'bw'`, `'db'`, or "
        "`'scan'` for none. None: the cheapest is chosen when the first basic window is sealed. "
        "All give the same answers.",
    ]
    groups: Annotated[int, "With `kind='group'`: how many groups of values there are."]
    questions: Annotated[
        Mapping[str, float] | None,
        "How many questions you will ask while a basic window fills, by the names of the methods: "
        "`{'count': 1000, 'values': 1}`. The choice follows it.",
    ]
    values: Annotated[int | None, "How many different values a window will have, if you know it."]


_DEFAULTS: dict[str, object] = {
    **{field.name: field.default for field in fields(StreamOptions)},
    **{"aggregates": (), "schema": None, "batches": False},
    **{"keep_rows": 0, "hand_over": None, "saved": None, "state": None, "checkpoint_every": 1},
    **{"kind": None, "groups": GROUPS, "questions": None, "values": None},
}
_SEE = re.compile(r" See \[[^]]+\]\([^)]+\)\.")
_LINK = re.compile(r"\[([^]]+)\]\([^)]+\)")
_PLACE = re.compile(r"^\*\*options\n(?: +.+\n?)+", re.MULTILINE)
F = TypeVar("F", bound=Callable[..., object])


@cache
def meanings(options: type) -> dict[str, str]:
    """Each option of a function with its meaning, as the reference page has it."""
    hints = get_type_hints(options, include_extras=True)
    return {name: get_args(hint)[1] for name, hint in hints.items()}


def told(name: str, options: type = OpenOptions) -> str:
    """The meaning of an option, as plain text without links.

    >>> told("why")
    'Add a column closed_by that says what closed the window.'
    """
    return _LINK.sub(r"\1", _SEE.sub("", meanings(options)[name])).replace("`", "")


def with_options(options: type) -> Callable[[F], F]:
    """Show the options of a function in its signature and in its docstring, with their meanings."""
    shown = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=_DEFAULTS.get(name, inspect.Parameter.empty),
            annotation=kind,
        )
        for name, kind in get_type_hints(options).items()
    ]

    def decorated(function: F) -> F:
        signature = inspect.signature(function)
        others = [p for n, p in signature.parameters.items() if n != "options"]
        last = sum(p.kind is not inspect.Parameter.VAR_KEYWORD for p in others)
        parameters = [*others[:last], *shown, *others[last:]]
        signature = signature.replace(parameters=parameters)
        function.__signature__ = signature  # type: ignore[attr-defined]
        told_here = {name: _LINK.sub(r"\1", text) for name, text in meanings(options).items()}
        text = "".join(
            f"{name}\n{textwrap.indent(textwrap.fill(meaning, 92), '    ')}\n"
            for name, meaning in told_here.items()
        )
        function.__doc__ = _PLACE.sub(lambda _: text, inspect.cleandoc(function.__doc__ or ""))
        return function

    return decorated


def settled(function: str, options: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """All options of a function, with what was given; a name that is none of them is refused."""
    known = meanings(options)
    for name in given:
        if name not in known:
            listed = ", ".join(known)
            raise OptionError(
                f"panes.{function} has no option `{name}`",
                hint=f"{_rather(name, options)}options: {listed}",
            )
    for name in known:
        if name not in given and name not in _DEFAULTS:
            raise OptionError(f"panes.{function} needs `{name}`", hint=meanings(options)[name])
    return {name: given[name] if name in given else _DEFAULTS[name] for name in known}


_ELSEWHERE = {
    "watermark delay slack grace": 'lateness="10 seconds" says how late rows may be; ',
    "checkpoint checkpointlocation": 'on Spark: answers.writeStream.option("checkpointLocation", '
    '"folder"), or reg.start(checkpoint="folder", ...); in one process: panes.open(..., '
    'state="folder"); ',
    "outputmode trigger": "answers come once and are appended, and answers.writeStream or "
    "reg.start says when: trigger(processingTime=...), or bounded=True for availableNow; ",
}
"""Options that others have, without underscores, and what to write here instead."""


def _rather(name: str, options: type) -> str:
    """A hint for a name that is no option: another name, or another function."""
    plain = name.replace("_", "").lower()
    for names, instead in _ELSEWHERE.items():
        if plain in names.split() and options is not IndexOptions:
            return instead
    functions = {"sql": SqlOptions, "open": OpenOptions, "register": RegisterOptions}
    having = [f"panes.{f}" for f, taken in functions.items() if name in meanings(taken)]
    if having:
        return f"it is one of {' and '.join(having)}; "
    return did_you_mean(name, list(meanings(options)))


def refuse_misspelt(streams: Mapping[str, object]) -> None:
    """Refuse what `sql` would take for a stream: it holds no rows, and is called like an option."""
    for name, value in streams.items():
        close = _rather(name, SqlOptions)
        if close and isinstance(value, str | int | float | dt.timedelta | Path):
            raise OptionError(f"panes.sql has no option `{name}`", hint=close.rstrip("; "))


def stream_options(options: Mapping[str, Any]) -> StreamOptions:
    """Those of the options that say how a query is run over its streams."""
    names = {field.name for field in fields(StreamOptions)}
    return StreamOptions(**{name: value for name, value in options.items() if name in names})
