"""Plain Spark SQL to trees: what is left of a query once its clauses and streams are taken out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.tokens import Token, TokenType

from panes.aggregates.catalog import CATALOG
from panes.errors import QueryError
from panes.expressions.balance import balance
from panes.expressions.dialect import CallParser, Scalar, likes_apart
from panes.language.depth import require_shallow

STREAM = "__stream"
"""A name that stands in FROM in place of the streams."""


UNITS_FIRST = ("timestampadd", "timestampdiff", "dateadd", "date_add", "datediff", "date_diff")
"""Functions of three arguments, the first of which is a word: `timestampadd(HOUR, 2, ts)`."""


def _with_unit(name: str) -> Callable[[list[exp.Expr]], exp.Expr]:
    def build(arguments: list[exp.Expr]) -> exp.Expr:
        if len(arguments) == 3 and isinstance(arguments[0], exp.Column):
            arguments = [exp.var(arguments[0].name.upper()), *arguments[1:]]
        return exp.Anonymous(this=name, expressions=arguments)

    return build


class PanesSQL(Scalar):
    """Spark SQL in which every function is a call by the name that was written.

    Names of our aggregates are written small.
    """

    class Parser(CallParser):
        FUNCTIONS: ClassVar[dict[str, Any]] = {
            name.upper(): (lambda args, name=name: exp.Anonymous(this=name, expressions=args))
            for name in CATALOG
        } | {name.upper(): _with_unit(name) for name in UNITS_FIRST}
        # There are no subqueries: any(x) is an aggregate.
        SUBQUERY_PREDICATES: ClassVar[dict[Any, Any]] = {
            token: predicate
            for token, predicate in CallParser.SUBQUERY_PREDICATES.items()
            if token not in (TokenType.ANY, TokenType.SOME)
        }
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            word: parser
            for word, parser in CallParser.NO_PAREN_FUNCTION_PARSERS.items()
            if word != "ANY"
        }


def table_token(place: Token | None) -> Token:
    """The token that stands for the streams, in their place."""
    assert place is not None
    return Token(TokenType.VAR, STREAM, place.line, place.col, place.start, place.end)


def _in_words(said: str, found: str | None) -> str:
    """The grammar's words for a text that it cannot read, without its own names for things."""
    said = said.strip(". ") or "the query cannot be read"
    found = f"`{found}`" if found else "the end"
    if said.startswith("Required keyword"):
        return f"something is missing behind {found}"
    if said.startswith("Invalid expression"):
        return f"{found} is not understood here"
    expected = said.removeprefix("Expecting ")
    return said if expected == said else f"expected `{expected}`, found {found}"


def parse_select(tokens: list[Token], text: str) -> exp.Select:
    """The one SELECT that these tokens are; anything else is refused with its place."""
    try:
        trees = PanesSQL().parser().parse(tokens, text)
    except ParseError as failure:
        first = failure.errors[0] if failure.errors else {}
        raise QueryError(
            _in_words(str(first.get("description") or failure), first.get("highlight")),
            line=first.get("line"),
            column=first.get("col"),
        ) from None
    except RecursionError:
        raise QueryError("the query is nested too deeply to be read") from None
    except Exception as failure:  # what builds a call of sqlglot's trusts its arguments
        raise QueryError(
            f"the query cannot be read: {type(failure).__name__} in the grammar",
            hint="check the number of arguments of every function",
        ) from None
    if len(trees) != 1 or not isinstance(trees[0], exp.Select):
        raise QueryError(
            "a window query is exactly one SELECT",
            hint="ask one at a time, or several in a register: panes.register(...)",
        )
    likes_apart(trees[0])
    balance(trees[0])
    require_shallow(trees[0])
    return trees[0]
