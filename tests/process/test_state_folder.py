"""A state folder that is killed, damaged, full, or in use: nothing is lost, and nothing is silent.

Every operation on files that a writing makes is counted, and the process is made to end at each of
them in turn: before it happens, and after half of it. What is opened then is the state before the
push or after it, and `position` says which.
"""

from __future__ import annotations

import datetime as dt
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import panes
from panes.errors import StateError
from panes.stores import state_blocks
from panes.stores.state_folder import StateFolder
from tests.process.disk import DAMAGE, FULL, Disk, Killed, files, flipped, killed
from tests.process.kept_queries import KINDS, Kind, batches

KIND = KINDS["left join"]
GIVEN = list(batches(("t", "u")))
LONG = Kind("SELECT ts, k, sum(x) AS a FROM t [RANGE 900 SLIDE 1 WATTR ts] GROUP BY ts, k", {})
"""Nothing closes, and every row is stored with a key of its own."""


def _open(folder: Path, kind: Kind = KIND, **options: Any) -> Any:
    return panes.open(kind.text, **{**kind.options, "state": folder, **options})


@pytest.fixture(scope="module")
def expected() -> list[list[dict[str, Any]]]:
    """The answers of every push, if nothing goes wrong."""
    query = panes.open(KIND.text, **KIND.options)
    return [query.push(**one).to_pylist() for one in GIVEN]


def _operations(folder: Path, number: int) -> int:
    """How many operations the writing of a push makes."""
    with pytest.MonkeyPatch.context() as patch:
        query = _open(folder)
        for one in GIVEN[:number]:
            query.push(**one)
        disk = Disk(patch, Killed)
        query.push(**GIVEN[number])
        killed(query)
        return disk.done


@pytest.mark.parametrize("number", [0, 3])
def test_a_process_may_end_at_every_operation_of_a_writing(
    number: int, tmp_path: Path, expected: list[list[dict[str, Any]]]
) -> None:
    ended = set()
    for at in range(_operations(tmp_path / "counted", number)):
        folder = tmp_path / str(at)
        query = _open(folder)
        for place, one in enumerate(GIVEN[:number]):
            query.position = place
            query.push(**one)
        with pytest.MonkeyPatch.context() as patch:
            disk = Disk(patch, Killed)
            disk.at = at
            query.position = number
            with suppress(Killed):
                query.push(**GIVEN[number])
        killed(query)

        query = _open(folder)
        is_in = query.position == number
        ended.add(is_in)
        assert query.pushes == number + is_in
        if is_in:
            assert [a.to_pylist() for a in query.last_answers] == [expected[number]]
        after = [query.push(**one).to_pylist() for one in GIVEN[number + is_in :]]
        assert after == expected[number + is_in :]
        killed(query)
    assert ended == {False, True}


def _pushed(query: Any, batch: dict[str, pa.Table]) -> tuple[str | None, Any]:
    """What is told of a push that fails, or its answers."""
    try:
        return None, query.push(**batch)
    except (StateError, KeyboardInterrupt) as error:
        return str(error), None


@pytest.mark.parametrize("number", [0, 3])
@pytest.mark.parametrize("wrong", [FULL, KeyboardInterrupt()], ids=["full", "interrupted"])
def test_a_push_that_cannot_be_written_has_not_happened_and_can_be_made_again(
    number: int, wrong: BaseException, tmp_path: Path, expected: list[list[dict[str, Any]]]
) -> None:
    for at in range(_operations(tmp_path / "counted", number)):
        query = _open(tmp_path / str(at))
        for one in GIVEN[:number]:
            query.push(**one)
        with pytest.MonkeyPatch.context() as patch:
            disk = Disk(patch, lambda: wrong)
            disk.at = at
            told, found = _pushed(query, GIVEN[number])
            if told is not None:
                if wrong is FULL:
                    assert "could not be written" in told
                    assert "No space left on device" in told
                assert query.pushes == number
                _, found = _pushed(query, GIVEN[number])
        assert found.to_pylist() == expected[number]
        killed(query)
        query = _open(tmp_path / str(at))
        assert query.pushes == number + 1
        after = [query.push(**one).to_pylist() for one in GIVEN[number + 1 :]]
        assert after == expected[number + 1 :]
        killed(query)


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_damage_is_told_with_the_name_of_the_file(
    damage: Callable[[Path], None], tmp_path: Path
) -> None:
    kind = LONG
    query = _open(tmp_path, kind)
    for one in GIVEN[:4]:
        query.push(t=one["t"])
    killed(query)
    whole = {path: path.read_bytes() for path in files(tmp_path)}
    assert len(whole) > 2
    for path, data in whole.items():
        damage(path)
        with pytest.raises(StateError, match=path.name):
            _open(tmp_path, kind)
        path.write_bytes(data)
    assert _open(tmp_path, kind).pushes == 4


