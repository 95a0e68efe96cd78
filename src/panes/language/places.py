"""Refusals that point at a place in the text of a query."""

from __future__ import annotations

from sqlglot import exp

from panes.errors import QueryError


def error_in(node: object, message: str, hint: str | None = None) -> QueryError:
    """A refusal that points at the first part of a tree whose place is known."""
    if isinstance(node, exp.Expression):
        for part in node.walk():
            if "line" in part.meta:
                width = part.meta["end"] - part.meta["start"]
                column = max(part.meta["col"] - width, 1)
                return QueryError(message, hint=hint, line=part.meta["line"], column=column)
    return QueryError(message, hint=hint)
