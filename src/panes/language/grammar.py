"""Plain Spark SQL to trees: what is left of a query once its clauses and streams are taken out."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError
from sqlglot.tokens import Token, TokenType

from panes.aggregates.catalog import CATALOG
from panes.errors import QueryError
from panes.language.expressions import known_functions

STREAM = "__stream"
"""What stands in FROM in place of the streams."""


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
        SUBQUERY_PREDICATES = {  # noqa: RUF012 - there are no subqueries; any(x) is an aggregate
            token: predicate
            for token, predicate in Spark.Parser.SUBQUERY_PREDICATES.items()
            if token not in (TokenType.ANY, TokenType.SOME)
        }
        NO_PAREN_FUNCTION_PARSERS = {  # noqa: RUF012
            word: parser
            for word, parser in Spark.Parser.NO_PAREN_FUNCTION_PARSERS.items()
            if word != "ANY"
        }
        FUNCTION_PARSERS = {  # noqa: RUF012
            name: parser
            for name, parser in known_functions(Spark.Parser.FUNCTION_PARSERS).items()
            if name.lower() not in CATALOG
        }


def table_token(place: Token | None) -> Token:
    """The token that stands for the streams, in their place."""
    assert place is not None
    return Token(TokenType.VAR, STREAM, place.line, place.col, place.start, place.end)


def parse_select(tokens: list[Token], text: str) -> exp.Select:
    """The one SELECT that these tokens are; anything else is refused with its place."""
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
