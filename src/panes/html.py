"""Answers, plans and running queries as HTML, for notebooks. Whatever data says is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

import pyarrow as pa

from panes.cells import cell, cells

MOST_ROWS = 20
_LINE = 100
_CELL = "text-align:left;padding:2px 12px 2px 0"
_NUMBER = "text-align:right;padding:2px 12px 2px 0;font-variant-numeric:tabular-nums"


def table_html(table: pa.Table, *, most: int = MOST_ROWS) -> str:
    """The first rows of a table, and how many there are."""
    shown = table.slice(0, most)
    rows = cells(shown)
    numeric = [_is_number(kind) for kind in table.schema.types]
    head = _row("th", [str(cell(name)) for name in table.column_names], numeric)
    body = "".join(_row("td", [_words(v) for v in row], numeric) for row in rows)
    count = f"{len(table):,} row{'' if len(table) == 1 else 's'}"
    more = f", the first {most} of them shown" if len(table) > most else ""
    return f"<table><thead>{head}</thead><tbody>{body}</tbody></table><p>{count}{more}</p>"


class Explained(str):
    """Text that a notebook shows as it stands."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return text_html(self)


def text_html(text: str) -> str:
    """Text as it stands, such as a plan."""
    return f"<pre>{escape(text)}</pre>"


def facts_line(kind: str, what: str, *facts: object) -> str:
    """The same in one line, for a prompt or a log.

    >>> facts_line("OpenQuery", "SELECT 1", "open", "3 keys")
    '<OpenQuery SELECT 1: open, 3 keys>'
    """
    text = " ".join(what.split())
    text = text if len(text) <= _LINE else f"{text[: _LINE - 1]}…"
    return f"<{kind} {text}: {', '.join(map(str, facts))}>"


def facts_html(title: str, text: str, facts: Mapping[str, object]) -> str:
    """What runs, what was asked, and how it stands."""
    rows = "".join(
        _row("td", [name, _words(value)], [False, isinstance(value, int)])
        for name, value in facts.items()
    )
    return f"<b>{escape(title)}</b>{text_html(text)}<table><tbody>{rows}</tbody></table>"


def tables_html(tables: Iterable[tuple[str, pa.Table]], *, left: int = 0) -> str:
    """Some tables under their names; so many more are only counted."""
    parts = [f"<b>{escape(name)}</b>{table_html(table, most=5)}" for name, table in tables]
    more = f"<p>and {left:,} more</p>" if left else ""
    return "".join(parts) + more


def _row(tag: str, values: Sequence[str], numeric: Sequence[bool]) -> str:
    made = (
        f'<{tag} style="{_NUMBER if is_number else _CELL}">{escape(value)}</{tag}>'
        for value, is_number in zip(values, numeric, strict=True)
    )
    return f"<tr>{''.join(made)}</tr>"


def _words(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def counted(count: int, one: str, many: str) -> str:
    """A number of things, in words.

    >>> counted(1, "query", "queries"), counted(2000, "query", "queries")
    ('1 query', '2,000 queries')
    """
    return f"{count:,} {one if count == 1 else many}"
