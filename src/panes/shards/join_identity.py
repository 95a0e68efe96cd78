"""What the state of a join must agree on with the join that goes on from it."""

from __future__ import annotations

from panes.aggregates.identity import identity
from panes.arrays.type_names import type_name
from panes.language.expressions import stable
from panes.planning.join_plan import JoinPlan, SourcePlan
from panes.shards.query_identity import Property
from panes.windows.partners import Band
from panes.windows.spec import Landmark

_VERSION = 1


def identify_join(join: JoinPlan, shards: int) -> dict[str, Property]:
    """What must not change while the state of a join lives on, by what it is called."""
    found: dict[str, Property] = {}
    for source in join.sources:
        found |= _side(source)
    step: SourcePlan | JoinPlan = join
    while isinstance(step, JoinPlan):
        found |= _join(step)
        step = step.left
    return found | {"the number of shards": Property.of(str(shards))}


def _side(source: SourcePlan) -> dict[str, Property]:
    name, where = source.name, source.plan.query.where
    stored = [f"{n} {type_name(kind)}" for n, kind in zip(
        source.columns, source.schema().types, strict=True)]  # fmt: skip
    return {
        f"FROM of {name}": Property.of(", ".join(source.source.streams)),
        f"WHERE of {name}": Property.of("" if where is None else stable(where.sql("spark"))),
        f"the columns of {name}": Property.of(", ".join(stored)),
        f"the position of {name}": Property.of(source.at),
    }


def _join(join: JoinPlan) -> dict[str, Property]:
    keys = [
        f"{stable(one.sql('spark'))} = {stable(other.sql('spark'))} as {type_name(kind)}"
        for one, other, kind in zip(
            join.left_keys.expressions, join.right_keys.expressions, join.key_types, strict=True
        )
    ]
    rest = None if join.rest is None else join.rest.where
    return {
        f"the join of {join.name}": Property.of(("as of " if join.as_of else "") + join.how),
        f"the band of {join.name}": Property.of(_partners(join)),
        f"the keys of {join.name}": Property.of(", ".join(keys)),
        f"ON of {join.name}": Property.of("" if rest is None else stable(rest.sql("spark"))),
    }


def _partners(join: JoinPlan) -> str:
    partners = join.partners
    between = f"{join.left_at} and {join.right_at}"
    if isinstance(partners, Band):
        return identity("band", _VERSION, f"{partners.low} to {partners.high}", between)
    spec = partners.spec
    size = "all" if isinstance(spec, Landmark) else f"size {spec.size}"
    return identity("windows", _VERSION, size, f"slide {spec.slide} origin {spec.origin}", between)
