"""A shard's state: bytes under names, wherever a host keeps them."""

from __future__ import annotations

from typing import Protocol

ABOUT = "about"
"""The name under which a shard remembers everything beside its blocks of panes."""


class State(Protocol):
    """Where a host keeps a shard's bytes, by name. A dict is one."""

    def get(self, name: str, /) -> bytes | None: ...
    def __setitem__(self, name: str, data: bytes, /) -> None: ...
    def __delitem__(self, name: str, /) -> None: ...
