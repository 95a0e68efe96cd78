"""The streams of a query, as their first batches have shown them.

Every later batch of a stream has the columns of the first (`panes.frames.to_table` is told which
these are). `Inputs` never change: a batch that is
refused leaves those that were there before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from panes.errors import UnknownStreamError
from panes.language.query import Query
from panes.nodes.inner import chain_of
from panes.nodes.operator import Chain
from panes.planning.terms import CheckedOptions
from panes.windows.spec import PerRow, Sliding


@dataclass(frozen=True, slots=True)
class Inputs:
    """The streams seen so far: their columns, and the operators that FROM puts behind them.

    `given` are the columns of batches, `derived` those that come out of the `chains`. `remembers`
    is how far behind progress a late row can still count somewhere; None: always. Nothing is
    promised of what `is_bounded`; with `needs_order`, a column or the clock promises something.
    """

    query: Query
    remembers: int | None
    is_bounded: bool
    needs_order: bool
    given: Mapping[str, pa.Schema] = field(default_factory=dict)
    derived: Mapping[str, pa.Schema] = field(default_factory=dict)
    chains: Mapping[str, Chain] = field(default_factory=dict)

    @classmethod
    def of(cls, query: Query, terms: CheckedOptions, *, is_bounded: bool) -> Inputs:
        """The inputs of a query that has seen no batch."""
        promises = terms.punctuation is not None or terms.heartbeat is not None
        return cls(query, remembered(query, terms), is_bounded, promises and not is_bounded)

    def after(self, tables: Mapping[str, pa.Table]) -> Inputs:
        """The inputs after these batches, which look like those before."""
        inputs = self
        for name, table in tables.items():
            if name not in self.query.streams:
                raise UnknownStreamError(name, streams=self.query.streams)
            schema = table.schema.remove_metadata()
            if name not in self.given:
                inputs = inputs._and(name, schema)
        return inputs

    def _and(self, name: str, schema: pa.Schema) -> Inputs:
        """These inputs, and a stream with these columns."""
        chain = chain_of(
            self.query,
            name,
            schema,
            remembers=self.remembers,
            is_bounded=self.is_bounded,
            needs_order=self.needs_order,
        )
        derived = chain.push(schema.empty_table()).schema.remove_metadata()
        return replace(
            self,
            given={**self.given, name: schema},
            derived={**self.derived, name: derived},
            chains={**self.chains, name: chain},
        )

    def schemas(self) -> dict[str, pa.Schema]:
        """The columns that a plan is made for; streams not yet seen look like the others."""
        streams = self.query.streams
        first = self.derived.get(streams[0], next(iter(self.derived.values())))
        return {name: self.derived.get(name, first) for name in streams}


def remembered(query: Query, terms: CheckedOptions) -> int | None:
    """How far behind progress a late row can still count somewhere; None: always."""
    spec = None if query.window is None else query.window.spec
    if terms.drops_late or not isinstance(spec, Sliding | PerRow):
        return 0
    return None if terms.keeps is None else spec.size + terms.keeps
