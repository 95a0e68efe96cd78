"""Every file of a checkpoint deleted, cut short, or with one bit turned, one at a time.

A stream goes on with the right answers, or it fails; and where it fails, `check_checkpoint` or the
failure itself names the file. Never is an answer wrong. The checkpoints are of a query and of a
register. A saved register is damaged in tests/shards/test_register_state.py, byte by byte.

To start a stream on each damaged checkpoint takes long; what is read before is looked at in
``make test``: every damage that the whole stream fails of is found by `check_checkpoint`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import panes
import panes.spark
from panes.crash.place import answers_in, write_batches
from panes.crash.verdict import Verdict, judge
from panes.errors import PanesError, StateError
from panes.spark.checkpoint import require_whole
from tests.sharing.workload import QUERIES, rows
from tests.spark.streaming import read_stream, run_to_end

pytestmark = pytest.mark.slow

BATCHES = [rows(number, 40, 30 * number) for number in range(3)]
LATENESS = 20
TEXT = QUERIES["all"]  # one shard: half of the files, the same kinds


def deleted(path: Path) -> None:
    path.unlink()


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def turned(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


DAMAGES: list[Callable[[Path], None]] = [deleted, cut_short, turned]


@dataclass(frozen=True)
class Stopped:
    """A run that was stopped after two batches, with one more to read, and a copy of it."""

    folder: Path

    @property
    def files(self) -> list[Path]:
        """All files of the checkpoint, and of the register in it."""
        copy = self.folder / "copy"
        return sorted(p.relative_to(copy) for p in copy.rglob("*") if p.is_file())

    def again(self) -> Path:
        """The checkpoint as it was when the run was stopped; answers, too."""
        for name in ("checkpoint", "out"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        shutil.copytree(self.folder / "copy", self.folder / "checkpoint")
        shutil.copytree(self.folder / "answers", self.folder / "out")
        return self.folder / "checkpoint"


def stopped(folder: Path, run: Callable[[], None]) -> Stopped:
    write_batches(folder / "in", BATCHES[:2])
    run()
    write_batches(folder / "in", BATCHES[2:], first=2)
    (folder / "checkpoint").rename(folder / "copy")
    (folder / "out").rename(folder / "answers")
    return Stopped(folder)


def run_query(spark: SparkSession, folder: Path) -> None:
    run_to_end(panes.sql(TEXT, lateness=LATENESS, s=read_stream(spark, folder / "in")), folder)


def run_register(spark: SparkSession, folder: Path, *, change: bool = False) -> None:
    register = panes.register("s", read_stream(spark, folder / "in"), lateness=LATENESS, shards=1)
    register.add("all", QUERIES["all"])
    register.start(checkpoint=str(folder / "checkpoint"), sink=str(folder / "out"))
    try:
        register.process_all_available()
        if change:
            register.change(add={"long": QUERIES["long"]})
            register.process_all_available()
        if not change and set(register.queries()) != {"all", "long"}:
            raise AssertionError(f"the register has gone back to {list(register.queries())}")
    finally:
        register.stop()


def wanted(text: str) -> pa.Table:
    query = panes.open(text, lateness=LATENESS)
    return pa.concat_tables([query.push(s=batch) for batch in BATCHES])


def verdict(folder: Path) -> Verdict:
    want = wanted(TEXT)
    out = (
        folder / "out" / "query=all" if (folder / "out" / "query=all").exists() else folder / "out"
    )
    return judge(answers_in(out), want, want.column_names[:2])


@pytest.fixture(scope="module")
def query(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Stopped:
    folder = tmp_path_factory.mktemp("query")
    return stopped(folder, lambda: run_query(spark, folder))


@pytest.fixture(scope="module")
def register(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Stopped:
    folder = tmp_path_factory.mktemp("register")
    return stopped(folder, lambda: run_register(spark, folder, change=True))


def named_by(error: BaseException, path: Path) -> bool:
    """Whether a message names a file, or the file that a checksum belongs to."""
    name = path.name.removeprefix(".").removesuffix(".crc")
    return f"{path.parent.as_posix()}/{name}" in str(error) or path.as_posix() in str(error)


def test_a_whole_checkpoint_is_whole(spark: SparkSession, query: Stopped) -> None:
    place = query.again()
    require_whole(spark, str(place))
    require_whole(spark, str(query.folder / "nowhere"))


# Of a log, those that Spark needs; of the state, the newest snapshot and what has changed since.
NEEDED = (
    "metadata",
    "offsets/0",
    "offsets/1",
    "sources/0/0",
    "state/0/0/1.zip",
    "state/0/0/2.changelog",
    "state/0/_metadata/v2/0",
)


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_found_and_named(
    spark: SparkSession, query: Stopped, damage: Callable[[Path], None]
) -> None:
    """In every file that the next run has to read."""
    tables = [p for p in query.files if p.suffix == ".sst"]
    assert tables
    for path in (*map(Path, NEEDED), *tables):
        place = query.again()
        damage(place / path)
        with pytest.raises(StateError, match="the checkpoint is damaged") as found:
            panes.spark.check_checkpoint(str(place))
        assert named_by(found.value, path), (path, str(found.value))


def test_operators_of_sparks_own_may_describe_themselves_in_another_file(
    spark: SparkSession, query: Stopped
) -> None:
    """As `dropDuplicates` before the query does, which is no damage."""
    place = query.again()
    described = place / "state/0/_metadata/v2"
    (described / "0").rename(described.parent / "metadata")
    shutil.rmtree(described)
    require_whole(spark, str(place))


def test_another_number_of_sources_is_refused_in_our_words(
    spark: SparkSession, query: Stopped
) -> None:
    """`bounded` and `heartbeat` are sources, too."""
    place, frame = query.again(), read_stream(spark, query.folder / "in")
    panes.spark.check_checkpoint(str(place), panes.sql(TEXT, lateness=LATENESS, s=frame))
    asked = panes.sql(TEXT, lateness=LATENESS, bounded=True, s=frame)
    with pytest.raises(StateError, match="over 1 source, and the stream has 2 sources now"):
        panes.spark.check_checkpoint(str(place), asked)


def test_a_stream_that_is_started_over_other_sources_is_refused_before_spark_starts(
    spark: SparkSession, query: Stopped, tmp_path: Path
) -> None:
    place, frame = query.again(), read_stream(spark, query.folder / "in")
    answers = panes.sql(TEXT, lateness=LATENESS, bounded=True, s=frame)
    writer = answers.writeStream.format("parquet").option("path", str(tmp_path / "out"))
    with pytest.raises(StateError, match="over 1 source, and the stream has 2 sources now"):
        writer.option("checkpointLocation", str(place)).start()
    with pytest.raises(StateError, match="over 1 source, and the stream has 2 sources now"):
        answers.writeStream.options(checkpointLocation=str(place)).format("noop").start()
    with pytest.raises(StateError, match="over 1 source, and the stream has 2 sources now"):
        answers.writeStream.start(format="noop", checkpointLocation=str(place))


def test_a_register_refuses_another_number_of_sources(
    spark: SparkSession, register: Stopped
) -> None:
    place, frame = register.again(), read_stream(spark, register.folder / "in")
    other = panes.register("s", frame, lateness=LATENESS, shards=1)
    other.add("all", QUERIES["all"])
    with pytest.raises(StateError, match="over 1 source, and the stream has 2 sources now"):
        other.start(checkpoint=str(place), sink=str(register.folder / "out"), bounded=True)


def test_a_commit_that_is_deleted_is_replayed(spark: SparkSession, query: Stopped) -> None:
    place = query.again()
    for name in ("1", ".1.crc"):
        (place / "commits" / name).unlink()
    run_query(spark, query.folder)
    assert verdict(query.folder) == Verdict()


def test_a_register_does_not_go_back_to_an_older_list_of_queries(
    spark: SparkSession, register: Stopped
) -> None:
    """The newest list is there twice, so one file less is none too few."""
    place = register.again()
    one, _ = (place / "panes-register" / "turn=0").glob("part-*.txt")
    one.unlink()
    run_register(spark, register.folder)  # says which queries it must have
    assert verdict(register.folder) == Verdict()


@pytest.mark.torture
@pytest.mark.parametrize("of", ["query", "register"])
def test_no_damage_makes_a_wrong_answer(
    spark: SparkSession, of: str, request: pytest.FixtureRequest
) -> None:
    run = {"query": run_query, "register": run_register}[of]
    made: Stopped = request.getfixturevalue(of)
    outcomes = {"right": 0, "named": 0}
    untold = []
    for path, damage in product(made.files, DAMAGES):
        place = made.again()
        if not (place / path).stat().st_size and damage is not deleted:
            continue
        damage(place / path)
        failure = _failure(lambda: run(spark, made.folder))
        if failure is None:
            assert verdict(made.folder) == Verdict(), (path, damage)
            outcomes["right"] += 1
        elif _is_told(spark, failure, place, path):
            outcomes["named"] += 1
        else:
            untold.append((str(path), damage.__name__, str(failure).splitlines()[0][:200]))
    assert untold == []
    assert min(outcomes.values()) > 10, outcomes


def _failure(run: Callable[[], None]) -> Exception | None:
    try:
        run()
    except AssertionError:
        raise
    except Exception as failure:
        return failure
    return None


def _is_told(spark: SparkSession, failure: Exception, place: Path, path: Path) -> bool:
    """Whether the failure names the file, or says in our words what is wrong."""
    if named_by(failure, path) or "panes-register" in str(failure):
        return True
    try:
        require_whole(spark, str(place))
    except PanesError as told:
        return named_by(told, path)
    return False
