"""Sliding-window queries over data streams at the price of tumbling ones."""

from panes.aggregates.custom import CustomAggregate, WindowFunction
from panes.api import open, sql
from panes.errors import PanesError, QueryError, RejectedRowsWarning
from panes.reference.oracle import oracle

__all__ = [
    "CustomAggregate",
    "PanesError",
    "QueryError",
    "RejectedRowsWarning",
    "WindowFunction",
    "open",
    "oracle",
    "sql",
]
