"""Moments in named zones: what the clock on the wall shows, and the moment that it means.

A time that a clock shows twice means the first of the two, as in Java; a time that it skips means
the one that is as much later as was skipped.
"""

from __future__ import annotations

from zoneinfo import available_timezones

from panes.expressions.typed import bound, refuse


def zone_named(name: str) -> str:
    """A zone as DuckDB takes it, if both know it."""
    if name in ("UTC", "Z"):
        return "'UTC'"
    if name in available_timezones() and not name.startswith("Etc/"):
        return f"'{name}'"
    raise refuse(f"the time zone '{name}' is not translated", "name one such as Europe/Berlin")


def to_wall(moment: str, zone: str) -> str:
    """The time that a clock shows (TIMESTAMP) at a moment (TIMESTAMPTZ)."""
    return f"timezone({zone_named(zone)}, {moment})"


def from_wall(shown: str, zone: str) -> str:
    """The moment (TIMESTAMPTZ) at which a clock shows a time (TIMESTAMP)."""
    name = zone_named(zone)

    def first(at: str) -> str:
        meant = f"timezone({name}, {at})"
        tries = "".join(
            f"WHEN timezone({name}, {meant} - to_minutes({minutes})) = {at} "
            f"THEN {meant} - to_minutes({minutes}) "
            for minutes in (120, 60, 30)
        )
        return f"CASE {tries}ELSE {meant} END"

    return bound(shown, first)
