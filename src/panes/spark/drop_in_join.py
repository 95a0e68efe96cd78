"""A drop-in for a join of two streams within a time interval: the same columns, the same rows.

``join(clicks, views, on="user", within=("-5 seconds", "10 seconds"), how="left")`` takes the place
of ``clicks.join(views, <users are equal and the times are near>, "left")``. Streaming DataFrames
say by their ``withWatermark``, as for Spark, how late rows may be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it
from pyspark.sql import types as T  # noqa: N812

from panes.axis import Duration, parse_duration
from panes.errors import OptionError, QueryError, UnknownColumnError
from panes.language.join_query import How
from panes.planning.terms import StreamOptions
from panes.spark import query
from panes.spark.internals import watermark_delay

_KINDS: dict[How, tuple[str, ...]] = {
    "inner": ("inner",),
    "left": ("left", "leftouter", "left_outer"),
    "right": ("right", "rightouter", "right_outer"),
    "full": ("full", "outer", "fullouter", "full_outer"),
    "semi": ("semi", "leftsemi", "left_semi"),
    "anti": ("anti", "leftanti", "left_anti"),
}
_SIDES = ("left", "right")


def join(
    left: DataFrame,
    right: DataFrame,
    on: str | Sequence[str] | Mapping[str, str],
    within: tuple[Duration, Duration],
    how: str = "inner",
    *,
    at: str | tuple[str, str] | None = None,
    lateness: Duration | None = None,
    bounded: bool = False,
) -> DataFrame:
    """Join two DataFrames by keys and by how far apart their times are.

    Gives the columns and rows of Spark's own ``left.join(right, ..., how)``, where ``right.at``
    lies between ``left.at + within[0]`` and ``left.at + within[1]``, both included. Of streams,
    rows without a time are left out.

    Parameters
    ----------
    left, right
        Two bounded or two streaming DataFrames.
    on
        A column or columns that both have, which the answer has once, as in Spark's own join by
        names. Or a mapping from columns of the left to columns of the right: then the answer has
        all columns of both. Empty: rows are joined by their times alone.
    within
        The least and the greatest distance, for example ``("-5 seconds", "10 seconds")``.
    how
        As for `DataFrame.join`: inner, left, right, full, semi, anti, and Spark's other names.
    at
        The columns of time, of both or of each: ``"ts"``, ``("l_ts", "r_ts")``. Default: those
        that have a watermark.
    lateness, bounded
        As for `panes.sql`. Default: what the watermarks of both say.
    """
    if left.isStreaming != right.isStreaming:
        raise QueryError(
            "one side is a streaming DataFrame and the other is a table",
            hint="Spark's own join is for that: left.join(right, on)",
        )
    asked = _Asked(left, right, _pairs(on), not isinstance(on, Mapping), _kind(how))
    times = _times(left, right, at)
    answers = query.answer(
        asked.text(times, _band(left, times[0], within)),
        {"l": asked.numbered(0), "r": asked.numbered(1)},
        (),
        StreamOptions(lateness=lateness, bounded=bounded),
    )
    if not left.isStreaming:
        answers = asked.with_timeless(answers, times)
    return asked.shown(answers)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A join of two frames whose columns go by their numbers: names may be twice, and anything."""

    left: DataFrame
    right: DataFrame
    pairs: tuple[tuple[str, str], ...]
    once: bool
    how: How

    def numbered(self, side: int) -> DataFrame:
        """The columns of a side under their numbers."""
        frame = (self.left, self.right)[side]
        return frame.toDF(*(f"c{i}" for i in range(len(frame.columns))))

    def text(self, times: tuple[str, str], band: tuple[str, str]) -> str:
        """The query."""
        one, other = (f"{s}.c{_place(f, t)}" for s, f, t in zip(
            "lr", (self.left, self.right), times, strict=True))  # fmt: skip
        conditions = [
            f"l.c{_place(self.left, a)} = r.c{_place(self.right, b)}" for a, b in self.pairs
        ]
        conditions += [f"{other} >= {one} {band[0]}", f"{other} <= {one} {band[1]}"]
        columns = [f"{s}.c{i} AS {s}{i}" for s, i in self._columns()]
        kind = {"full": "FULL OUTER"}.get(self.how, self.how.upper())
        return f"SELECT {', '.join(columns)} FROM l {kind} JOIN r ON {' AND '.join(conditions)}"

    def with_timeless(self, answers: DataFrame, times: tuple[str, str]) -> DataFrame:
        """The answers, and rows without a time, which have no partner."""
        gives = {"left": "l", "anti": "l", "right": "r", "full": "lr"}.get(self.how, "")
        for side, frame, time in zip("lr", (self.left, self.right), times, strict=True):
            if side in gives:
                rows = self.numbered("lr".index(side))
                alone = rows.where(F.col(f"c{_place(frame, time)}").isNull())
                named = [F.col(f"c{i}").alias(f"{side}{i}") for i in range(len(frame.columns))]
                answers = answers.unionByName(alone.select(*named), allowMissingColumns=True)
        return answers

    def shown(self, answers: DataFrame) -> DataFrame:
        """The columns of Spark's own join, in its order and under its names."""
        columns: list[Column] = []
        keys: set[tuple[str, int]] = set()
        if self.once:
            for a, b in self.pairs:
                left, right = ("l", _place(self.left, a)), ("r", _place(self.right, b))
                keys |= {left, right}
                columns.append(self._key(left, right).alias(a))
        frames = {"l": self.left, "r": self.right}
        for side, number in self._columns():
            if (side, number) not in keys:
                name = frames[side].columns[number]
                columns.append(F.col(f"{side}{number}").alias(name))
        return answers.select(*columns)

    def _key(self, left: tuple[str, int], right: tuple[str, int]) -> Column:
        """A key that both sides have: of the side that always has it, or of either."""
        one, other = (F.col(f"{side}{number}") for side, number in (left, right))
        if self.how in ("semi", "anti"):
            return F.col(f"{left[0]}{left[1]}")
        return {"right": other, "full": F.coalesce(one, other)}.get(self.how, one)

    def _columns(self) -> list[tuple[str, int]]:
        """All columns that the answer is made of, by side and number."""
        found = [("l", i) for i in range(len(self.left.columns))]
        if self.how not in ("semi", "anti"):
            found += [("r", i) for i in range(len(self.right.columns))]
        return found


