"""The identity of a piece in a state: its name, its version and all that decides its partials.

An identity is text such as ``count/1(present 2)``. A state is recognised by the identities of what
it stores, so an identity is never computed from how Python or a library happens to print an
object. The number behind the slash is the version of the piece: whoever changes what its partials
mean, or how they are written, raises it, and states of the older version are refused by name.

Laws, checked for every piece in ``tests/aggregates``: equal pieces have equal identities, different
pieces different ones, and the identities of known pieces are those that are pinned there.
"""

from __future__ import annotations

from dataclasses import dataclass


def identity(name: str, version: int, *parts: str) -> str:
    """The identity of a thing of this name and version; empty parts are left out.

    >>> identity("count", 1, "", "where 3")
    'count/1(where 3)'
    """
    return f"{name}/{version}({'; '.join(p for p in parts if p)})"


@dataclass(frozen=True, slots=True)
class Identity:
    """An identity taken apart, to say what has changed.

    >>> Identity.of("count/1(where 3)")
    Identity(name='count', version='1', parts='where 3')
    """

    name: str
    version: str
    parts: str

    @classmethod
    def of(cls, text: str) -> Identity:
        """The parts of what `identity` wrote; text of any other form is all name."""
        head, _, parts = text.partition("(")
        name, _, version = head.partition("/")
        return cls(name, version, parts.removesuffix(")"))


def difference(before: str, now: str) -> str:
    """The changes from one identity to another, in words.

    >>> difference("count/1(where 3)", "count/2(where 3)")
    'count was version 1, is version 2'
    >>> difference("pick/1(2 int64)", "pick/1(2 double)")
    'pick was over 2 int64, is over 2 double'
    """
    old, new = Identity.of(before), Identity.of(now)
    if old.name != new.name:
        return f"{before} was stored, {now} is needed"
    if old.version != new.version:
        return f"{old.name} was version {old.version}, is version {new.version}"
    return f"{old.name} was over {old.parts or 'all rows'}, is over {new.parts or 'all rows'}"
