"""What adding a query to a register gives back: its name, and from where its answers are exact."""

from __future__ import annotations

from typing import Protocol


class KnowsQueries(Protocol):
    """A register, wherever it runs."""

    def exact_from(self, name: str) -> object | None: ...


class Added:
    """What became of a query that was added."""

    def __init__(self, register: KnowsQueries, name: str) -> None:
        self.name = name
        self._register = register

    @property
    def exact_from(self) -> object | None:
        """Where the first window starts that is answered, as the axis shows positions.

        Every window from there on is answered in full, none before it. None means that all are:
        from the beginning of the stream.
        """
        return self._register.exact_from(self.name)

    def __repr__(self) -> str:
        return f"Added(name={self.name!r}, exact_from={self.exact_from!r})"
