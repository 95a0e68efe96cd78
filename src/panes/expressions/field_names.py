"""What the fields of a struct are called that an expression makes of its parts.

Spark calls a field as its part is called, or by its number: `struct(x, x + 1)` has `x` and `col2`.
A name follows from what the query says. Where columns get other names on the way to an answer,
`name_fields` keeps it.

>>> made = exp.Anonymous(this="struct", expressions=[exp.column("x", "s"), exp.Literal.number(1)])
>>> field_names(made)
['x', 'col2']
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

_NAMED = (exp.Column, exp.Dot, exp.Identifier, exp.Alias)


def field_names(node: exp.Expr) -> list[str]:
    """The names of the fields that a node makes, one for each part; none, if it makes no fields."""
    made = node.name.lower() if isinstance(node, exp.Anonymous) else "struct"
    if made not in ("struct", "arrays_zip") or not isinstance(node, exp.Anonymous | exp.Tuple):
        return []
    parts = node.expressions
    numbered = [str(at) if made == "arrays_zip" else f"col{at + 1}" for at in range(len(parts))]
    return [part.alias_or_name if isinstance(part, _NAMED) else number
            for part, number in zip(parts, numbered, strict=True)]  # fmt: skip


def name_fields(node: exp.Expr, names: Sequence[str]) -> None:
    """Let a node that makes fields call those so that are columns, whatever these are called."""
    for part, name in zip(node.expressions, names, strict=False):
        if isinstance(part, exp.Column):
            part.replace(exp.alias_(part.copy(), name, quoted=True))
