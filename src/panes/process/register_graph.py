"""The graph of a register: where each query runs, and what is shared.

    sliding windows over a column      one node for each stream and column, or node and column:
                                       their queries share the read, panes and partials
    joins of streams                   one node: queries with the same join share it
    everything else                    a node of its own, which queries that say the same share

Equal parts are one node, however many queries contain them. A query that comes after rows have come
begins behind them: what it cannot know in full it does not answer (`QueryNode.begin_behind`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from panes.aggregates.custom import UserAggregate
from panes.answers.portions import Portion
from panes.axis import Duration
from panes.errors import OptionError, PanesError, QueryError
from panes.language.join_query import JoinQuery
from panes.language.query import Query
from panes.language.query_graph import Part, QueryGraph, read_graph
from panes.nodes.parts import require_parts
from panes.planning.join_terms import require_join_options
from panes.planning.terms import StreamOptions
from panes.process.all_or_nothing import all_or_nothing
from panes.process.in_turn import Turn
from panes.process.node import Instant, Node, Step
from panes.process.query_node import Inside, QueryNode
from panes.process.register_nodes import RegisterNodes
from panes.process.rounds import HandOver
from panes.process.running_query import node_of
from panes.process.shared_joins import SharedJoins
from panes.process.shared_windows import SharedWindows, Unfit
from panes.sharing.shareable import shared_spec

JOINS = "joins of streams"
"""The name of the node of shared joins."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What the node of a query is made of: a part of a text, and what was known of what it reads.

    `reads` are the names in the text, each with the stream or node that it stands for.
    """

    text: str
    part: str
    reads: Mapping[str, str]
    schemas: Mapping[str, pa.Schema]


class RegisterGraph(RegisterNodes):
    """The running graph of a register: queries come and go, and every node is stepped."""

    UNCHANGED = frozenset({"_turn", "_hand_over"})

    def __init__(
        self,
        streams: Sequence[str],
        run: StreamOptions,
        turn: Turn,
        *,
        aggregates: Sequence[UserAggregate] = (),
        now: Callable[[], int],
        keep_rows: int = 0,
        hand_over: HandOver | None = None,
    ) -> None:
        joins = SharedJoins(tuple(streams), run, aggregates=aggregates, now=now)
        super().__init__(tuple(streams), run, joins)
        self._turn, self._hand_over, self._keep_rows = turn, hand_over, keep_rows
        self._aggregates, self._now = tuple(aggregates), now
        self.origins: dict[str, Origin] = {}
        self._same: dict[object, str] = {}
        if len(self.streams) == 1:
            self._add_windows(self.streams[0])
        else:
            self.running.add(JOINS, self.joins)

    # Queries come and go

    def add(
        self, name: str, text: str, graph: QueryGraph, deadline: Duration | None = None
    ) -> None:
        """Answer one more query from now on."""
        query = graph.asked
        is_shared = isinstance(query, Query) and shared_spec(query) is not None
        if graph.is_single and is_shared and self._run.late != "revise":
            assert isinstance(query, Query)
            assert query.window is not None
            self._share(
                name, text, query, self._on(query.streams[0], query.window.column), deadline
            )
            return
        if deadline is not None:
            raise OptionError("a deadline is for sliding windows over a stream, which share panes")
        with all_or_nothing(self):
            if graph.is_single and isinstance(query, JoinQuery) and not query.emits_early:
                self._join(name, query)
            else:
                self._beside(name, graph)
            if not self.has(name):
                self.texts[name] = text

    def remove(self, name: str) -> None:
        """Answer a query no longer, and forget the nodes that only it needed."""
        for windows in self.windows:
            if name in windows.queries.asked or name in windows.queries.failed:
                windows.queries.remove(name)
        if name in self.joins.asked:
            self.joins.remove(name)
        self.texts.pop(name, None)
        self.ends.pop(name, None)
        self.begins.pop(name, None)
        self._tidy()

    def _tidy(self) -> None:
        """Forget the nodes that nobody reads any more."""
        if len(self.running.nodes) == 1:
            return
        used = {n for n, node in self.running.nodes.items() if self._is_used(node)}
        used.update(self.ends.values())
        self.running.keep(used.__contains__)
        self._same = {key: n for key, n in self._same.items() if n in self.running.nodes}
        self.origins = {n: one for n, one in self.origins.items() if n in self.running.nodes}

    def _is_used(self, node: Node) -> bool:
        """Whether a node stays though no other reads it: a stream's own does, on any column."""
        if isinstance(node, SharedWindows):
            is_first = (node.source,) == self.streams and node is self.windows[0]
            lies = node.source in self.streams and node.column is not None
            return bool(node.queries.asked) or lies or is_first
        return node is self.joins

    def _share(
        self,
        name: str,
        text: str,
        query: Query,
        windows: SharedWindows,
        deadline: Duration | None = None,
    ) -> None:
        try:
            windows.add(name, text, query, deadline)
        finally:
            self._tidy()

    def _on(self, source: str, column: str | None) -> SharedWindows:
        """The node of windows over a column of a stream or node, which may be new."""
        on = [windows for windows in self.windows if windows.source == source]
        found = next((w for w in on if w.column == (column or "").lower()), None)
        if found is not None:
            return found
        newest = self.newest(source, column or "")
        if self._run.punctuation is not None and any(w.column is not None for w in on):
            raise QueryError(
                f"`{source}` is ordered by another column, and `{self._run.punctuation}` promises "
                f"nothing of `{column}`",
                hint="open a second register for it",
            )
        new = next((w for w in on if w.column is None), None) or self._add_windows(source, column)
        new.begin_behind(newest)
        known = self._known()
        if source in known and new.reading.schema is None:
            new.bind(known[source])
        return new

    def _add_windows(self, source: str, column: str | None = None) -> SharedWindows:
        windows = self.new_windows(source)
        self.running.add(f"windows of {source} on {column}", windows)
        return windows

    def new_windows(self, source: str) -> SharedWindows:
        """Windows over a stream or node; the first ones over the only stream keep its last rows."""
        is_part = source not in self.streams
        run = Inside({source: source}, frozenset([source] if is_part else [])).run(self._run)
        windows = SharedWindows(
            source, run, self._turn, is_part=is_part, aggregates=self._aggregates, now=self._now,
            keep_rows=0 if self.windows else self._keep_rows, hand_over=self._hand_over,
        )  # fmt: skip
        windows.reading.open_beside = lambda: self._open_from(source)
        return windows

    def _join(self, name: str, query: JoinQuery) -> None:
        require_join_options(query, self._run)
        if JOINS not in self.running.nodes:
            self.joins.missed(self._newest_known())
            self.running.add(JOINS, self.joins)
            self.joins.bind(self.schemas)
        self.joins.add(name, query)

    def _beside(self, name: str, graph: QueryGraph) -> None:
        """Nodes for the parts of a query; those that are there already are shared."""
        if graph.names:
            require_parts(graph, self._run)
        named: dict[str, str] = {}
        for part in graph.parts:
            reads = {n: graph.again.get(n, n) for n in part.query.streams}
            reads = {n: named.get(source, source) for n, source in reads.items()}
            if not part.name and self._is_over_part(part, reads):
                assert isinstance(part.query, Query)
                assert part.query.window is not None
                [source] = reads.values()
                query = replace(part.query, streams=(source,))
                windows = self._on(source, part.query.window.column)
                self._share(name, graph.text, query, windows)
                return
            before = self.running.nodes
            named[part.name] = self._node(
                graph.text, part, reads, part.name or f"answers of {name}"
            )
        end = self.running.nodes[named[""]]
        if named[""] in before and any(self.arrived.get(s) for s in self._streams_of(end)):
            assert isinstance(end, QueryNode)
            self.begins[name] = end.exact_from_now()
        self.ends[name] = named[""]

    def _is_over_part(self, part: Part, reads: Mapping[str, str]) -> bool:
        inside = not set(reads.values()).intersection(self.streams)
        return inside and isinstance(part.query, Query) and shared_spec(part.query) is not None

    def _node(self, text: str, part: Part, reads: Mapping[str, str], name: str) -> str:
        """The name of the node that answers a part of a text: one that is there, or a new one."""
        key = _said(part, reads)
        if key in self._same:
            return self._same[key]
        while name in self.running.nodes or name in self.streams:
            name += "_"
        node = self.new_node(name, Origin(text, part.name, reads, self._known()), part)
        for stream, column in node.columns_read:
            self._on(stream, column).lay(column)
        if any(self.arrived.get(stream) for stream in self._streams_of(node)):
            node.begin_behind(self)
        self.running.add(name, node)
        return name

    def new_node(self, name: str, origin: Origin, part: Part | None = None) -> QueryNode:
        """A node of that origin, which may be in a graph that is read from a state."""
        if part is None:
            parts = read_graph(origin.text, self._aggregates).parts
            part = next(one for one in parts if one.name == origin.part)
        nodes = frozenset(origin.reads.values()).difference(self.streams)
        node = node_of(
            part.query, Inside(origin.reads, nodes), self._run, aggregates=self._aggregates,
            schemas=origin.schemas, now=self._now,
        ).named(name)  # fmt: skip
        self.origins[name], self._same[_said(part, origin.reads)] = origin, name
        return node

    def forget_all(self) -> None:
        """Have no nodes; those of a state are to be added."""
        self.running.nodes, self.origins, self._same = {}, {}, {}

    # Steps

    def bind(self, tables: Mapping[str, pa.Table]) -> dict[str, Exception]:
        """Streams have sent their first batch: bind what waited for their columns.

        Gives queries that do not fit. If nothing does, the batch is refused.
        """
        new = {n: t.schema.remove_metadata() for n, t in tables.items() if n not in self.schemas}
        self.schemas |= new
        self.met = [*self.met, list(new)] if new else self.met
        asked = [w.waiting if w.source in new else len(w.queries.asked) for w in self.windows]
        unbound = sum(asked) + len(self.texts)
        unfit = [(w, w.bind(new[w.source])) for w in self.windows if w.source in new]
        unfit += [(w, self._unfit(w)) for w in self.windows if w.source not in self.streams]
        failing = self.joins.bind(self.schemas)
        for name, end in self.ends.items():
            try:
                self._require_fit(end)
            except PanesError as error:
                failing[name] = error.of(f"query `{name}`")
        reasons = [reason for _, one in unfit for reason in one.reasons] + [*failing.values()]
        if reasons and len(reasons) == unbound:
            raise reasons[0]  # rather than all queries, the batch is wrong
        for windows, one in unfit:
            windows.set_aside(one)
        return failing

    def _unfit(self, windows: SharedWindows) -> Unfit:
        """All queries of windows over a node, if that does not fit the columns of its streams."""
        try:
            self._require_fit(windows.source)
        except PanesError as error:
            asked = windows.queries.asked
            return Unfit({name: error.of(f"query `{name}`") for name in asked}, {}, {})
        return Unfit({}, {}, {})

    def _require_fit(self, end: str) -> None:
        node = self.running.nodes[end]
        for source in node.reads:
            if source not in self.streams:
                self._require_fit(source)
        if isinstance(node, QueryNode):
            node.checked(self.schemas)

    def step(self, step: Step) -> Iterator[Portion]:
        """Step every node; gives the answers of every query."""
        self.joins.hear(step.told)
        for name, given in self.running.step(step):
            if isinstance(self.running.nodes[name], QueryNode):
                table = given[0].table
                names = [query for query, end in self.ends.items() if end == name]
                for query in names if len(table) else ():
                    yield Portion(-1, [query], np.array([0, len(table)]), table)
            else:
                yield from given
        for query, end in self.ends.items():
            if end in step.lost:
                step.failed[query] = step.lost[end]

    def require_instants(self, told: Mapping[str, Instant]) -> None:
        """Refuse promises that cannot be understood, or are no positions of the streams."""
        for stream in told:
            on = {w.column for w in self.windows if w.source == stream and w.column is not None}
            if len(on) > 1:
                raise OptionError(
                    f"queries order `{stream}` by {' and by '.join(sorted(on))}, and a promise "
                    "would be of only one of them",
                    hint="give a lateness, or open a register for each",
                )
        for node in self.running.nodes.values():
            node.require_instants(told)

    def end(self) -> None:
        """The streams have ended: only the windows stay, which say what there was."""
        self.joins.end()
        self.running.nodes = {n: w for n, w in self.running.nodes.items() if w in self.windows}
        self.ends.clear()


def _said(part: Part, reads: Mapping[str, str]) -> object:
    """What is the same of parts that say the same."""
    query = part.query
    said: object = replace(query, text="")
    if isinstance(query, Query):
        said = replace(query, text="", streams=(), again=())
    return said, tuple(reads[n] for n in query.streams)
