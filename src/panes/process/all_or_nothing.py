"""All or nothing: a step that fails leaves the objects it worked on as they were.

The state of a query is a graph of small objects over large arrays. Arrays and tables are replaced
and never written to, so it is enough to remember what each object and each container referred to.
That takes time by the number of objects, whatever the number of rows. A class may name attributes
that are left alone by every step, in `UNCHANGED`: then what they hold is not visited. A class that
does write to its arrays has a method `remembered`, which gives what puts them back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

_VALUES = (
    *("aggregates", "axis", "expressions", "kernels", "language", "planning", "windows"),
    *("answers.lower", "answers.select", "arrays.compiled", "arrays.spread"),
    *("stores.fill", "stores.filter_classes", "stores.filter_regions", "stores.fragment"),
)
"""Rooms and modules whose objects never change: what they refer to need not be remembered."""


class Undo:
    """What puts back what a step has changed, until the step is over."""

    def __init__(self) -> None:
        self._back: list[Callable[[], None]] = []

    def remember(self, *objects: object) -> None:
        """Everything that these objects lead to is to be as it is now."""
        self._back += reversed(_remembered(objects))

    def last(self, undo: Callable[[], None]) -> None:
        """Call this when all that is remembered later is put back; it may be called again."""
        self._back.append(undo)

    def __len__(self) -> int:
        return len(self._back)

    def forget(self) -> None:
        """What was done until now stays."""
        self._back = []

    def run(self, down_to: int = 0) -> None:
        """Put back all but the first so many, however often an interrupt falls into it."""
        while len(self._back) > down_to:
            try:
                while len(self._back) > down_to:
                    self._back[-1]()  # an interrupted one is called again
                    self._back.pop()
            except (KeyboardInterrupt, SystemExit):  # one is on its way to the caller already
                continue


@contextmanager
def all_or_nothing(*objects: object) -> Iterator[None]:
    """Run a step; if it raises, everything that these objects lead to is as it was before."""
    undo = Undo()
    undo.remember(*objects)
    try:
        yield
    except BaseException:
        undo.run()
        raise


def _remembered(objects: Iterable[object]) -> list[Callable[[], None]]:
    """What puts back everything that objects lead to."""
    found: list[Callable[[], None]] = []
    seen: dict[int, object] = {}
    waiting = list(objects)
    while waiting:
        one = waiting.pop()
        of = type(one)
        if of not in _KINDS:
            _KINDS[of] = _kind(of)
        kind = _KINDS[of]
        if kind is None or id(one) in seen:
            continue
        seen[id(one)] = one
        inside, undo = kind(one)
        waiting += inside
        if undo is not None:
            found.append(undo)
    return found


Inside = tuple[Iterable[Any], Callable[[], None] | None]
_KINDS: dict[type, Callable[[Any], Inside] | None] = {}
"""What `_kind` says, of types that were met before."""


def _kind(of: type) -> Callable[[Any], Inside] | None:
    """How to remember an object of a type; None if there is nothing to remember."""
    if issubclass(of, list | deque):
        return _sequence
    if issubclass(of, dict):
        return _mapping
    if issubclass(of, set):
        return _set
    if issubclass(of, tuple):
        return lambda one: (one, None)
    if is_unchanging(of) or of.__module__.partition(".")[0] != "panes":
        return None
    if hasattr(of, "remembered"):
        return lambda one: ((), one.remembered())
    slots = _slots(of)
    if _has_dict(of):
        unchanged: frozenset[str] = getattr(of, "UNCHANGED", frozenset())
        return lambda one: _with_dict(one, unchanged)
    return lambda one: _with_slots(one, slots)


def is_unchanging(of: type) -> bool:
    """Whether objects of a class of panes never change, and all that they refer to."""
    room, _, name = of.__module__.partition(".")
    return room == "panes" and any(name == v or name.startswith(f"{v}.") for v in _VALUES)


def names_of(one: object) -> list[str]:
    """The attributes of an object, without those that no step changes."""
    of = type(one)
    unchanged: frozenset[str] = getattr(of, "UNCHANGED", frozenset())
    names = [*vars(one)] if _has_dict(of) else []
    names += [name for name in _slots(of) if hasattr(one, name)]
    return [name for name in names if name not in unchanged]


def _slots(of: type) -> list[str]:
    slots = [s for c in of.__mro__ for s in getattr(c, "__slots__", ())]
    return [s for s in slots if s not in ("__dict__", "__weakref__")]


def _has_dict(of: type) -> bool:
    return any("__dict__" in vars(c) for c in of.__mro__)


def _sequence(one: Any) -> Inside:
    before = list(one)

    def undo() -> None:
        one.clear()
        one.extend(before)

    return before, undo


def _mapping(one: dict[Any, Any]) -> Inside:
    before = dict(one)

    def undo() -> None:
        one.clear()
        one.update(before)

    return before.values(), undo


def _set(one: set[Any]) -> Inside:
    before = set(one)

    def undo() -> None:
        one.clear()
        one.update(before)

    return (), undo


def _with_dict(one: Any, unchanged: frozenset[str]) -> Inside:
    _, undo = _mapping(vars(one))
    return [v for name, v in vars(one).items() if name not in unchanged], undo


def _with_slots(one: Any, slots: list[str]) -> Inside:
    before = {name: getattr(one, name) for name in slots if hasattr(one, name)}

    def undo() -> None:
        for name in slots:
            if name in before:
                object.__setattr__(one, name, before[name])
            elif hasattr(one, name):
                object.__delattr__(one, name)

    return before.values(), undo
