"""What a shard of one query remembers between batches, beside its blocks of panes.

It is written under one name, with the format and the identity of the query: a state of another
format or of another query is refused.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from panes.axis import BEGINNING, FOREVER
from panes.errors import QueryError
from panes.planning.plan import Plan
from panes.planning.terms import CheckedOptions
from panes.progress.promise import Promise, meld
from panes.shards.blocks import Blocks, block_span, block_table
from panes.shards.query_identity import identify, require_same, to_table
from panes.shards.recall import Recall
from panes.shards.state import ABOUT, State
from panes.stores import codec
from panes.stores.parcel import Parcel
from panes.stores.state_format import FORMAT, format_table, require_format
from panes.windows.many import first_from
from panes.windows.spec import Landmark, PerRow, Sliding

RECALL: Recall[Parcel] = Recall()
"""Blocks that this process has read or written lately, by the digests of their bytes."""
_WHAT, _FORMAT = "a query", 2
_QUERY, _PROGRESS, _SOURCES, _BLOCKS = "query", "progress", "sources", "blocks"
_PANES = "panes"


@dataclass(slots=True)
class QueryState:
    """How far a shard of a query has come, and which blocks it has."""

    promises: list[Promise]
    blocks: Blocks
    first_open: int = BEGINNING
    first_needed: int = BEGINNING
    newest: int = BEGINNING
    next_early: int | None = None

    @classmethod
    def of(
        cls, plan: Plan, terms: CheckedOptions, state: State, shards: int, after: int = BEGINNING
    ) -> QueryState:
        """What a state says; of one that says nothing yet, the beginning.

        If rows up to `after` came before that, no window that may hold one of them is open.
        """
        data = state.get(ABOUT)
        if data is None:
            promises = [Promise(terms.of(name).bound()) for name in plan.query.streams]
            first = first_open(plan, after)
            return cls(promises, _ledger(plan), first_open=first, first_needed=first)
        tables = codec.unpack(data)
        require_format(tables, _WHAT, _FORMAT)
        require_same(tables[_QUERY], identify(plan, shards))
        [progress] = tables[_PROGRESS].to_pylist()
        promised = tables[_SOURCES].column("promise").to_pylist()
        blocks = _ledger(plan)
        blocks.span = progress.pop("span")
        blocks.restore(tables[_BLOCKS].to_pylist())
        named = zip(plan.query.streams, promised, strict=True)
        promises = [Promise(terms.of(name).bound(), at) for name, at in named]
        return cls(promises, blocks, **progress)

    def write(self, plan: Plan, state: State, shards: int) -> None:
        """Put everything but the blocks themselves into a state."""
        progress = {
            "span": self.blocks.span,
            "first_open": self.first_open,
            "first_needed": self.first_needed,
            "newest": self.newest,
            "next_early": self.next_early,
        }
        schema = pa.schema(dict.fromkeys(progress, pa.int64()))
        promised = pa.array([p.at for p in self.promises], pa.int64())
        state[ABOUT] = codec.pack(
            {
                FORMAT: format_table(_WHAT, _FORMAT),
                _QUERY: to_table(identify(plan, shards)),
                _PROGRESS: pa.Table.from_pylist([progress], schema=schema),
                _SOURCES: pa.table({"promise": promised}),
                _BLOCKS: block_table([self.blocks]),
            }
        )

    def progress(self, plan: Plan) -> tuple[int, str]:
        """What is promised of all sources together, and why."""
        return meld(dict(zip(plan.query.streams, self.promises, strict=True)))


def first_open(plan: Plan, after: int) -> int:
    """The first window, as its pipeline numbers it, that holds no row up to a position."""
    spec = plan.window.spec
    if after == BEGINNING:
        return BEGINNING
    if isinstance(spec, PerRow) and (spec.every == 1 or spec.counted_by == "arrival"):
        return after + spec.size
    if isinstance(spec, Sliding) and plan.order is None:
        return first_from(spec, after + 1)
    counted = isinstance(spec, Landmark)
    raise QueryError(
        "rows have come before this query, and "
        + ("windows over ALL rows" if counted else "windows that count rows")
        + " would miss them",
        hint="add it before the first batch, or give it a window of time: [RANGE ...]",
    )


def _ledger(plan: Plan) -> Blocks:
    """No blocks yet. Where rows are at their ranks, no two partitions agree on where one ends."""
    span = FOREVER if plan.order is not None else block_span(plan.spec)
    return Blocks(_PANES, span, origin=plan.spec.origin, recall=RECALL)
