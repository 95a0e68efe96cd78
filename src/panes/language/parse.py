"""From text to `Query`: read the window clause and the streams, leave the rest to sqlglot.

The clause and the FROM list are read from the tokens and taken out; what remains is plain Spark
SQL, parsed by sqlglot. Exactly one SELECT is understood. Everything else is refused with its
place and, where there is one, a way out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from sqlglot.tokens import Token, TokenType

from panes.aggregates.custom import UserAggregate
from panes.errors import QueryError
from panes.language.clause import (
    Parts,
    is_clause,
    read_clause,
    read_early,
    require_columns,
    window_of,
)
from panes.language.elsewhere import hints_for_other_dialects, require_select
from panes.language.grammar import STREAM, parse_select, table_token
from panes.language.inner_select import read_inner
from panes.language.query import Early, Query, Window
from panes.language.select import read_select
from panes.language.set_query import sets_to_groups
from panes.language.sources import Sources, read_union
from panes.language.tokens import TokenReader, error_at, tokenize
from panes.windows.spec import PerRow

_MOST_READ = 1_024
_AFTER_FROM = frozenset({"WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "EMIT", ""})


def parse(text: str, aggregates: Sequence[UserAggregate] = (), *, once: bool = False) -> Query:
    """Understand one window query; one that is asked `once` needs no SLIDE.

    >>> query = parse("SELECT max(price) AS high FROM bids [TUMBLING 5 minutes WATTR ts]")
    >>> query.streams, query.window.column, query.outputs[0].name
    (('bids',), 'ts', 'high')
    """
    with hints_for_other_dialects(text):
        return parse_tokens(tokenize(text), text, aggregates, once=once)


def parse_tokens(
    tokens: list[Token],
    text: str,
    aggregates: Sequence[UserAggregate] = (),
    *,
    once: bool = False,
) -> Query:
    """Understand the query that tokens of a text are."""
    plain, sources, window, early = take_out(sets_to_groups(tokens), once=once)
    per_row = window is not None and isinstance(window.spec, PerRow)
    query = _read(
        _Plain(
            tuple((t.token_type, t.text, t.line, t.col) for t in plain),
            tuple(sources.streams),
            frozenset(sources.aliases),
            () if window is None else window.partition,
            per_row,
            frozenset(a.name.lower() for a in aggregates),
            (plain, text, window, aggregates),
        )
    )
    inner = tuple(read_inner(selects, text, sources.streams) for selects in sources.inner)
    again = tuple(sources.again.items())
    return replace(query, text=text, window=window, inner=inner, early=early, again=again)


@dataclass(frozen=True, slots=True)
class _Plain:
    """A SELECT whose clause and streams have been taken out, and what of these it is read with.

    Two are equal if they say the same in the same places, whatever their windows.
    """

    words: tuple[tuple[TokenType, str, int, int], ...]
    streams: tuple[str, ...]
    aliases: frozenset[str]
    partition: tuple[str, ...]
    per_row: bool
    aggregates: frozenset[str]
    read_from: tuple[list[Token], str, Window | None, Sequence[UserAggregate]] = field(
        compare=False
    )


@lru_cache(maxsize=_MOST_READ)
def _read(plain: _Plain) -> Query:
    """The query of one of all SELECTs that are equal. Thousands may differ only in their windows.

    Nobody changes the trees of a query, so that queries may share them.
    """
    tokens, text, window, aggregates = plain.read_from
    return read_select(
        parse_select(tokens, text),
        text=text,
        streams=plain.streams,
        aliases=plain.aliases,
        window=window,
        user=aggregates,
    )


def take_out(
    tokens: list[Token], *, once: bool
) -> tuple[list[Token], Sources, Window | None, Early | None]:
    """The tokens without clause and streams; the streams; the window; what EMIT says."""
    reader = TokenReader(tokens)
    require_select(reader)
    plain: list[Token] = []
    sources = Sources()
    window: Window | None = None
    early: Early | None = None
    clauses: list[tuple[Parts, Token]] = []
    depth = 0  # of parentheses that are open, as in ``extract(hour FROM ts)``
    while reader.here is not None:
        if early is not None:
            raise reader.error(f"nothing follows EMIT EARLY, found {reader.found()}")
        if reader.word() == "EMIT" and sources.streams and depth <= 0:
            reader.take()
            reader.expect("EARLY", "after EMIT")
            early = read_early(reader)
        elif is_clause(reader):
            bracket = reader.here
            parts = read_clause(reader)
            if plain and plain[-1].text == STREAM:
                _refuse_join(reader)
            found = window_of(parts, bracket, once=once)
            clauses.append((parts, bracket))
            if window is not None and found != window:
                raise error_at(bracket, "a query over one stream has one window, found a second")
            window = found
        elif reader.word() == "FROM" and not sources.streams and depth <= 0:
            plain.append(reader.take())
            start = reader.here
            read_union(reader, sources)
            _require_end(reader)
            plain.append(table_token(start))
        else:
            plain.append(reader.take())
            depth += _deeper(plain[-1])
    if not sources.streams:
        raise QueryError("the query reads no stream", hint="add FROM and the stream's name")
    for parts, bracket in clauses:
        require_columns(parts, [*sources.streams, *sources.aliases], bracket)
    return plain, sources, window, early


def _deeper(token: Token) -> int:
    """By how much a token goes into parentheses, or out of them."""
    return (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)


def _refuse_join(reader: TokenReader) -> None:
    if reader.word() == "," or "JOIN" in reader.word():
        raise reader.error(
            "one stream or a union is read here, and not a join",
            "joins are answered by panes.sql and panes.open, many by panes.register(('l', 'r'))",
        )


def _require_end(reader: TokenReader) -> None:
    _refuse_join(reader)
    if reader.word() in _AFTER_FROM or is_clause(reader):
        return
    hint = "a window clause begins with RANGE, ROWS or TUMBLING" if reader.word() == "[" else None
    raise reader.error(f"cannot understand {reader.found()} after the stream", hint)
