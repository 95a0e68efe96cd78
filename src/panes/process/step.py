"""A step of a query or register: in turn, told to who watches it, and all or nothing.

A step ends when its answers are with the caller. Whatever is raised before, an interrupt
(`KeyboardInterrupt`, `SystemExit`) in its last microseconds too, undoes it, and an interrupt passes
through as itself: then nothing has happened, and the same batch can be pushed again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar

import pyarrow as pa

from panes.arrays.workers import apart_from_interrupts
from panes.errors import interrupt_in
from panes.process.all_or_nothing import Undo
from panes.process.in_turn import Shared, Turn, too_large
from panes.process.watched import Watcher
from panes.windows.limit import limit, limit_to

Steps: TypeAlias = Generator[None, None, pa.Table]
"""What a step does, with pauses at which it is whole; it ends with answers."""
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class WatchedSteps(Shared, Protocol):
    """What makes steps that may be watched."""

    watcher: Watcher | None


Self = TypeVar("Self", bound=Shared)
Watched = TypeVar("Watched", bound=WatchedSteps)


def at_once(steps: Iterable[None]) -> Any:
    """All of it without a pause; gives what it ends with."""
    going = iter(steps)
    while True:
        try:
            next(going)
        except StopIteration as end:
            return end.value


def step(
    method: Callable[Concatenate[Watched, Arguments], Result],
) -> Callable[Concatenate[Watched, Arguments], Result]:
    """A step that a watcher is told of, and that is kept. What is in `Turn.undo` undoes it."""
    written = kept(method)

    @wraps(method)
    def stepping(self: Watched, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        return _made(self._turn, self.watcher, partial(written, self, *args, **kwargs))

    return stepping


def kept(
    method: Callable[Concatenate[Self, Arguments], Result],
) -> Callable[Concatenate[Self, Arguments], Result]:
    """A part of a turn that is written before it ends, if the object has a keeper."""

    @wraps(method)
    def keeping(self: Self, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        answers = method(self, *args, **kwargs)
        if self._turn.keeper is not None:
            self._turn.keeper.stepped(method.__name__, answers)
        return answers

    return keeping


def in_turn(
    method: Callable[Concatenate[Self, Arguments], Result],
) -> Callable[Concatenate[Self, Arguments], Result]:
    """The same for what is no step of the stream: no watcher is told."""

    @wraps(method)
    def taking_turns(self: Self, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        return _made(self._turn, None, partial(method, self, *args, **kwargs))

    return taking_turns


def uninterrupted(
    method: Callable[Concatenate[Self, Arguments], Result],
) -> Callable[Concatenate[Self, Arguments], Result]:
    """A short piece of work in its turn: an interrupt passes through when all of it is done."""

    @wraps(method)
    def apart(self: Self, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        work = partial(method, self, *args, **kwargs)
        return _made(self._turn, None, partial(apart_from_interrupts, work))

    return apart


def whole(
    method: Callable[Concatenate[Self, Arguments], Result],
) -> Callable[Concatenate[Self, Arguments], Result]:
    """A step that is undone by putting back everything that its object leads to."""

    @wraps(method)
    def remembering(self: Self, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        self._turn.undo.remember(self)
        return method(self, *args, **kwargs)

    return remembering


def _made(turn: Turn, watcher: Watcher | None, call: Callable[[], Result]) -> Result:
    """The answers of a step. They are with the caller, or nothing has happened.

    CPython lets an interrupt in when a function is entered, when a loop goes back, and after a call
    of compiled code. So there is no place for one between `Turn.begin` and ``try``, nor between
    `Turn.end` and the caller.
    """
    undo, most, is_told = Undo(), limit(), False
    turn.begin()
    try:
        before, turn.undo = turn.undo, undo
        limit_to(turn.max_answers)
        if watcher is not None:
            watcher.began()
        begin = time.perf_counter()
        answers = call()
        if watcher is not None:
            is_told = True
            watcher.stepped(answers, time.perf_counter() - begin)
        limit_to(most)
        turn.end(before)
        return answers
    except BaseException as error:
        interrupt = interrupt_in(error)
        said = interrupt or too_large(error) or error
        try:
            undo.run()
            if watcher is not None:
                watcher.failed(said, was_told=is_told)
        finally:
            undo.run()  # should an interrupt have kept the first one from beginning
            limit_to(most)
            turn.end(before)
        if said is error:
            raise
        raise said from (None if interrupt else error)
