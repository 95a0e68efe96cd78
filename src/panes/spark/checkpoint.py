"""Whether a checkpoint is whole, and whether it fits a stream: asked before Spark fails on it.

Spark refuses a damaged checkpoint, but often without the name of the file, and where a log's entry
is missing it may speak of something else. `require_whole` reads every file, so that its checksum
is looked at, and looks for numbers that are missing from a row of files:

    offsets/N  commits/N  sources/S/N    no number is left out; a commit has its offsets, and
                                         the last offsets have those before them
    state/O/P/N.zip, N.changelog         from the newest snapshot to the last commit, and its SSTs
    state/O/_metadata/v2/N               one at least; operators of Spark's own have another file

Everything is read through DataFrames, so a checkpoint may lie wherever Spark's may.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Mapping

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it

from panes.errors import StateError
from panes.spark.internals import lines, streaming_plan

_OFFSETS, _COMMITS, _SOURCES, _STATE = "offsets", "commits", "sources", "state"
_HIDDEN = ("state/*/_metadata/*", "state/*/_stateSchema/*")
_NUMBERED = re.compile(r"(\d+)(\.compact)?")
_STATE_FILE = re.compile(r"(state/\d+/\d+(?:/[^/]+)?)/(\d+)\.(zip|changelog)")
_SOME_PATH = re.compile(r"[a-z0-9]+:/[^\s,;]*")


def check_checkpoint(checkpoint: str, answers: DataFrame | None = None) -> None:
    """Refuse a checkpoint that is damaged, with the name of the file, or does not fit a stream.

    It reads the whole checkpoint. Without `answers`, only damage is looked for; with what
    `panes.sql` gave, also whether the checkpoint was written over as many sources.
    """
    session = SparkSession.active() if answers is None else answers.sparkSession
    require_whole(session, str(checkpoint))
    if answers is not None:
        require_sources(str(checkpoint), answers)


def require_sources(checkpoint: str, stream: DataFrame) -> None:
    """Refuse a checkpoint that was written over another number of sources."""
    session = stream.sparkSession
    logged = _last_offsets(session, checkpoint)
    if logged is None:
        return
    now = len(streaming_plan(stream).sources)
    if len(logged) != now:
        raise StateError(
            f"the checkpoint was written over {_counted(len(logged))}, and the stream has "
            f"{_counted(now)} now: the streams in FROM are sources, heartbeat= and bounded=True "
            "are one each, and so is a function or filter before panes.sql if bounded=True",
            hint="ask as before (bounded=True is in every run or in none, as is --keep-open of "
            "`panes run`), or start with a new checkpoint: this one may be of another query",
        )


def require_whole(session: SparkSession, checkpoint: str) -> None:
    """Refuse a checkpoint of which a file is missing or damaged."""
    files = _listed(session, checkpoint)
    if not files:
        return
    if "metadata" not in files:
        raise _missing(f"{checkpoint}/metadata")
    _read_all(session, checkpoint)
    logs = {name: _numbers(files, name) for name in _logs(files)}
    for name, numbers in logs.items():
        for number in range(_first(name, files, numbers), max(numbers)):
            if number not in numbers:
                raise _missing(f"{checkpoint}/{name}/{number}")
    planned, done = logs.get(_OFFSETS, set()), logs.get(_COMMITS, set())
    if done and (not planned or max(done) > max(planned)):
        raise _missing(f"{checkpoint}/{_OFFSETS}/{max(done)}")
    if planned and max(planned) > max(done, default=-1) + 1:
        raise _missing(f"{checkpoint}/{_COMMITS}/{max(planned) - 1}")
    _require_sources_logged(session, checkpoint, logs)
    if done:
        _require_state(session, checkpoint, files, max(done) + 1)


def _listed(session: SparkSession, checkpoint: str) -> set[str]:
    """All files under a checkpoint, by their paths in it; none if there is no checkpoint yet."""
    found: set[str] = set()
    try:
        rows = _files(session, checkpoint).select("path").collect()
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return found
        raise
    for row in rows:
        inside = re.search(rf"/{re.escape(checkpoint.strip('/').split('/')[-1])}/(.*)", row.path)
        if inside is not None:
            found.add(inside[1])
    return found


def _files(session: SparkSession, *paths: str) -> DataFrame:
    reader = session.read.format("binaryFile").option("recursiveFileLookup", "true")
    return reader.load(list(paths))


def _read_all(session: SparkSession, checkpoint: str) -> None:
    """Read every file to its end, so that every checksum is looked at."""
    for place in (checkpoint, *(f"{checkpoint}/{hidden}" for hidden in _HIDDEN)):
        try:
            _files(session, place).select(F.sum(F.crc32("content"))).collect()
        except Exception as error:  # a reader's own, or one of the JVM
            if isinstance(error, PySparkException) and error.getCondition() == "PATH_NOT_FOUND":
                continue
            said = str(error)
            named = [p for p in _SOME_PATH.findall(said) if checkpoint.strip("/") in p]
            raise StateError(
                f"the checkpoint is damaged: {named[0] if named else said.splitlines()[0]}",
                hint="take it from a backup, or start with a new checkpoint",
            ) from error


def _logs(files: Iterable[str]) -> set[str]:
    """The folders of files that are numbered without a gap."""
    folders = {path.rpartition("/")[0] for path in files}
    return {f for f in folders if f in (_OFFSETS, _COMMITS) or f.startswith(f"{_SOURCES}/")}


def _numbers(files: Iterable[str], folder: str) -> set[int]:
    names = (path.rpartition("/") for path in files)
    found = (_NUMBERED.fullmatch(name) for at, _, name in names if at == folder)
    return {int(match[1]) for match in found if match is not None} or {0}


def _first(folder: str, files: Iterable[str], numbers: set[int]) -> int:
    """The first number that a log needs.

    Of offsets and commits the old ones go, but the last offsets are read with those before them.
    The log of a source goes back to the beginning, or to where it was written anew as a whole.
    """
    if folder == _COMMITS:
        return min(numbers)
    if folder == _OFFSETS:
        return min(min(numbers), max(max(numbers) - 1, 0))
    whole = [p for p in files if p.startswith(f"{folder}/") and p.endswith(".compact")]
    return max(_numbers(whole, folder)) if whole else 0


def _last_offsets(session: SparkSession, checkpoint: str) -> list[str] | None:
    """What the last planned batch says of each source; None if there is no batch yet."""
    files = _listed(session, checkpoint) if lines(session, f"{checkpoint}/metadata") else set()
    if not any(path.startswith(f"{_OFFSETS}/") for path in files):
        return None
    said = lines(session, f"{checkpoint}/{_OFFSETS}/{max(_numbers(files, _OFFSETS))}")
    return said[2:]  # a version and what holds for all sources come first


def _require_sources_logged(
    session: SparkSession, checkpoint: str, logs: Mapping[str, set[int]]
) -> None:
    """The files that the last batch reads are in the log of their source."""
    for number, said in enumerate(_last_offsets(session, checkpoint) or ()):
        log = f"{_SOURCES}/{number}"
        try:
            last = json.loads(said).get("logOffset")
        except (ValueError, AttributeError):
            continue  # a source that counts otherwise
        if isinstance(last, int) and last >= 0 and last not in logs.get(log, set()):
            raise _missing(f"{checkpoint}/{log}/{last}")


def _require_state(
    session: SparkSession, checkpoint: str, files: Iterable[str], version: int
) -> None:
    """Every part of the state can be put together as the last finished batch left it."""
    known = set(files)
    parts: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for match in filter(None, map(_STATE_FILE.fullmatch, known)):
        parts[match[1]][match[3]].add(int(match[2]))
    for operator in sorted({"/".join(part.split("/")[:2]) for part in parts}):
        if not _listed(session, f"{checkpoint}/{operator}/_metadata"):
            raise _missing(f"{checkpoint}/{operator}/_metadata/v2/0")
    for part, kinds in parts.items():
        whole = max((v for v in kinds["zip"] if v <= version), default=0)
        if not whole:
            raise _missing(f"{checkpoint}/{part}/1.zip")
        for needed in range(whole + 1, version + 1):
            if needed not in kinds["changelog"]:
                raise _missing(f"{checkpoint}/{part}/{needed}.changelog")
        for table in _tables_of(session, f"{checkpoint}/{part}/{whole}.zip"):
            if f"{part}/SSTs/{table}" not in known:
                raise _missing(f"{checkpoint}/{part}/SSTs/{table}")


def _tables_of(session: SparkSession, path: str) -> list[str]:
    """The files that a snapshot is made of, beside itself."""
    content = bytes(_files(session, path).select("content").collect()[0][0])
    with zipfile.ZipFile(io.BytesIO(content)) as snapshot:
        said = snapshot.read("metadata").decode().partition("\n")[2]
    return [file["dfsSstFileName"] for file in json.loads(said).get("sstFiles", [])]


def _missing(path: str) -> StateError:
    return StateError(
        f"the checkpoint is damaged: {path} is missing",
        hint="take it from a backup, or start with a new checkpoint",
    )


def _counted(sources: int) -> str:
    return "1 source" if sources == 1 else f"{sources} sources"
