"""The blocks of docs/spark.md run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from panes.bench.workloads import bids

PAGE = Path(__file__).parents[2] / "docs" / "spark.md"


def test_the_pages_code_runs(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bids").mkdir()
    pq.write_table(bids(300, keys=3, hours=0.1), tmp_path / "bids" / "part.parquet")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 2
    names: dict[str, object] = {}
    for block in blocks:
        exec(
            block.replace('"bids"', f'"{tmp_path}/bids"').replace('"highest"', f'"{tmp_path}/h"'),
            names,
        )
    assert spark.read.parquet(str(tmp_path / "h")).count() > 0
