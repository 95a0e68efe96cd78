"""Where snapshots come from: whatever runs, seen through one small interface."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from panes.live.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Look:
    """What a page looks at: answers whose key holds a text, and queries that hold one.

    `of` is the query of a register whose answers are wanted.
    """

    answers: str = ""
    queries: str = ""
    of: str = ""


class Feed(Protocol):
    """Something that runs and can be looked at, from any thread.

    `can_edit`: its queries may be changed from the page, so it is an `EditableFeed`.
    """

    @property
    def can_edit(self) -> bool: ...

    def snapshot(self, look: Look) -> Snapshot:
        """How it stands now."""

    def detach(self) -> None:
        """Watch it no longer."""


class EditableFeed(Feed, Protocol):
    """A feed whose queries can be changed from the page."""

    def add(self, name: str, text: str) -> None:
        """Answer one more query."""

    def remove(self, name: str) -> None:
        """Answer a query no longer."""
