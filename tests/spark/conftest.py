"""One Spark session for the suite, made by our own builder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

import panes.spark


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = panes.spark.session(
        master="local[2]",
        spark__ui__enabled="false",
        spark__sql__shuffle__partitions="2",
        spark__driver__memory="2g",
    )
    yield session
    session.stop()
