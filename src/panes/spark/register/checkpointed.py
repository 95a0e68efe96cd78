"""The queries of a register on Spark at rest, as its checkpoint has them."""

from __future__ import annotations

from pyspark.errors import PySparkException

from panes.axis import axis_over
from panes.errors import OptionError, PanesError
from panes.sharing.columns import Numbering
from panes.sharing.manifest import (
    FailedEntry,
    Manifest,
    QueryEntry,
    StreamEntry,
    store_entries,
)
from panes.sharing.queries import Failed, StateNumbers
from panes.spark.bind import arrow_schema
from panes.spark.register.registered_queries import AloneAsked, RegisteredQueries

_REFUSALS = (PanesError, PySparkException, RecursionError)
"""What says that a query cannot be planned, and nothing of the others."""


def manifest_of(registered: RegisteredQueries, *, shards: int, version: int) -> Manifest:
    """The queries as the checkpoint has them, of which this is the version from now on."""
    registered.version = version
    return Manifest(
        stream=", ".join(registered.streams),
        shards=shards,
        last=0,  # numbers are those of each stream
        queries=[_entry(registered, name) for name in registered.order],
        removed=registered.removed,
        failed=[
            FailedEntry(n, f.text, f.deadline, f.reason, _sink_folder(registered, n),
                        n in registered.watched)
            for n, f in registered.failed.items()
        ],
        version=version,
        prepared=registered.prepared.texts,
        streams={
            name: StreamEntry(queries.axis.column or "", queries.numbers.last,
                              store_entries(queries))
            for name, queries in registered.windows.items() if queries.axis is not None
        },
        levels=registered.levels,
    )  # fmt: skip


def _entry(registered: RegisteredQueries, name: str) -> QueryEntry:
    one = registered.asked(name)
    key, serial = (one.key, 0) if isinstance(one, AloneAsked) else ("", one.serial)
    folder = _sink_folder(registered, name)
    return QueryEntry(name, one.text, serial, one.deadline, folder, name in registered.watched, key)


def _sink_folder(registered: RegisteredQueries, name: str) -> str | None:
    """The folder that a query's answers go to, if it has one of its own."""
    sink = registered.own_sinks.get(name)
    return None if sink is None or callable(sink) else str(sink)


def taken_up(registered: RegisteredQueries, manifest: Manifest) -> RegisteredQueries:
    """The queries of a manifest, and those that were added here and it never had.

    So it is with questions that rows are kept for. A query of the manifest that cannot be
    planned any more, or never could, is set aside.
    """
    _require_own(registered, manifest)
    found = RegisteredQueries(registered.streams, registered.run, registered.aggregates)
    _begin(found, manifest)
    known: list[QueryEntry | FailedEntry] = [*manifest.queries, *manifest.failed]
    found.own_sinks = {q.name: q.sink for q in known if q.sink is not None}
    found.watched = {q.name for q in known if q.watched}
    added = {name: registered.asked(name) for name in registered.order}
    for q in manifest.queries:
        again = added.get(q.name)
        if again is not None and again.text != q.text:
            continue
        deadline = q.deadline if again is None else again.deadline
        try:
            found.place(q.name, q.text, deadline, q)
        except _REFUSALS as error:
            found.failed[q.name] = Failed(q.text, q.deadline, str(error))
    gone = {**manifest.removed, **{q.name: q.text for q in manifest.failed}}
    for name, new in added.items():
        if name not in found and gone.get(name) != new.text:
            found.place(name, new.text, new.deadline)
            found.failed.pop(name, None)
    still = found.order.keys() | found.failed
    found.own_sinks |= {name: sink for name, sink in registered.own_sinks.items() if name in still}
    found.removed = {n: t for n, t in manifest.removed.items() if n not in found}
    first = next(iter(found.windows.values()))
    found.prepared = registered.prepared.taken_up(first, manifest.prepared)
    return found


def _begin(registered: RegisteredQueries, manifest: Manifest) -> None:
    """Go on with the levels, numbers and columns that a manifest has."""
    registered.levels = manifest.levels or registered.needed_levels
    registered.failed = {f.name: Failed(f.text, f.deadline, f.reason) for f in manifest.failed}
    first = next(iter(registered.streams))
    entries = dict(manifest.streams)
    if len(registered.streams) == 1 and first not in entries:
        entries = {first: StreamEntry("", manifest.last, manifest.stores)}
    for name, entry in entries.items():
        stores = {t: (s.serial, Numbering(s.columns, s.end)) for t, s in entry.stores.items()}
        queries, schema = registered.windows[name], arrow_schema(registered.streams[name])
        queries.numbers = StateNumbers(entry.last, stores)
        if entry.column:
            if entry.column not in schema.names:
                raise OptionError(
                    f"the register ran on column `{entry.column}` of `{name}`, which is gone",
                    hint="start with a new checkpoint",
                )
            data_type = schema.field(entry.column).type
            queries.axis = axis_over(entry.column, data_type, stream=name)


def _require_own(registered: RegisteredQueries, manifest: Manifest) -> None:
    streams = ", ".join(registered.streams)
    if manifest.stream != streams:
        raise OptionError(
            f"the checkpoint is that of a register of `{manifest.stream}`, not of `{streams}`"
        )
    if registered.run.shards not in (None, manifest.shards):
        raise OptionError(
            f"the register's state has {manifest.shards} shards, and not {registered.run.shards}",
            hint="leave out shards=, or start with a new checkpoint",
        )
    if registered.run.levels not in (None, manifest.levels):
        raise OptionError(
            f"the register's state has {manifest.levels} levels, and not {registered.run.levels}",
            hint="leave out levels=, or start with a new checkpoint",
        )
