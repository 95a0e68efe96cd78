"""Every option of every public function refuses what is not of its kind, by its name.

`True` counts as 1 in Python and any text as true, so an option that does not look takes
``stall_rows=True`` for one row and ``batches="no"`` for yes.
"""

from __future__ import annotations

import datetime as dt
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_overloads, get_type_hints

import numpy as np
import pyarrow as pa
import pytest

import panes
from panes import api
from panes.errors import InputError, OptionError, QueryError
from panes.planning.public_options import OpenOptions, SqlOptions, meanings

TEXT = "SELECT count(*) AS n FROM s [TUMBLING 10 WATTR at]"
ROWS = pa.table({"at": [1, 2]})
THING = object()
FLAG: list[object] = ["x", 1, None, np.True_]
LENGTH: list[object] = [True, 1.5, THING, b"1 second", np.timedelta64(1, "s")]
COUNT: list[object] = [True, 0, -1, 1.5, "2", THING]
NAME: list[object] = [1, True, b"x", THING, ["x"]]
WRONG: dict[str, list[object]] = {
    "text": [None, 1, b"SELECT", ["SELECT"]],
    "stream": [None, 1, (), ("a", 1), b"s"],
    "lateness": LENGTH,
    "revise_within": LENGTH,
    "max_ahead": LENGTH,
    "heartbeat": LENGTH,
    "late": [None, True, "later", ["open"]],
    "rows_late": [True, 1.5, "2", -1],
    "max_answers": COUNT,
    "stall_rows": COUNT,
    "shards": COUNT,
    "levels": COUNT,
    "keep_rows": [True, None, -1, 1.5, "2"],
    "bounded": FLAG,
    "with_late": FLAG,
    "why": FLAG,
    "batches": FLAG,
    "run": FLAG,
    "details": FLAG,
    "name": NAME,
    "punctuation": NAME,
    "store": [*NAME, "shed"],
    "flush": [1, "slow", panes.SlowFlush],
    "frames": [1, "s", [1], {1: 2}],
    "aggregates": [None, 1, [1], "sum", [panes.WindowFunction]],
    "schema": [1, "at", {"at": "int"}],
    "hand_over": [1, "print"],
    "saved": [1, True, b"x"],
    "state": [1, True, b"x"],
    "checkpoint_every": [None, *COUNT],
    "at": NAME,
    "on": [None, *NAME],
    "size": [None, *LENGTH],
    "basic": [None, *LENGTH],
    "kind": [*NAME],
    "groups": [None, *COUNT],
    "questions": [1, "count", ["count"], {1: 2}],
    "values": COUNT,
    "title": [None, *NAME],
    "port": [None, True, -1, 65_536, "80", 1.5],
    "token": NAME,
    "edit": FLAG,
}
RIGHT: dict[str, list[object]] = {
    "lateness": [2, np.int64(2)],
    "max_ahead": [None, 100],
    "rows_late": [None, 0, 3],
    "max_answers": [None, 1_000, np.int32(5)],
    "stall_rows": [None, 7],
    "batches": [True, False],
    "why": [True],
    "name": ["mine"],
    "saved": [None],
}


def _sql(**options: Any) -> object:
    return panes.sql(options.pop("text", TEXT), options.pop("frames", None), **options, s=ROWS)


def _open(**options: Any) -> object:
    return panes.open(options.pop("text", TEXT), **options)


def _register(**options: Any) -> object:
    register = panes.register(options.pop("stream", "s"), **options)
    return register.add("all", TEXT)


def _explain(**options: Any) -> object:
    return panes.explain(options.pop("text", TEXT), options.pop("frames", None), **options, s=ROWS)


def _oracle(**options: Any) -> object:
    return panes.oracle(options.pop("text", TEXT), options.pop("frames", None), **options, s=ROWS)


def _window_index(**options: Any) -> object:
    given: dict[str, Any] = {"at": "at", "size": 10, "basic": 5, "on": "at", **options}
    return panes.window_index(given.pop("schema", ROWS.schema), **given)


def _live(**options: Any) -> object:
    with panes.live(panes.open(TEXT), **options) as page:
        return page


FUNCTIONS: dict[str, tuple[Callable[..., object], Callable[..., object]]] = {
    "sql": (panes.sql, _sql),
    "open": (panes.open, _open),
    "register": (panes.register, _register),
    "explain": (panes.explain, _explain),
    "oracle": (panes.oracle, _oracle),
    "window_index": (panes.window_index, _window_index),
    "live": (panes.live, _live),
}


def _options(of: Callable[..., object]) -> Iterator[str]:
    for name, parameter in inspect.signature(of).parameters.items():
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD and name not in ("frame", "query"):
            yield name


@pytest.mark.parametrize(
    ("function", "option"), [(f, o) for f, (of, _) in FUNCTIONS.items() for o in _options(of)]
)
def test_an_option_of_another_kind_is_refused_by_its_name(function: str, option: str) -> None:
    for wrong in WRONG[option]:
        with pytest.raises(OptionError, match=f"{option}|store") as refused:
            FUNCTIONS[function][1](**{option: wrong})
        assert "must be" in str(refused.value) or wrong in (-1, "shed", "later"), refused.value


@pytest.mark.parametrize(
    ("function", "option"),
    [(f, o) for f, (of, _) in FUNCTIONS.items() for o in _options(of) if o in RIGHT],
)
def test_an_option_of_its_kind_is_taken(function: str, option: str) -> None:
    for right in RIGHT[option]:
        FUNCTIONS[function][1](**{option: right})


