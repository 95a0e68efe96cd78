"""All functions that are not a line of the table, by name."""

from __future__ import annotations

from panes.expressions import (
    choices,
    forms_bits,
    forms_bytes,
    forms_collections,
    forms_dates,
    forms_hashes,
    forms_moments,
    forms_numbers,
    forms_text,
    regexes,
)

FORMS: dict[str, forms_numbers.Form] = {
    **choices.FORMS,
    **forms_numbers.FORMS,
    **forms_bits.FORMS,
    **forms_bytes.FORMS,
    **forms_dates.FORMS,
    **forms_hashes.FORMS,
    **forms_moments.FORMS,
    **forms_text.FORMS,
    **forms_collections.FORMS,
    **regexes.FORMS,
}
