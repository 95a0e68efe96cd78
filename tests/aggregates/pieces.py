"""Every piece once, for the laws of monoids and of identities. A new piece joins by one line."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from panes.aggregates.aggregate import Argument, Bounded, Piece, Selection
from panes.aggregates.arithmetic import Count, FloatSum, LimbSum
from panes.aggregates.bits import Bits
from panes.aggregates.count_min import SketchShape
from panes.aggregates.custom import CustomAggregate
from panes.aggregates.extremes import by_other, by_time, least_or_greatest
from panes.aggregates.hll_sketches import HllPiece
from panes.aggregates.lanes import Op
from panes.aggregates.moments import HigherMoments, Moments
from panes.aggregates.sketches import Sketch
from panes.aggregates.theta_sketches import ThetaPiece
from panes.aggregates.tuple_sketches import TuplePiece
from panes.aggregates.tuple_summaries import Folding, SummaryMode
from panes.aggregates.vectors import Bitmap, CountMin
from tests.support import SCHEMA

I, X, S, D, B = (Argument(SCHEMA.get_field_index(n), SCHEMA.field(n).type) for n in "ixsdb")
ALL = Selection()

GEOMETRIC = CustomAggregate(
    name="log_sum",
    lift=lambda x: np.stack([np.log1p(np.abs(x)), np.ones(len(x))]),
    combine=np.add,
    lower=lambda p: p[0],
    empty=(0.0, 0.0),
    type=pa.float64(),
)


def first_piece(aggregate: Bounded) -> Piece:
    return aggregate.pieces[0]


PIECES: dict[str, Piece] = {
    "count": Count(Selection((I.column,))),
    "integer sum": LimbSum(I, Selection((I.column,))),
    "decimal sum": LimbSum(D, Selection((D.column,))),
    "float sum": FloatSum((X,), Selection((X.column,))),
    "product sum": FloatSum((X, I), Selection((X.column, I.column))),
    "moments": Moments((I,), None),
    "comoments": Moments((I, D), None),
    "least float": first_piece(least_or_greatest(X, None, Op.LEAST)),
    "greatest integer": first_piece(least_or_greatest(I, None, Op.GREATEST)),
    "greatest text": first_piece(least_or_greatest(S, None, Op.GREATEST)),
    "least decimal": first_piece(least_or_greatest(D, None, Op.LEAST)),
    "first": first_piece(by_time(X, None, Op.LEAST, skip_nulls=False)),
    "last text": first_piece(by_time(S, None, Op.GREATEST, skip_nulls=True)),
    "max_by": first_piece(by_other(X, I, None, Op.GREATEST)),
    "min_by text": first_piece(by_other(S, X, None, Op.LEAST)),
    "user's own": first_piece(GEOMETRIC.build((X,), None)),
    "distinct sketch": Sketch("hll", I, Selection((I.column,))),
    "higher moments": HigherMoments(I, None),
    "bits and": Bits(Op.BITS_AND, I, Selection((I.column,))),
    "bits or": Bits(Op.BITS_OR, I, Selection((I.column,))),
    "bits xor": Bits(Op.BITS_XOR, I, Selection((I.column,))),
    "count-min sketch": CountMin(S, Selection((S.column,)), SketchShape(3, 8, 42)),
    "HLL sketch": HllPiece(4, S, Selection((S.column,))),
    "HLL sketch of integers": HllPiece(12, I, Selection((I.column,))),
    "theta sketch": ThetaPiece("values", 4, I, Selection((I.column,))),
    "tuple sketch of sums": TuplePiece(
        "values", Folding("double", SummaryMode.SUM), 4, (I, X), Selection((I.column, X.column))
    ),
    "tuple sketch of the greatest": TuplePiece(
        "values", Folding("integer", SummaryMode.MAX), 12, (S, I), Selection((S.column, I.column))
    ),
    "bitmap": Bitmap(B, Selection((B.column,)), "set"),
}
