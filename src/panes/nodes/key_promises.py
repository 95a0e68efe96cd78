"""Promises for some keys only: group-wise punctuation (thesis 2.1, 8.2).

A stream may promise that no later row *of a key* lies before an instant. Windows of that key then
close, and the others stay open. A key names all grouping columns, or some of them: then it stands
for every group that agrees in these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from panes.errors import InputError, OptionError
from panes.planning.plan import Plan

KeyValues: TypeAlias = tuple[tuple[int, pa.Scalar], ...]
"""Values of grouping columns, by the number of the column."""


def read_key(plan: Plan, key: Mapping[str, Any]) -> KeyValues:
    """A key as a user names it: values under the names that grouping columns have in answers."""
    names = {k.name.lower(): number for number, k in enumerate(plan.query.keys)}
    found = []
    for name, value in key.items():
        if name.lower() not in names:
            known = ", ".join(f"`{k.name}`" for k in plan.query.keys) or "none"
            raise OptionError(f"`{name}` is no grouping column of the query; it has {known}")
        number = names[name.lower()]
        if isinstance(value, float) and pa.types.is_integer(plan.key_types[number]):
            raise InputError(f"`{name}` is {plan.key_types[number]}, and {value!r} is none")
        try:
            found.append((number, pa.scalar(value, plan.key_types[number])))
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            data_type = plan.key_types[number]
            raise InputError(f"`{name}` is {data_type}, and {value!r} is none") from None
    if not found:
        raise OptionError("a key names at least one grouping column", hint='key={"item": 7}')
    return tuple(sorted(found, key=lambda pair: pair[0]))


@dataclass(frozen=True, slots=True)
class KeyPromises:
    """What the streams of a query have promised of some keys. It never changes."""

    _at: Mapping[tuple[str, KeyValues], int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self._at)

    def punctuated(self, stream: str, key: KeyValues, at: int) -> KeyPromises:
        """These, and one more: nothing of this key before `at` will come in a stream."""
        promised = max(at, self._at.get((stream, key), at))
        return KeyPromises({**self._at, (stream, key): promised})

    def beyond(self, progress: int) -> KeyPromises:
        """Those that say more than `progress`, which is promised of every key."""
        return KeyPromises({what: at for what, at in self._at.items() if at > progress})

    def of(
        self, stream: str, general: int, keys: Sequence[pa.Array], rows: int
    ) -> NDArray[np.int64]:
        """What a stream promises of each row with these keys, at least the `general` promise."""
        promised = np.full(rows, general, dtype=np.int64)
        for (name, key), at in self._at.items():
            if name == stream:
                which = _agree(key, keys)
                promised[which] = np.maximum(promised[which], at)
        return promised

    def melded(
        self, general: Mapping[str, int], keys: Sequence[pa.Array], rows: int
    ) -> NDArray[np.int64]:
        """What all streams together promise of each row with these keys."""
        each = [self.of(name, at, keys, rows) for name, at in general.items()]
        least: NDArray[np.int64] = reduce(np.minimum, each)
        return least


def _agree(key: KeyValues, keys: Sequence[pa.Array]) -> NDArray[np.bool_]:
    """Which rows have the key's values, compared as GROUP BY compares them."""
    found = []
    for number, value in key:
        column = keys[number]
        if not value.is_valid:
            equal = pc.is_null(column)
        elif pa.types.is_floating(column.type) and np.isnan(value.as_py()):
            equal = pc.is_nan(column)
        else:
            equal = pc.equal(column, value)
        found.append(pc.fill_null(equal, False).to_numpy(zero_copy_only=False))
    agreed: NDArray[np.bool_] = reduce(np.logical_and, found)
    return agreed
