"""From text to `Query`: read the window clause and the streams, leave the rest to sqlglot.

The clause and the FROM list are read from the tokens and taken out; what remains is plain Spark
SQL, parsed by sqlglot. Exactly one SELECT is understood. Everything else is refused with its
place and, where there is one, a way out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError
from sqlglot.tokens import Token, TokenType

from panes.aggregates.catalog import CATALOG
from panes.aggregates.custom import UserAggregate
from panes.errors import QueryError
from panes.language.clause import is_clause, read_clause, window_of
from panes.language.query import Query, Window
from panes.language.select import read_select
from panes.language.tokens import TokenReader, error_at, tokenize

_STREAM = "__stream"
_AFTER_FROM = frozenset({"WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", ""})


class PanesSQL(Spark):
    """Spark SQL in which the names of our aggregates are left as they were written."""

    class Parser(Spark.Parser):  # type: ignore[misc, valid-type]
        FUNCTIONS = {  # noqa: RUF012 - sqlglot's own way of saying it
            **Spark.Parser.FUNCTIONS,
            **{
                name.upper(): (lambda args, name=name: exp.Anonymous(this=name, expressions=args))
                for name in CATALOG
            },
        }
        FUNCTION_PARSERS = {  # noqa: RUF012
            name: parser
            for name, parser in Spark.Parser.FUNCTION_PARSERS.items()
            if name.lower() not in CATALOG
        }


def parse(text: str, aggregates: Sequence[UserAggregate] = ()) -> Query:
    """Understand one window query.

    >>> query = parse("SELECT max(price) AS high FROM bids [TUMBLING 5 minutes WATTR ts]")
    >>> query.streams, query.window.column, query.outputs[0].name
    (('bids',), 'ts', 'high')
    """
    plain, sources, window = _take_out(tokenize(text))
    try:
        select = _parse_select(plain, text)
        return read_select(
            select,
            text=text,
            streams=tuple(sources.streams),
            aliases=frozenset(sources.aliases),
            window=window,
            user=aggregates,
        )
    except RecursionError:
        raise QueryError("the query is nested too deeply to be read") from None


@dataclass(slots=True)
class _Sources:
    """The streams of FROM and the other names they go by."""

    streams: list[str] = field(default_factory=list)
    aliases: list[str] = field(default_factory=list)


def _take_out(tokens: list[Token]) -> tuple[list[Token], _Sources, Window | None]:
    """The tokens without clause and streams; the streams; the window."""
    reader = TokenReader(tokens)
    if reader.word() != "SELECT":
        raise reader.error(f"a window query is one SELECT, found {reader.found()}")
    plain: list[Token] = []
    sources = _Sources()
    window: Window | None = None
    while reader.here is not None:
        if is_clause(reader):
            bracket = reader.here
            parts = read_clause(reader)
            if plain and plain[-1].text == _STREAM:
                _refuse_join(reader)
            found = window_of(parts, bracket)
            if window is not None and found != window:
                raise error_at(bracket, "a query over one stream has one window, found a second")
            window = found
        elif reader.word() == "FROM" and not sources.streams and not _is_open(plain):
            plain.append(reader.take())
            start = reader.here
            _read_union(reader, sources)
            _require_end(reader)
            plain.append(_table_token(start))
        else:
            plain.append(reader.take())
    if not sources.streams:
        raise QueryError("the query reads no stream", hint="add FROM and the stream's name")
    return plain, sources, window


def _is_open(plain: list[Token]) -> bool:
    """Whether a parenthesis is open, as in ``extract(hour FROM ts)``."""
    depth = 0
    for token in plain:
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
    return depth > 0


def _read_union(reader: TokenReader, sources: _Sources) -> None:
    """Streams of ``a``, ``a UNION ALL b`` or any nesting of these in parentheses."""
    _read_primary(reader, sources)
    while reader.skip("UNION"):
        reader.skip("ALL")
        if reader.word() == "DISTINCT":
            raise reader.error("a union of streams keeps every row", "write UNION ALL")
        _read_primary(reader, sources)


def _read_primary(reader: TokenReader, sources: _Sources) -> None:
    if reader.skip("("):
        if reader.word() in ("SELECT", "WITH"):
            raise reader.error(
                "a window query is exactly one SELECT, without subqueries",
                "pass the result of the inner query as the stream",
            )
        _read_union(reader, sources)
        reader.expect(")", "after the streams")
    else:
        sources.streams.append(reader.name("of a stream after FROM"))
    token = reader.here
    is_name = token is not None and token.token_type in (TokenType.VAR, TokenType.IDENTIFIER)
    if reader.skip("AS") or is_name:
        sources.aliases.append(reader.name("of the stream"))


def _refuse_join(reader: TokenReader) -> None:
    if reader.word() == "," or "JOIN" in reader.word():
        raise reader.error(
            "joins of windows are not available yet", "a query reads one stream or a union"
        )


def _require_end(reader: TokenReader) -> None:
    _refuse_join(reader)
    if reader.word() in _AFTER_FROM or is_clause(reader):
        return
    hint = "a window clause begins with RANGE, ROWS or TUMBLING" if reader.word() == "[" else None
    raise reader.error(f"cannot understand {reader.found()} after the stream", hint)


def _table_token(place: Token | None) -> Token:
    assert place is not None
    return Token(TokenType.VAR, _STREAM, place.line, place.col, place.start, place.end)


def _parse_select(tokens: list[Token], text: str) -> exp.Select:
    try:
        trees = PanesSQL().parser().parse(tokens, text)
    except ParseError as failure:
        first = failure.errors[0] if failure.errors else {}
        raise QueryError(
            str(first.get("description") or failure).strip(". ") or "the query cannot be read",
            line=first.get("line"),
            column=first.get("col"),
        ) from None
    if len(trees) != 1 or not isinstance(trees[0], exp.Select):
        raise QueryError("a window query is exactly one SELECT")
    return trees[0]