def _pairs(on: str | Sequence[str] | Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    if isinstance(on, Column):
        raise OptionError(
            "on takes names of columns: which side a Column is of cannot be seen",
            hint='on="user", on={"l_user": "r_user"}; further conditions belong into '
            "panes.sql(..., l=left, r=right)",
        )
    if isinstance(on, str):
        return ((on, on),)
    given = tuple(on.items()) if isinstance(on, Mapping) else tuple((name, name) for name in on)
    if not all(isinstance(name, str) for pair in given for name in pair):
        raise OptionError(
            "on is a name, names, or a mapping from names on the left to names on the right",
            hint='on="user", on=["user", "page"] or on={"l_user": "r_user"}',
        )
    return given


def _kind(how: str) -> How:
    for kind, names in _KINDS.items():
        if str(how).lower() in names:
            return kind
    known = ", ".join(name for names in _KINDS.values() for name in names)
    raise OptionError(f"there is no join {how!r}", hint=f"one of {known}")


def _times(left: DataFrame, right: DataFrame, at: str | tuple[str, str] | None) -> tuple[str, str]:
    """The columns of time of both sides."""
    if isinstance(at, str):
        return at, at
    if at is not None:
        if len(at) != 2:
            raise OptionError(f"at names a column of each side, got {at!r}", hint='at="ts"')
        return at[0], at[1]
    found = [_watermarked(frame, side) for frame, side in zip((left, right), _SIDES, strict=True)]
    return found[0], found[1]


def _watermarked(frame: DataFrame, side: str) -> str:
    marked = [f.name for f in frame.schema.fields if watermark_delay(f) is not None]
    if len(marked) == 1:
        return marked[0]
    raise OptionError(
        f"the {side} side has {len(marked) or 'no'} columns with a watermark, and needs one",
        hint='name them: at="ts", or at=("l_ts", "r_ts")',
    )


def _place(frame: DataFrame, name: str) -> int:
    """Where the column of a name is, whatever its case."""
    if name in frame.columns:
        return frame.columns.index(name)
    alike = [i for i, n in enumerate(frame.columns) if n.lower() == name.lower()]
    if len(alike) != 1:
        raise UnknownColumnError(name, stream="the join", columns=frame.columns)
    return alike[0]


def _band(frame: DataFrame, time: str, within: tuple[Duration, Duration]) -> tuple[str, str]:
    """What is added to the time on the left, for the least and the greatest on the right."""
    if isinstance(within, str) or len(within) != 2:
        raise OptionError(
            f"within is the least and the greatest distance, got {within!r}",
            hint='within=("-5 seconds", "10 seconds")',
        )
    data_type = frame.schema.fields[_place(frame, time)].dataType
    is_time = isinstance(data_type, T.TimestampType | T.TimestampNTZType | T.DateType)
    found = [_signed(one) for one in within]
    unit = "INTERVAL {} MICROSECONDS" if is_time else "{}"
    low, high = (f"{'-' if ticks < 0 else '+'} {unit.format(abs(ticks))}" for ticks in found)
    return low, high


def _signed(length: Duration) -> int:
    """Ticks in a duration, which may stand behind a sign."""
    if isinstance(length, str) and length.strip()[:1] in ("-", "+"):
        ticks = parse_duration(length.strip()[1:], option="within")
        return -ticks if length.strip()[0] == "-" else ticks
    return parse_duration(length, option="within")
