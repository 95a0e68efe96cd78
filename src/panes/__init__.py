"""Sliding-window queries over data streams at the price of tumbling ones."""

from panes.aggregates.custom import CustomAggregate, WindowFunction
from panes.api import sql
from panes.errors import PanesError, QueryError, RejectedRowsWarning

__all__ = [
    "CustomAggregate",
    "PanesError",
    "QueryError",
    "RejectedRowsWarning",
    "WindowFunction",
    "sql",
]
