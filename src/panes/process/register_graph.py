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
from dataclasses import replace

import numpy as np
import pyarrow as pa

from panes.aggregates.custom import UserAggregate
from panes.answers.portions import Portion
from panes.axis import FOREVER, Duration
from panes.errors import OptionError, PanesError, QueryError
from panes.language.join_query import JoinQuery
from panes.language.query import Query
from panes.language.query_graph import Part, QueryGraph, read_graph
from panes.nodes.parts import require_parts
from panes.planning.terms import StreamOptions
from panes.process.all_or_nothing import all_or_nothing
from panes.process.in_turn import Turn
from panes.process.newest_rows import NewestRows
from panes.process.node import Node, Step
from panes.process.open_query import Instant
from panes.process.query_node import Inside, QueryNode
from panes.process.register_nodes import RegisterNodes
from panes.process.rounds import HandOver
from panes.process.shared_joins import SharedJoins
from panes.process.shared_windows import SharedWindows, Unfit
from panes.sharing.shareable import shared_spec

JOINS = "joins of streams"
"""The name of the node of shared joins."""


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
        self.begins: dict[str, object] = {}  # where queries begin whose node was there before
        self._met: list[list[str]] = []  # the streams, as they came together
        self._same: dict[object, str] = {}
        if len(self.streams) == 1:
            self._add_windows(self.streams[0])
        else:
            self.running.add(JOINS, self.joins)

    def exact_from(self, name: str) -> object | None:
        """From where on a query is answered; None: from the beginning."""
        if name in self.joins.asked:
            return self.joins.exact_from(name)
        if name in self.ends:
            node = self.running.nodes[self.ends[name]]
            if name in self.begins:
                return self.begins[name]
            return node.exact_from if isinstance(node, QueryNode) else None
        return next((w.exact_from(name) for w in self.windows if name in w.queries.asked), None)

    # Queries come and go

    def add(
        self, name: str, text: str, graph: QueryGraph, deadline: Duration | None = None
    ) -> None:
        """Answer one more query from now on."""
        query = graph.asked
        if graph.is_single and isinstance(query, Query) and shared_spec(query) is not None:
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

    def _open_from(self, source: str) -> int:
        """The first position that an open window of a query beside holds."""
        beside = (node for node in self.query_nodes if source in node.reads)
        return min((node.open_from for node in beside), default=FOREVER)

    def _join(self, name: str, query: JoinQuery) -> None:
        if JOINS not in self.running.nodes:
            self.joins.missed(self._newest_known())
            self.running.add(JOINS, self.joins)
            self.joins.bind(self.schemas)
        self.joins.add(name, query)

    def _newest_known(self) -> NewestRows:
        """Where the newest rows lie on the columns of windows; of others that is not known."""
        at = {
            (w.source, w.reading.placing.axis.column or ""): w.queries.newest
            for w in self.windows
            if w.reading.placing is not None
        }
        sent = frozenset(stream for stream, rows in self.arrived.items() if rows)
        return NewestRows(at, sent=sent, unseen=sent)

    def _beside(self, name: str, graph: QueryGraph) -> None:
        """Nodes for the parts of a query; those that are there already are shared."""
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
        node = self._new_node(part, reads, name, self._known())
        node.origin = text, part.name
        for stream, column in node.columns_read:
            self._on(stream, column).lay(column)
        if any(self.arrived.get(stream) for stream in self._streams_of(node)):
            node.begin_behind(self)
        self.running.add(name, node)
        self._same[key] = name
        return name

    def _new_node(
        self, part: Part, reads: Mapping[str, str], name: str, schemas: Mapping[str, pa.Schema]
    ) -> QueryNode:
        nodes = frozenset(reads.values()).difference(self.streams)
        return QueryNode(
            part.query, Inside(reads, nodes), self._run, aggregates=self._aggregates,
            schemas=schemas, now=self._now,
        ).named(name)  # fmt: skip

    # In a state

    def met(self) -> list[dict[str, pa.Schema]]:
        """The columns of the streams, of those together that came together."""
        return [{name: self.schemas[name] for name in some} for some in self._met]

    def begin_anew(
        self,
        met: Sequence[Mapping[str, pa.Table]],
        *,
        arrived: Mapping[str, int],
        texts: Mapping[str, str],
        ends: Mapping[str, str],
        begins: Mapping[str, object],
    ) -> None:
        """Know this of streams and queries; nodes are to be added."""
        self.running.nodes, self._same = {}, {}
        self._met = [list(some) for some in met]
        self.schemas = {name: table.schema for some in met for name, table in some.items()}
        self.arrived, self.texts = dict(arrived), dict(texts)
        self.ends, self.begins = dict(ends), dict(begins)

    def new_node(
        self,
        text: str,
        name_of_part: str,
        reads: Mapping[str, str],
        name: str,
        schemas: Mapping[str, pa.Schema],
        *,
        has_begun_behind: bool,
    ) -> QueryNode:
        """The node of a part of a text, as it was made when these columns were known."""
        parts = read_graph(text, self._aggregates).parts
        part = next(one for one in parts if one.name == name_of_part)
        node = self._new_node(part, reads, name, {reads[n]: s for n, s in schemas.items()})
        node.origin, self._same[_said(part, reads)] = (text, name_of_part), name
        if has_begun_behind:
            node.goes_on_behind(self)
        return node

    # Steps

    def bind(self, tables: Mapping[str, pa.Table]) -> dict[str, Exception]:
        """Streams have sent their first batch: bind what waited for their columns.

        Gives queries that do not fit. If nothing does, the batch is refused.
        """
        new = {n: t.schema.remove_metadata() for n, t in tables.items() if n not in self.schemas}
        self.schemas |= new
        self._met = [*self._met, list(new)] if new else self._met
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
        self.joins.require_instants(told)
        for node in self.query_nodes:
            node.require_instants(told)
        for windows in self.windows:
            windows.require_instants(told)

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
