"""A register of many kinds of queries, in a folder that is killed, damaged, full, or another's.

Every operation on files that a writing makes is made to fail in turn, as for single queries in
`test_state_folder`. What is opened then is the state before the push or after it.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import panes
from panes.errors import StateError
from panes.process.register import Register
from tests.process.disk import DAMAGE, FULL, Disk, Killed, files, flipped, killed

PEAKS = "SELECT k, max(v) AS m FROM s [TUMBLING 10 WATTR at] GROUP BY k"
NEAR = "s.k = u.k AND u.at BETWEEN s.at - 3 AND s.at + 5"
QUERIES = {
    "shared": "SELECT k, sum(v) AS a FROM s [RANGE 20 SLIDE 10 WATTR at] GROUP BY k",
    "peaks": PEAKS,
    "nested": f"SELECT sum(m) AS n FROM ({PEAKS}) [TUMBLING 20]",
    "pairs": f"SELECT s.id AS i, u.id AS j FROM s LEFT JOIN u ON {NEAR}",
    "above": f"SELECT s.k, count(*) AS n [TUMBLING 10 WATTR s.at] FROM s JOIN u ON {NEAR} "
    "GROUP BY s.k",
    "united": "SELECT count(*) AS n FROM (s UNION ALL u) [TUMBLING 10 WATTR at]",
    "rows": "SELECT max(v) AS m FROM s [RANGE 9 ROWS SLIDE 4 ROWS]",
    "all": "SELECT count(*) AS n FROM u [RANGE ALL SLIDE 10 WATTR at]",
    "early": "SELECT count(*) AS n FROM u [TUMBLING 10 WATTR at] EMIT EARLY",
    "by id": "SELECT count(*) AS n FROM s [TUMBLING 10 WATTR id]",
}
LATE = {"late": "SELECT k, sum(v) AS a FROM u [RANGE 20 SLIDE 5 WATTR at] GROUP BY k"}
"""It is added before the last two pushes."""
PUSHES = 4
STREAMS = ("s", "u")


def _rows(number: int) -> dict[str, pa.Table]:
    """Rows of both streams, one of them late."""
    at = [15 * number + (7 * n) % 20 - (25 if n == 9 else 0) for n in range(12)]
    ids = [12 * number + n for n in range(12)]
    rows = {"at": at, "k": [n % 3 for n in range(12)], "v": [n * n % 10 for n in ids], "id": ids}
    return {"s": pa.table(rows), "u": pa.table(rows).slice(2, 7)}


def _opened(folder: Path | None = None, **options: Any) -> Register:
    if folder is not None:
        options["state"] = folder
    return panes.register(STREAMS, **{"lateness": 15, **options})


def _plain(answers: Mapping[str, Any]) -> dict[str, Any]:
    return {name: table.to_pylist() for name, table in answers.items()}


def _pushed(reg: Register, number: int) -> dict[str, Any]:
    """A push, and queries before it that are not there yet."""
    wanted = {**QUERIES, **(LATE if number >= PUSHES - 2 else {})}
    for name in wanted.keys() - reg.queries().keys():
        reg.add(name, wanted[name])
    if reg._turn.keeper is not None:
        reg.position = number
    return _plain(reg.push(**_rows(number)))


def _rest(reg: Register, number: int) -> Iterator[object]:
    """Everything that a register says from some push on."""
    for later in range(number, PUSHES):
        yield _pushed(reg, later)
    yield [reg.late.to_pylist(), dict(sorted(reg.queries().items())), reg.progress]
    yield {name: reg.exact_from(name) for name in sorted(reg.queries())}
    yield _plain(reg.finish())


@pytest.fixture(scope="module")
def expected() -> list[object]:
    """What a register says if nothing goes wrong."""
    return list(_rest(_opened(), 0))


def _begun(folder: Path, number: int) -> Register:
    reg = _opened(folder)
    for one in range(number):
        _pushed(reg, one)
    return reg


def _operations(folder: Path, number: int) -> int:
    """How many operations the writing of a push makes."""
    with pytest.MonkeyPatch.context() as patch:
        reg = _begun(folder, number)
        disk = Disk(patch, Killed)
        _pushed(reg, number)
        killed(reg)
        return disk.done


@pytest.mark.parametrize("number", [0, 2])
def test_a_register_may_end_at_every_operation_of_a_writing(
    number: int, tmp_path: Path, expected: list[object]
) -> None:
    ended = set()
    for at in range(_operations(tmp_path / "counted", number)):
        reg = _begun(tmp_path / str(at), number)
        with pytest.MonkeyPatch.context() as patch:
            Disk(patch, Killed).at = at
            with suppress(Killed):
                _pushed(reg, number)
        killed(reg)
        reg = _opened(tmp_path / str(at))
        is_in = reg.position == number
        ended.add(is_in)
        assert reg.pushes == number + is_in
        if is_in:
            assert [_plain(one) for one in reg.last_answers] == [expected[number]]
        assert list(_rest(reg, number + is_in)) == expected[number + is_in :]
        killed(reg)
    assert ended == {False, True}


def _told(call: Callable[[], object]) -> str | None:
    """What is told of a call that fails."""
    try:
        call()
    except (StateError, KeyboardInterrupt) as error:
        return str(error)
    return None


@pytest.mark.parametrize("wrong", [FULL, KeyboardInterrupt()], ids=["full", "interrupted"])
def test_a_register_goes_on_after_a_push_that_cannot_be_written(
    wrong: BaseException, tmp_path: Path, expected: list[object]
) -> None:
    failed = 0
    for at in range(_operations(tmp_path / "counted", 2)):
        reg = _begun(tmp_path / str(at), 2)
        with pytest.MonkeyPatch.context() as patch:
            Disk(patch, lambda: wrong).at = at
            told = _told(lambda reg=reg: _pushed(reg, 2))  # type: ignore[misc]
        if told is not None:
            failed += 1
            assert reg.pushes == 2
            assert wrong is not FULL or "No space left on device; the step has not happened" in told
        assert list(_rest(reg, 2 + (told is None))) == expected[2 + (told is None) :]
        killed(reg)
    assert failed > 2


def test_a_save_that_fails_leaves_the_file_that_was_there(
    tmp_path: Path, expected: list[object]
) -> None:
    path, reg = tmp_path / "file", _begun(tmp_path / "state", 1)
    reg.save(path)
    before = path.read_bytes()
    _pushed(reg, 1)
    is_new = []
    for wrong in (FULL, Killed()):
        for at in range(4):
            path.write_bytes(before)
            with pytest.MonkeyPatch.context() as patch:
                Disk(patch, lambda wrong=wrong: wrong).at = at  # type: ignore[misc]
                with suppress(Killed):
                    told = _told(lambda: reg.save(path, overwrite=True))
                    assert told is None or "No space left on device" in told
            is_new.append(path.read_bytes() != before)
            other = _opened(saved=path)
            assert list(_rest(other, 1 + is_new[-1])) == expected[1 + is_new[-1] :]
    assert is_new.count(False) >= 4


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_damage_of_a_register_is_told_with_the_name_of_the_file(
    damage: Callable[[Path], None], tmp_path: Path
) -> None:
    killed(_begun(tmp_path / "state", 3))
    whole = {path: path.read_bytes() for path in files(tmp_path / "state")}
    assert len(whole) > 1
    for path, data in whole.items():
        damage(path)
        with pytest.raises(StateError, match=path.name):
            _opened(tmp_path / "state")
        path.write_bytes(data)
    assert _opened(tmp_path / "state").pushes == 3


def test_a_flipped_bit_anywhere_in_a_saved_register_is_told(tmp_path: Path) -> None:
    path, reg = tmp_path / "file", _opened()
    _pushed(reg, 0)
    reg.save(path)
    data = path.read_bytes()
    for place in range(0, len(data), len(data) // 23):
        flipped(path, place)
        with pytest.raises(StateError, match=r"file is no saved register, or|written in format"):
            _opened(saved=path)
        path.write_bytes(data)
    for size in range(0, len(data), len(data) // 7):
        path.write_bytes(data[:size])
        with pytest.raises(StateError, match="file is no saved register, or"):
            _opened(saved=path)


_CHILD = """
import sys
from pathlib import Path
from tests.process.test_attacked_registers import _opened, _pushed
reg = _opened(Path(sys.argv[1]))
print("open", flush=True)
for number in range(3):
    _pushed(reg, number)
    print(number, flush=True)
