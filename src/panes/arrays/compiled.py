"""Compiled loops: Numba without the GIL, cached on disk where a folder can be written.

Numba takes a loop from its cache as long as the file of the loop is the same. But a loop is made
of more: constants and functions of other files are compiled into it. After an upgrade that changes
one of those, the cache, which no installer removes, would have the loop as it was. So what else a
loop is made of belongs to its stamp here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from enum import Enum
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numba import njit
from numba.core.caching import IndexDataCacheFile

Loop = Callable[..., Any]
_CONSTANTS = (int, float, str, bytes, tuple, Enum, np.generic, type(None))


def compiled(function: Loop | None = None, **options: Any) -> Any:
    """Compile a function on first use. Without a writable cache it is compiled in every process."""
    if function is None:
        return lambda f: compiled(f, **options)
    try:
        loop = njit(function, cache=True, nogil=True, **options)
    except RuntimeError:  # Numba finds no folder for its cache
        return njit(function, nogil=True, **options)
    file = loop._cache._cache_file
    file.__class__, file.function = _StampedFile, function
    return loop


class _StampedFile(IndexDataCacheFile):  # type: ignore[misc]
    """A file of Numba's cache that is out of date, too, if what the loop uses has changed."""

    function: Any

    @property
    def _source_stamp(self) -> tuple[object, str]:
        """Worked out when the cache is first read: what is used may be defined below the loop."""
        if "_stamp" not in self.__dict__:
            whole = "\n".join(_made_of(self.function, set()))
            self._stamp = hashlib.sha256(whole.encode()).hexdigest()
        return self.__dict__["_source_stamp"], self._stamp

    @_source_stamp.setter
    def _source_stamp(self, stamp: object) -> None:
        self.__dict__["_source_stamp"] = stamp


def _made_of(function: FunctionType, seen: set[FunctionType]) -> Iterator[str]:
    """The code of a function, and that of all functions and constants it uses, in turn."""
    seen.add(function)
    for code in _codes(function.__code__):
        yield code.co_code.hex()
        yield repr([c for c in code.co_consts if not isinstance(c, CodeType | frozenset)])
        for name, value in _used(code, function.__globals__):
            used = getattr(value, "py_func", value)
            if isinstance(used, FunctionType):
                yield from _made_of(used, seen) if used not in seen else ()
            elif isinstance(used, np.ndarray):
                yield f"{name} {used.dtype} {used.shape} {used.tobytes().hex()}"
            elif isinstance(used, _CONSTANTS):
                yield f"{name} {used!r}"


def _codes(code: CodeType) -> Iterator[CodeType]:
    """A function's code, and that of functions within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _used(code: CodeType, known: dict[str, Any]) -> Iterator[tuple[str, object]]:
    """The meaning of the names in a code; of those behind a dot, if they are in modules of ours."""
    for name in code.co_names:
        if name in known:
            yield name, known[name]
        for module in (known.get(n) for n in code.co_names):
            if isinstance(module, ModuleType) and module.__name__.startswith("panes."):
                yield name, getattr(module, name, None)
