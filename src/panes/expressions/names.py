"""The names of all functions that are evaluated in this process."""

from __future__ import annotations

from panes.expressions import types as t
from panes.expressions.forms import FORMS
from panes.expressions.forms_units import NAMES as WITH_UNITS
from panes.expressions.lambdas import FUNCTIONS
from panes.expressions.table import RULES

BY_NODE = frozenset({"struct", "arrays_zip", "typeof", "decimal"})
"""Functions that look at how their arguments are written."""

NAMES = frozenset({*RULES, *FORMS, *FUNCTIONS, *BY_NODE, *WITH_UNITS, *t.NAMES} - {"void"})
