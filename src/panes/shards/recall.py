"""What this process has read or written lately, by a name that can mean nothing else.

A host may run the same shard here again in the next batch. What has not changed since need not be
fetched then: a digest names its bytes, a version its state. Whether something is still here
changes how fast an answer comes, never what it is.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from threading import Lock
from typing import Generic, TypeVar

Held = TypeVar("Held")

MOST_BYTES = 128 << 20


class Recall(Generic[Held]):
    """Things by name; the ones unused for longest go first."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._stored: OrderedDict[bytes | str, tuple[Held, int]] = OrderedDict()
        self._bytes, self._most = 0, most_bytes
        self._lock = Lock()

    def get(self, name: bytes | str) -> Held | None:
        """What has this name, if it is still here."""
        with self._lock:
            found = self._stored.get(name)
            if found is None:
                return None
            self._stored.move_to_end(name)
            return found[0]

    def take(self, name: bytes | str) -> Held | None:
        """As `get`; it is no longer here then, since it is about to change."""
        with self._lock:
            found = self._stored.pop(name, None)
            if found is None:
                return None
            self._bytes -= found[1]
            return found[0]

    def put(self, name: bytes | str, stored: Held, size: int) -> None:
        """Keep something of this name and size."""
        with self._lock:
            if name in self._stored or size > self._most:
                return
            self._stored[name] = stored, size
            self._bytes += size
            while self._bytes > self._most:
                _, (_, dropped) = self._stored.popitem(last=False)
                self._bytes -= dropped

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._stored.clear()
            self._bytes = 0


def digest(data: bytes) -> bytes:
    """What names these bytes."""
    return hashlib.blake2b(data, digest_size=16).digest()
