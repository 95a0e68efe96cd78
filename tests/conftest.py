"""What all tests have in common: examples without luck, and one Spark session.

The suite draws the same random examples every time; ``HYPOTHESIS_PROFILE=explore make test``
looks at new ones instead.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING
from zlib import crc32

import pytest
from hypothesis import Phase, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

settings.register_profile("suite", derandomize=True, deadline=None, database=None)
settings.register_profile("explore", deadline=None, print_blob=True)
settings.register_profile("quick", derandomize=True, deadline=None, database=None)
settings.register_profile("first", derandomize=True, deadline=None, phases=[Phase.generate])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))

# No JVM of the suite lives long enough to earn back what its optimising compiler costs: with the
# quick one alone, a stream over small files takes two thirds of the processor's time. Programs
# that tests start inherit it.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One Spark session for all tests of a process, made by our own builder."""
    import panes.spark

    session = panes.spark.session(
        master="local[2]",
        spark__ui__enabled="false",
        spark__sql__shuffle__partitions="2",
        spark__driver__memory="2g",
    )
    yield session
    session.stop()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Say which tests need Spark or take long, and leave few examples to those that are quick.

    Tests with the session are two groups of about as long; a worker starts Spark once.
    """
    for item in items:
        has_session = "spark" in getattr(item, "fixturenames", ())
        if has_session:
            is_stream = "stream" in item.path.parts or item.path.name in _LONG
            group = "streams on Spark" if is_stream else "Spark"
            item.add_marker(pytest.mark.xdist_group(group))
        if has_session or "spark" in item.path.parts:
            item.add_marker(pytest.mark.spark)
        if not _LONG_ROOMS.isdisjoint(item.path.parts):
            item.add_marker(pytest.mark.long)
        if settings.get_current_profile_name() == "quick":
            _draw_few(item)
    if part := os.environ.get("PANES_SLOW_PART"):
        left_out = [i for i in items if i.get_closest_marker("slow") and not _is_of(part, i)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [i for i in items if i not in set(left_out)]


def _is_of(part: str, item: pytest.Item) -> bool:
    """Whether a slow test is one of a part, ``2/3``; its name alone says which part has it."""
    number, parts = map(int, part.split("/"))
    return crc32(item.nodeid.encode()) % parts == number - 1


def _draw_few(item: pytest.Item) -> None:
    """Let Hypothesis draw a few examples of a test, whatever the test says of its own.

    Hypothesis has no public way to do so. Should it keep this elsewhere one day, the quick tests
    are as thorough as the others, and take longer.
    """
    machine = getattr(item, "cls", None)
    for holder, name in ((getattr(item, "obj", None), _OWN_SETTINGS), (machine, "settings")):
        own = getattr(holder, name, None)
        if isinstance(own, settings) and own.max_examples > _FEW:
            steps = min(own.stateful_step_count, 12)
            setattr(holder, name, settings(own, max_examples=_FEW, stateful_step_count=steps))


_FEW = 3
_OWN_SETTINGS = "_hypothesis_internal_use_settings"
_LONG_ROOMS = {"planted", "crash", "fuzz", "lab"}
_LONG = ("test_cookbook.py", "test_counted.py", "test_damage.py", "test_docs.py", "test_kills.py")
