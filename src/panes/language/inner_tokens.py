"""Queries inside a query as tokens: where one begins, its sides, and what is put in its place."""

from __future__ import annotations

from sqlglot.tokens import Token, TokenType

from panes.language.clause import is_clause, rows_are_counted
from panes.language.join_text import joins
from panes.language.query import WINDOW_TIME
from panes.language.tokens import TokenReader, token_at

_AXIS_WORDS = frozenset({"WATTR", "WA", "RATTR", "SATTR"})


def union_sides(tokens: list[Token]) -> list[list[Token]]:
    """The SELECTs of a union, or the only one there is."""
    depth, found = 0, list[list[Token]]([[]])
    for token, behind in zip(tokens, [*tokens[1:], None], strict=True):
        kind = token.token_type
        after = None if behind is None else behind.token_type
        if depth == 0 and kind == TokenType.UNION and after in (TokenType.ALL, TokenType.SELECT):
            found.append([])
        elif kind != TokenType.ALL or found[-1] or len(found) == 1:
            depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
            found[-1].append(token)
    return found if all(side and side[0].text.upper() == "SELECT" for side in found) else [tokens]


def union_at(place: Token) -> list[Token]:
    """The words between two sides of a union."""
    return [token_at(place, TokenType.UNION, "UNION"), token_at(place, TokenType.ALL, "ALL")]


def has_windows(tokens: list[Token]) -> bool:
    """True if a SELECT is a query of its own: it has a window clause, or joins streams."""
    reader, depth = TokenReader(tokens), 0
    while reader.here is not None:
        if depth == 0 and is_clause(reader):
            return True
        depth += (reader.word() == "(") - (reader.word() == ")")
        reader.take()
    return joins(tokens)


def place_of(tokens: list[Token]) -> Token | None:
    """Where the window clause of a query begins, or else what it joins by."""
    reader, on = TokenReader(tokens), None
    while reader.here is not None:
        if is_clause(reader):
            return reader.here
        on = reader.here if on is None and reader.word() in ("ON", "USING", "JOIN") else on
        reader.take()
    return on or (tokens[0] if tokens else None)


def on_window_time(tokens: list[Token]) -> list[Token]:
    """The tokens of a query over answers, in which every clause names what its windows lie on."""
    reader, found = TokenReader(tokens), list[Token]()
    while reader.here is not None:
        if not is_clause(reader):
            found.append(reader.take())
            continue
        begin = len(found)
        while reader.here is not None and reader.word() != "]":
            found.append(reader.take())
        words = [token.text.upper() for token in found[begin:]]
        if (
            reader.here is not None
            and _AXIS_WORDS.isdisjoint(words)
            and not rows_are_counted(words)
        ):
            found += [word_at("WATTR", reader.here), word_at(WINDOW_TIME, reader.here)]
    return found


def in_parentheses(tokens: list[Token]) -> list[Token]:
    """A query as a part of FROM."""
    first, last = tokens[0], tokens[-1]
    opening = Token(TokenType.L_PAREN, "(", first.line, first.col, first.start, first.start)
    closing = Token(TokenType.R_PAREN, ")", last.line, last.col, last.end, last.end)
    return [opening, *tokens, closing]


def word_at(text: str, place: Token) -> Token:
    """A word in the place of a token."""
    return token_at(place, TokenType.ALIAS if text == "AS" else TokenType.VAR, text)
