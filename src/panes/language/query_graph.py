"""Queries inside a query: each is a part with a name, and what stands around it reads that name.

    FROM (SELECT k, max(x) AS m FROM s [TUMBLING 1 minute WATTR ts] GROUP BY k) [TUMBLING 1 hour]
    WITH peaks AS (SELECT ...) SELECT avg(m) AS a FROM peaks [TUMBLING 1 hour]

Answers are rows of a stream again. Their position is `window_time`, the last instant of their
window, which is what a window over them lies on unless its clause names another column. Two parts
that say the same are one part. A SELECT without windows is no part: it stays where it is, or is put
where its name from WITH stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TypeVar

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from panes.aggregates.catalog import CATALOG
from panes.aggregates.custom import UserAggregate
from panes.language.elsewhere import hints_for_other_dialects
from panes.language.inner_tokens import (
    has_windows,
    in_parentheses,
    on_window_time,
    place_of,
    union_at,
    union_sides,
    word_at,
)
from panes.language.join_query import Join, JoinQuery
from panes.language.join_text import joins, read_join_tokens
from panes.language.parse import parse_tokens
from panes.language.query import WINDOW_COLUMNS, WINDOW_TIME, Query
from panes.language.set_query import SET_OPERATIONS
from panes.language.tokens import AFTER_FROM, TokenReader, error_at, tokenize

T = TypeVar("T")
MOST_PARTS = 64
_BEFORE_SOURCE = frozenset({"FROM", "JOIN", ",", "UNION", "ALL"})
_ENDS_FROM = AFTER_FROM | SET_OPERATIONS.keys()


@dataclass(frozen=True, slots=True)
class Part:
    """A query that others read by its name; the last one of a text has none.

    `place` is where its window clause begins, or what it joins by: what refusals point at.
    """

    name: str
    query: Query | JoinQuery
    place: Token | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class QueryGraph:
    """The parts of a text, each behind those that it reads. The last one is what was asked."""

    text: str
    parts: tuple[Part, ...]

    @property
    def asked(self) -> Query | JoinQuery:
        """The query whose answers are given."""
        return self.parts[-1].query

    @property
    def names(self) -> frozenset[str]:
        """The names of parts, which are no streams."""
        return frozenset(part.name for part in self.parts[:-1])

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that any part reads, each once."""
        read = (stream for part in self.parts for stream in part.query.streams)
        return tuple(dict.fromkeys(s for s in read if s not in self.names | self.again.keys()))

    @property
    def again(self) -> dict[str, str]:
        """The names that later places of a stream or part go by in unions, each with what it is."""
        return dict(one for part in self.parts for one in part.query.again)

    @property
    def inside(self) -> frozenset[str]:
        """The names by which parts are read, those of their later places too."""
        return self.names.union(name for name, read in self.again.items() if read in self.names)

    @property
    def is_single(self) -> bool:
        """True if it is one query that reads each stream by its own name."""
        return len(self.parts) == 1 and not self.again

    def everywhere(self, given: Mapping[str, T]) -> dict[str, T]:
        """Things given for streams and parts, also by the names of their later places."""
        later = {name: given[read] for name, read in self.again.items() if read in given}
        return {**given, **later}

    @property
    def emits_early(self) -> bool:
        """True if open windows are answered too."""
        return self.asked.emits_early


def read_graph(text: str, aggregates: Sequence[UserAggregate] = ()) -> QueryGraph:
    """Understand a query, and every query inside it.

    >>> graph = read_graph("SELECT max(n) AS most FROM (SELECT k, count(*) AS n "
    ...                    "FROM s [TUMBLING 10 WATTR at] GROUP BY k) [TUMBLING 60]")
    >>> graph.streams, [part.query.streams for part in graph.parts]
    (('s',), [('s',), ('inner_1',)])
    >>> graph.asked.window.column
    'window_time'
    """
    with hints_for_other_dialects(text):
        return _Parts(text, aggregates).read()


