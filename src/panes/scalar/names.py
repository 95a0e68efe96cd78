"""The names of all functions that are evaluated in this process."""

from __future__ import annotations

from panes.scalar import types as t
from panes.scalar.forms import FORMS
from panes.scalar.forms_units import NAMES as WITH_UNITS
from panes.scalar.lambdas import FUNCTIONS
from panes.scalar.table import RULES

BY_NODE = frozenset({"struct", "arrays_zip", "typeof", "decimal"})
"""Functions that look at how their arguments are written."""

NAMES = frozenset({*RULES, *FORMS, *FUNCTIONS, *BY_NODE, *WITH_UNITS, *t.NAMES} - {"void"})
