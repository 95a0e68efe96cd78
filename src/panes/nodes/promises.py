"""What the streams of a query have promised, and what that says of a row before it comes.

A promise speaks of a stream's rows as its windows see them: after what FROM makes of them. Where a
SELECT inside FROM moves positions, a promise made before the stream's first batch waits for it,
because only then is it known where the promise moves to. Promises only grow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.axis import BEGINNING, FOREVER
from panes.errors import InputError
from panes.language.query import Query
from panes.nodes.key_promises import KeyPromises, KeyValues
from panes.nodes.operator import Chain
from panes.planning.terms import CheckedOptions
from panes.progress.promise import Promise, meld
from panes.windows.extent import first_wid, last_wid, ruler
from panes.windows.spec import PanedSpec


@dataclass(frozen=True, slots=True)
class Promised:
    """What was promised up to one moment: by each stream of all its rows, and of some keys."""

    at: Mapping[str, int]
    of_keys: KeyPromises = field(default_factory=KeyPromises)

    @property
    def progress(self) -> int:
        """What all streams together promise of every row."""
        return min(self.at.values())

    def of_rows(self, stream: str, keys: Sequence[pa.Array], rows: int) -> NDArray[np.int64] | None:
        """What a stream promised of each of its rows with these keys; None if nothing."""
        general = self.at[stream]
        if self.of_keys:
            return self.of_keys.of(stream, general, keys, rows)
        return None if general == BEGINNING else np.broadcast_to(np.int64(general), rows)

    def of_groups(self, keys: Sequence[pa.Array], groups: int) -> NDArray[np.int64]:
        """What all streams together promised of each group with these keys."""
        return self.of_keys.melded(self.at, keys, groups)

    def leaves_open(
        self, spec: PanedSpec, at: NDArray[np.int64], keys: Sequence[pa.Array]
    ) -> NDArray[np.bool_]:
        """Which positions have a window that no promise for their key has closed."""
        if not self.of_keys:
            return np.ones(len(at), dtype=np.bool_)
        size, slide, origin = ruler(spec)
        closed = first_wid(self.of_groups(keys, len(at)), slide, origin)
        is_open: NDArray[np.bool_] = last_wid(at, size, slide, origin) >= closed
        return is_open


class Promises:
    """The promises of all streams of a query."""

    def __init__(self, query: Query, terms: CheckedOptions) -> None:
        inner = dict(zip(query.streams, query.inner, strict=False))
        self._moves = {name for name, i in inner.items() if i is not None and i.columns is not None}
        self._streams = {name: Promise(terms.of(name).bound()) for name in query.streams}
        self._unmoved: dict[str, tuple[int, str]] = {}
        self._of_keys = KeyPromises()

    def punctuate(self, stream: str, at: int, why: str, chains: Mapping[str, Chain]) -> None:
        """A stream promises that no row before `at` will come into it."""
        if stream in self._moves and stream not in chains:
            before, _ = self._unmoved.get(stream, (BEGINNING, why))
            self._unmoved[stream] = (max(at, before), why)
        else:
            self._streams[stream].punctuate(self._moved(stream, at, chains), why)

    def punctuate_key(
        self, stream: str, key: KeyValues, at: int, chains: Mapping[str, Chain]
    ) -> None:
        """The same for rows of one key."""
        if stream in self._moves and stream not in chains:
            raise InputError(f"a promise for one key needs a batch of `{stream}` first")
        moved = self._moved(stream, at, chains)
        self._of_keys = self._of_keys.punctuated(stream, key, moved)

    def observe(self, stream: str, placed: NDArray[np.int64], promise: int | None) -> None:
        """A batch has come with rows at these positions, and perhaps with a promise of its own."""
        self._streams[stream].observe(placed)
        if promise is not None:
            self._streams[stream].punctuate(promise)

    def known(self, chains: Mapping[str, Chain]) -> Promised:
        """What is promised now, by streams that go through these chains."""
        at = {name: promise.at for name, promise in self._streams.items()}
        for name, (unmoved, _) in self._unmoved.items():
            if name in chains:
                at[name] = max(at[name], chains[name].punctuate(unmoved))
        return Promised(at, self._of_keys)

    def settle(self, chains: Mapping[str, Chain]) -> None:
        """Streams have sent their first batch: what they promised before moves through chains."""
        for name in [n for n in self._unmoved if n in chains]:
            at, why = self._unmoved.pop(name)
            self._streams[name].punctuate(chains[name].punctuate(at), why)

    def melded(self) -> tuple[int, str]:
        """What is promised of the whole input, and why."""
        return meld(self._streams)

    def least(self) -> tuple[int, str]:
        """What is promised of the whole input, and by which stream."""
        name = min(self._streams, key=lambda name: self._streams[name].at)
        return self._streams[name].at, name

    def forget_passed(self) -> None:
        """Forget promises for keys that say no more than what is promised of all."""
        if self._of_keys:
            self._of_keys = self._of_keys.beyond(self.melded()[0])

    def end(self) -> None:
        """No stream will send any more."""
        for promise in self._streams.values():
            promise.punctuate(FOREVER, "the end")

    def _moved(self, stream: str, at: int, chains: Mapping[str, Chain]) -> int:
        return chains[stream].punctuate(at) if stream in chains else at
