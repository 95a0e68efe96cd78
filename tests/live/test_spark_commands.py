"""``--live`` on Spark, as a user calls it: the page is there while the stream runs and after it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.cli.call import PANES
from tests.live.streams import TEXT, ask, bids, once
from tests.spark.streaming import as_batches

pytestmark = pytest.mark.slow


def written(folder: Path) -> None:
    """Four files, which are four micro-batches: the third has a late row, the last a rejected."""
    (folder / "queries").mkdir()
    (folder / "queries" / "often.sql").write_text(TEXT)
    total = "SELECT count(*) AS n FROM bids [TUMBLING 20 WATTR at] HAVING n > 2"
    (folder / "queries" / "total.sql").write_text(total)
    batches: list[list[int | None]] = [[0, 1, 3, 12, 25], [60, 61], [5, 90], [None, 91]]
    as_batches(folder / "in", [bids(at) for at in batches])


@contextmanager
def after_the_end(folder: Path, *asked: str) -> Iterator[tuple[str, list[str]]]:
    """The address of the page of a command that has done its work, and what it said until then."""
    process = subprocess.Popen(
        [*PANES, *asked, "--engine", "spark", "--live", "--live-stay", "5"],
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    said: list[str] = []
    for line in process.stderr:
        said.append(line.strip())
        if line.startswith("done;"):
            break
    url = next((line.split()[-1] for line in said if line.startswith("live page: ")), "")
    assert url, said
    yield url, said
    process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) == 0


def kinds(shown: Any) -> dict[str, int]:
    return {reason["kind"]: reason["rows"] for reason in shown["set_aside"]["reasons"]}


def test_a_register_on_spark_has_a_page(tmp_path: Path) -> None:
    written(tmp_path)
    asked = ["register", "queries", "-i", "bids=in", "-o", "out", "--lateness", "5"]
    with after_the_end(tmp_path, *asked) as (url, said):
        status, headers, page = ask(url, "/")
        assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
        assert b"Queries, the costliest first" in page
        shown = once(url, lambda s: s["status"] == "finished")
        of_total = ask(url, of="total")[2]["answers"]
    assert (shown["kind"], shown["status"], shown["title"]) == ("spark", "finished", "bids")
    assert (shown["counts"]["rows"], shown["counts"]["late"]) == (11, 1)
    assert shown["counts"]["rejected"] == 1
    assert shown["text"] == "2 queries on Spark"
    found = {q["name"]: q for q in shown["register"]["queries"]}
    assert list(found) == ["often", "total"]
    assert found["often"]["cost"] == 2 * found["often"]["answers"] > 0
    assert shown["answers"]["of"] == "often"
    assert len(shown["answers"]["lines"][0]["at"]) == found["often"]["answers"]
    assert of_total["of"] == "total"
    assert kinds(shown) == {"late": 1, "rejected": 1}
    rows = shown["set_aside"]["rows"]
    assert {(row[0], row[1]) for row in rows} == {("rejected", None), ("late", 5)}
    assert f"{shown['counts']['answers']:,} answers of 2 queries" in said
    answers = pq.read_table(tmp_path / "out" / "query=often")
    assert len(answers) == found["often"]["answers"]


def test_a_query_on_spark_has_a_page(tmp_path: Path) -> None:
    written(tmp_path)
    asked = ["run", "queries/often.sql", "-i", "bids=in", "-o", "out.parquet", "--lateness", "5"]
    with after_the_end(tmp_path, *asked) as (url, _):
        shown = once(url, lambda s: s["status"] == "finished")
    assert (shown["status"], shown["counts"]["rows"]) == ("finished", 11)
    assert kinds(shown) == {"late": 1, "rejected": 1}
    assert len(shown["answers"]["lines"][0]["at"]) == len(pq.read_table(tmp_path / "out.parquet"))
