"""Windows of whole days begin at midnight UTC, also where their column shows another zone's time.

That is said once: by a warning where a query is planned, and by `explain`. Whoever gives an
`ORIGIN` that is no midnight UTC knows.
"""

from __future__ import annotations

from panes.axis import DAY, Axis
from panes.errors import UtcDaysWarning, tell
from panes.windows.spec import Landmark, Sliding, Spec

_UTC = frozenset({"UTC", "ETC/UTC", "GMT", "ETC/GMT", "Z", "ZULU", "UNIVERSAL", "+00:00", "-00:00"})


def days_of(spec: Spec, axis: Axis) -> str | None:
    """A warning about days in a zone of their own; None: nothing to say.

    >>> import pyarrow as pa
    >>> axis = Axis("time", "ts", pa.timestamp("us", "Europe/Berlin"))
    >>> days_of(Sliding(size=DAY, slide=DAY), axis)
    'days begin at midnight UTC, and `ts` shows the time of Europe/Berlin'
    """
    zone = getattr(axis.type, "tz", None)
    if axis.kind != "time" or zone is None or zone.upper() in _UTC:
        return None
    if not isinstance(spec, Sliding | Landmark) or spec.slide % DAY or spec.origin % DAY:
        return None
    position = f"`{axis.column}`" if _is_named(axis) else "the position"
    return f"days begin at midnight UTC, and {position} shows the time of {zone}"


def _is_named(axis: Axis) -> bool:
    return axis.column is not None and not axis.column.startswith("__")


def tell_of_days(spec: Spec, axis: Axis) -> None:
    """Say so to whoever asks."""
    said = days_of(spec, axis)
    if said is not None:
        ts = axis.column if _is_named(axis) else "ts"
        local = f"convert_timezone('{axis.type.tz}', CAST({ts} AS TIMESTAMP_NTZ)) AS local"
        tell(
            f"{said}; days of that zone: FROM (SELECT {local}, ...) [... WATTR local]",
            UtcDaysWarning,
        )
