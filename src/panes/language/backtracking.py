r"""How long Java may search for a regular expression: patterns whose time explodes are refused.

Java tries one way after the other. Where two ways read the same text, it tries all of them:
`(a+)+b` doubles its time with each letter. A pattern is taken as a row of items, each a set of
characters, of which some repeat. `degree` is the power of a text's length that a search may take:
how many repetitions follow each other that can all read the same characters, the search for a
beginning among them. `[0-9]+-` is of degree 2: of a million digits, every one could be the first.

>>> degree("^[a-z]+@[a-z]+$"), degree("[0-9]+-"), degree(".*a.*b.*c")
(1, 2, 4)
>>> degree("(a+)+b") is None, degree("(.*a){20}b") is None, degree("([a-z]+[.])+com")
(True, True, 2)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

_CHARACTERS = [*map(chr, range(128)), "é", "日", "\u2028"]
_ALL = frozenset(range(len(_CHARACTERS)))
_MOST_DEEP = 40
_REPEAT = re.compile(r"(?:[*+?]|\{(\d*)(,?)(\d*)\})[?+]?")
_OPENING = re.compile(r"\((?:\?(?:<[=!]|<\w+>|[a-zA-Z]*-?[a-zA-Z]*:|[:=!>]))?")
_FLAGS = re.compile(r"\(\?[a-zA-Z-]+\)")


@dataclass(frozen=True, slots=True)
class _Item:
    """Characters that are read, once or repeatedly; what is nullable may be left out."""

    characters: frozenset[int]
    repeats: bool = False
    nullable: bool = False


class _Explodes(Exception):  # noqa: N818 - it is no error, but an answer
    """Two ways through a repetition read the same text."""


def degree(pattern: str) -> int | None:
    """The power of a text's length that a search in it may take; None: more than any."""
    reader = _Reader(pattern)
    try:
        items = reader.alternatives(0)
    except (_Explodes, RecursionError):
        return None
    while items and items[-1].repeats:  # nothing behind it can fail
        items = items[:-1]
    if not reader.is_anchored:
        items = [_Item(_ALL, repeats=True, nullable=True), *items]
    longest = [int(item.repeats) for item in items]
    for at, item in enumerate(items):
        for before in range(at) if item.repeats else ():
            if items[before].repeats and _share(items[before : at + 1]):
                longest[at] = max(longest[at], longest[before] + 1)
    return max(longest, default=1) or 1


def degree_of_like(pattern: str) -> int:
    """The same for a pattern of LIKE, which Java searches as a regular expression.

    >>> degree_of_like("%error%"), degree_of_like("%a%b%c")
    (1, 3)
    """
    pieces = {"%": ".*", "_": "."}
    return degree("^" + "".join(pieces.get(c) or re.escape(c) for c in pattern)) or 1


def _share(items: Sequence[_Item]) -> bool:
    """True if the first and the last of some items can both read all that is between them."""
    both = items[0].characters & items[-1].characters
    return bool(both) and all(i.nullable or i.characters & both for i in items[1:-1])


