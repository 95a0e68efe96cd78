"""From text to `JoinQuery`: the sides of a join, how they are joined, and their window clauses.

    FROM l [RANGE 3 minutes WATTR ts], r [RANGE 2 minutes WATTR ts] WHERE ...    a band
    FROM l LEFT JOIN r ON l.k = r.k AND r.ts BETWEEN ...                         the same, in ON
    FROM l, r [TUMBLING 5 minutes WATTR ts] WHERE ...                            common windows
    FROM l ASOF JOIN r [RANGE 5 minutes WATTR ts] ON l.k = r.k                   the last row of r

A clause behind the last side is meant for both, unless the other side has one of its own. A clause
elsewhere, behind an aggregate or behind GROUP BY, is that of the windows above the join.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from panes.aggregates.custom import UserAggregate
from panes.errors import QueryError
from panes.language.clause import Parts, is_clause, read_clause, read_early, require_columns
from panes.language.elsewhere import hints_for_other_dialects, require_select
from panes.language.expressions import require_known
from panes.language.grammar import parse_select, table_token
from panes.language.inner_select import read_inner
from panes.language.join_query import How, Join, JoinQuery, Side, Source
from panes.language.query import Early
from panes.language.select import refuse_the_rest, require_scalar
from panes.language.set_query import SET_OPERATIONS
from panes.language.sources import Sources, read_union
from panes.language.tokens import TokenReader, error_at, tokenize

MOST_SIDES = 32
_AFTER_FROM = frozenset({"WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "EMIT"})
_JOINING = frozenset(
    {"JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "SEMI", "ANTI", "ASOF", "NATURAL"}
)
_HOW: dict[str, How] = {
    "LEFT": "left",
    "RIGHT": "right",
    "FULL": "full",
    "SEMI": "semi",
    "ANTI": "anti",
    "INNER": "inner",
}


def is_join(text: str) -> bool:
    """True if FROM joins streams, so that `read_join` and not `parse` understands the text.

    >>> is_join("SELECT * FROM l [RANGE 1 minute WATTR ts], r [RANGE 1 minute WATTR ts]")
    True
    """
    return joins(tokenize(text))


def joins(tokens: list[Token]) -> bool:
    """True if FROM joins streams in the query that these tokens are."""
    depth, inside = 0, False
    reader = TokenReader(tokens)
    while reader.here is not None:
        word = reader.word()
        depth += (word in ("(", "[")) - (word in (")", "]"))
        if depth == 0 and (word in _AFTER_FROM or word in SET_OPERATIONS) and inside:
            return False
        if depth == 0 and inside and (word == "," or _joins(reader)):
            return True
        if depth == 0 and word in ("FROM", "SELECT"):  # the next one of a union has its own FROM
            inside = word == "FROM"
        reader.take()
    return False


def read_join(text: str, aggregates: Sequence[UserAggregate] = ()) -> JoinQuery:
    """Understand one SELECT over a join."""
    with hints_for_other_dialects(text):
        return read_join_tokens(tokenize(text), text, aggregates)


def read_join_tokens(
    tokens: list[Token], text: str, aggregates: Sequence[UserAggregate] = ()
) -> JoinQuery:
    """Understand the query over a join that tokens of a text are."""
    query = _read(tokens, text)
    refuse_the_rest(query.select)
    require_known(query.select, aggregates)
    return query


@dataclass(slots=True)
class _Taken:
    """The parts that were taken out of the text so far."""

    plain: list[Token] = field(default_factory=list)
    join: Join | None = None
    above: Parts | None = None
    early: Early | None = None


def _read(tokens: list[Token], text: str) -> JoinQuery:
    reader = TokenReader(tokens)
    require_select(reader)
    taken = _Taken()
    depth = 0
    while reader.here is not None:
        word = reader.word()
        if taken.early is not None:
            raise reader.error(f"nothing follows EMIT EARLY, found {reader.found()}")
        if word == "EMIT" and taken.join is not None and depth == 0:
            reader.take()
            reader.expect("EARLY", "after EMIT")
            taken.early = read_early(reader)
        elif is_clause(reader):
            if taken.above is not None:
                raise reader.error("joined rows have one window above them, found a second")
            taken.above = read_clause(reader)
        elif word == "FROM" and taken.join is None and depth == 0:
            taken.plain.append(reader.take())
            start = reader.here
            taken.join = _read_from(reader, text)
            _require_names(taken.join, start)
            taken.plain.append(table_token(start))
        else:
            depth += (word == "(") - (word == ")")
            taken.plain.append(reader.take())
    if taken.join is None:
        raise QueryError("the query reads no stream", hint="add FROM and the stream's name")
    return _with_window(taken, parse_select(taken.plain, text), text)


def _require_names(join: Join, place: Token | None) -> None:
    """Every side of a join goes by a name that no other side has."""
    first = [side.name.lower() for side in join.sources]
    for name in first:
        if first.count(name) > 1:
            raise error_at(
                place,
                f"two sides of the join are called `{name}`",
                f"name them: FROM {name} a [...], {name} b [...]",
            )


def _with_window(taken: _Taken, select: exp.Select, text: str) -> JoinQuery:
    """The query, in which a clause that the join lacks is the join's, wherever it stands."""
    join, above = taken.join, taken.above
    assert join is not None
    own = [side.clause for side in join.sources] + [join.clause]
    for clause in filter(None, [*own, above]):
        require_columns(clause, [name for side in join.sources for name in side.names])
    if above is not None and not any(own) and not _compares(join, select):
        join, above = replace(join, clause=above), None
    return JoinQuery(text, join, select, above, taken.early)


