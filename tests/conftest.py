"""What all tests have in common: examples without luck, and a JVM for short runs.

The suite draws the same random examples every time; ``HYPOTHESIS_PROFILE=explore make test``
looks at new ones instead.
"""

from __future__ import annotations

import os

from hypothesis import Phase, settings

settings.register_profile("suite", derandomize=True, deadline=None, database=None)
settings.register_profile("explore", deadline=None, print_blob=True)
settings.register_profile("first", derandomize=True, deadline=None, phases=[Phase.generate])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))

# No JVM of the suite lives long enough to earn back what its optimising compiler costs; with the
# quick one alone, streams over small files need two thirds of the time. Commands that tests start
# inherit it.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
