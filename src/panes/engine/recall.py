"""Parcels that this process has read or written lately, by a digest of their bytes.

A host may run the same shard here again in the next batch. What has not changed since need not be
fetched then: state that a digest names can be nothing else. Whether something is still here
changes how fast an answer comes, never what it is.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from threading import Lock

from panes.engine.parcel import Parcel

MOST_BYTES = 128 << 20


class Recall:
    """Parcels by digest; the ones unused for longest go first."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._held: OrderedDict[bytes, tuple[Parcel, int]] = OrderedDict()
        self._bytes, self._most = 0, most_bytes
        self._lock = Lock()

    def get(self, digest: bytes) -> Parcel | None:
        """The parcel of these bytes, if it is still here."""
        with self._lock:
            found = self._held.get(digest)
            if found is None:
                return None
            self._held.move_to_end(digest)
            return found[0]

    def put(self, digest: bytes, parcel: Parcel, size: int) -> None:
        """Keep a parcel whose bytes have this digest and size."""
        with self._lock:
            if digest in self._held or size > self._most:
                return
            self._held[digest] = parcel, size
            self._bytes += size
            while self._bytes > self._most:
                _, (_, dropped) = self._held.popitem(last=False)
                self._bytes -= dropped

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._held.clear()
            self._bytes = 0


def digest(data: bytes) -> bytes:
    """What names these bytes."""
    return hashlib.blake2b(data, digest_size=16).digest()
