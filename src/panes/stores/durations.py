"""The time that windows stay open, and the distance of sources: AdaptWID weighs groups with them.

Both are measured on the axis while rows come (thesis 6.3.1 and 6.3.4.1).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from panes.axis import BEGINNING
from panes.windows.extent import extent, first_wid, last_wid, ruler
from panes.windows.spec import Sliding


@dataclass(slots=True)
class ArrivalSkew:
    """Arrival-time skew: how far each source is, and how many rows it has sent (thesis 6.3.1)."""

    newest: dict[str, int] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)

    def hear(self, source: str, newest: int, rows: int) -> None:
        """Note a batch of a source."""
        self.newest[source] = max(newest, self.newest.get(source, newest))
        self.rows[source] = rows + self.rows.get(source, 0)

    @property
    def offset(self) -> float:
        """The distance of a row's source from the earliest one, on average over the rows.

        >>> skew = ArrivalSkew()
        >>> skew.hear("main", 100, rows=3)
        >>> skew.hear("control", 60, rows=1)
        >>> skew.offset
        10.0
        """
        total = sum(self.rows.values())
        if not total:
            return 0.0
        earliest = max(self.newest.values())
        behind = [(earliest - self.newest[name]) * rows for name, rows in self.rows.items()]
        return sum(behind) / total


class Durations:
    """The time that windows stay open: *wed* (thesis 6.3.4.1).

    From the low-watermark when the first row of a window came to the high-watermark when it was
    closed. `latest` is that of the window that was closed last, at first the length of a window;
    `longest` is the longest of all.
    """

    def __init__(self, spec: Sliding) -> None:
        self.latest = self.longest = spec.size
        self._spec = spec
        self._started: list[tuple[int, int, int | None]] = []
        self._next: int | None = None
        self._high = BEGINNING

    def saw(self, oldest: int, newest: int, first_open: int) -> None:
        """Note rows from `oldest` to `newest`, while windows from `first_open` on are open."""
        self._high = max(self._high, newest)
        size, slide, origin = ruler(self._spec)
        first = int(first_wid(oldest, slide, origin)) if self._next is None else self._next
        end = int(last_wid(newest, size, slide, origin)) + 1
        if end > first:
            low = None if first_open == BEGINNING else extent(self._spec, first_open - 1).end
            self._started.append((first, end, low))
            self._next = end

    def closed(self, first_open: int) -> None:
        """Note that windows before `first_open` are closed."""
        while self._started and self._started[0][0] < first_open:
            first, end, low = self._started.pop(0)
            self.longest = max(self.longest, self._high - self._low(first, low))
            last = min(end, first_open)
            self.latest = max(self._spec.size, self._high - self._low(last - 1, low))
            if last < end:
                self._started.insert(0, (last, end, low))
                break

    def _low(self, wid: int, low: int | None) -> int:
        """The low-watermark when a window started; before any promise, the window's own start."""
        start = extent(self._spec, wid).start
        return start if low is None else min(low, start)
