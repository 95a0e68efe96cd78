"""State of a batch that was never committed: it must not outlive the next run of that batch.

A batch that fails may have written the state of some partitions, and a trial writes that of all.
The batch runs again, perhaps with other queries or options, and writes its state under the same
names. Most file systems replace the files then. With the class that writes a local checkpoint fast,
Spark leaves the ones that are there: a later restart would read a state that no committed batch has
written. So a register removes them before it starts.

Only a register can: its own function runs every batch that is not committed. A sink that has the
batch already, as Spark's file sink knows, leaves it out, and then the state of the first run is the
right one.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlparse

from pyspark.sql import SparkSession

from panes.spark.internals import (
    CHECKPOINT_FILES,
    COMMITS,
    FILE_MANAGER,
    STATES,
    state_version,
)


def can_run_again(session: SparkSession, checkpoint: str) -> bool:
    """Whether a batch that runs again surely replaces the state that it wrote before."""
    return _replaces_files(session) or _folder(checkpoint) is not None


def forget_uncommitted(session: SparkSession, checkpoint: str) -> None:
    """Remove the state of batches after the last one that was committed, if Spark would not."""
    folder = _folder(checkpoint)
    if _replaces_files(session) or folder is None:
        return
    committed = [int(p.name) for p in (folder / COMMITS).glob("*") if re.fullmatch(r"\d+", p.name)]
    last = state_version(max(committed, default=-1))
    for path in (folder / STATES).rglob("*"):
        version = re.fullmatch(r"\.?(\d+)\.(changelog|zip)(\.crc)?", path.name)
        if version is not None and int(version[1]) > last:
            path.unlink()


def _replaces_files(session: SparkSession) -> bool:
    return session.conf.get(FILE_MANAGER, None) != CHECKPOINT_FILES


def _folder(checkpoint: str) -> Path | None:
    """The checkpoint as a folder of this machine; None if it lies elsewhere."""
    parts = urlparse(checkpoint)
    if parts.scheme not in ("", "file"):
        return None
    path = Path(unquote(parts.path)) if parts.scheme else Path(checkpoint)
    return path if path.is_dir() else None
