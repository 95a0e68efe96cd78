"""All kinds of indexes by name, and the forms of basic windows that each is built over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
import pyarrow as pa

from panes.index.aux_ring import Aux
from panes.index.basic_windows import BasicWindows
from panes.index.bw import Bw
from panes.index.db import Db
from panes.index.domain import Domain, Keys
from panes.index.form_aggr import AggrForm
from panes.index.form_hash import HashForm
from panes.index.form_list import ListForm
from panes.index.g_index import GROUPS, GIndex
from panes.index.h_index import HIndex
from panes.index.index import DomainIndex, Index
from panes.index.l_index import LIndex
from panes.index.ring import Ring
from panes.index.row_ring import RowRing
from panes.index.scan import Scan
from panes.index.t_index import TIndex

Kind: TypeAlias = Literal["list", "tree", "hash", "group", "ring", "aux", "bw", "db", "scan"]
KINDS: tuple[Kind, ...] = get_args(Kind)
FormName: TypeAlias = Literal["list", "aggr", "hash", "group"]
DomainName: TypeAlias = Literal["list", "tree", "hash"]

NAMES: dict[Kind, str] = {
    "list": "L-INDEX",
    "tree": "T-INDEX",
    "hash": "H-INDEX",
    "group": "G-INDEX",
    "ring": "RING",
    "aux": "AUX",
    "bw": "BW",
    "db": "DB",
    "scan": "no index",
}
"""Their names in the paper."""

FORMS: dict[Kind, tuple[FormName, ...]] = {
    "list": ("list", "aggr", "hash"),
    "tree": ("list", "aggr", "hash"),
    "hash": ("list", "aggr", "hash"),
    "group": ("group",),
    "ring": ("list",),
    "aux": ("list",),
    "bw": ("list",),
    "db": ("list",),
    "scan": ("list",),
}
"""The forms that each kind of index can be built over. Links need rows, which only LIST has."""

DOMAINS: dict[DomainName, Callable[[], Domain]] = {"list": LIndex, "tree": TIndex, "hash": HIndex}
_OVER: dict[FormName, type[DomainIndex]] = {"list": ListForm, "aggr": AggrForm, "hash": HashForm}
_LINKS: dict[Kind, type[DomainIndex]] = {"ring": Ring, "aux": Aux, "bw": Bw, "db": Db}


@dataclass(frozen=True, slots=True)
class Structure:
    """An index as data. `domain` finds values: that of a set-valued index is the index itself."""

    kind: Kind
    form: FormName
    domain: DomainName | None = None
    groups: int = GROUPS


def structure(kind: Kind, form: FormName | None = None, *, groups: int = GROUPS) -> Structure:
    """An index of a kind, over its first form unless another one is named."""
    domain: DomainName | None = "hash" if kind in _LINKS else None
    if kind == "list" or kind == "tree" or kind == "hash":
        domain = kind
    return Structure(kind, form or FORMS[kind][0], domain, groups)


def make_rows(schema: pa.Schema, asked: Structure) -> RowRing:
    """The buffers for the rows of such an index."""
    has_keys = asked.kind in ("scan", "group") or asked.form in ("aggr", "hash")
    return RowRing(schema, np.int64 if has_keys else np.int32)


def make_index(asked: Structure, rows: RowRing, windows: BasicWindows, first_keys: Keys) -> Index:
    """A new index. The groups of a G-INDEX are made from the keys of the first rows."""
    if asked.kind == "scan":
        return Scan(rows, windows)
    if asked.kind == "group":
        return GIndex(rows, windows, first_keys, asked.groups)
    assert asked.domain is not None
    made = _LINKS.get(asked.kind, _OVER[asked.form])
    return made(rows, windows, DOMAINS[asked.domain]())
