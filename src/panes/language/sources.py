"""The sources in FROM: streams, unions of them, and SELECTs around either."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise, takewhile

from sqlglot.tokens import Token, TokenType

from panes.aggregates.catalog import CATALOG
from panes.language.clause import is_clause
from panes.language.elsewhere import JOIN_OUTSIDE, WINDOW_INSIDE, WITH
from panes.language.grammar import table_token
from panes.language.inner_select import is_distinct
from panes.language.tokens import TokenReader, error_at


@dataclass(slots=True)
class Sources:
    """The streams of FROM, the SELECTs around them, and the other names they go by.

    `inner` has the SELECTs around each stream, the innermost first. A stream that a union reads
    again has a name of its own in each later place; `again` has the streams of such names.
    """

    streams: list[str] = field(default_factory=list)
    inner: list[tuple[list[Token], ...]] = field(default_factory=list)
    aliases: list[str] = field(default_factory=list)
    again: dict[str, str] = field(default_factory=dict)

    def read(self, stream: str) -> None:
        """One more place that reads a stream."""
        times = 1 + self.streams.count(stream) + list(self.again.values()).count(stream)
        name = stream if times == 1 else f"{stream} ({times})"
        if name != stream:
            self.again[name] = stream
        self.streams.append(name)


def read_union(reader: TokenReader, sources: Sources) -> None:
    """Streams of ``a``, ``a UNION ALL b`` or any nesting of these in parentheses."""
    _read_primary(reader, sources)
    while reader.skip("UNION"):
        reader.skip("ALL")
        if reader.word() == "DISTINCT":
            raise reader.error("a union of streams keeps every row", "write UNION ALL")
        _read_primary(reader, sources)


def _read_primary(reader: TokenReader, sources: Sources) -> None:
    if reader.word() == "SELECT":
        _read_inner_tokens(reader, sources)
    elif reader.skip("("):
        if reader.word() == "WITH":
            raise reader.error("FROM takes streams and plain SELECTs of one", WITH)
        read_union(reader, sources)
        reader.expect(")", "after the streams")
    else:
        sources.read(reader.name("of a stream after FROM"))
        sources.inner.append(())
    token = reader.here
    is_name = token is not None and token.token_type in (TokenType.VAR, TokenType.IDENTIFIER)
    is_name = is_name and reader.word() != "EMIT"
    if reader.skip("AS") or is_name:
        sources.aliases.append(reader.name("of the stream"))


def _read_inner_tokens(reader: TokenReader, sources: Sources) -> None:
    """A SELECT of a stream, a SELECT or a union, up to the parenthesis or UNION that ends it."""
    tokens: list[Token] = []
    depth, first = 0, len(sources.streams)
    while reader.here is not None:
        word = reader.word()
        if depth == 0 and word in (")", "UNION"):
            break
        depth += (word == "(") - (word == ")")
        tokens.append(reader.take())
        if word == "FROM" and depth == 0:
            tokens.append(table_token(reader.here))
            _read_below(reader, sources)
            if is_clause(reader):
                raise reader.error("the window stands behind the parenthesis", _window_hint(tokens))
            if _joins(reader):
                raise reader.error(
                    "a SELECT inside FROM filters rows, projects them and drops duplicates of one "
                    "stream",
                    JOIN_OUTSIDE,
                )
    if len(sources.streams) == first:
        raise reader.error("a SELECT inside FROM reads a stream")
    if len(sources.streams) > first + 1 and is_distinct(tokens):
        raise error_at(
            tokens[1],
            "SELECT DISTINCT inside FROM tells the rows of one stream apart, not those of a union",
            "SELECT DISTINCT for each stream, if no row is in both",
        )
    sources.inner[first:] = [(*below, tokens) for below in sources.inner[first:]]


def _read_below(reader: TokenReader, sources: Sources) -> None:
    """What a SELECT inside FROM reads; how it is called there is nobody else's name for it."""
    if reader.word() != "(":
        sources.read(reader.name("of a stream after FROM"))
        sources.inner.append(())
        return
    known = len(sources.aliases)
    reader.take()
    read_union(reader, sources)
    reader.expect(")", "after the streams")
    del sources.aliases[known:]


def _joins(reader: TokenReader) -> bool:
    """True if another stream follows the one that was read, which may have an alias."""
    behind = takewhile(lambda word: word not in (")", "WHERE"), map(reader.word, range(5)))
    return reader.word() == "," or "JOIN" in behind


def _window_hint(selected: Sequence[Token]) -> str:
    """Where the window belongs: of what a SELECT inside FROM aggregates, in a query of its own."""
    if any(a.text.lower() in CATALOG and b.text == "(" for a, b in pairwise(selected)):
        return WINDOW_INSIDE
    return "FROM (SELECT ... FROM bids) [RANGE 10 minutes SLIDE 1 minute WATTR ts]"