class _Parts:
    """The parts of a text as they are found, inner ones first.

    `_stands_for` has the tokens to be read in the place of each name that WITH gives.
    """

    def __init__(self, text: str, aggregates: Sequence[UserAggregate]) -> None:
        self._text, self._aggregates = text, aggregates
        self._tokens = tokenize(text)
        self._taken = {token.text.lower() for token in self._tokens}
        self._parts: list[Part] = []
        self._same: dict[tuple[tuple[TokenType, str], ...], str] = {}
        self._stands_for: dict[str, list[Token]] = {}

    def read(self) -> QueryGraph:
        rest = self._without_with(self._tokens)
        reads: list[str]
        rest, reads = self._without_queries(rest)
        last = Part("", self._query(rest, reads, self._text), place_of(rest))
        return QueryGraph(self._text, (*self._reached(last), last))

    def _reached(self, last: Part) -> list[Part]:
        """The parts that an answer depends on: a name of WITH need not be read."""
        needed, reached = set(last.query.streams), []
        for part in reversed(self._parts):
            if part.name in needed:
                reached.append(part)
                needed |= set(part.query.streams)
        return reached[::-1]

    # WITH

    def _without_with(self, tokens: list[Token]) -> list[Token]:
        """The query behind WITH, whose names are known from now on."""
        reader = TokenReader(tokens)
        if not reader.skip("WITH"):
            return tokens
        while True:
            self._define(reader)
            if not reader.skip(","):
                return reader.tokens[reader.at :]

    def _define(self, reader: TokenReader) -> None:
        if reader.word() == "RECURSIVE":
            raise reader.error("a part of a query cannot read itself", "leave out RECURSIVE")
        place, name = reader.here, reader.name("of a part after WITH")
        if name.lower() in self._stands_for:
            raise error_at(place, f"WITH names two parts `{name}`", "give one another name")
        if reader.word() == "(":
            raise reader.error(
                f"`{name}` takes the names of its columns from its SELECT", "SELECT x AS name"
            )
        reader.expect("AS", f"after `{name}`")
        if reader.word() != "(" or reader.word(1) != "SELECT":
            raise reader.error(f"`{name}` is one SELECT in parentheses", f"{name} AS (SELECT ...)")
        written = self._enclosed(reader)
        self._refuse_own_name(name, written)
        body, reads = self._without_queries(written)
        if has_windows(body):
            part = self._part(body, reads, place, self._said(written), name)
            self._stands_for[name.lower()] = [part]
        else:
            self._stands_for[name.lower()] = in_parentheses(body)

    def _said(self, tokens: list[Token]) -> str:
        """The text from the first to the last of these tokens."""
        return self._text[tokens[0].start : tokens[-1].end + 1]

    def _refuse_own_name(self, name: str, body: list[Token]) -> None:
        """Refuse a part that reads a stream by its own name: one of the two is meant."""
        for before, token in pairwise(body):
            if before.text.upper() in _BEFORE_SOURCE and token.text.lower() == name.lower():
                raise error_at(token, f"`{name}` reads itself", "give the part another name")

    # What stands in FROM

    def _without_queries(self, tokens: list[Token]) -> tuple[list[Token], list[str]]:
        """Tokens in which every query that stands in FROM is a name; and what FROM reads."""
        reader, found, reads = TokenReader(tokens), list[Token](), list[str]()
        enclosing: list[bool] = []  # for each open parenthesis, whether streams stand in it
        in_from, in_condition, before = False, False, ""
        while reader.here is not None:
            word = reader.word()
            if not enclosing:
                in_from = (in_from or word == "FROM") and word not in _ENDS_FROM
                in_from = in_from and word != "SELECT"  # the next one of a union
                in_condition = word in ("ON", "USING") or (
                    in_condition and word not in ("JOIN", ",", "FROM")
                )
            behind = before in _BEFORE_SOURCE or (before == "(" and bool(enclosing))
            behind = behind and in_from and not in_condition and all(enclosing)
            if behind:
                if word == "(" and reader.word(1) in ("SELECT", "WITH"):
                    put, inside = self._source(reader)
                    found, reads, before = found + put, reads + inside, ")"
                    continue
                if word not in ("(", "ALL"):
                    put, inside = self._named(reader)
                    found, reads, before = found + put, reads + inside, "name"
                    continue
            if word in ("(", "["):
                enclosing.append(word == "(" and behind)
            elif word in (")", "]") and enclosing:
                enclosing.pop()
            found.append(reader.take())
            before = word
        return found, reads

    def _source(self, reader: TokenReader) -> tuple[list[Token], list[str]]:
        """A SELECT in parentheses: a part's name, or the SELECT as it is if it has no windows."""
        place = reader.here
        if reader.word(1) == "WITH":
            raise reader.error("WITH stands at the beginning of a query", "WITH a AS (SELECT ...)")
        sides = union_sides(self._enclosed(reader))
        found, reads = self._side(sides[0], place)
        for side in sides[1:]:
            more, also = self._side(side, place)
            found, reads = [*found, *union_at(side[0]), *more], reads + also
        return (found if len(sides) == 1 else in_parentheses(found)), reads

    def _side(self, written: list[Token], place: Token | None) -> tuple[list[Token], list[str]]:
        """One SELECT of a union, or the only one: in parentheses, or the name of a part."""
        body, reads = self._without_queries(written)
        if not has_windows(body):
            return in_parentheses(body), reads
        if not joins(body) and not self._answers_windows(body):
            raise error_at(
                place,
                "the window of a SELECT that aggregates nothing stands behind its parenthesis",
                "FROM (SELECT ... FROM bids) [RANGE 10 minutes SLIDE 1 minute WATTR ts]",
            )
        name = self._part(body, reads, place, self._said(written))
        return [name], [name.text]

    def _answers_windows(self, body: list[Token]) -> bool:
        """True if a SELECT with a window has groups, aggregates, or an answer for each row."""
        words = {token.text.upper() for token in body}
        own = {aggregate.name.lower() for aggregate in self._aggregates}
        calls = (a.text.lower() for a, b in pairwise(body) if b.text == "(")
        return not words.isdisjoint({"GROUP BY", "DISTINCT", "ROW", "ROWS"}) or any(
            name in CATALOG or name in own for name in calls
        )

    def _named(self, reader: TokenReader) -> tuple[list[Token], list[str]]:
        """The name of a stream, or what WITH says it stands for."""
        token = reader.take()
        put = self._stands_for.get(token.text.lower())
        if put is None or reader.word() == ".":
            return [token], [token.text]
        if len(put) == 1:
            return [word_at(put[0].text, token)], [put[0].text]
        named = reader.here is not None and reader.here.token_type in _NAMES
        alias = [] if named or reader.word() == "AS" else [word_at("AS", token), token]
        return [*put, *alias], self._without_queries(put[1:-1])[1]

    def _enclosed(self, reader: TokenReader) -> list[Token]:
        """The tokens inside the parenthesis that opens here; the reader stands behind it."""
        opening = reader.take()
        begin, depth = reader.at, 1
        for at, token in enumerate(reader.tokens[begin:], begin):
            depth += (token.token_type == TokenType.L_PAREN) - (
                token.token_type == TokenType.R_PAREN
            )
            if not depth:
                reader.at = at + 1
                return reader.tokens[begin:at]
        raise error_at(opening, "this parenthesis is not closed")

    # Parts

    def _part(
        self,
        body: list[Token],
        reads: list[str],
        place: Token | None,
        said: str,
        name: str | None = None,
    ) -> Token:
        """The name of a part that says this, which is new or has been read before."""
        assert place is not None
        words = tuple((t.token_type, t.text) for t in body)
        if words not in self._same:
            if len(self._parts) == MOST_PARTS:
                raise error_at(place, f"a query has at most {MOST_PARTS} queries inside it")
            name = self._free_name() if name is None else name
            query = self._query(body, reads, said)
            if query.emits_early:
                raise error_at(
                    place, "a query inside another gives only final answers", "leave out EMIT EARLY"
                )
            self._parts.append(Part(name, query, place_of(body)))
            self._same[words] = name
        return word_at(self._same[words], place)

    def _free_name(self) -> str:
        number = 1
        while f"inner_{number}" in self._taken:
            number += 1
        self._taken.add(f"inner_{number}")
        return f"inner_{number}"

    def _query(self, tokens: list[Token], reads: list[str], said: str) -> Query | JoinQuery:
        """A query of which nothing inside it is left to be read."""
        names = {part.name for part in self._parts}
        if reads and names.issuperset(reads):
            tokens = on_window_time(tokens)
        if not joins(tokens):
            return replace(parse_tokens(tokens, self._text, self._aggregates), text=said)
        query = read_join_tokens(tokens, self._text, self._aggregates)
        return replace(query, text=said, join=_in_same_windows(query.join))


_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)


def _in_same_windows(join: Join) -> Join:
    """A join in which equal edges of windows are a band without width.

    ``a.window_end = b.window_end`` is what says how far apart two answers may be.
    """
    left = _in_same_windows(join.left) if isinstance(join.left, Join) else join.left
    clauses = [join.clause, *(side.clause for side in join.sources)]
    if join.condition is None or join.as_of or any(clauses):
        return replace(join, left=left)
    condition = join.condition.transform(_as_band)
    return replace(join, left=left, condition=condition)


def _as_band(tree: exp.Expression) -> exp.Expression:
    if not isinstance(tree, exp.EQ):
        return tree
    left, right = tree.this, tree.expression
    names = {side.name.lower() if isinstance(side, exp.Column) else "" for side in (left, right)}
    if len(names) != 1 or names.isdisjoint((*WINDOW_COLUMNS, WINDOW_TIME)):
        return tree
    least = exp.GTE(this=left.copy(), expression=right.copy())
    most = exp.LTE(this=left.copy(), expression=right.copy())
    return exp.And(this=least, expression=most)
