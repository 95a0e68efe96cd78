"""The queries of a register in its checkpoint, beside Spark's own files.

The texts and numbers of all queries are one line of JSON in one of two folders, which take turns:
whatever happens while one is written, the other one is whole. A folder has the line in two files: a
register that had lost its newest list would go back to the one before. Written and read through
DataFrames, so it may lie wherever Spark's checkpoint can.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from panes.errors import StateError
from panes.sharing.manifest import Manifest, from_json, to_json
from panes.spark.internals import is_used
from panes.spark.internals import lines as read_lines

_FOLDER = "panes-register"


def read(session: SparkSession, checkpoint: str, *, may_lack: bool = False) -> Manifest | None:
    """The register of a checkpoint; None if there is none yet.

    One of several streams `may_lack` a list: those of version 0.1 wrote none.
    """
    place = f"{checkpoint}/{_FOLDER}"
    found = read_lines(session, place)
    if not found:
        if not may_lack:
            _require_unused(session, checkpoint)
        return None
    return max((from_json(text, place) for text in found), key=lambda manifest: manifest.version)


def write(session: SparkSession, checkpoint: str, manifest: Manifest) -> None:
    """Replace the older of the two lines."""
    text = to_json(manifest)
    copies = session.createDataFrame([(0, text), (1, text)], "copy int, value string")
    frame = copies.repartitionByRange(2, "copy").select("value")
    frame.write.mode("overwrite").text(f"{checkpoint}/{_FOLDER}/turn={manifest.version % 2}")


def _require_unused(session: SparkSession, checkpoint: str) -> None:
    if is_used(session, checkpoint):
        raise StateError(
            "the checkpoint belongs to another streaming query, not to a register",
            hint="start with a new checkpoint folder",
        )