def test_lengths_of_time_come_in_three_kinds(tmp_path: Path) -> None:
    text = "SELECT count(*) AS n FROM s [TUMBLING 1 minute WATTR ts]"
    for length in ("1 second", dt.timedelta(seconds=1), 0):
        panes.open(text, lateness=length)
    register = panes.register("s", lateness=0)
    register.add("all", TEXT)
    register.push(ROWS)
    register.save(tmp_path / "saved")
    panes.register("s", lateness=0, saved=tmp_path / "saved")


@pytest.mark.parametrize("name", ["late", "name", "bounded"])
def test_a_stream_that_is_called_like_an_option_is_given_as_the_hint_says(name: str) -> None:
    rows = pa.table({"at": [1, 2]})
    text = f"SELECT count(*) AS n FROM {name} [TUMBLING 10 WATTR at]"
    with pytest.raises(
        OptionError, match=r"got a Table\n\nHint: a stream of that name is given as"
    ):
        panes.sql(text, **{name: rows})
    assert panes.sql(text, {name: rows}).column("n").to_pylist() == [2]


def test_a_table_without_the_name_of_its_stream_is_refused_with_how_to_name_it() -> None:
    with pytest.raises(OptionError, match=r"Hint: a table is .*\(text, bids=table\)"):
        panes.sql(TEXT, ROWS)


@pytest.mark.parametrize("path", ["s.parquet", Path("s.parquet")])
def test_a_path_in_the_place_of_a_table_is_refused_with_how_to_read_it(path: object) -> None:
    with pytest.raises(InputError, match=r"`s` is 's.parquet', .*\n\nHint: s=pyarrow\.parquet"):
        panes.sql(TEXT, s=path)


@pytest.mark.parametrize(
    ("name", "value", "hint"),
    [
        ("watermark", "1 minute", 'lateness="10 seconds"'),
        ("delay", dt.timedelta(minutes=1), 'lateness="10 seconds"'),
        ("checkpointLocation", "x", r'option\("checkpointLocation"'),
        ("checkpoint_location", Path("x"), r'option\("checkpointLocation"'),
        ("output_mode", "append", "appended"),
        ("trigger", "10 seconds", "bounded=True"),
    ],
)
def test_an_option_of_another_system_is_told_its_own(name: str, value: object, hint: str) -> None:
    with pytest.raises(OptionError, match=rf"panes.sql has no option `{name}`\n\nHint: .*{hint}"):
        panes.sql(TEXT, s=ROWS, **{name: value})  # type: ignore[call-overload]
    with pytest.raises(OptionError, match=hint):
        panes.register("s", **{name: value})  # type: ignore[call-overload]
    rows = pa.table({"at": [1, 2]})
    assert panes.sql(f"SELECT count(*) AS n FROM {name} [TUMBLING 9 WATTR at]", **{name: rows})


def test_what_spark_has_beside_dataframes_is_told_how_one_is_made_of_it() -> None:
    reader = type("DataStreamReader", (), {"__module__": "pyspark.sql.streaming.readwriter"})()
    with pytest.raises(
        InputError, match=r"is a DataStreamReader, [^:]*: pass a Spark DataFrame, as \.load\(\)"
    ):
        panes.sql(TEXT, s=reader)


def test_two_names_of_streams_are_refused_with_how_a_register_takes_them() -> None:
    with pytest.raises(
        QueryError, match=r'several streams are panes\.register\(\("bids", "asks"\)\)'
    ):
        panes.register("bids", "asks")  # type: ignore[call-overload]


@pytest.mark.parametrize("function", ["sql", "open", "register"])
def test_an_option_that_is_none_is_refused_with_what_may_be_meant(function: str) -> None:
    with pytest.raises(OptionError, match=rf"panes.{function} has no option `latenes`") as refused:
        FUNCTIONS[function][1](latenes=5)
    assert "did you mean `lateness`?" in str(refused.value)


def test_an_option_of_another_function_is_told_where_it_is() -> None:
    text = "SELECT count(*) AS n FROM s [TUMBLING 10 WATTR at]"
    with pytest.raises(OptionError, match=r"it is one of panes\.open and panes\.register"):
        panes.sql(text, {"s": {"at": [1]}}, rows_late=10)
    with pytest.raises(
        OptionError, match=r"has no option `with_late`\n\nHint: it is one of panes.sql"
    ):
        panes.open(text, with_late=True)  # type: ignore[call-arg]


def test_the_signature_for_dataframes_has_the_options_of_the_table() -> None:
    of_frames = inspect.signature(get_overloads(api.sql)[0]).parameters
    of_table = inspect.signature(panes.sql).parameters
    assert set(of_frames) == set(of_table)
    said = {n: p.default for n, p in of_frames.items()}
    assert said == {n: p.default for n, p in of_table.items()}
    kinds = get_type_hints(SqlOptions)
    own = {**vars(api), "DataFrame": object, "SparkRegister": object}
    hints = get_type_hints(get_overloads(api.sql)[0], globalns=own)
    assert all(hints[n] == kind for n, kind in kinds.items() if n != "batches")


def test_the_help_of_a_function_says_what_each_of_its_options_means() -> None:
    help_text = inspect.getdoc(panes.open) or ""
    for name, meaning in meanings(OpenOptions).items():
        start = re.escape(meaning.split("[")[0].split()[0])
        assert re.search(rf"^{name}\n    {start}", help_text, re.MULTILINE), name
    assert "**options" not in help_text
