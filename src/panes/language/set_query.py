"""Sets of values over windows: DISTINCT, INTERSECT and EXCEPT, said as GROUP BY.

``SELECT DISTINCT item FROM bids [...]`` has an answer for every window and every item in it, and
so has ``SELECT item ... GROUP BY item``. A set operation over two streams is a union of both, whose
rows say from which side they come, grouped by the values; HAVING says which sides a value needs.
So sets share panes, stores, Spark and everything else with other queries, and NULL is a value of a
set, as in SQL. Only tokens are exchanged here, and each keeps the place it came from.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot.tokens import Token, TokenType

from panes.language.clause import is_clause
from panes.language.depth import word_of
from panes.language.tokens import TokenReader, deeper, error_at, token_at, tokenize

SIDE, _AT = "__side", "__at"
"""The column that says from which side a row comes, and the one that orders both."""
SET_OPERATIONS = {"INTERSECT": "INTERSECT", "EXCEPT": "EXCEPT", "MINUS": "EXCEPT"}
"""The words of set operations, and what each means."""
_HAVING = {
    "INTERSECT": f"min({SIDE}) = 0 AND max({SIDE}) = 1",
    "EXCEPT": f"max({SIDE}) = 0",
}
_HAVING_OF_ONE = {
    "INTERSECT": "max({first}) = 1 AND max({second}) = 1",
    "EXCEPT": "max({first}) = 1 AND max({second}) = 0",
}


def sets_to_groups(tokens: list[Token]) -> list[Token]:
    """The tokens of a query in which sets are groups; others are as they were.

    >>> words = sets_to_groups(tokenize("SELECT DISTINCT item FROM bids [TUMBLING 5 WATTR at]"))
    >>> " ".join(token.text for token in words)
    'SELECT item FROM bids [ TUMBLING 5 WATTR at ] GROUP BY item'
    """
    sides, operations = _sides(tokens)
    if not operations:
        return _grouped(tokens)
    for operator in operations[1:]:
        raise error_at(operator, "a set operation takes two sides, found a third")
    first, second = (_Side.of(side) for side in sides)
    return _combined(first, second, operations[0])


def texts_of_sides(text: str) -> tuple[str, tuple[str, str]] | None:
    """The operation of two sets of one stream, and each side as a query; None if there is none.

    >>> window = "[RANGE 5 WATTR at]"
    >>> texts_of_sides(f"SELECT k FROM s {window} INTERSECT SELECT k FROM s {window} WHERE x > 1")
    ('INTERSECT', ('SELECT DISTINCT k FROM s [RANGE 5 WATTR at]', \
'SELECT DISTINCT k FROM s [RANGE 5 WATTR at] WHERE x > 1'))
    """
    sides, operations = _sides(tokenize(text))
    if len(operations) != 1:
        return None
    first, second = (_Side.of(side) for side in sides)
    if _texts(first.stream[1:]) != _texts(second.stream[1:]):
        return None
    said = (f"SELECT DISTINCT {text[s.selected[0].start : s.end + 1]}" for s in (first, second))
    return SET_OPERATIONS[word_of(operations[0])], (next(said), next(said))


def _sides(tokens: list[Token]) -> tuple[list[list[Token]], list[Token]]:
    """The sides of set operations outside of parentheses, and these operations."""
    sides: list[list[Token]] = [[]]
    operations: list[Token] = []
    depth, is_star = 0, False
    for token in tokens:
        word = word_of(token)
        depth += deeper(word)
        if depth == 0 and word in SET_OPERATIONS and not is_star:
            operations.append(token)
            sides.append([])
        elif depth == 0 and operations and word in ("ALL", "DISTINCT") and not sides[-1]:
            if word == "ALL":
                raise error_at(token, "sets have every value once", "leave out ALL")
        else:
            sides[-1].append(token)
        is_star = word == "*"
    return sides, operations


def _grouped(tokens: list[Token]) -> list[Token]:
    """SELECT DISTINCT as a GROUP BY; any other SELECT as it is."""
    reader = TokenReader(tokens)
    if reader.word() != "SELECT" or reader.word(1) != "DISTINCT":
        return tokens
    side = _Side.of(tokens)
    if not side.has_window:
        return tokens
    if side.rest and word_of(side.rest[0]) == "GROUP BY":
        raise error_at(side.rest[0], "SELECT DISTINCT has no GROUP BY", "leave one of them out")
    return [
        tokens[0],
        *side.selected,
        *side.after_select,
        *_like("GROUP BY", tokens[1]),
        *_without_names(side.expressions),
        *side.rest,
    ]


@dataclass(slots=True)
class _Side:
    """One SELECT of values, taken apart. `after_select` is all from FROM to the end of WHERE."""

    begin: Token
    selected: list[Token] = field(default_factory=list)
    expressions: list[list[Token]] = field(default_factory=list)
    stream: list[Token] = field(default_factory=list)
    clause: list[Token] = field(default_factory=list)
    where: list[Token] = field(default_factory=list)
    after_select: list[Token] = field(default_factory=list)
    rest: list[Token] = field(default_factory=list)

    @property
    def has_window(self) -> bool:
        return bool(self.clause)

    @property
    def end(self) -> int:
        """Where its last letter is in the text."""
        return int([*self.after_select, *self.rest][-1].end)

    @classmethod
    def of(cls, tokens: list[Token]) -> _Side:
        reader = TokenReader(tokens)
        if reader.word() != "SELECT":
            raise reader.error(f"a set is given by a SELECT, found {reader.found()}")
        side = cls(reader.take())
        reader.skip("DISTINCT")
        side._read_selected(reader)
        side._read_from(reader)
        return side

    def _read_selected(self, reader: TokenReader) -> None:
        depth = 0
        part: list[Token] = []
        while reader.here is not None and not (depth == 0 and reader.word() == "FROM"):
            word = reader.word()
            depth += deeper(word)
            if depth == 0 and word == ",":
                self.expressions.append(part)
                part = []
            else:
                part.append(reader.here)
            self.selected.append(reader.take())
        self.expressions.append(part)
        for part in self.expressions:
            if not part or (len(part) == 1 and part[0].text == "*"):
                raise error_at(
                    part[0] if part else self.begin,
                    "the values of a set are named columns or expressions",
                    "SELECT DISTINCT item FROM bids [RANGE 1 hour SLIDE 1 minute WATTR ts]",
                )

    def _read_from(self, reader: TokenReader) -> None:
        depth = 0
        while reader.here is not None:
            word = reader.word()
            if depth == 0 and word in ("GROUP BY", "HAVING", "EMIT", "ORDER BY", "LIMIT"):
                self.rest = reader.tokens[reader.at :]
                return
            if is_clause(reader):
                while reader.word() != "]":
                    self._take_clause(reader)
                self._take_clause(reader)
                continue
            depth += (word == "(") - (word == ")")
            into = self.where if self.where or word == "WHERE" else self.stream
            into.append(reader.here)
            self.after_select.append(reader.take())

    def _take_clause(self, reader: TokenReader) -> None:
        token = reader.take()
        self.clause.append(token)
        self.after_select.append(token)

    def require_plain(self) -> None:
        """One stream with a window, and nothing behind its WHERE."""
        if not self.has_window:
            raise error_at(
                self.begin,
                "each side of a set operation has its window",
                "SELECT item FROM bids [RANGE 1 hour SLIDE 1 minute WATTR ts] INTERSECT ...",
            )
        if self.rest:
            raise error_at(self.rest[0], "a side of a set operation is SELECT, FROM and WHERE")
        if len(self.stream) != 2:
            raise error_at(self.stream[-1], "each side of a set operation reads one stream")

    @property
    def axis(self) -> list[Token]:
        """The column that orders the rows, as the window clause names it."""
        words = [word_of(t) for t in self.clause]
        for word in ("WATTR", "WA", "RATTR"):
            if word in words:
                return self.clause[words.index(word) + 1 : words.index(word) + 2]
        raise error_at(self.clause[0], "the windows of a set operation are over a column",
                       "[RANGE 1 hour SLIDE 1 minute WATTR ts]")  # fmt: skip


def _combined(first: _Side, second: _Side, operator: Token) -> list[Token]:
    """Both sides as one SELECT."""
    for side in (first, second):
        side.require_plain()
    if len(first.expressions) != len(second.expressions):
        raise error_at(
            operator,
            f"both sides of {word_of(operator)} select as many columns, found "
            f"{len(first.expressions)} and {len(second.expressions)}",
        )
    axis = first.axis
    if _texts(_without_axis(first)) != _texts(_without_axis(second)):
        raise error_at(second.clause[0], "both sides of a set operation have the same window")
    operation = SET_OPERATIONS[word_of(operator)]
    if first.stream[1].text.lower() == second.stream[1].text.lower():
        return _of_one_stream(first, second, operation, operator)
    named = [_name_of(part, number) for number, part in enumerate(first.expressions)]
    at = [axis[0]] if word_of(axis[0]) not in _names(named) else _like(_AT, axis[0])
    clause = [t if t is not axis[0] else at[0] for t in first.clause]
    sides = []
    for number, side in enumerate((first, second)):
        sides.append([
            side.begin, *side.axis, *_like("AS", operator), *at,
            *(t for part, name in zip(side.expressions, named, strict=True)
              for t in (*_like(",", operator), *_bare(part), *_like("AS", operator), name)),
            *_like(f", {number} AS {SIDE}", operator), *side.stream, *side.where,
        ])  # fmt: skip
    keys = [t for i, name in enumerate(named) for t in (*(_like(",", operator) if i else ()), name)]
    return [
        first.begin, *keys, *_like("FROM (", operator), *sides[0], *_like("UNION ALL", operator),
        *sides[1], *_like(")", operator), *clause, *_like("GROUP BY", operator), *keys,
        *_like(f"HAVING {_HAVING[operation]}", operator),
    ]  # fmt: skip


def _of_one_stream(first: _Side, second: _Side, operation: str, operator: Token) -> list[Token]:
    """Two sets of one stream: a row is on a side if it passes that side's WHERE."""
    if [_texts(_bare(e)) for e in first.expressions] != [
        _texts(_bare(e)) for e in second.expressions
    ]:
        raise error_at(
            operator, "two sets of one stream select the same columns",
            "give the stream under two names to compare different columns",
        )  # fmt: skip
    flags = []
    for side in (first, second):
        condition = side.where[1:] or _like("true", operator)
        flags.append([*_like("CASE WHEN", operator), *condition,
                      *_like("THEN 1 ELSE 0 END", operator)])  # fmt: skip
    having: list[Token] = []
    for token in _like("HAVING " + _HAVING_OF_ONE[operation].format(first="one", second="two"),
                       operator):  # fmt: skip
        having += {"one": flags[0], "two": flags[1]}.get(token.text, [token])
    return [
        first.begin, *first.selected, *first.stream, *first.clause, *_like("GROUP BY", operator),
        *_without_names(first.expressions), *having,
    ]  # fmt: skip


def _without_axis(side: _Side) -> list[Token]:
    axis = side.axis[0]
    return [t for t in side.clause if t is not axis]


def _bare(part: list[Token]) -> list[Token]:
    """An expression without the name it is given."""
    if len(part) > 2 and word_of(part[-2]) == "AS":
        return part[:-2]
    return part


def _without_names(expressions: list[list[Token]]) -> list[Token]:
    """Expressions as GROUP BY lists them."""
    listed: list[Token] = []
    for part in expressions:
        listed += ([*_like(",", part[0])] if listed else []) + _bare(part)
    return listed


def _name_of(part: list[Token], number: int) -> Token:
    """The name of a selected expression: its own, or the column's."""
    last = part[-1]
    if last.token_type in (TokenType.VAR, TokenType.IDENTIFIER) or last.text.isidentifier():
        return last
    return _like(f"`value {number + 1}`", last)[0]


def _names(tokens: list[Token]) -> set[str]:
    return {t.text.upper() for t in tokens}


def _texts(tokens: list[Token]) -> list[str]:
    return [t.text.lower() for t in tokens]


def _like(text: str, place: Token) -> list[Token]:
    """The tokens of a text, all at the place of another one."""
    return [token_at(place, t.token_type, t.text) for t in tokenize(text)]
