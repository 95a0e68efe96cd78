"""A register in a state folder: what its file has, and what is remembered between two pushes.

Panes are written as in the file (`panes.process.register_file`), in blocks of neighbouring ones,
and blocks whose bytes are as they were are not written again.
"""

from __future__ import annotations

from panes.errors import StateError
from panes.process.object_tree import Tree
from panes.process.reading import Reading
from panes.process.register_file import StreamState, manifest_of, state_of
from panes.process.tree_reader import TreeReader
from panes.process.tree_writer import TreeWriter
from panes.sharing.manifest import from_json, to_json
from panes.sharing.queries import Queries


def register_tree(
    queries: Queries, reading: Reading, beside: StreamState | None, writer: TreeWriter
) -> Tree:
    """All that is remembered; nothing is `beside` it if no columns are known, or at the end."""
    state = {} if beside is None else state_of(queries, in_blocks=True)
    return {
        "register": to_json(manifest_of(queries)),
        "state": [[name, writer.named(name, data)] for name, data in state.items()],
        "columns": writer.tree(None if reading.schema is None else reading.schema.empty_table()),
        "beside": None if beside is None else writer.tree(
            [beside.arrived, beside.ordering, beside.tail, beside.known_from]
        ),
        "objects": writer.tree(_objects(queries, reading)),
    }  # fmt: skip


def take_up_tree(
    queries: Queries, reading: Reading, tree: Tree, reader: TreeReader
) -> StreamState | None:
    """Go on where a tree was written; gives what was beside it."""
    manifest = from_json(tree["register"], "the state folder")
    columns = reader.value(tree["columns"])
    beside = None
    if None not in (reading.schema, columns) and reading.schema != columns.schema:
        raise StateError("the state is that of a stream with other columns than schema says")
    if tree["beside"] is None:
        reading.take_up_queries(manifest, None if columns is None else columns.schema)
    else:
        arrived, ordering, tail, known_from = reader.value(tree["beside"])
        nothing = columns.slice(0, 0)
        beside = StreamState(
            columns.schema, nothing, nothing, arrived, ordering, tail, known_from, saves=0
        )
        state = {name: reader.named(name, place) for name, place in tree["state"]}
        reading.take_up(manifest, state, beside)
    reader.value(tree["objects"], _objects(queries, reading))
    return beside


def _objects(queries: Queries, reading: Reading) -> list[object]:
    """What is written as it is: rows set aside, what was promised, and what is counted."""
    return [reading.set_aside, reading.stall, queries.promise]
