"""State that a batch has left without a commit is gone before the batch runs again."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from panes.spark.internals import FILE_MANAGER
from panes.spark.uncommitted import can_run_again, forget_uncommitted


@pytest.mark.parametrize("scheme", ["", "file://", "file:"])
def test_only_state_after_the_last_commit_is_removed(
    spark: SparkSession, tmp_path: Path, scheme: str
) -> None:
    kept = ["commits/0", "commits/1", "commits/.1.crc", "offsets/2", "state/0/_metadata/metadata"]
    kept += ["state/0/0/1.zip", "state/0/0/2.changelog", "state/0/0/.2.changelog.crc"]
    kept += ["state/0/1/2.zip", "state/0/1/000003-a.sst"]
    gone = ["state/0/0/3.changelog", "state/0/0/.3.changelog.crc", "state/0/1/10.zip"]
    for name in (*kept, *gone):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    forget_uncommitted(spark, f"{scheme}{tmp_path}")
    left = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()}
    assert left == set(kept)


def test_a_checkpoint_elsewhere_needs_files_that_are_replaced(
    spark: SparkSession, tmp_path: Path
) -> None:
    ours = spark.conf.get(FILE_MANAGER)
    assert ours is not None
    assert can_run_again(spark, str(tmp_path))
    assert not can_run_again(spark, "s3a://bucket/state")
    spark.conf.unset(FILE_MANAGER)
    try:
        assert can_run_again(spark, "s3a://bucket/state")
    finally:
        spark.conf.set(FILE_MANAGER, ours)
