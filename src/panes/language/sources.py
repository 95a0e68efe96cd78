"""The sources in FROM: streams, unions of them, and SELECTs around single streams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise, takewhile

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from panes.aggregates.catalog import CATALOG
from panes.errors import QueryError
from panes.language.clause import is_clause
from panes.language.elsewhere import JOIN_OUTSIDE, NESTED, OVER, WINDOW_INSIDE, WITH
from panes.language.expressions import require_known
from panes.language.grammar import parse_select, table_token
from panes.language.query import Inner, Output
from panes.language.tokens import TokenReader


@dataclass(slots=True)
class Sources:
    """The streams of FROM, the SELECTs around them, and the other names they go by.

    A stream that a union reads again has a name of its own in each later place; `again` has the
    streams of such names.
    """

    streams: list[str] = field(default_factory=list)
    inner: list[list[Token] | None] = field(default_factory=list)
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
        sources.inner.append(None)
    token = reader.here
    is_name = token is not None and token.token_type in (TokenType.VAR, TokenType.IDENTIFIER)
    is_name = is_name and reader.word() != "EMIT"
    if reader.skip("AS") or is_name:
        sources.aliases.append(reader.name("of the stream"))


def _read_inner_tokens(reader: TokenReader, sources: Sources) -> None:
    """A SELECT of one stream, up to the parenthesis or UNION that ends it."""
    tokens: list[Token] = []
    depth = 0
    while reader.here is not None:
        word = reader.word()
        if depth == 0 and word in (")", "UNION"):
            break
        depth += (word == "(") - (word == ")")
        if word == "FROM" and depth == 0:
            tokens.append(reader.take())
            place = reader.here
            if reader.word() == "(":
                raise reader.error("a SELECT inside FROM reads one stream by its name", NESTED)
            sources.read(reader.name("of a stream after FROM"))
            tokens.append(table_token(place))
            if is_clause(reader):
                raise reader.error("the window stands behind the parenthesis", _window_hint(tokens))
            if _joins(reader):
                raise reader.error(
                    "a SELECT inside FROM filters rows, projects them and drops duplicates of one "
                    "stream",
                    JOIN_OUTSIDE,
                )
        else:
            tokens.append(reader.take())
    sources.inner.append(tokens)
    if len(sources.inner) != len(sources.streams):
        raise reader.error("a SELECT inside FROM reads one stream")


def _joins(reader: TokenReader) -> bool:
    """True if another stream follows the one that was read, which may have an alias."""
    behind = takewhile(lambda word: word not in (")", "WHERE"), map(reader.word, range(5)))
    return reader.word() == "," or "JOIN" in behind


def _window_hint(selected: Sequence[Token]) -> str:
    """Where the window belongs: of what a SELECT inside FROM aggregates, in a query of its own."""
    if any(a.text.lower() in CATALOG and b.text == "(" for a, b in pairwise(selected)):
        return WINDOW_INSIDE
    return "FROM (SELECT ... FROM bids) [RANGE 10 minutes SLIDE 1 minute WATTR ts]"


def read_inner(tokens: list[Token], text: str) -> Inner:
    """The SELECT inside FROM around a stream: rows filtered, projected, told apart."""
    select = parse_select(tokens, text)
    allowed = {"kind", "hint", "distinct", "expressions", "from", "from_", "where", "limit"}
    asked = {name for name, value in select.args.items() if value and name not in allowed}
    is_whole = len(select.expressions) == 1 and isinstance(select.expressions[0], exp.Star)
    asked |= {"EXCEPT"} if is_whole and any(select.expressions[0].args.values()) else set()
    distinct = select.args.get("distinct")
    asked |= {"ON"} if distinct is not None and distinct.args.get("on") else set()
    aggregates = any(
        isinstance(node, exp.AggFunc | exp.Window | exp.UDTF)
        or (isinstance(node, exp.Anonymous) and str(node.this).lower() in CATALOG)
        for expression in select.expressions
        for node in expression.walk()
    )
    if asked or aggregates or select.args.get("limit"):
        over = any(select.find_all(exp.Window))
        raise QueryError(
            "a SELECT inside FROM filters rows, projects them and drops duplicates, no more",
            hint=OVER if over else WINDOW_INSIDE if aggregates or "group" in asked else None,
        )
    require_known(select)
    for column in select.find_all(exp.Column):
        column.set("table", None)
    where = select.args.get("where")
    columns = None if is_whole else tuple(map(_named, select.expressions))
    names = [o.name.lower() for o in columns or ()]
    for name in names:
        if names.count(name) > 1:
            raise QueryError(f"two columns inside FROM are named `{name}`")
    return Inner(columns, None if where is None else where.this, bool(distinct))


def _named(expression: exp.Expression) -> Output:
    name = expression.alias_or_name
    if isinstance(expression, exp.Star) or expression.find(exp.Star):
        raise QueryError(
            "inside FROM, * stands alone",
            hint="name the columns, or filter with SELECT * ... WHERE",
        )
    if not name:
        written = expression.sql(dialect="spark")
        raise QueryError(f"`{written}` inside FROM needs a name", hint=f"{written} AS name")
    return Output(name, expression.this if isinstance(expression, exp.Alias) else expression)
