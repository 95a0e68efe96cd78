"""The sliding graph as text: a tree for a terminal, Graphviz dot, and Mermaid.

The same groups give the same text, in whatever order they came: groups are drawn by slide, then
phase, and the names of queries sorted. Strong links are lines, weak ones are dashed; the terminal,
which draws a tree, names the weak parents instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from panes.progress.sliding_graph import SlidingGraph
from panes.windows.cut import Edges

Ticks = Callable[[int], str]
"""How a slide or phase is written: plain, or with `panes.axis.format_duration` for instants."""


def draw_tree(graph: SlidingGraph, ticks: Ticks = str) -> str:
    """The sliding tree with its weak links, for a terminal.

    >>> graph = SlidingGraph()
    >>> for slide in (2, 3, 4, 12):
    ...     graph.add(f"every {slide}", Edges(slide, 0))
    >>> print(draw_tree(graph))
    1 (dummy)
    ├─ 2: every 2
    │  └─ 4: every 4
    │     └─ 12: every 12 (also within 3)
    └─ 3: every 3
    """
    if graph.root is None:
        return "no sliding groups"
    return "\n".join(_branches(graph, graph.tree(), graph.root, ticks))


def draw_dot(graph: SlidingGraph, ticks: Ticks = str) -> str:
    """The sliding graph in Graphviz's language.

    >>> graph = SlidingGraph()
    >>> graph.add("hot", Edges(2, 0)); graph.add("busy", Edges(4, 0))
    >>> print(draw_dot(graph))
    digraph sliding {
      "2" [label="2\\nhot"];
      "4" [label="4\\nbusy"];
      "2" -> "4";
    }
    """
    lines = ["digraph sliding {"]
    for family in graph.tree():
        style = ", style=dashed" if graph.group(family).is_dummy else ""
        label = "\\n".join(_escaped(line) for line in _label(graph, family, ticks))
        lines.append(f'  "{_name(family)}" [label="{label}"{style}];')
    for link in graph.links():
        style = "" if link.is_strong else " [style=dashed]"
        lines.append(f'  "{_name(link.parent)}" -> "{_name(link.child)}"{style};')
    return "\n".join([*lines, "}"])


def draw_mermaid(graph: SlidingGraph, ticks: Ticks = str) -> str:
    """The sliding graph in Mermaid's language.

    >>> graph = SlidingGraph()
    >>> graph.add("hot", Edges(2, 0)); graph.add("busy", Edges(4, 0))
    >>> print(draw_mermaid(graph))
    graph TD
      s2_0["2<br>hot"]
      s4_0["4<br>busy"]
      s2_0 --> s4_0
    """
    lines = ["graph TD"]
    for family in graph.tree():
        label = "<br>".join(_entities(line) for line in _label(graph, family, ticks))
        lines.append(f'  {_identifier(family)}["{label}"]')
    for link in graph.links():
        arrow = "-->" if link.is_strong else "-.->"
        lines.append(f"  {_identifier(link.parent)} {arrow} {_identifier(link.child)}")
    return "\n".join(lines)


def _branches(
    graph: SlidingGraph, below: dict[Edges, list[Edges]], root: Edges, ticks: Ticks
) -> Iterator[str]:
    """Lines of the tree, parents first. No recursion: slides may divide one another deeply."""
    waiting = [(root, "", "")]
    while waiting:
        family, lead, indent = waiting.pop()
        yield lead + _line(graph, family, ticks)
        children = below[family]
        for child in reversed(children):
            is_last = child == children[-1]
            turn, bar = ("└─ ", "   ") if is_last else ("├─ ", "│  ")
            waiting.append((child, indent + turn, indent + bar))


def _line(graph: SlidingGraph, family: Edges, ticks: Ticks) -> str:
    queries = ", ".join(sorted(graph.group(family).queries))
    weak = ", ".join(_name(parent, ticks) for parent in graph.parents(family)[1:])
    label = f": {queries}" if queries else " (dummy)"
    return _name(family, ticks) + label + (f" (also within {weak})" if weak else "")


def _label(graph: SlidingGraph, family: Edges, ticks: Ticks) -> list[str]:
    return [_name(family, ticks), *(sorted(graph.group(family).queries) or ["(dummy)"])]


def _name(family: Edges, ticks: Ticks = str) -> str:
    phase = f" from {ticks(family.phase)}" if family.phase else ""
    return ticks(family.slide) + phase


def _identifier(family: Edges) -> str:
    return f"s{family.slide}_{family.phase}"


def _escaped(line: str) -> str:
    return line.replace("\\", "\\\\").replace('"', '\\"')


def _entities(line: str) -> str:
    for sign, entity in (("&", "&amp;"), ('"', "&quot;"), ("<", "&lt;"), (">", "&gt;")):
        line = line.replace(sign, entity)
    return line