def test_a_flipped_bit_in_any_block_is_told(tmp_path: Path) -> None:
    query = _open(tmp_path, LONG)
    query.push(t=GIVEN[0]["t"])
    _, blocks = query._turn.keeper.folder.read()
    killed(query)
    assert len(blocks) > 5
    for block in blocks:
        if block.nbytes:
            flipped(tmp_path / block.file, block.begin)
            with pytest.raises(StateError, match=f"{block.file}: a checksum differs"):
                _open(tmp_path, LONG)
            flipped(tmp_path / block.file, block.begin)
    for place in range(0, (tmp_path / "manifest").stat().st_size, 97):
        flipped(tmp_path / "manifest", place)
        with pytest.raises(StateError, match=r"manifest|format"):
            _open(tmp_path, LONG)
        flipped(tmp_path / "manifest", place)
    assert _open(tmp_path, LONG).pushes == 1


def test_a_folder_in_use_is_refused_with_what_to_do(tmp_path: Path) -> None:
    query = _open(tmp_path)
    with pytest.raises(StateError, match=rf"in use, by process {os.getpid()}"):
        _open(tmp_path)
    query.close()
    _open(tmp_path)


_CHILD = """
import sys
from pathlib import Path
from tests.process.test_state_folder import GIVEN, _open
query = _open(Path(sys.argv[1]))
print("open", flush=True)
number = query.pushes
while True:
    query.push(**{name: batch for name, batch in GIVEN[number % len(GIVEN)].items()})
    number += 1
    print(number, flush=True)
"""


def test_a_process_that_is_killed_leaves_a_folder_that_another_one_goes_on_with(
    tmp_path: Path, expected: list[list[dict[str, Any]]]
) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", _CHILD, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    told = [child.stdout.readline().strip() for _ in range(4)]
    with pytest.raises(StateError, match=f"in use, by process {child.pid}"):
        _open(tmp_path)
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    assert told == ["open", "1", "2", "3"]
    query = _open(tmp_path)
    assert query.pushes >= 3
    if query.pushes < len(GIVEN):
        found = [query.push(**one).to_pylist() for one in GIVEN[query.pushes :]]
        assert found == expected[len(expected) - len(found) :]


def test_a_folder_of_another_query_or_other_options_is_refused(tmp_path: Path) -> None:
    text = "SELECT count(*) AS n FROM t [TUMBLING 10 WATTR ts]"
    panes.open(text, lateness=3, state=tmp_path).close()
    with pytest.raises(StateError, match=r"query was SELECT count.*, is SELECT sum"):
        panes.open(text.replace("count(*)", "sum(x)"), lateness=3, state=tmp_path)
    with pytest.raises(StateError, match="lateness was 3, is 4"):
        panes.open(text, lateness=4, state=tmp_path)
    with pytest.raises(StateError, match="late was 'open', is 'drop'"):
        panes.open(text, lateness=3, late="drop", state=tmp_path)
    panes.open(f"  {text}\n", lateness=3, state=tmp_path, max_answers=7, stall_rows=3).close()


