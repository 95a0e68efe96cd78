"""What a stream tells of itself in every micro-batch, in Spark's own progress.

Each shard emits one row of status beside its answers; `observe` sums them up. They are found in
``query.lastProgress["observedMetrics"]`` under the name of the query (`metrics_name`).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from typing import Protocol

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it

from panes.axis import BEGINNING, FOREVER

DEFAULT = "panes"
"""How a register calls its metrics, and how all names begin that nobody has given."""
JOIN = "_join"
"""How the name of a join's metrics ends where there are windows above it."""
_NUMBERED = re.compile(r"#\d+L?|plan_id=\d+")
"""What Spark numbers anew in each session."""
_SUMMED = ("answers", "late", "rejected", "partials", "bytes")
_LEAST, _GREATEST = ("progress", "late_from"), ("newest",)


class Sizes(Protocol):
    """What a shard knows of itself after a batch."""

    @property
    def progress(self) -> int: ...
    @property
    def partials(self) -> int: ...
    @property
    def nbytes(self) -> int: ...


def status_of(shard: Sizes, *, answers: int, late: int, rejected: int) -> str:
    """One shard's status, as text; the counts are those of this batch."""
    told = {"answers": answers, "late": late, "rejected": rejected, "progress": shard.progress}
    told |= {"partials": shard.partials, "bytes": shard.nbytes}
    newest, late_from = getattr(shard, "newest", BEGINNING), getattr(shard, "late_from", FOREVER)
    told |= {} if newest == BEGINNING else {"newest": newest}
    return json.dumps(told | ({} if late_from == FOREVER else {"late_from": late_from}))


def below(name: str, level: int) -> str:
    """The name of the metrics of a level of a register below its last one."""
    return f"{name}{JOIN}" if level == 1 else f"{name}_{level}{JOIN}"


def metrics_name(text: str, plans: Iterable[str]) -> str:
    """What a query's metrics are called, if nobody says: the same each time, and as no other's.

    It follows from the text and the plans of what it reads, since Spark refuses two queries in one
    plan whose metrics have the same name.
    """
    told = "\0".join([text, *(_NUMBERED.sub("", plan) for plan in plans)])
    return f"{DEFAULT}_{hashlib.sha256(told.encode()).hexdigest()[:8]}"


def name_among(names: Iterable[str]) -> str:
    """Under which of several names a query tells of itself, if nobody said.

    >>> name_among(["rows", "panes_0a1b2c3d_join", "panes_0a1b2c3d"])
    'panes_0a1b2c3d'
    """
    own = [name for name in names if name.split("_")[0] == DEFAULT and not name.endswith(JOIN)]
    return min(own, default=DEFAULT)


def observed(frame: DataFrame, name: str, column: str, **known: int) -> DataFrame:
    """The same rows, observed under a name: sums over all shards, and the least and newest.

    What is `known` beforehand is told beside it.
    """
    fields = (*_SUMMED, *_LEAST, *_GREATEST)
    status = F.from_json(column, ", ".join(f"{field} long" for field in fields))
    sums = (F.coalesce(F.sum(status[field]), F.lit(0)).alias(field) for field in _SUMMED)
    told = (F.coalesce(F.max(F.lit(n)), F.lit(n)).alias(word) for word, n in known.items())
    least = (F.min(status[field]).alias(field) for field in _LEAST)
    greatest = (F.max(status[field]).alias(field) for field in _GREATEST)
    return frame.observe(name, *sums, *least, *greatest, *told)
