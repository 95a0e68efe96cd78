"""Shared windows in a state: their queries by text, what they remember, and their panes.

Queries are planned anew when they are read, so what is stored for them is named by identities and
by numbers that columns have for life (`panes.shards.register_state`). Panes, rows that were set
aside or are kept, and the structures of prepared questions are written as objects.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from panes.asking.row_tail import RowTail
from panes.axis import BEGINNING
from panes.language.parse import parse
from panes.language.query import Query
from panes.language.query_graph import read_graph
from panes.language.row_question import read_row_question
from panes.planning.terms import check_options
from panes.process.object_tree import Tree
from panes.process.reading import Reading
from panes.process.tree_reader import TreeReader
from panes.process.tree_writer import TreeWriter
from panes.shards.register_state import Written, take_up, to_tables
from panes.sharing.completeness import after
from panes.sharing.manifest import (
    Manifest,
    QueryEntry,
    failed_entries,
    from_json,
    store_entries,
    take_up_queries,
    to_json,
)
from panes.sharing.needs import identity_of
from panes.sharing.queries import Asked, Queries
from panes.sharing.shared_store import SharedStore
from panes.stores import codec

if TYPE_CHECKING:
    from panes.process.shared_windows import SharedWindows


def windows_tree(windows: SharedWindows, writer: TreeWriter) -> Tree:
    """All that windows remember."""
    queries, reading = windows.queries, windows.reading
    columns = None if reading.schema is None else reading.schema.empty_table()
    return {
        "laid": windows.laid,
        "columns": writer.tree(columns),
        "queries": to_json(_manifest_of(queries)),
        "are_bound": bool(queries.homes),
        "ordering": reading.ordering(),
        "about": writer.named(_about(windows), codec.pack(to_tables(queries))),
        "panes": {str(s.serial): _store_tree(s, writer) for s in queries.stores.values()},
        "ended_at": windows.ended_at,
        "objects": writer.tree(_objects(windows)),
        "tail": None if reading.tail is None else writer.tree(_of_tail(reading.tail)),
        "prepared": _prepared_tree(windows, writer),
    }


def read_windows(windows: SharedWindows, tree: Tree, reader: TreeReader) -> None:
    """Remember what was written."""
    queries, reading = windows.queries, windows.reading
    manifest, columns = from_json(tree["queries"], "the state"), reader.value(tree["columns"])
    windows.laid = tree["laid"]
    reading.schema = schema = None if columns is None else columns.schema

    def bind(asked: Asked) -> None:
        reading.settle_terms(check_options(asked.query, reading.run))
        if tree["are_bound"]:
            assert schema is not None
            reading.bind(asked, schema)
        queries.asked[asked.name] = asked

    def read(entry: QueryEntry) -> Asked:
        query = read_graph(entry.text, queries.aggregates).asked
        assert isinstance(query, Query)
        return queries.asked_as(entry.name, entry.text, replace(query, streams=(windows.source,)))

    take_up_queries(manifest, queries, manifest.queries, bind, read=read)
    if tree["ordering"] is not None and schema is not None:
        reading.settle_by(tree["ordering"], schema)
    _prepare(windows, tree["prepared"])
    written = take_up(queries, codec.unpack(reader.named(_about(windows), tree["about"])))
    for store in queries.stores.values():  # in the order of the queries that there are now
        _read_store(store, written[store.serial], tree["panes"][str(store.serial)], reader)
    reader.value(tree["objects"], _objects(windows))
    windows.ended_at = tree["ended_at"]
    arrived = tree["prepared"]["arrived"]
    _take_up_tail(reading, reader.value(tree["tail"]), arrived, after(queries.newest))
    if schema is not None:
        _read_prepared(windows, schema, tree["prepared"], reader)


def _manifest_of(queries: Queries) -> Manifest:
    """The queries, and the numbers that name things in their state."""
    return Manifest(
        stream=queries.stream,
        shards=1,
        last=queries.numbers.last,
        queries=[QueryEntry(a.name, a.text, a.serial, a.deadline) for a in queries.asked.values()],
        stores=store_entries(queries),
        failed=failed_entries(queries),
    )


def _objects(windows: SharedWindows) -> list[object]:
    """What is written as it is: rows set aside, what was promised, and what is counted."""
    reading, queries = windows.reading, windows.queries
    return [reading.set_aside, reading.stall, queries.promise, queries.exact_from]


# Panes


def _store_tree(store: SharedStore, writer: TreeWriter) -> Tree:
    panes = store.panes
    panes.fragments  # noqa: B018 - pieces that came since have room now
    return {
        "panes": writer.tree(panes),
        "values": {identity_of(v, store.rows): writer.tree(s) for v, s in panes.values.items()},
    }


def _read_store(store: SharedStore, written: Written, said: Tree, reader: TreeReader) -> None:
    """Panes stand in the order of the pieces that they were written with."""
    store.needs.arrange(written.pieces)
    store.panes.begin_with(store.needs.pieces)
    reader.value(said["panes"], store.panes)
    for values, stored in store.panes.values.items():
        reader.value(said["values"][identity_of(values, store.rows)], stored)


# Rows that are kept


def _of_tail(tail: RowTail) -> list[object]:
    return [tail.batches, tail.known_from]


def _take_up_tail(
    reading: Reading, written: Sequence[Any] | None, arrived: int, behind: int
) -> None:
    """The last rows as they were written; what is not told of them is not known."""
    if reading.tail is None:
        return
    batches, known_from = (deque[Any](), behind) if written is None else written
    for at, rows in batches:
        reading.tail.push(at, rows)
    reading.tail.resume(arrived, known_from if arrived else BEGINNING)


# Prepared questions


def _prepared_tree(windows: SharedWindows, writer: TreeWriter) -> Tree:
    prepared, rows = windows.prepared, windows.reading.row_questions
    structures = {} if prepared.structures is None else prepared.structures.by_title()
    return {
        "asked": prepared.asked,
        "rows": [list(rows.asked), rows.failed, writer.tree(rows.window)],
        "arrived": prepared.arrived,
        "structures": {
            title: [one.known_from, writer.tree(one.structure)] for title, one in structures.items()
        },
    }


def _prepare(windows: SharedWindows, said: Tree) -> None:
    """Questions are asked anew; what answers them is read when the columns are known."""
    aggregates, reading = windows.queries.aggregates, windows.reading
    for text, width in said["asked"]:
        query = parse(text, aggregates, once=True)
        windows.prepared.add((text, width), query, tail=None, settle=reading.settle_axis)
    asked, failed, _ = said["rows"]
    for text in asked:
        question = read_row_question(text, aggregates)
        assert question is not None
        reading.row_questions.prepare(text, question, None, BEGINNING)
    reading.row_questions.failed = failed


def _read_prepared(
    windows: SharedWindows, schema: pa.Schema, said: Tree, reader: TreeReader
) -> None:
    prepared, rows = windows.prepared, windows.reading.row_questions
    newest = windows.queries.newest
    prepared.bind(schema, windows.reading.settle_axis, arrived=said["arrived"], newest=newest)
    assert prepared.structures is not None
    written: Mapping[str, Any] = said["structures"]
    for title, one in prepared.structures.by_title().items():
        one.known_from, structure = written[title]
        reader.value(structure, one.structure)
    reader.value(said["rows"][2], rows.window)


def _about(windows: SharedWindows) -> str:
    """The name of the block that says what queries need of stores."""
    return f"windows of {windows.source} on {windows.column}"
