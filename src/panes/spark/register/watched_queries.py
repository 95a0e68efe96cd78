"""A watched place: the queries that are to run, said from outside the job.

A folder holds a ``.sql`` file for each query, named after it; a function gives a DataFrame with a
row for each, in columns ``name`` and ``sql``. What is there runs, what is gone does not: whoever
reads it twice, or after a restart, comes to the same queries.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Event, Lock, Thread
from typing import TypeAlias

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it

from panes.errors import InputError

Watched: TypeAlias = "str | Path | Callable[[], DataFrame]"

LOG = logging.getLogger("panes")
_SUFFIX = ".sql"


def wanted(session: SparkSession, place: Watched) -> dict[str, str]:
    """The texts of the queries that are to run, by name."""
    if callable(place):
        found = place()
        if not {"name", "sql"} <= set(found.columns):
            raise InputError(
                f"watched rows have columns {', '.join(found.columns)}, and not `name` and `sql`"
            )
        rows = found.select("name", "sql").collect()
    else:
        reader = session.read.format("binaryFile").option("pathGlobFilter", f"*{_SUFFIX}")
        files = reader.load(str(place)).select("path", F.col("content").cast("string").alias("sql"))
        rows = files.select(F.element_at(F.split("path", "/"), -1).alias("name"), "sql").collect()
    texts: dict[str, str] = {}
    for row in rows:
        if not callable(place) or (row.name is not None and row.sql is not None):
            texts[row.name.removesuffix(_SUFFIX)] = row.sql.strip().rstrip(";")
    return texts


class FolderWatcher:
    """Looks at a watched place again and again, in a thread of its own."""

    def __init__(
        self,
        look: Callable[[], Mapping[str, str]],
        change: Callable[[Mapping[str, str]], None],
        every: float,
    ) -> None:
        """`change` is told what is there, whenever that is other than before."""
        self._look, self._change, self._every = look, change, every
        self._seen: Mapping[str, str] | None = None
        self._stopped, self._lock = Event(), Lock()
        self._thread = Thread(target=self._run, name="panes-watch", daemon=True)

    def start(self, seen: Mapping[str, str]) -> None:
        """Go on from what was seen."""
        self._seen = seen
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._stopped.set()

    def look(self) -> None:
        """Look once, and tell what has changed."""
        with self._lock:
            found = self._look()
            if found != self._seen and not self._stopped.is_set():
                self._change(found)
                self._seen = found

    def _run(self) -> None:
        while not self._stopped.wait(self._every):
            try:
                self.look()
            except Exception as error:
                LOG.warning("watched queries stay as they are: %s", error)