class _Reader:
    """Reads a pattern as Java would, as far as it matters; what is not known could be anything."""

    def __init__(self, pattern: str) -> None:
        self._text, self._at = pattern, 0
        self._ignores_case = "(?i" in pattern
        self.is_anchored = pattern.startswith(("^", "\\A")) and "|" not in pattern

    def alternatives(self, depth: int) -> list[_Item]:
        """Items up to the end of a group."""
        if depth > _MOST_DEEP:
            raise _Explodes
        found = [self._sequence(depth)]
        while self._text[self._at : self._at + 1] == "|":
            self._at += 1
            found.append(self._sequence(depth))
        if len(found) == 1:
            return found[0]
        characters = frozenset[int]().union(*(i.characters for part in found for i in part))
        count = max(sum(i.repeats for i in part) for part in found)
        nullable = any(all(i.nullable for i in part) for part in found)
        firsts = [_first(part) for part in found]
        if any(a & b for a, b in combinations(firsts, 2)):
            count = max(count, 1)  # two of them may begin alike
        one = _Item(characters, repeats=count > 0, nullable=nullable)
        return [one] * max(count, 1)

    def _sequence(self, depth: int) -> list[_Item]:
        items: list[_Item] = []
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            items += self._repeated(self._one(depth))
        return items

    def _repeated(self, items: list[_Item]) -> list[_Item]:
        while match := _REPEAT.match(self._text, self._at):
            self._at = match.end()
            least, most = _bounds(match)
            if not items or most == 1 == least:
                continue
            is_plain = len(items) == 1 and not items[0].repeats
            if not is_plain and most != 1 and _is_ambiguous(items):
                raise _Explodes
            characters = frozenset[int]().union(*(i.characters for i in items))
            nullable = least == 0 or all(i.nullable for i in items)
            repeats = least != most or not is_plain
            items = [_Item(characters, repeats=repeats, nullable=nullable)]
        return items

    def _one(self, depth: int) -> list[_Item]:
        text, start = self._text, self._at
        if flags := _FLAGS.match(text, start):
            self._at = flags.end()
            return []
        if opening := _OPENING.match(text, start):
            self._at = opening.end()
            inner = self.alternatives(depth + 1)
            self._at += 1
            return inner
        if text[start] == "[":
            return [_Item(self._class())]
        if text[start] == "\\":
            return self._escape()
        self._at += 1
        if text[start] in "^$":
            return [] if text[start] == "^" else [_Item(_ALL)]
        return [_Item(self._set(re.escape(text[start]) if text[start] != "." else "."))]

    def _class(self) -> frozenset[int]:
        start, depth = self._at, 0
        while self._at < len(self._text):
            letter = self._text[self._at]
            self._at += 2 if letter == "\\" else 1
            depth += (letter == "[") - (letter == "]")
            if depth == 0:
                break
        written = self._text[start : self._at]
        is_nested = "[" in written[1:] or "&&" in written or "--" in written or "\\p" in written
        return _ALL if is_nested else self._set(written)

    def _escape(self) -> list[_Item]:
        letter = self._text[self._at + 1 : self._at + 2]
        self._at += 2
        if letter in ("b", "B", "A", "z", "Z", "G", ""):
            return [] if letter == "A" else [_Item(_ALL)]
        if letter in ("p", "P", "x", "u", "k", "0", "c", "N", "Q", "E", "R", "X", "h", "H", "v"):
            if self._text[self._at : self._at + 1] in ("{", "<"):
                end = re.compile("[}>]").search(self._text, self._at)
                self._at = end.end() if end else len(self._text)
            return [_Item(_ALL)]
        if letter.isdigit():  # what a group has read, of any length
            return [_Item(_ALL, repeats=True, nullable=True)]
        return [_Item(self._set("\\" + letter))]

    def _set(self, written: str) -> frozenset[int]:
        try:
            one = re.compile(written, re.IGNORECASE if self._ignores_case else 0)
        except re.error:
            return _ALL
        return frozenset(n for n, letter in enumerate(_CHARACTERS) if one.fullmatch(letter))


def _bounds(match: re.Match[str]) -> tuple[int, int | None]:
    sign = match[0][0]
    if sign != "{":
        return {"*": (0, None), "+": (1, None), "?": (0, 1)}[sign]
    least = int(match[1] or 0)
    return least, (least if not match[2] else int(match[3]) if match[3] else None)


def _first(items: Sequence[_Item]) -> frozenset[int]:
    """The characters that some items may begin with."""
    found: frozenset[int] = frozenset()
    for item in items:
        found |= item.characters
        if not item.nullable:
            break
    return found


def _is_ambiguous(items: Sequence[_Item]) -> bool:
    """True if items, one round after the other, can read the same text in two ways."""
    for at, item in enumerate(items):
        following = _first([*items[at + 1 :], *items[: at + 1]])
        if item.repeats and item.characters & following:
            return True
    return all(item.nullable for item in items) and len(items) > 0
