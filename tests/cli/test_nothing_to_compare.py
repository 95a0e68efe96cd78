"""`panes verify` says "all equal" only of answers that it has compared."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import panes
from panes.cli import verify
from panes.errors import InputError, PanesError, QueryError
from panes.sample_streams import bids
from tests.cli.call import QUERY, call, call_here

Engine = Callable[[str, dict[str, pa.Table]], pa.Table]
COUNT = "SELECT count(*) AS n FROM bids"
MATCH = (
    "SELECT b.item FROM bids b JOIN bids c ON b.price = c.item + 0.5 "
    "AND c.ts BETWEEN b.ts AND b.ts + INTERVAL 5 SECONDS"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("nothing")
    rows = bids(100, keys=3, hours=0.2)
    pq.write_table(rows, path / "bids.parquet")
    pq.write_table(rows.slice(0, 0), path / "no_rows.parquet")
    nowhere = pa.nulls(2, rows.schema.field("ts").type)
    pq.write_table(rows.slice(0, 2).set_column(0, "ts", nowhere), path / "nowhere.parquet")
    return path


NOTHING = {
    "no row comes": (QUERY, "no_rows", "`bids` has no rows"),
    "no row passes WHERE": (QUERY.replace("> 20", "> 1e9"), "bids", "look at WHERE"),
    "HAVING removes all": (
        f"{COUNT} [TUMBLING 1 minute WATTR ts] HAVING n > 999", "bids", "look at HAVING",
    ),
    "rows are too few": (f"{COUNT} [RANGE 200 ROWS SLIDE 200 ROWS]", "bids", "after 200 rows"),
    "no row has a position": (QUERY, "nowhere", "`ts` of `bids` is NULL in every row"),
    "no two rows match": (MATCH, "bids", "look at ON"),
}  # fmt: skip


@pytest.mark.parametrize("case", NOTHING)
def test_a_query_without_answers_is_not_called_equal(folder: Path, case: str) -> None:
    text, file, hint = NOTHING[case]
    (folder / "query.sql").write_text(text)
    done = call("verify", "query.sql", "-i", f"bids={file}.parquet", "--no-spark", folder=folder)
    assert done.returncode == 1
    assert "all equal" not in done.stderr
    assert "nothing to compare" in done.stderr
    assert hint in done.stderr.split("Hint: ")[1]
    assert ".py" not in done.stderr


def test_one_of_the_built_in_queries_without_answers_is_told_too(folder: Path) -> None:
    done = call("verify", "--rows", "1", "--no-spark", folder=folder)
    assert done.returncode == 1
    assert "nothing was compared" in done.stderr
    assert "--rows 10" in done.stderr


def test_killing_a_query_without_answers_would_show_nothing(folder: Path) -> None:
    (folder / "query.sql").write_text(QUERY.replace("> 20", "> 1e9"))
    done = call("verify", "query.sql", "-i", "bids=bids.parquet", "--crash", "1", folder=folder)
    assert done.returncode == 1
    assert "nothing to compare" in done.stderr


def raising(failure: PanesError) -> Engine:
    def engine(text: str, streams: dict[str, pa.Table]) -> pa.Table:
        raise failure

    return engine


def test_a_query_that_every_engine_refuses_is_not_called_equal(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify, "LOCAL", {"one": raising(QueryError("not here"))})
    (folder / "query.sql").write_text(QUERY)
    done = call_here("verify", "query.sql", "-i", "bids=bids.parquet", "--no-spark", folder=folder)
    assert (done.returncode, "every engine refuses" in done.stderr) == (1, True)
    assert "refused: not here" in done.stdout


def test_engines_that_fail_where_the_oracle_fails_have_shown_nothing(folder: Path) -> None:
    (folder / "query.sql").write_text(COUNT.replace("*)", "*) / 0") + " [TUMBLING 60 WATTR at]")
    pq.write_table(pa.table({"at": [1, 2]}), folder / "at.parquet")
    done = call("verify", "query.sql", "-i", "bids=at.parquet", "--no-spark", folder=folder)
    assert done.returncode == 1
    assert done.stdout.count("fails, as the oracle does") == 2
    assert "nothing to compare, the oracle fails: cannot evaluate" in done.stderr


@pytest.mark.parametrize("who", ["the engine alone", "the oracle alone"])
def test_whoever_fails_alone_differs(
    folder: Path, monkeypatch: pytest.MonkeyPatch, who: str
) -> None:
    failing = raising(InputError("a value that is none"))
    if who == "the engine alone":
        monkeypatch.setattr(verify, "LOCAL", {"one": failing})
    else:
        monkeypatch.setattr(panes, "oracle", lambda text, **streams: failing(text, streams))
    (folder / "query.sql").write_text(QUERY)
    done = call_here("verify", "query.sql", "-i", "bids=bids.parquet", "--no-spark", folder=folder)
    assert done.returncode == 1
    assert "differs" in done.stdout
    assert "differ" in done.stderr


@pytest.mark.slow
def test_spark_has_nothing_to_compare_either(spark: SparkSession, folder: Path) -> None:
    (folder / "query.sql").write_text(QUERY)
    done = call_here("verify", "query.sql", "-i", "bids=no_rows.parquet", folder=folder)
    assert [line.split()[-1] for line in done.stdout.splitlines()[1:]] == ["equal"] * 4
    assert (done.returncode, "`bids` has no rows" in done.stderr) == (1, True)
