"""From text to `Query`: read the window clause and the streams, leave the rest to sqlglot.

The clause and the FROM list are read from the tokens and taken out; what remains is plain Spark
SQL, parsed by sqlglot. Exactly one SELECT is understood. Everything else is refused with its
place and, where there is one, a way out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError
from sqlglot.tokens import Token, TokenType

from panes.aggregates.catalog import CATALOG
from panes.aggregates.custom import UserAggregate
from panes.errors import QueryError
from panes.language.clause import is_clause, read_clause, read_early, window_of
from panes.language.expressions import known_functions, require_known
from panes.language.query import Early, Inner, Output, Query, Window
from panes.language.select import read_select
from panes.language.tokens import TokenReader, error_at, tokenize
from panes.windows.spec import PerRow

_STREAM = "__stream"
_MOST_READ = 1_024
_AFTER_FROM = frozenset({"WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "EMIT", ""})


class PanesSQL(Spark):
    """Spark SQL in which only known functions have a meaning.

    The names of our aggregates, and of functions that are not known, are left as they were written.
    """

    class Parser(Spark.Parser):  # type: ignore[misc, valid-type]
        FUNCTIONS = {  # noqa: RUF012 - sqlglot's own way of saying it
            **known_functions(Spark.Parser.FUNCTIONS),
            **{
                name.upper(): (lambda args, name=name: exp.Anonymous(this=name, expressions=args))
                for name in CATALOG
            },
        }
        FUNCTION_PARSERS = {  # noqa: RUF012
            name: parser
            for name, parser in known_functions(Spark.Parser.FUNCTION_PARSERS).items()
            if name.lower() not in CATALOG
        }


def parse(text: str, aggregates: Sequence[UserAggregate] = (), *, once: bool = False) -> Query:
    """Understand one window query; one that is asked `once` needs no SLIDE.

    >>> query = parse("SELECT max(price) AS high FROM bids [TUMBLING 5 minutes WATTR ts]")
    >>> query.streams, query.window.column, query.outputs[0].name
    (('bids',), 'ts', 'high')
    """
    try:
        plain, sources, window, early = _take_out(tokenize(text), once=once)
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
        inner = tuple(None if t is None else _read_inner(t, text) for t in sources.inner)
        return replace(query, text=text, window=window, inner=inner, early=early)
    except RecursionError:
        raise QueryError("the query is nested too deeply to be read") from None


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
        _parse_select(tokens, text),
        text=text,
        streams=plain.streams,
        aliases=plain.aliases,
        window=window,
        user=aggregates,
    )


@dataclass(slots=True)
class _Sources:
    """The streams of FROM, the SELECTs around them, and the other names they go by."""

    streams: list[str] = field(default_factory=list)
    inner: list[list[Token] | None] = field(default_factory=list)
    aliases: list[str] = field(default_factory=list)


def _take_out(
    tokens: list[Token], *, once: bool
) -> tuple[list[Token], _Sources, Window | None, Early | None]:
    """The tokens without clause and streams; the streams; the window; what EMIT says."""
    reader = TokenReader(tokens)
    if reader.word() != "SELECT":
        raise reader.error(f"a window query is one SELECT, found {reader.found()}")
    plain: list[Token] = []
    sources = _Sources()
    window: Window | None = None
    early: Early | None = None
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
            if plain and plain[-1].text == _STREAM:
                _refuse_join(reader)
            found = window_of(parts, bracket, once=once)
            if window is not None and found != window:
                raise error_at(bracket, "a query over one stream has one window, found a second")
            window = found
        elif reader.word() == "FROM" and not sources.streams and depth <= 0:
            plain.append(reader.take())
            start = reader.here
            _read_union(reader, sources)
            _require_end(reader)
            plain.append(_table_token(start))
        else:
            plain.append(reader.take())
            depth += _deeper(plain[-1])
    if not sources.streams:
        raise QueryError("the query reads no stream", hint="add FROM and the stream's name")
    for name in sources.streams:
        if sources.streams.count(name) > 1:
            raise QueryError(
                f"a union reads each stream once, and `{name}` is there twice",
                hint="give it under two names",
            )
    return plain, sources, window, early


def _deeper(token: Token) -> int:
    """By how much a token goes into parentheses, or out of them."""
    return (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)


def _read_union(reader: TokenReader, sources: _Sources) -> None:
    """Streams of ``a``, ``a UNION ALL b`` or any nesting of these in parentheses."""
    _read_primary(reader, sources)
    while reader.skip("UNION"):
        reader.skip("ALL")
        if reader.word() == "DISTINCT":
            raise reader.error("a union of streams keeps every row", "write UNION ALL")
        _read_primary(reader, sources)


def _read_primary(reader: TokenReader, sources: _Sources) -> None:
    if reader.word() == "SELECT":
        _read_inner_tokens(reader, sources)
    elif reader.skip("("):
        if reader.word() == "WITH":
            raise reader.error(
                "FROM takes streams and plain SELECTs of one",
                "pass the result of the inner query as the stream",
            )
        _read_union(reader, sources)
        reader.expect(")", "after the streams")
    else:
        sources.streams.append(reader.name("of a stream after FROM"))
        sources.inner.append(None)
    token = reader.here
    is_name = token is not None and token.token_type in (TokenType.VAR, TokenType.IDENTIFIER)
    is_name = is_name and reader.word() != "EMIT"
    if reader.skip("AS") or is_name:
        sources.aliases.append(reader.name("of the stream"))


def _read_inner_tokens(reader: TokenReader, sources: _Sources) -> None:
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
                raise reader.error(
                    "a SELECT inside FROM reads one stream by its name",
                    "pass the result of the inner query as the stream",
                )
            sources.streams.append(reader.name("of a stream after FROM"))
            tokens.append(_table_token(place))
            if is_clause(reader):
                raise reader.error(
                    "the window stands behind the parenthesis",
                    "FROM (SELECT ... FROM bids) [RANGE 10 minutes SLIDE 1 minute WATTR ts]",
                )
        else:
            tokens.append(reader.take())
    sources.inner.append(tokens)
    if len(sources.inner) != len(sources.streams):
        raise reader.error("a SELECT inside FROM reads one stream")


def _read_inner(tokens: list[Token], text: str) -> Inner:
    """What a SELECT inside FROM makes of its stream: rows filtered, projected, told apart."""
    select = _parse_select(tokens, text)
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
        raise QueryError(
            "a SELECT inside FROM filters rows, projects them and drops duplicates, no more",
            hint="pass the result of the inner query as the stream",
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
    except RecursionError:
        raise
    except Exception as failure:  # what builds a call of sqlglot's trusts its arguments
        raise QueryError(
            f"the query cannot be read: {type(failure).__name__} in the grammar",
            hint="check the number of arguments of every function",
        ) from None
    if len(trees) != 1 or not isinstance(trees[0], exp.Select):
        raise QueryError("a window query is exactly one SELECT")
    return trees[0]
