"""A job as text, for the driver that runs it: JSON, in which every object of ours says what it is.

Whatever is read is one of the kinds below, so a file that someone else wrote can start nothing but
a query or a register over the streams of its own folder.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from dataclasses import fields
from datetime import timedelta
from functools import partial
from typing import Any

from panes.crash.jobs import Change, Job, QueryJob, RegisterJob
from panes.errors import StateError
from panes.planning.flush import SlowFlush

_KIND, _DURATION = "$", "duration"
_KINDS: dict[str, Any] = {
    "query": QueryJob,
    "register": RegisterJob,
    "change": Change,
    "slow flush": SlowFlush,
}


def kinds_of(module: str | None) -> Mapping[str, Any]:
    """The kinds of jobs, with those in the `KINDS` of a module."""
    return _KINDS if module is None else {**_KINDS, **importlib.import_module(module).KINDS}


def written(job: Job, module: str | None = None) -> str:
    """A job as text; a `module` may know kinds of its own.

    >>> written(QueryJob("SELECT ...", {"lateness": timedelta(seconds=2)}))[:46]
    '{"$": "query", "text": "SELECT ...", "options"'
    """
    return json.dumps(job, default=partial(_plain, kinds_of(module)))


def read(text: str, module: str | None = None) -> Job:
    """The job that was written."""
    job: Job = json.loads(text, object_hook=partial(_meant, kinds_of(module)))
    if not hasattr(job, "judged"):
        raise StateError(f"a job is a query or a register, got {type(job).__name__}")
    return job


def _plain(kinds: Mapping[str, Any], thing: object) -> dict[str, object]:
    if isinstance(thing, timedelta):
        return {_KIND: _DURATION, "microseconds": thing // timedelta(microseconds=1)}
    for kind, known in kinds.items():
        if type(thing) is known:
            names = [f.name for f in fields(kinds[kind])]
            return {_KIND: kind, **{name: getattr(thing, name) for name in names}}
    raise TypeError(f"a job cannot carry {thing!r}")


def _meant(kinds: Mapping[str, Any], found: dict[str, Any]) -> object:
    kind = found.pop(_KIND, None)
    if kind is None:
        return found
    return timedelta(**found) if kind == _DURATION else kinds[kind](**found)
