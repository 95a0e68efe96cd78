"""Kinds of options: the values that each may have, checked where the user gives them.

Python takes `True` for 1, and any text for true. An option of the wrong kind is refused by its
name, before it is taken for something else.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from panes.aggregates.custom import UserAggregate
from panes.axis import is_whole
from panes.errors import OptionError
from panes.planning.flush import Flush


def require_options(**given: object) -> None:
    """Refuse the first option that is of another kind than it should be.

    >>> require_options(bounded=True, shards=None)
    """
    for name, value in given.items():
        what, holds, hint = _KINDS[name]
        if not holds(value):
            name = _SAID.get(name, name)
            if hasattr(value, "columns"):  # a table of any kind
                named = f'a stream of that name is given as panes.sql(text, {{"{name}": table}})'
                raise OptionError(
                    f"{name} must be {what}, got a {type(value).__name__}",
                    hint=_BY_NAME if name == "frames" else named,
                )
            raise OptionError(f"{name} must be {what}, got {value!r}", hint=hint)


_BY_NAME = "a table is given by the name of its stream: panes.sql(text, bids=table)"

_SAID = {"schemas": "schema", "columns": "schema"}
"""The name of an option where it is given, if its name means two kinds."""


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_length(value: object) -> bool:
    return isinstance(value, str | dt.timedelta) or is_whole(value)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _or_none(holds: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or holds(value)


def _from(least: int) -> Callable[[object], bool]:
    return lambda value: is_whole(value) and value >= least


def _is_stream(value: object) -> bool:
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return bool(value) and all(isinstance(name, str) for name in value)
    return isinstance(value, str)


def _is_path(value: object) -> bool:
    return value is None or isinstance(value, str | os.PathLike)


def _are_aggregates(value: object) -> bool:
    return isinstance(value, Sequence) and all(isinstance(one, UserAggregate) for one in value)


def _are_frames(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(name, str) for name in value)


def _are_schemas(value: object) -> bool:
    if isinstance(value, Mapping):
        return all(isinstance(n, str) and isinstance(s, pa.Schema) for n, s in value.items())
    return value is None or isinstance(value, pa.Schema)


_Kind = tuple[str, Callable[[object], bool], str | None]
_FLAG: _Kind = ("True or False", _is_flag, None)
_LENGTH: _Kind = ("a duration or a whole number", _or_none(_is_length), None)
_COUNT = _or_none(_from(1))
_PATH: _Kind = ("a path", _is_path, None)
_KINDS: dict[str, _Kind] = {
    "text": ("the text of a query", _is_text, '"SELECT count(*) AS n FROM bids [...]"'),
    "stream": ("the name of a stream, or several", _is_stream, 'panes.register("bids")'),
    "lateness": _LENGTH,
    "revise_within": _LENGTH,
    "max_ahead": _LENGTH,
    "heartbeat": _LENGTH,
    "late": ("'open', 'drop' or 'revise'", _is_text, None),
    "rows_late": ("a whole number of rows", _or_none(is_whole), None),
    "max_answers": ("a number of answers from 1 on, or None", _COUNT, None),
    "stall_rows": ("a number of rows from 1 on, or None", _COUNT, None),
    "shards": ("at least 1", _COUNT, "leave it out: one per shuffle partition"),
    "levels": ("at least 1", _COUNT, "leave it out: as many as the queries need"),
    "keep_rows": ("a number of rows", _from(0), None),
    "bounded": _FLAG,
    "with_late": _FLAG,
    "why": _FLAG,
    "batches": _FLAG,
    "run": _FLAG,
    "details": _FLAG,
    "by_watermark": _FLAG,
    "inside": ("names of streams", lambda value: isinstance(value, frozenset), None),
    "name": ("a text", _or_none(_is_text), None),
    "punctuation": ("the name of a column", _or_none(_is_text), None),
    "store": ("the name of a store", _or_none(_is_text), None),
    "flush": (
        "a SlowFlush or a LazyFlush",
        _or_none(lambda value: isinstance(value, Flush)),
        "panes.SlowFlush(at_most=1000)",
    ),
    "frames": (
        "a mapping from the names of streams to tables or DataFrames",
        _or_none(_are_frames),
        'panes.sql(text, {"bids": table})',
    ),
    "aggregates": (
        "a list of CustomAggregate and WindowFunction",
        _are_aggregates,
        "aggregates=[panes.WindowFunction(...)]",
    ),
    "schemas": ("a pyarrow.Schema, or one for each stream by its name", _are_schemas, None),
    "schema": ("a pyarrow.Schema", _or_none(lambda value: isinstance(value, pa.Schema)), None),
    "hand_over": ("a function of a name and a table", _or_none(callable), None),
    "columns": ("a pyarrow.Schema", lambda value: isinstance(value, pa.Schema), None),
    "at": ("the name of a column", _or_none(_is_text), None),
    "on": ("the name of a column", _is_text, None),
    "size": ("a duration or a whole number", _is_length, None),
    "basic": ("a duration or a whole number", _is_length, None),
    "kind": ("the name of an index", _or_none(_is_text), None),
    "groups": ("a number from 1 on", _from(1), None),
    "questions": ("a mapping from names to numbers", _or_none(_are_frames), '{"count": 1000}'),
    "values": ("a number of values from 1 on, or None", _COUNT, None),
    "title": ("a text", _is_text, None),
    "port": (
        "a whole number from 0 to 65535",
        lambda value: is_whole(value) and 0 <= value < 2**16,
        "leave it out, and a free one is chosen",
    ),
    "token": (
        "a text with at least one character",
        lambda value: value is None or (isinstance(value, str) and value != ""),
        "leave it out, and a new one is made",
    ),
    "edit": _FLAG,
    "saved": _PATH,
    "state": ("the path of a folder", _is_path, 'panes.open(text, state="folder")'),
    "checkpoint_every": ("a number of calls from 1 on", _from(1), None),
}
