"""Things that this process has read or written lately, by names that can mean nothing else.

A host may run the same shard here again in the next batch. What has not changed since need not be
fetched then: a digest names its bytes, a version its state. Whether something is still here
changes how fast an answer comes, never what it is.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from threading import Lock
from typing import Generic, TypeVar

Thing = TypeVar("Thing")

MOST_BYTES = 128 << 20


class Recall(Generic[Thing]):
    """Things by name; the ones unused for longest go first."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._things: OrderedDict[bytes | str, tuple[Thing, int]] = OrderedDict()
        self._bytes, self._most = 0, most_bytes
        self._lock = Lock()

    def get(self, name: bytes | str) -> Thing | None:
        """The thing of this name, if it is still here."""
        with self._lock:
            found = self._things.get(name)
            if found is None:
                return None
            self._things.move_to_end(name)
            return found[0]

    def take(self, name: bytes | str) -> Thing | None:
        """As `get`; it is no longer here then, since it is about to change."""
        with self._lock:
            found = self._things.pop(name, None)
            if found is None:
                return None
            self._bytes -= found[1]
            return found[0]

    def put(self, name: bytes | str, thing: Thing, size: int) -> None:
        """Remember a thing of this name and size."""
        with self._lock:
            if name in self._things or size > self._most:
                return
            self._things[name] = thing, size
            self._bytes += size
            while self._bytes > self._most:
                _, (_, dropped) = self._things.popitem(last=False)
                self._bytes -= dropped

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._things.clear()
            self._bytes = 0


def digest(data: bytes) -> bytes:
    """A name for these bytes."""
    return hashlib.blake2b(data, digest_size=16).digest()
