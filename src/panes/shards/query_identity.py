"""What a query's state must agree on with the query that goes on from it.

Each property has an identity, which is compared, and words, which are shown. An identity is
written out of numbers, names and versions alone; words may be put better at any time. Lateness,
HAVING and what SELECT makes of aggregates may change while a state lives on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from panes.aggregates.identity import difference, identity
from panes.arrays.type_names import type_name
from panes.errors import StateError
from panes.language.expressions import stable
from panes.language.query import Window
from panes.planning.describe import describe
from panes.planning.plan import Plan
from panes.windows.spec import Landmark, PartitionedRows, PerRow

_STORED = "what is stored"
_WINDOW_VERSION = 1


@dataclass(frozen=True, slots=True)
class Property:
    """One thing that must not change: what is compared, and what is shown."""

    identity: str
    words: str

    @classmethod
    def of(cls, text: str) -> Property:
        """What is shown as it is compared."""
        return cls(text, text)


def identify(plan: Plan, shards: int) -> dict[str, Property]:
    """What must not change while the state of a query lives on."""
    query = plan.query
    grouped = [
        (stable(k.expression.sql("spark")), t)
        for k, t in zip(query.keys, plan.key_types, strict=True)
    ]
    called = [
        (stable(c.sql, as_written=True), a.type)
        for c, a in zip(query.calls, plan.aggregates, strict=True)
    ]
    stored = "\n".join(plan.contents.identities)
    same = {
        "FROM": ", ".join(query.streams),
        "WHERE": "" if query.where is None else stable(query.where.sql("spark")),
        "PA": ", ".join(plan.window.partition),
        "the number of shards": str(shards),
        _STORED: stored,
        "the type of waiting rows": _row_types(plan),
    }
    return {
        "the window": Property(window_identity(plan.window), describe(plan.window)),
        "GROUP BY": _typed(grouped),
        "SELECT": _typed(called),
        **{what: Property.of(text) for what, text in same.items()},
    }


def window_identity(window: Window) -> str:
    """All that decides which rows a window holds."""
    spec = window.spec
    axis = f"on {window.column or 'arrival'} {window.measure}"
    axis += " from the first row" * window.origin_first
    if isinstance(spec, Landmark):
        parts = ("landmark", f"slide {spec.slide}", f"origin {spec.origin}")
    elif isinstance(spec, PerRow):
        parts = ("per row", f"size {spec.size}", f"every {spec.every} by {spec.counted_by}")
    elif isinstance(spec, PartitionedRows):
        parts = ("partitioned rows", f"size {spec.size}", f"slide {spec.slide}")
    else:
        parts = ("sliding", f"size {spec.size}", f"slide {spec.slide} origin {spec.origin}")
    return identity("window", _WINDOW_VERSION, *parts, axis)


def _typed(named: list[tuple[str, pa.DataType]]) -> Property:
    return Property(
        ", ".join(f"{text} {type_name(data_type)}" for text, data_type in named),
        ", ".join(f"{text} {data_type}" for text, data_type in named),
    )


def _row_types(plan: Plan) -> str:
    """The types of rows that are stored as they are, where windows are those of rows."""
    keeps_rows = plan.order is not None or isinstance(plan.window.spec, PerRow)
    return ", ".join(map(type_name, plan.row_types)) if keeps_rows else ""


def to_table(properties: Mapping[str, Property]) -> pa.Table:
    """The properties, to be written into a state."""
    return pa.table(
        {
            "what": list(properties),
            "identity": [p.identity for p in properties.values()],
            "words": [p.words for p in properties.values()],
        }
    )


def require_same(table: pa.Table, now: Mapping[str, Property]) -> None:
    """Refuse the state of another query, with what has changed."""
    before = {row["what"]: Property(row["identity"], row["words"]) for row in table.to_pylist()}
    nothing = Property("", "")
    pairs = {w: (before.get(w, nothing), now.get(w, nothing)) for w in {**before, **now}}
    changed = {w: pair for w, pair in pairs.items() if pair[0].identity != pair[1].identity}
    if len(changed) > 1:
        changed.pop(_STORED, None)  # another SELECT or GROUP BY stores something else
    if changed:
        words = "; ".join(_change(what, *pair) for what, pair in changed.items())
        raise StateError(
            f"the checkpoint holds the state of another query: {words}",
            hint="ask as before (shards= says how many), or start with a new checkpoint",
        )


def _change(what: str, before: Property, now: Property) -> str:
    if what == _STORED:
        old, new = before.identity.splitlines(), now.identity.splitlines()
        if len(old) == len(new):
            pairs = zip(old, new, strict=True)
            return "; ".join(f"of {what}, {difference(a, b)}" for a, b in pairs if a != b)
    was, is_ = (before.words, now.words)
    if was == is_:
        was, is_ = before.identity, now.identity
    return f"{what} was {was or 'nothing'}, is {is_ or 'nothing'}"
