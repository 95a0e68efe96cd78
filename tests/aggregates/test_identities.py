"""A state is recognised by identities: each piece has one, it is its own, and it never changes.

Catches: an identity that leaves out what decides the partials, one that depends on how a library
prints a type, and a change of a piece's written name that would cut it off from its states.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import pyarrow as pa
import pytest

from panes.aggregates.aggregate import Argument, Piece, Selection
from panes.aggregates.arithmetic import Count, FloatSum, LimbSum
from panes.aggregates.hll_sketches import HllPiece
from panes.aggregates.moments import Moments
from panes.aggregates.sketches import Sketch
from panes.aggregates.theta_sketches import ThetaPiece
from panes.aggregates.tuple_sketches import TuplePiece
from panes.aggregates.tuple_summaries import Folding, Kind, SummaryMode
from panes.arrays.type_names import type_name
from panes.stores.contents import ValueSet
from tests.aggregates.pieces import PIECES

PINNED = {
    "count": "count/1(present 3)",
    "integer sum": "limb_sum/1(3 int64; present 3)",
    "decimal sum": "limb_sum/1(6 decimal128(10, 2); present 6)",
    "float sum": "float_sum/1(4 double; present 4)",
    "product sum": "float_sum/1(4 double * 3 int64; present 4 3)",
    "moments": "moments/1(3 int64)",
    "comoments": "moments/1(3 int64, 6 decimal128(10, 2))",
    "least float": "pick/1(least of value 4 double; present 4)",
    "greatest integer": "pick/1(greatest of seen, value 3 int64; present 3)",
    "greatest text": "object_pick/1(greatest of seen, value 5 string; present 5)",
    "least decimal": "object_pick/1(least of seen, value 6 decimal128(10, 2); present 6)",
    "first": "pick/1(least of time, null 4 double, value 4 double)",
    "last text": "object_pick/1(greatest of time, null 5 string, value 5 string; present 5)",
    "max_by": "pick/1(greatest of seen, value 3 int64, null 4 double, value 4 double; present 3)",
    "min_by text": "object_pick/1(least of seen, value 4 double, null 5 string, value 5 string; "
    "present 4)",
    "user's own": "custom/1(log_sum double from 0.0 0.0; 4 double; present 4)",
    "distinct sketch": "sketch/1(hll 12; 3 int64; present 3)",
    "higher moments": "higher_moments/1(3 int64)",
    "bits and": "bits/1(and of 3 int64; present 3)",
    "bits or": "bits/1(or of 3 int64; present 3)",
    "bits xor": "bits/1(xor of 3 int64; present 3)",
    "count-min sketch": "count_min/1(3 x 8 seed 42; 5 string; present 5)",
    "HLL sketch": "hll/1(2^4; 5 string; present 5)",
    "HLL sketch of integers": "hll/1(2^12; 3 int64; present 3)",
    "theta sketch": "theta/1(values 2^4; 3 int64; present 3)",
    "tuple sketch of sums": "tuple/1(values double sum 2^4; 3 int64; 4 double; present 3 4)",
    "tuple sketch of the greatest": (
        "tuple/1(values integer max 2^12; 5 string; 3 int64; present 5 3)"
    ),
    "bitmap": "bitmap/1(set; 2 bool; present 2)",
}
"""Raise the version of a piece before you change anything here: states have these names."""

TYPES = {
    pa.bool_(): "bool",
    pa.int8(): "int8",
    pa.int64(): "int64",
    pa.uint64(): "uint64",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "large_string",
    pa.binary(): "binary",
    pa.date32(): "date32",
    pa.time64("us"): "time64(us)",
    pa.timestamp("us"): "timestamp(us, no zone)",
    pa.timestamp("us", "UTC"): "timestamp(us, UTC)",
    pa.duration("us"): "duration(us)",
    pa.decimal128(38, 18): "decimal128(38, 18)",
    pa.list_(pa.int64()): "list(int64)",
    pa.struct([("a", pa.int64()), ("b", pa.string())]): "struct(a int64, b string)",
    pa.map_(pa.string(), pa.int64()): "map(string, int64)",
}


def test_identities_are_pinned() -> None:
    assert {name: piece.identity for name, piece in PIECES.items()} == PINNED


def test_names_of_types_are_pinned() -> None:
    assert {data_type: type_name(data_type) for data_type in TYPES} == TYPES
    assert len(set(TYPES.values())) == len(TYPES)


I32, I64, X = Argument(2, pa.int32()), Argument(2, pa.int64()), Argument(3, pa.float64())
KINDS: tuple[Kind, ...] = ("double", "integer")
SUMS = Folding("double", SummaryMode.SUM)
FAMILY: list[Piece] = [
    *(Count(s) for s in (Selection(), Selection((2,)), Selection((), 2), Selection((2,), 3))),
    *(Count(Selection((2, 3))), Count(Selection((23,)))),
    *(LimbSum(a, Selection((2,))) for a in (I32, I64)),
    *(LimbSum(I64, Selection((2,), w)) for w in (4, 5)),
    *(FloatSum(f, Selection((2, 3))) for f in ((I64, X), (X, I64), (X,), (I64,))),
    *(Moments(a, None) for a in ((I64,), (X,), (I64, X), (X, I64))),
    *(Moments((X,), w) for w in (2, 3)),
    *(Sketch(family, I64, Selection((2,))) for family in ("hll", "kll", "frequent")),
    *(HllPiece(lg, Argument(2, pa.binary()), Selection((2,))) for lg in (None, 4, 5)),
    *(ThetaPiece("union", lg, Argument(2, pa.binary()), Selection((2,))) for lg in (4, 5)),
    ThetaPiece("intersection", 12, Argument(2, pa.binary()), Selection((2,))),
    ThetaPiece("values", 4, Argument(2, pa.binary()), Selection((2,))),
    *(
        TuplePiece("union", Folding(kind, mode), 4, (Argument(2, pa.binary()),), Selection((2,)))
        for kind in KINDS
        for mode in SummaryMode
    ),
    TuplePiece("union", SUMS, 5, (Argument(2, pa.binary()),), Selection((2,))),
    TuplePiece("intersection", SUMS, 12, (Argument(2, pa.binary()),), Selection((2,))),
    *PIECES.values(),
]


def test_different_pieces_have_different_identities() -> None:
    for one, other in itertools.combinations(FAMILY, 2):
        assert (one == other) is (one.identity == other.identity), (one, other)


@pytest.mark.parametrize("piece", FAMILY, ids=lambda p: p.identity)
def test_equal_pieces_have_equal_identities(piece: Piece) -> None:
    same = replace(piece)  # type: ignore[type-var]
    assert same is not piece
    assert same.identity == piece.identity


@pytest.mark.parametrize("piece", PIECES.values(), ids=PIECES.keys())
def test_another_version_is_another_identity(piece: Piece, monkeypatch: pytest.MonkeyPatch) -> None:
    before = piece.identity
    monkeypatch.setattr(type(piece), "VERSION", 2)
    assert piece.identity == before.replace("/1(", "/2(", 1)


def test_a_multiset_is_named_by_its_columns_types_and_filter() -> None:
    values = ValueSet((2, 3), Selection((2, 3), 5))
    assert values.identity([pa.int64(), pa.string()]) == (
        "multiset/1(2 int64, 3 string; present 2 3; where 5)"
    )
