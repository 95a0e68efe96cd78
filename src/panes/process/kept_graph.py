"""The graph of a register in a state: which nodes there are, and what each of them remembers.

Nodes are made anew, from the texts of queries, in the order in which they stood. Their streams are
met again, without rows, as they were met: a plan is made when the first of them come. Then each
node reads what it wrote.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from panes.errors import StateError
from panes.frames import empty_tables
from panes.process.node import Node, Step
from panes.process.object_tree import Tree
from panes.process.query_node import QueryNode
from panes.process.register_graph import JOINS, Origin, RegisterGraph
from panes.process.running_graph import RunningGraph
from panes.process.shared_windows import SharedWindows
from panes.process.tree_reader import TreeReader
from panes.process.tree_writer import TreeWriter


def graph_tree(graph: RegisterGraph, writer: TreeWriter) -> Tree:
    """All that a graph remembers."""
    met = ({name: graph.schemas[name] for name in some} for some in graph.met)
    return {
        "met": [writer.tree(empty_tables(some)) for some in met],
        "arrived": graph.arrived,
        "texts": graph.texts,
        "ends": graph.ends,
        "begins": {name: writer.tree(pa.scalar(at)) for name, at in graph.begins.items()},
        "nodes": [
            [name, _origin_tree(graph, name, node, writer), node.written_by(writer)]
            for name, node in graph.running.nodes.items()
        ],
    }


def _origin_tree(graph: RegisterGraph, name: str, node: Node, writer: TreeWriter) -> Tree:
    """What a node is to be made of."""
    if isinstance(node, SharedWindows):
        return {"windows of": node.source}
    if not isinstance(node, QueryNode):
        return {}
    origin = graph.origins[name]
    return {
        "text": origin.text,
        "part": origin.part,
        "reads": dict(origin.reads),
        "schemas": writer.tree(empty_tables(origin.schemas)),
        "asks_what_came": node.asks_what_came,
    }


def read_graph_tree(graph: RegisterGraph, tree: Tree, reader: TreeReader) -> None:
    """Remember what was written."""
    met, given = [reader.value(some) for some in tree["met"]], graph.schemas
    written = {name: table.schema for some in met for name, table in some.items()}
    _require_same(given, written, reader.path)
    graph.forget_all()
    graph.met, graph.schemas = [list(some) for some in met], written
    graph.arrived, graph.texts, graph.ends = tree["arrived"], tree["texts"], tree["ends"]
    graph.begins = {name: reader.value(at).as_py() for name, at in tree["begins"].items()}
    for name, origin, _ in tree["nodes"]:
        graph.running.add(name, _made(graph, name, origin, reader))
    _meet(graph, met)
    for name, _, said in tree["nodes"]:
        graph.running.nodes[name].read_from(said, reader)
    graph.bind(empty_tables({n: schema for n, schema in given.items() if n not in written}))


def _made(graph: RegisterGraph, name: str, said: Tree, reader: TreeReader) -> Node:
    """A node that remembers nothing yet."""
    if name == JOINS:
        return graph.joins
    if "text" not in said:
        return graph.new_windows(said["windows of"])
    schemas = {n: table.schema for n, table in reader.value(said["schemas"]).items()}
    node = graph.new_node(name, Origin(said["text"], said["part"], said["reads"], schemas))
    if said["asks_what_came"]:
        node.go_on_behind(graph)
    return node


def _meet(graph: RegisterGraph, met: list[dict[str, pa.Table]]) -> None:
    """Let nodes of queries meet the streams as they did, without rows."""
    nodes = RunningGraph()
    for node in graph.query_nodes:
        nodes.add(node.name, node)
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
