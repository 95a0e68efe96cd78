"""Hypothesis without luck: the suite draws the same examples every time.

``HYPOTHESIS_PROFILE=explore make test`` looks at new ones instead.
"""

from __future__ import annotations

import os

from hypothesis import Phase, settings

settings.register_profile("suite", derandomize=True, deadline=None, database=None)
settings.register_profile("explore", deadline=None, print_blob=True)
settings.register_profile("first", derandomize=True, deadline=None, phases=[Phase.generate])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))
