"""A job as text, for the driver that runs it: JSON, in which every object of ours says what it is.

Whatever is read is one of the kinds below, so a file that someone else wrote can start nothing but
a query or a register over the streams of its own folder.
"""

from __future__ import annotations

import json
from dataclasses import fields
from datetime import timedelta
from typing import Any

from panes.crash.jobs import Change, Job, QueryJob, RegisterJob
from panes.crash.join_jobs import JoinRegisterJob
from panes.errors import StateError
from panes.planning.flush import SlowFlush

_KIND, _DURATION = "$", "duration"
_KINDS: dict[str, Any] = {
    "query": QueryJob,
    "register": RegisterJob,
    "register over joins": JoinRegisterJob,
    "change": Change,
    "slow flush": SlowFlush,
}


def written(job: Job) -> str:
    """A job as text.

    >>> written(QueryJob("SELECT ...", {"lateness": timedelta(seconds=2)}))[:46]
    '{"$": "query", "text": "SELECT ...", "options"'
    """
    return json.dumps(job, default=_plain)


def read(text: str) -> Job:
    """The job that was written."""
    job: Job = json.loads(text, object_hook=_meant)
    if not isinstance(job, QueryJob | RegisterJob | JoinRegisterJob):
        raise StateError(f"a job is a query or a register, got {type(job).__name__}")
    return job


def _plain(thing: object) -> dict[str, object]:
    if isinstance(thing, timedelta):
        return {_KIND: _DURATION, "microseconds": thing // timedelta(microseconds=1)}
    for kind, known in _KINDS.items():
        if type(thing) is known:
            names = [f.name for f in fields(_KINDS[kind])]
            return {_KIND: kind, **{name: getattr(thing, name) for name in names}}
    raise TypeError(f"a job cannot carry {thing!r}")


def _meant(found: dict[str, Any]) -> object:
    kind = found.pop(_KIND, None)
    if kind is None:
        return found
    return timedelta(**found) if kind == _DURATION else _KINDS[kind](**found)
