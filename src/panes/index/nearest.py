"""The nearest value of a window: one on either side is looked for among its keys."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.arrays import order_keys
from panes.errors import ColumnTypeError
from panes.index.domain import Keys
from panes.index.keys import GREATEST, LEAST, NumberedKeys
from panes.index.live_window import LiveWindow


def nearest(window: LiveWindow, asked: pa.Array) -> pa.Array:
    """The value nearest to each of these, the smaller of two; NULL if there is none."""
    data_type = window.keys.type
    if isinstance(window.keys, NumberedKeys) or pa.types.is_boolean(data_type):
        raise ColumnTypeError(
            f"`{window.keys.column}` is {data_type}, whose values have no distance",
            hint="w.between(low, high) and w.rank(value) need only an order",
        )
    keys, _ = window.present()
    sought, is_valid = window.keys.find(asked)
    if pa.types.is_floating(data_type) and len(keys) and keys[-1] == _nan_key():
        is_valid = is_valid.copy()
        keys = keys if len(keys) == 1 else keys[:-1]
    if not len(keys):
        return pa.nulls(len(asked), data_type)
    place = np.searchsorted(keys, sought)
    below, above = keys[np.maximum(place - 1, 0)], keys[np.minimum(place, len(keys) - 1)]
    is_above = _distance(window, above, sought) < _distance(window, sought, below)
    chosen = np.where(is_above | (place == 0) | (above == sought), above, below)
    found = window.keys.decode(chosen)
    return found if is_valid.all() else pa.array(found.to_numpy(False), data_type, mask=~is_valid)


def nearest_one(window: LiveWindow, value: object) -> Any:
    """The same for a value that the column's type cannot hold, as 1.5 among whole numbers."""
    least, _ = window.keys.range(value, None)
    keys, _ = window.present()
    first = int(np.searchsorted(keys, min(max(least, LEAST), GREATEST)))
    above = keys[first : first + 1] if least <= GREATEST else keys[:0]
    below = keys[: first if len(above) else len(keys)][-1:]
    candidates = window.keys.decode(np.concatenate([below, above])).to_pylist()
    if len(candidates) < 2:
        return candidates[0] if candidates else None
    low, high = candidates
    value = value.item() if isinstance(value, np.generic) else value
    assert isinstance(value, int | float | Decimal)
    sought = Fraction(value)
    return high if Fraction(high) - sought < sought - Fraction(low) else low


@cache
def _nan_key() -> int:
    """The key of NaN, which comes behind those of all numbers."""
    return int(order_keys.encode(pa.array([float("nan")]))[0])


def _distance(window: LiveWindow, high: Keys, low: Keys) -> NDArray[Any]:
    """How far values are apart; keys of anything but floats are numbers on one scale."""
    if not pa.types.is_floating(window.keys.type):
        return high.view(np.uint64) - low.view(np.uint64)
    with np.errstate(invalid="ignore"):
        far = window.keys.decode(high).to_numpy() - window.keys.decode(low).to_numpy()
    return np.where(np.isnan(far), np.inf, far)
