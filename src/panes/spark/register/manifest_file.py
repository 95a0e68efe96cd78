"""The queries of a register in its checkpoint, beside Spark's own files.

The texts and numbers of all queries are one line of JSON in one of two folders, which take turns:
whatever happens while one is written, the other one is whole. Written and read through DataFrames,
so it may lie wherever Spark's checkpoint can.
"""

from __future__ import annotations

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from panes.errors import StateError
from panes.register.manifest import Manifest, from_json, to_json

_FOLDER = "panes-register"


def read(session: SparkSession, checkpoint: str) -> Manifest | None:
    """The register of a checkpoint; None if there is none yet."""
    lines = _lines(session, f"{checkpoint}/{_FOLDER}")
    if not lines:
        _require_unused(session, checkpoint)
        return None
    return max(map(from_json, lines), key=lambda kept: kept.version)


def write(session: SparkSession, checkpoint: str, kept: Manifest) -> None:
    """Replace the older of the two lines."""
    frame = session.createDataFrame([(to_json(kept),)], "value string").coalesce(1)
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
