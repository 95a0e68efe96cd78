"""The nodes of a register, and what they know of its streams: what came, and what was late."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from panes.axis import BEGINNING, FOREVER
from panes.errors import InputError, OptionError, QueryError, UnknownStreamError
from panes.nodes.set_aside import Aside
from panes.planning.terms import StreamOptions
from panes.process.newest_rows import NewestRows
from panes.process.node import Node
from panes.process.query_node import QueryNode, missed
from panes.process.running_graph import RunningGraph
from panes.process.shared_joins import SharedJoins
from panes.process.shared_windows import SharedWindows
from panes.process.watched import Watcher
from panes.sharing.queries import Failed

_SET_ASIDE = ("late_rows", "rejected_rows", "set_aside_bytes")


class RegisterNodes:
    """The nodes of a register, and the queries that are their ends.

    `schemas` are those of the streams that have sent a batch, `met` the streams as they came, those
    together that came together, `arrived` how many rows each has sent. `texts` are those of queries
    that are no shared windows, `ends` the names of their nodes, and `begins` says from where on
    those are answered whose node was there before them.
    """

    def __init__(self, streams: tuple[str, ...], run: StreamOptions, joins: SharedJoins) -> None:
        self.streams, self._run, self.joins = streams, run, joins
        self.schemas: dict[str, pa.Schema] = {}
        self.arrived: dict[str, int] = {}
        self.running = RunningGraph()
        self.texts: dict[str, str] = {}
        self.ends: dict[str, str] = {}
        self.begins: dict[str, object] = {}
        self.met: list[list[str]] = []

    # What there is

    @property
    def windows(self) -> list[SharedWindows]:
        """The nodes of shared windows, those over streams and over other nodes."""
        return [n for n in self.running.nodes.values() if isinstance(n, SharedWindows)]

    @property
    def query_nodes(self) -> list[QueryNode]:
        """The nodes of queries that run beside."""
        return [n for n in self.running.nodes.values() if isinstance(n, QueryNode)]

    def has(self, name: str) -> bool:
        """Whether there is a query of that name."""
        return name in self.texts or any(name in w.queries.asked for w in self.windows)

    def require_new(self, name: str) -> None:
        """Refuse a name that a query has already."""
        if self.has(name):
            raise QueryError(
                f"a query `{name}` is already registered", hint="remove it first, or rename one"
            )

    def require_streams(self, name: str, read: Sequence[str]) -> None:
        """Refuse a query that reads other streams."""
        unknown = [stream for stream in read if stream not in self.streams]
        if unknown:
            known = ", ".join(f"`{stream}`" for stream in self.streams)
            raise QueryError(
                f"query `{name}` reads {', '.join(unknown)}, and the register answers queries over "
                f"{known} alone",
                hint=f"FROM {self.streams[0]} [RANGE ...]",
            )

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

    def reads(self, stream: str) -> bool:
        """Whether any query beside the shared windows reads a stream."""
        nodes: list[Node] = [self.joins, *self.query_nodes]
        return any(stream in node.reads for node in nodes)

    def all_texts(self, came: Mapping[str, int]) -> dict[str, str]:
        """The texts of all queries, in the order in which they `came`."""
        found = dict[str, str]()
        for windows in self.windows:
            found |= {name: asked.text for name, asked in windows.queries.asked.items()}
        if not self.texts and len(self.windows) == 1:
            return found
        return dict(sorted((found | self.texts).items(), key=lambda one: came.get(one[0], 0)))

    def failed(self) -> dict[str, Failed]:
        """The queries that shared windows have set aside."""
        found = dict[str, Failed]()
        for windows in self.windows:
            found |= windows.queries.failed
        return found

    # What is given

    def named(
        self, one: object, named: Mapping[str, object], refusal: str, what: str
    ) -> dict[str, Any]:
        """What is given for each stream; without names it is for the only one."""
        first = self.streams[0]
        if one is not None and (named or len(self.streams) > 1):
            raise OptionError(f"say for which stream it is: {first}={what}")
        if one is not None:
            return {first: one}
        if not named:
            raise OptionError(refusal, hint=f"{first}={what}")
        for name in named:
            if name not in self.streams:
                raise UnknownStreamError(name, streams=self.streams)
        return dict(named)

    def require_read(self, stream: str) -> None:
        """Refuse rows of a stream that nobody reads: nothing says what orders them."""
        over = (windows for windows in self.windows if windows.source == stream)
        if self.reads(stream) or any(windows.is_read for windows in over):
            return
        hint = 'add one first: reg.add("hot", "SELECT ...")'
        if len(self.streams) > 1:
            raise QueryError(
                f"no query reads `{stream}`, so it cannot be known which column orders its rows",
                hint=hint,
            )
        raise InputError(
            f"the register of `{stream}` has no query yet, so it cannot know which column "
            "orders the rows",
            hint=hint,
        )

    # What came before

    def _known(self) -> dict[str, pa.Schema]:
        """The columns of streams, and of nodes as others read them."""
        nodes = ((n, node) for n, node in self.running.nodes.items() if isinstance(node, QueryNode))
        found = {name: node.schema for name, node in nodes}
        return self.schemas | {name: schema for name, schema in found.items() if schema is not None}

    def _streams_of(self, node: Node) -> Iterator[str]:
        """The streams that a node reads, itself or through others."""
        for source in node.reads:
            if source in self.streams:
                yield source
            else:
                yield from self._streams_of(self.running.nodes[source])

    def newest(self, source: str, column: str) -> int:
        """Up to where rows of a stream or node may have come, on a column."""
        if source not in self.streams:
            node = self.running.nodes[source]
            assert isinstance(node, QueryNode)
            has_begun = any(self.arrived.get(stream) for stream in self._streams_of(node))
            return node.behind(column) if has_begun else BEGINNING
        if not self.arrived.get(source):
            return BEGINNING
        for windows in self.windows:
            if windows.source == source and windows.column == column.lower():
                return windows.queries.newest
        known = self.joins.newest_on(source, column)
        if known is None or self._run.rows_late is not None:
            raise missed(f"nobody knows where they lie on `{column}`")
        return known

    def _newest_known(self) -> NewestRows:
        """Where the newest rows lie on the columns of windows; of others that is not known."""
        at = {
            (w.source, w.reading.placing.axis.column or ""): w.queries.newest
            for w in self.windows
            if w.reading.placing is not None
        }
        sent = frozenset(stream for stream, rows in self.arrived.items() if rows)
        return NewestRows(at, sent=sent, unseen=sent)

    def _open_from(self, source: str) -> int:
        """The first position that an open window of a query beside holds."""
        beside = (node for node in self.query_nodes if source in node.reads)
        return min((node.open_from for node in beside), default=FOREVER)

    def rows_before(self, source: str) -> int:
        """How many rows of a stream have come; `BEGINNING` for a node: nobody counts them."""
        return self.arrived.get(source, 0) if source in self.streams else BEGINNING

    def promised(self, source: str, column: str) -> int:
        """What a stream promises of its rows on a column."""
        on = (w for w in self.windows if (w.source, w.column) == (source, column.lower()))
        return next((w.queries.promise.at for w in on), BEGINNING)

    # What there is to see

    def reached(self) -> list[int]:
        """How far streams and sides of joins are."""
        return [*(w.progress for w in self.windows if w.reading.has_axis), *self.joins.progress]

    def aside(self) -> list[Aside]:
        """Rows set aside: of each stream by each column that orders it, and of each join."""
        nodes: list[Node] = [*self._over_streams(), self.joins, *self._telling()]
        return [one for node in nodes for one in node.aside()]

    def _over_streams(self) -> list[SharedWindows]:
        """The windows over streams; the first one tells the columns if there is nothing else."""
        found = [w for w in self.windows if w.source in self.streams]
        return [w for w in found if w.reading.has_axis] or found * (not self.joins.asked)

    def _telling(self) -> list[QueryNode]:
        """Queries beside that read a stream by a column which no windows know."""
        laid = {(w.source, w.column) for w in self._over_streams()}
        return [
            node
            for node in self.query_nodes
            if node.reads_streams and not laid.issuperset(node.columns_read)
        ]

    def state(self) -> dict[str, int]:
        """How much is stored by all nodes together."""
        found = {"joins": 0, "nodes": len(self.query_nodes)}
        for node in self.running.nodes.values():
            hidden = _SET_ASIDE if isinstance(node, QueryNode) else ()
            stored = {n: count for n, count in node.state.items() if n not in hidden}
            stored.pop("total_bytes", None)
            for name, count in stored.items():
                found[name] = found.get(name, 0) + count
        return found

    def explained(self, *, details: bool = False) -> Iterator[str]:
        """How each node is run."""
        for name, node in self.running.nodes.items():
            if isinstance(node, QueryNode):
                ends = ", ".join(query for query, end in self.ends.items() if end == name)
                yield f"queries    {ends}\n" if ends else f"part       {name}\n"
                yield node.explain(details=details)
            elif isinstance(node, SharedJoins):
                yield from [node.explain(details=details)] * bool(node.asked)
            elif len(self.running.nodes) == 1 or self._is_shown(node):
                yield node.explain(details=details)

    @staticmethod
    def _is_shown(node: Node) -> bool:
        """Whether shared windows have anything to tell."""
        if not isinstance(node, SharedWindows):
            return True
        return bool(node.queries.asked) or len(node.prepared) + len(node.reading.row_questions) > 0

    def watch(self, watcher: Watcher | None) -> None:
        """Tell somebody of the batches of every stream, once."""
        told: set[str] = set()
        for windows in self.windows:
            is_first = windows.source in self.streams and windows.source not in told
            windows.reading.watcher = watcher if is_first else None
            told |= {windows.source} if windows.column is not None else set()
        self.joins.watcher, self.joins.shown = watcher, frozenset(told)
