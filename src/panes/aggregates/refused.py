"""Aggregates of Spark that have no meaning over a window, or not one and the same; and why."""

from __future__ import annotations

from collections.abc import Mapping

_RANDOM = (
    "gives a sketch in bytes, and Spark thins it out by random bits: the same rows would give "
    "other bytes each time"
)
_THINNED_OUT = (
    "gives a sketch that drops items which are rare so far, once it has more than it tracks: what "
    "is left would depend on the order of rows, and on which panes are merged first"
)
_ROLLED_UP = "tells the levels of CUBE and ROLLUP apart, and a window has one level"
_REASONS = {
    _RANDOM: """
        kll_sketch_agg_bigint kll_sketch_agg_float kll_sketch_agg_double kll_merge_agg_bigint
        kll_merge_agg_float kll_merge_agg_double""",
    _THINNED_OUT: "approx_top_k_accumulate approx_top_k_combine",
    _ROLLED_UP: "grouping grouping_id",
    "reads a measure of a metric view, and a stream has none": "measure",
}

REFUSED: Mapping[str, str] = {
    name: reason for reason, names in _REASONS.items() for name in names.split()
}
