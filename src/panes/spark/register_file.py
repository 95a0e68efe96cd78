"""The queries of a register in its checkpoint, beside Spark's own files.

The texts and numbers of all queries are one line of JSON in one of two folders, which take turns:
whatever happens while one is written, the other one is whole. Written and read through DataFrames,
so it may lie wherever Spark's checkpoint can.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from panes.errors import StateError

_FOLDER, _FORMAT = "panes-register", 1


@dataclass(frozen=True, slots=True)
class KeptQuery:
    """A query as it was added. `watched`: it came from the watched place, and goes with it."""

    name: str
    text: str
    serial: int
    deadline: int | None = None
    sink: str | None = None
    watched: bool = False


@dataclass(frozen=True, slots=True)
class KeptStore:
    """The numbers of a store and of its columns, by what they are."""

    serial: int
    columns: Mapping[str, int]
    end: int


@dataclass(frozen=True, slots=True)
class Kept:
    """A register at rest. `removed` are queries that were removed while it ran, by name."""

    stream: str
    shards: int
    last: int
    queries: Sequence[KeptQuery] = ()
    stores: Mapping[str, KeptStore] = field(default_factory=dict)
    removed: Mapping[str, str] = field(default_factory=dict)
    version: int = 0


def read(session: SparkSession, checkpoint: str) -> Kept | None:
    """The register of a checkpoint; None if there is none yet."""
    lines = _lines(session, f"{checkpoint}/{_FOLDER}")
    if not lines:
        _require_unused(session, checkpoint)
        return None
    newest = max((json.loads(line) for line in lines), key=lambda kept: kept["version"])
    if newest.pop("format") != _FORMAT:
        raise StateError(
            "the register of this checkpoint was written by a later version of panes",
            hint="run the version of panes that wrote it",
        )
    newest["queries"] = [KeptQuery(**q) for q in newest["queries"]]
    newest["stores"] = {title: KeptStore(**s) for title, s in newest["stores"].items()}
    return Kept(**newest)


def write(session: SparkSession, checkpoint: str, kept: Kept) -> None:
    """Replace the older of the two lines."""
    line = json.dumps({"format": _FORMAT, **asdict(kept)})
    frame = session.createDataFrame([(line,)], "value string").coalesce(1)
    frame.write.mode("overwrite").text(f"{checkpoint}/{_FOLDER}/turn={kept.version % 2}")


def _lines(session: SparkSession, folder: str) -> list[str]:
    try:
        return [row.value for row in session.read.text(folder).select("value").collect()]
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return []
        raise


def _require_unused(session: SparkSession, checkpoint: str) -> None:
    if _lines(session, f"{checkpoint}/metadata"):
        raise StateError(
            "the checkpoint belongs to another streaming query, not to a register",
            hint="start with a new checkpoint folder",
        )
