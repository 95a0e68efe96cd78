"""Compiled loops: Numba without the GIL, cached on disk where a folder can be written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit

Loop = Callable[..., Any]


def compiled(function: Loop | None = None, **options: Any) -> Any:
    """Compile a function on first use. Without a writable cache it is compiled in every process."""
    if function is None:
        return lambda f: compiled(f, **options)
    try:
        return njit(function, cache=True, nogil=True, **options)
    except RuntimeError:  # Numba finds no folder for its cache
        return njit(function, nogil=True, **options)
