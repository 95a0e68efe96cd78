"""Whatever stands where an aggregate has a constant: an answer, or a refusal in our words."""

from __future__ import annotations

import pyarrow as pa
import pytest

import panes
from panes.aggregates.catalog import CATALOG
from panes.errors import PanesError

ROWS = pa.table({"at": [1, 2, 3], "x": [1.5, 2.5, None], "i": [4, 4, 7]})
CONSTANTS = (
    "'a'", "true", "NULL", "array(0.5, 'a')", "array()", "array(array(1))", "-1", "0", "1.0", "7",
    "1e400", "0.5", "current_date()", "x", "'NaN'", "1e-30", "99999999999999999999",
)  # fmt: skip
TAKING = [name for name, entry in CATALOG.items() if entry.parameters + entry.optional > 0]


@pytest.mark.parametrize("name", TAKING)
def test_any_constant_is_taken_or_refused(name: str) -> None:
    entry, refused = CATALOG[name], 0
    columns = ", ".join(["i", "x"][: max(entry.columns, 1)])
    within = " WITHIN GROUP (ORDER BY i)" if entry.ordered == "always" else ""
    for constant in CONSTANTS:
        for count in range(1, entry.parameters + entry.optional + 1):
            constants = ", ".join([constant] * count)
            given = constants if within else f"{columns}, {constants}"
            text = f"SELECT {name}({given}){within} AS a FROM s [TUMBLING 2 WATTR at]"
            try:
                panes.sql(text, s=ROWS)
            except PanesError:
                refused += 1
    assert refused > 0
