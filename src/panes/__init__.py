"""Sliding-window queries over data streams at the price of tumbling ones."""

from typing import Any

import pyarrow as pa

from panes.aggregates.custom import CustomAggregate, WindowFunction
from panes.api import explain, live, open, register, sql, window_index
from panes.errors import (
    ArithmeticOverflowError,
    ColumnTypeError,
    FailedQueryWarning,
    InputError,
    LimitError,
    MissingStreamError,
    NoProgressWarning,
    OptionError,
    PanesError,
    QueryError,
    RejectedRowsWarning,
    StateError,
    UnknownColumnError,
    UnknownStreamError,
    UserFunctionError,
    UtcDaysWarning,
    WrongAnswerError,
)
from panes.html import table_html
from panes.live.live_page import LivePage
from panes.planning.flush import LazyFlush, SlowFlush
from panes.planning.terms import Late
from panes.process.register import JoinRegister, Register
from panes.process.running_query import OpenGraph, OpenJoin, OpenQuery, RunningQuery
from panes.process.window_index import WindowIndex
from panes.reference.oracle import oracle


def load_ipython_extension(ipython: Any) -> None:
    """``%load_ext panes``: a notebook shows Arrow tables, such as answers, as tables."""
    html = ipython.display_formatter.formatters["text/html"]
    html.for_type(pa.Table, table_html)


__all__ = [
    "ArithmeticOverflowError",
    "ColumnTypeError",
    "CustomAggregate",
    "FailedQueryWarning",
    "InputError",
    "JoinRegister",
    "Late",
    "LazyFlush",
    "LimitError",
    "LivePage",
    "MissingStreamError",
    "NoProgressWarning",
    "OpenGraph",
    "OpenJoin",
    "OpenQuery",
    "OptionError",
    "PanesError",
    "QueryError",
    "Register",
    "RejectedRowsWarning",
    "RunningQuery",
    "SlowFlush",
    "StateError",
    "UnknownColumnError",
    "UnknownStreamError",
    "UserFunctionError",
    "UtcDaysWarning",
    "WindowFunction",
    "WindowIndex",
    "WrongAnswerError",
    "__version__",
    "explain",
    "live",
    "open",
    "oracle",
    "register",
    "sql",
    "window_index",
]


def __dir__() -> list[str]:
    """The public names, and nothing that this module needs for itself."""
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    """The version, and `panes.spark`, which are looked up when somebody asks."""
    if name == "__version__":
        from importlib.metadata import version

        return version("panes")
    if name == "spark":
        from importlib import import_module

        return import_module("panes.spark")
    raise AttributeError(f"module 'panes' has no attribute {name!r}")