def test_a_changed_duration_is_told_as_one(tmp_path: Path) -> None:
    text = "SELECT count(*) AS n FROM t [TUMBLING 10 seconds WATTR ts]"
    minute: tuple[Any, ...] = ("1 minute", "60 seconds", dt.timedelta(minutes=1))
    for given in minute:
        panes.open(text, lateness=given, state=tmp_path).close()
    with pytest.raises(StateError, match="lateness was 1 minute, is 500 milliseconds"):
        panes.open(text, lateness="0.5 seconds", state=tmp_path)
    with pytest.raises(StateError, match="max_ahead was 1 day, is 2 days"):
        panes.open(text, lateness="1 minute", max_ahead="2 days", state=tmp_path)


def test_a_folder_with_other_things_in_it_is_refused_and_not_touched(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(StateError, match=r"no state folder: it holds letter\.txt"):
        _open(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["letter.txt"]


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match="cannot be used: Not a directory"):
        _open(tmp_path / "file" / "state")


def test_another_format_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state_blocks, "FORMAT", 7)
        _open(tmp_path).close()
    with pytest.raises(StateError, match="written in format 7; this version of panes reads"):
        _open(tmp_path)


@pytest.mark.parametrize("every", [0, -1, True, "2"])
def test_checkpoint_every_is_a_number_of_calls(every: Any, tmp_path: Path) -> None:
    with pytest.raises(panes.OptionError, match="checkpoint_every"):
        _open(tmp_path, checkpoint_every=every)


def test_checkpoint_every_without_a_folder_is_refused() -> None:
    with pytest.raises(panes.OptionError, match="checkpoint_every is for a state folder"):
        panes.open(KIND.text, lateness=3, checkpoint_every=7)


def test_explain_and_state_tell_of_the_folder(tmp_path: Path) -> None:
    query = _open(tmp_path)
    query.push(**GIVEN[1])
    assert query.explain().endswith(f"kept       in {tmp_path}, 1 pushes\n")
    assert query.state["on_disk"] == query._turn.keeper.folder.nbytes > 1_000


def test_a_position_that_json_cannot_hold_is_refused(tmp_path: Path) -> None:
    query = _open(tmp_path)
    for value in ({1: 2}, (1, 2), object(), {"a": b"x"}):
        with pytest.raises(panes.OptionError, match="a position is what JSON can hold"):
            query.position = value


def test_a_query_without_a_folder_says_so() -> None:
    query = panes.open(KIND.text, **KIND.options)
    with pytest.raises(panes.OptionError, match='state="folder"'):
        _ = query.position


def test_what_did_not_change_is_not_written_again(tmp_path: Path) -> None:
    """A push writes what it brought, however much is stored, and merges it now and then."""
    query = _open(tmp_path, LONG)
    folder, sizes = query._turn.keeper.folder, []
    for number in range(40):
        before = folder.written
        ts = range(500 * number, 500 * number + 500)
        query.push(t=pa.table({"ts": ts, "k": [1] * 500, "x": [1.0] * 500}))
        sizes.append(folder.written - before)
    stored = query.state["bytes"] + query.state["key_bytes"]
    assert sorted(sizes)[20] < stored / 20
    assert sum(sizes) < 10 * stored
    assert folder.nbytes < 3 * stored
    before = folder.written
    assert query.punctuate(t=-900).num_rows == 0
    assert folder.written - before < 1_000


def test_after_an_interrupted_push_a_folder_that_is_closed_does_not_have_it(
    tmp_path: Path, expected: list[list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C falls between the writing and the answers: both forget the push."""
    query = panes.open(KIND.text, state=tmp_path, **KIND.options)
    query.push(**GIVEN[0])
    write = StateFolder.write

    def interrupted(folder: StateFolder, *args: Any) -> None:
        write(folder, *args)
        raise KeyboardInterrupt

    monkeypatch.setattr(StateFolder, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        query.push(**GIVEN[1])
    monkeypatch.undo()
    query.close()
    query = panes.open(KIND.text, state=tmp_path, **KIND.options)
    assert query.pushes == 1
    assert [query.push(**one).to_pylist() for one in GIVEN[1:]] == expected[1:]
