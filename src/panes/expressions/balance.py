"""Long chains of AND and OR as trees that are as flat as can be.

`a OR b OR c OR d` is read as `((a OR b) OR c) OR d`, as deep as it is long, and whatever goes down
such a tree would go as deep. Both operators may be put together in any order: nothing is worked out
earlier for it, and the tree is written as the same text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from sqlglot import exp

Item = TypeVar("Item")


def folded(items: Sequence[Item], join: Callable[[Item, Item], Item]) -> Item:
    """Items joined in their order, none of them through more joins than needed.

    >>> folded("abcd", lambda one, other: f"({one}{other})")
    '((ab)(cd))'
    """
    level = list(items)
    while len(level) > 1:
        pairs = [join(*level[i : i + 2]) for i in range(0, len(level) - 1, 2)]
        level = pairs + level[len(pairs) * 2 :]
    return level[0]


def joined_by(kind: type[exp.Expr]) -> Callable[[exp.Expr, exp.Expr], exp.Expr]:
    """A function that makes one expression of two, by an operator."""
    return lambda one, other: kind(this=one, expression=other)


def balance(tree: exp.Expr) -> None:
    """Balance every chain of AND or OR in a tree, in place."""
    for node in list(tree.find_all(exp.And, exp.Or)):
        if type(node.parent) is not type(node) and type(node.this) is type(node):
            _balance_chain(node)


def _balance_chain(top: exp.Expr) -> None:
    kind = type(top)
    links: list[exp.Expr] = []
    stack: list[exp.Expr] = [top]
    while stack:
        node = stack.pop()
        if type(node) is kind:
            stack += (node.args["expression"], node.args["this"])
        else:
            links.append(node)
    half = 1 << (len(links) - 1).bit_length() - 1  # as `folded` splits
    top.set("this", folded(links[:half], joined_by(kind)))
    top.set("expression", folded(links[half:], joined_by(kind)))
