"""Which pipeline a plan's windows need."""

from __future__ import annotations

from panes.nodes.per_row import PerRowPipeline
from panes.nodes.pipeline import StorePipeline
from panes.nodes.ranked_rows import RankedRowsPipeline
from panes.nodes.sliding import SlidingPipeline
from panes.planning.plan import Plan
from panes.stores.by_name import StoreName
from panes.stores.durations import ArrivalSkew
from panes.windows.spec import PartitionedRows, PerRow


def pipeline_of(
    plan: Plan,
    store: StoreName = "panes",
    skew: ArrivalSkew | None = None,
    *,
    revisable: int | None = 0,
) -> StorePipeline:
    """A new pipeline for a plan's kind of window, on the named store.

    `revisable` is how far behind progress closed windows can still be revised; None: always.
    """
    if isinstance(plan.window.spec, PerRow):
        return PerRowPipeline(plan, store=store)
    if isinstance(plan.window.spec, PartitionedRows) or plan.order is not None:
        return RankedRowsPipeline(plan, store=store, skew=skew)
    return SlidingPipeline(plan, store=store, skew=skew, revisable=revisable)