sys.stdin.read()
"""


def test_a_register_that_is_killed_leaves_a_folder_that_another_process_goes_on_with(
    tmp_path: Path, expected: list[object]
) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", _CHILD, str(tmp_path)], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert child.stdout is not None
    assert child.stdin is not None
    told = [child.stdout.readline().strip() for _ in range(3)]
    with pytest.raises(StateError, match=f"in use, by process {child.pid}"):
        _opened(tmp_path)
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    child.stdin.close()
    assert told == ["open", "0", "1"]
    reg = _opened(tmp_path)
    pushes = reg.pushes
    assert pushes >= 2
    assert list(_rest(reg, pushes)) == expected[pushes:]


def test_the_folder_of_another_register_or_with_other_options_is_refused(tmp_path: Path) -> None:
    killed(_begun(tmp_path, 1))
    other: dict[str, dict[str, Any]] = {
        "lateness was 15, is 16": {"lateness": 16},
        "late was 'open', is 'drop'": {"late": "drop"},
        "rows_late was None, is 4; ": {"rows_late": 4, "lateness": None},
    }
    for words, options in other.items():
        with pytest.raises(StateError, match=words.rstrip("; ")):
            _opened(tmp_path, **options)
    with pytest.raises(StateError, match="stream was s, u, is s, t"):
        panes.register(("s", "t"), lateness=15, state=tmp_path)
    with pytest.raises(StateError, match="kind was Register, is OpenQuery"):
        panes.open(PEAKS, lateness=15, state=tmp_path)
    assert _opened(tmp_path).pushes == 1


def test_the_state_of_a_version_that_remembers_other_things_is_refused(tmp_path: Path) -> None:
    reg = _begun(tmp_path, 1)
    reg._graph.query_nodes[0].weather = "fine"  # type: ignore[attr-defined]
    _pushed(reg, 1)
    killed(reg)
    with pytest.raises(StateError, match=r"by panes .*, which remembers other things"):
        _opened(tmp_path)


def test_a_state_in_the_first_format_is_refused_by_name(tmp_path: Path) -> None:
    """Its checksum was of the body alone."""
    killed(_begun(tmp_path, 1))
    _, _, body = (tmp_path / "manifest").read_bytes().partition(b"\n")
    head = f"panes-state 1 {zlib.crc32(body):08x}\n".encode()
    (tmp_path / "manifest").write_bytes(head + body)
    with pytest.raises(StateError, match="was written in format 1; this version of panes reads"):
        _opened(tmp_path)
    assert (tmp_path / "manifest").read_bytes() == head + body
