"""All functions that are not a line of the table, by name; and the names of all there are."""

from __future__ import annotations

from panes.expressions import (
    choices,
    forms_bytes,
    forms_collections,
    forms_dates,
    forms_hashes,
    forms_moments,
    forms_numbers,
    forms_text,
    regexes,
)
from panes.expressions import types as t
from panes.expressions.forms_units import NAMES as WITH_UNITS
from panes.expressions.lambdas import FUNCTIONS
from panes.expressions.rules import Form
from panes.expressions.table import RULES

FORMS: dict[str, Form] = {
    **choices.FORMS,
    **forms_numbers.FORMS,
    **forms_bytes.FORMS,
    **forms_dates.FORMS,
    **forms_hashes.FORMS,
    **forms_moments.FORMS,
    **forms_text.FORMS,
    **forms_collections.FORMS,
    **regexes.FORMS,
}
BY_NODE = frozenset({"struct", "arrays_zip", "typeof", "decimal"})
"""Functions that look at how their arguments are written."""

NAMES = frozenset({*RULES, *FORMS, *FUNCTIONS, *BY_NODE, *WITH_UNITS, *t.NAMES} - {"void"})
"""All functions that are evaluated in this process."""
