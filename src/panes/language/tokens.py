"""A text as tokens, and a place in it to read from.

Tokens come from sqlglot's Spark tokenizer and know their line and column, so every refusal can
point. What the papers spell differently from SQL (``GROUP-BY``, ``∪``) is straightened here.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.errors import TokenError
from sqlglot.tokens import Token, TokenType

from panes.errors import QueryError
from panes.expressions.dialect import Scalar, straightened
from panes.language.depth import require_few_open, word_of


class TokenReader:
    """Reads tokens left to right; every `expect` that fails says where and what was meant."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = list(tokens)
        self.at = 0

    @property
    def here(self) -> Token | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def word(self, ahead: int = 0) -> str:
        """The token's text in upper case; empty at the end and for quoted names and strings."""
        index = self.at + ahead
        if index >= len(self.tokens):
            return ""
        return word_of(self.tokens[index])

    def take(self) -> Token:
        token = self.here
        if token is None:
            raise self.error("the query ends too early")
        self.at += 1
        return token

    def skip(self, *words: str) -> bool:
        """Step over the token if it is one of these words."""
        if self.word() in words:
            self.at += 1
            return True
        return False

    def expect(self, word: str, where: str) -> None:
        if not self.skip(word):
            raise self.error(f"expected `{word}` {where}, found {self.found()}")

    def name(self, where: str) -> str:
        """A name: plain, quoted, qualified (the qualifier is dropped) or hyphenated."""
        return self.path(where)[-1]

    def path(self, where: str) -> tuple[str, ...]:
        """A name with what qualifies it, outermost first."""
        token = self.here
        quoted = token is not None and token.token_type == TokenType.IDENTIFIER
        if not quoted and not self.word().replace("_", "a").isalnum():
            raise self.error(f"expected a name {where}, found {self.found()}")
        parts = [self.take().text]
        while self.word() == "." and self.at + 1 < len(self.tokens):
            self.take()
            parts.append(self.take().text)
        while not quoted and self.word() == "-" and self.word(1).isidentifier():
            self.take()
            parts[-1] += "-" + self.take().text
        return tuple(parts)

    def found(self) -> str:
        return "the end of the query" if self.here is None else f"`{self.here.text}`"

    def error(self, message: str, hint: str | None = None) -> QueryError:
        token = self.here or (self.tokens[-1] if self.tokens else None)
        return error_at(token, message, hint)


AFTER_FROM = frozenset({"WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "EMIT"})
"""The words that may follow the streams."""


def error_at(token: Token | None, message: str, hint: str | None = None) -> QueryError:
    """A refusal that points at the first character of a token."""
    if token is None:
        return QueryError(message, hint=hint)
    width = token.end - token.start
    return QueryError(message, hint=hint, line=token.line, column=max(token.col - width, 1))


def tokenize(text: str) -> list[Token]:
    """The tokens of a query, straightened."""
    straight = text.translate(str.maketrans("“”‘’", "\"\"''"))
    try:
        straight.encode()
    except UnicodeEncodeError:
        raise QueryError("the query is not valid text: it has half of a character") from None
    try:
        tokens = straightened(Scalar().tokenize(straight), straight)
    except TokenError as failure:
        raise QueryError(f"the query cannot be read: {failure}") from None
    require_few_open(tokens)
    result: list[Token] = []
    reader = TokenReader(tokens)
    while reader.here is not None:
        first = reader.take()
        if first.text.upper() == "GROUP" and reader.word() == "-" and reader.word(1) == "BY":
            reader.take()
            reader.take()
            result.append(token_at(first, TokenType.GROUP_BY, "GROUP BY"))
        elif first.text.upper() == "GROUPBY" and first.token_type == TokenType.VAR:
            result.append(token_at(first, TokenType.GROUP_BY, "GROUP BY"))
        elif first.text == "∪":
            result.append(token_at(first, TokenType.UNION, "UNION"))
        else:
            result.append(first)
    while result and result[-1].token_type == TokenType.SEMICOLON:
        result.pop()
    return result


def token_at(place: Token, kind: TokenType, text: str) -> Token:
    """Another token in the place of one."""
    return Token(kind, text, place.line, place.col, place.start, place.end)


def deeper(word: str) -> int:
    """By how much a word goes into brackets, or out of them."""
    return (word in ("(", "[")) - (word in (")", "]"))
