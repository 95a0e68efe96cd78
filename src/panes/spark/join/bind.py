"""A query over a join bound to Spark DataFrames: each side is bound as the stream of any query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from panes.aggregates.custom import UserAggregate
from panes.frames import require_streams
from panes.language.join_query import JoinQuery
from panes.planning.join_query_plan import JoinQueryPlan, plan_join_query
from panes.planning.using import side_schema
from panes.spark.bind import (
    BoundQuery,
    arrow_schema,
    bind_query,
    derived,
    require_alike,
    selected_from,
)


@dataclass(frozen=True, slots=True)
class BoundJoin:
    """A plan, and its sides from left to right, each with the DataFrames that it reads."""

    plan: JoinQueryPlan
    sides: tuple[BoundQuery, ...]
    user: tuple[UserAggregate, ...] = ()

    @property
    def is_streaming(self) -> bool:
        """Whether the DataFrames are streams."""
        return self.sides[0].is_streaming

    @property
    def frames(self) -> tuple[DataFrame, ...]:
        """The DataFrames of all sides."""
        return tuple(frame for side in self.sides for frame in side.frames)


def bind_join(
    query: JoinQuery,
    streams: Mapping[str, DataFrame],
    user: Sequence[UserAggregate] = (),
    *,
    is_shared: bool = False,
) -> BoundJoin:
    """Check a query against DataFrames, which are looked at for columns only.

    A join that `is_shared` by several queries has all columns, and no filter of one query's own.
    """
    require_streams(query.streams, streams)
    require_alike({name: streams[name] for name in query.streams})
    schemas = [
        side_schema(
            source,
            [
                arrow_schema(selected_from(streams[name], inner, name))
                for name, inner in zip(source.streams, source.inner, strict=True)
            ],
        )
        for source in query.join.sources
    ]
    plan = _with_pairs(plan_join_query(query, schemas, user, is_shared=is_shared))
    if any(streams[name].isStreaming for name in query.streams):
        plan.join.require_types()  # tasks ask it of pairs; of bounded DataFrames, Spark does
    sides = []
    for source in plan.join.sources:
        frames = tuple(streams[name] for name in source.source.streams)
        sides.append(bind_query(*derived(source.plan.query, frames), ()))
    return BoundJoin(plan, tuple(sides), tuple(user))


def _with_pairs(plan: JoinQueryPlan) -> JoinQueryPlan:
    """The plan, in which groups of left rows are made of pairs: only one process folds partners."""
    found = plan.aggregation
    if found is None or found.fold is None:
        return plan
    return replace(plan, aggregation=replace(found, fold=None))