def _compares(join: Join, select: exp.Select) -> bool:
    """True if ON or WHERE may hold a band: a comparison other than equality."""
    trees = [join.condition, select.args.get("where")]
    kinds = (exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between)
    return any(tree is not None and tree.find(*kinds) is not None for tree in trees)


def _read_from(reader: TokenReader, text: str) -> Join:
    side: Side = _read_source(reader, text)
    joined: Join | None = None
    while reader.word() == "," or _joins(reader):
        if reader.word() == "," and reader.word(1) in _AFTER_FROM:  # as the thesis prints it
            reader.take()
            break
        joined = _read_step(reader, side, text)
        side = joined
        if len(side.sources) > MOST_SIDES:
            raise reader.error(f"a query joins {MOST_SIDES} streams at the most")
    if joined is None:
        raise reader.error("a join has two sides")
    if reader.here is not None and reader.word() not in _AFTER_FROM and not is_clause(reader):
        raise reader.error(f"cannot understand {reader.found()} after the streams")
    return joined


def _joins(reader: TokenReader) -> bool:
    """True if a join begins here; ``left(x, 3)`` is a function, ``JOIN (SELECT ...)`` is none."""
    word = reader.word()
    return word == "JOIN" or (word in _JOINING and reader.word(1) != "(")


def _read_step(reader: TokenReader, left: Side, text: str) -> Join:
    """One more side, and how it is joined."""
    if reader.skip(","):
        right, how, as_of = _read_source(reader, text), "inner", False
        joined = Join(left, right, "inner")
    else:
        how, as_of = _read_how(reader)
        right = _read_source(reader, text)
        joined = replace(_read_condition(reader, Join(left, right, how), text), as_of=as_of)
    if is_clause(reader):
        joined = replace(joined, clause=read_clause(reader))
        if right.clause is not None:
            raise reader.error("a side of a join has one window clause, found a second")
    last = right.clause
    others = any(s.clause is not None for s in _unfound(left))
    if last is not None and not others and not as_of and joined.clause is None:
        joined = replace(joined, right=replace(right, clause=None), clause=last)
    return joined


def _unfound(side: Side) -> tuple[Source, ...]:
    """The sides of a join whose clauses are not those of ASOF JOINs."""
    if isinstance(side, Source):
        return (side,)
    return _unfound(side.left) + (() if side.as_of else (side.right,))


def _read_how(reader: TokenReader) -> tuple[How, bool]:
    """The kind of join that stands before JOIN, and True if it says ASOF."""
    how: How = "inner"
    as_of = False
    words: list[str] = []
    while not reader.skip("JOIN"):
        if not (_joins(reader) or reader.word() == "OUTER"):
            raise reader.error(f"expected JOIN, found {reader.found()}")
        words.append(reader.take().text.upper())
    for word in words:
        if word == "NATURAL":
            raise reader.error("a NATURAL JOIN does not say what it joins by", "write USING (k)")
        if word == "ASOF":
            as_of = True
        elif word in _HOW:
            how = _HOW[word]
    if as_of and how not in ("inner", "left"):
        raise reader.error(f"an ASOF JOIN is inner or left, not {how}")
    return how, as_of


def _read_source(reader: TokenReader, text: str) -> Source:
    sources = Sources()
    read_union(reader, sources)
    named = [*reversed(sources.aliases), *sources.streams]
    inner = tuple(read_inner(selects, text, sources.streams) for selects in sources.inner)
    again = tuple(sources.again.items())
    source = Source(tuple(dict.fromkeys(named)), tuple(sources.streams), inner, again=again)
    if is_clause(reader):
        source = replace(source, clause=read_clause(reader))
    return source


def _read_condition(reader: TokenReader, join: Join, text: str) -> Join:
    """ON or USING, which may be missing."""
    if reader.skip("USING"):
        reader.expect("(", "after USING")
        names = [reader.name("in USING")]
        while reader.skip(","):
            names.append(reader.name("in USING"))
        reader.expect(")", "after the columns of USING")
        return replace(join, using=tuple(names))
    if not reader.skip("ON"):
        return join
    start = reader.here
    tokens = _until_end_of_condition(reader)
    if start is None or not tokens:
        raise reader.error("ON needs a condition")
    words = [
        *_words(start, (TokenType.SELECT, "SELECT"), (TokenType.STAR, "*")),
        *_words(start, (TokenType.FROM, "FROM")),
        table_token(start),
        *_words(start, (TokenType.WHERE, "WHERE")),
        *tokens,
    ]
    condition: exp.Expression = parse_select(words, text).args["where"].this
    require_known(condition)
    require_scalar(condition, "ON", ())
    return replace(join, condition=condition)


def _words(place: Token, *words: tuple[TokenType, str]) -> list[Token]:
    return [Token(k, t, place.line, place.col, place.start, place.end) for k, t in words]


def _until_end_of_condition(reader: TokenReader) -> list[Token]:
    tokens: list[Token] = []
    depth = 0
    while reader.here is not None:
        word = reader.word()
        ends = word == "," or word in _AFTER_FROM or _joins(reader) or is_clause(reader)
        if depth == 0 and ends:
            break
        depth += (word in ("(", "[")) - (word in (")", "]"))
        tokens.append(reader.take())
    return tokens
