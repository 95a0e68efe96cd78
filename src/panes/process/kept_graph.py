"""The graph of a register in a state: which nodes there are, and what each of them remembers.

Nodes are made anew, from the texts of queries, in the order in which they stood. Their streams are
met again, without rows, as they were met: a plan is made when the first of them come. Then what was
written is read into them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from panes.errors import StateError
from panes.frames import empty_tables
from panes.process.kept_windows import read_windows, windows_tree
from panes.process.node import Node, Step
from panes.process.object_tree import Tree
from panes.process.query_node import QueryNode
from panes.process.register_graph import JOINS, RegisterGraph
from panes.process.running_graph import RunningGraph
from panes.process.shared_windows import SharedWindows
from panes.process.tree_reader import TreeReader
from panes.process.tree_writer import TreeWriter


def graph_tree(graph: RegisterGraph, writer: TreeWriter) -> Tree:
    """All that a graph remembers."""
    return {
        "met": [writer.tree(empty_tables(some)) for some in graph.met()],
        "arrived": graph.arrived,
        "texts": graph.texts,
        "ends": graph.ends,
        "begins": {name: writer.tree(pa.scalar(at)) for name, at in graph.begins.items()},
        "joins": graph.joins.written_by(writer),
        "nodes": [[n, _node_tree(n, node, writer)] for n, node in graph.running.nodes.items()],
    }


def _node_tree(name: str, node: Node, writer: TreeWriter) -> Tree:
    if isinstance(node, SharedWindows):
        columns = None if node.reading.schema is None else node.reading.schema.empty_table()
        return {
            "windows of": node.source,
            "laid": node.laid,
            "behind": node.behind,
            "columns": writer.tree(columns),
            "tree": windows_tree(node, name, writer),
        }
    if isinstance(node, QueryNode):
        return {
            "part": node.origin,
            "reads": dict(node.inside.reads),
            "columns": writer.tree(empty_tables(node.schemas)),
            "has_begun_behind": node.has_begun_behind,
            "tree": writer.tree(node),
        }
    return {}


def read_graph_tree(graph: RegisterGraph, tree: Tree, reader: TreeReader) -> None:
    """Remember what was written."""
    met, given = [reader.value(some) for some in tree["met"]], graph.schemas
    written = {name: table.schema for some in met for name, table in some.items()}
    _require_same(given, written, reader.path)
    graph.begin_anew(
        met, arrived=tree["arrived"], texts=tree["texts"], ends=tree["ends"],
        begins={name: reader.value(at).as_py() for name, at in tree["begins"].items()},
    )  # fmt: skip
    for name, said in tree["nodes"]:
        graph.running.add(name, _made(graph, name, said, reader))
    _meet(graph, met)
    graph.joins.read_from(tree["joins"], graph.schemas, reader)
    for name, said in tree["nodes"]:
        node = graph.running.nodes[name]
        if isinstance(node, SharedWindows):
            columns = reader.value(said["columns"])
            schema = None if columns is None else columns.schema
            read_windows(node, schema, said["tree"], reader, name)
        elif isinstance(node, QueryNode):
            reader.value(said["tree"], node)
    graph.bind(empty_tables({n: schema for n, schema in given.items() if n not in written}))


def _made(graph: RegisterGraph, name: str, said: Tree, reader: TreeReader) -> Node:
    """A node that remembers nothing yet."""
    if name == JOINS:
        return graph.joins
    if "part" not in said:
        windows = graph.new_windows(said["windows of"])
        windows.laid, windows.behind = said["laid"], said["behind"]
        return windows
    text, part = said["part"]
    schemas = {n: table.schema for n, table in reader.value(said["columns"]).items()}
    return graph.new_node(
        text, part, said["reads"], name, schemas, has_begun_behind=said["has_begun_behind"]
    )


def _meet(graph: RegisterGraph, met: list[dict[str, pa.Table]]) -> None:
    """Let nodes of queries meet the streams as they did, without rows."""
    nodes = RunningGraph()
    for name, node in graph.running.nodes.items():
        if isinstance(node, QueryNode):
            nodes.add(name, node)
    for some in met:
        for _ in nodes.step(Step(dict(some))):
            pass


def _require_same(
    known: Mapping[str, pa.Schema], written: Mapping[str, pa.Schema], place: Path
) -> None:
    for name, schema in known.items():
        if name in written and written[name] != schema:
            was, now = (", ".join(f"{f.name} {f.type}" for f in s) for s in (written[name], schema))
            raise StateError(
                f"the state in {place} is that of streams with other columns: those of `{name}` "
                f"were {was}, are {now}",
                hint="give the same schema, or begin with a new state",
            )
