"""Readers of Parquet, CSV and NDJSON: many files of one format as batches of one stream.

The columns of all files are those of the first. Where they are not, the message names the column
and both files; where a line cannot be read, it names the line.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import duckdb
import pyarrow as pa
import pyarrow.dataset as pads

from panes.cli.show import say
from panes.cli.time_formats import options_of, require_one_reading
from panes.errors import InputError, is_interrupt

BATCH = 1 << 20
_SEPARATORS = (",", "\t", ";", "|")
PACKED = {".gz": ("gzip", b"\x1f\x8b"), ".zst": ("zstd", b"\x28\xb5\x2f\xfd")}
"""How text may be packed, by the ending: its name, and the first bytes."""


@contextmanager
def told(option: str, path: Path) -> Iterator[None]:
    """Whatever goes wrong in a reader becomes one clear error."""
    try:
        yield
    except InputError as failure:
        raise failure.of(option) from None
    except (pa.ArrowInvalid, pa.ArrowTypeError, duckdb.Error, OSError) as failure:
        raise InputError(f"{option}: cannot read {path}: {_first(failure)}") from None
    except RuntimeError as failure:
        if is_interrupt(failure):
            raise KeyboardInterrupt from None
        raise


def parquet(files: Sequence[Path], base: Path | None) -> pads.Dataset:
    """Parquet files as one table; below `base`, folders named ``key=value`` are columns."""
    for file in files:
        if not file.stat().st_size:
            raise InputError(f"{file} is empty, not even the columns are there")
        if not first_bytes(file).startswith(b"PAR1"):
            raise InputError(
                f"cannot read {file}: it is no Parquet file",
                hint="text needs a name that ends in .csv or .ndjson",
            )
    hive = None if base is None else pads.partitioning(flavor="hive")
    return pads.dataset(
        [str(file) for file in files],
        format="parquet",
        partitioning=hive,
        partition_base_dir=None if base is None else str(base),
    )


def parquet_batches(files: Sequence[Path], base: Path | None) -> Iterator[pa.Table]:
    """The rows of Parquet files, as they are read; first the columns alone."""
    data = parquet(files, base)
    fragments = list(data.get_fragments())
    first = fragments[0].physical_schema if fragments else data.schema
    for fragment in fragments[1:]:
        _require_same(
            Path(fragments[0].path), {f.name: str(f.type) for f in first},
            Path(fragment.path), {f.name: str(f.type) for f in fragment.physical_schema},
        )  # fmt: skip
    yield data.schema.empty_table()
    for batch in data.to_batches(batch_size=BATCH):
        if len(batch):
            yield pa.Table.from_batches([batch])


def text_batches(
    files: Sequence[Path], *, is_csv: bool, timestamp_format: str | None = None
) -> Iterator[pa.Table]:
    """The rows of CSV or NDJSON files, with types that hold the values of all of them."""
    some = [file for file in files if file.stat().st_size]
    if not some:
        what = "a header" if is_csv else "a row"
        raise InputError(f"{files[0]} is empty, not even {what}", hint=_TYPED)
    options: dict[str, object] = {"union_by_name": True, "hive_partitioning": True}
    if is_csv:
        headers = [_header(file) for file in some]
        for file, (columns, _) in zip(some[1:], headers[1:], strict=True):
            _require_same(some[0], headers[0][0], file, columns)
        options |= {"header": True, "skip": 0, "delim": headers[0][1], "quote": '"', "escape": '"'}
    else:
        for file in some:
            _require_objects(file)
        options |= {"format": "newline_delimited"}
    told_formats = {} if timestamp_format is None else options_of(timestamp_format)
    connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})
    connection.execute("SET TimeZone = 'UTC'")
    sniffed = {} if told_formats else dict(options)
    options |= told_formats
    said = ", ".join(f"{name} = ${name}" for name in options)
    call = f"SELECT * FROM read_{'csv' if is_csv else 'json'}($files, {said})"
    has_rows = False
    try:
        if is_csv and sniffed:
            require_one_reading(connection, some, sniffed)
        rows = connection.sql(call, params={"files": [str(file) for file in some], **options})
        texts = [n for n, kind in zip(rows.columns, rows.types, strict=True) if kind == "VARCHAR"]
        if texts and len(some) > 1:
            each = [connection.sql(call, params={"files": [str(f)], **options}) for f in some]
            types = [dict(zip(one.columns, one.types, strict=True)) for one in each]
            _tell_mixed(texts, dict(zip(some, types, strict=True)))
        for batch in rows.to_arrow_reader(BATCH):
            if len(batch):
                has_rows = True
                yield pa.Table.from_batches([batch])
    except (duckdb.Error, pa.ArrowException, OSError) as failure:
        raise InputError(_explained(str(failure), some, is_csv=is_csv)) from None
    if not has_rows:
        raise InputError(f"{some[0]} has no rows, so its columns have no types", hint=_TYPED)


_TYPED = "leave the file out, or write it as Parquet, which has types without rows"


def first_bytes(file: Path) -> bytes:
    """The first bytes of what is in a file, which may be packed."""
    with _opened(file) as stream:
        return stream.read(64)


@contextmanager
def _opened(file: Path) -> Iterator[BinaryIO]:
    """A file to read, unpacked."""
    with pa.OSFile(str(file)) as raw:
        kind, magic = PACKED.get(file.suffix, ("", b""))
        if magic and raw.read(len(magic)) != magic:
            raise InputError(
                f"cannot read {file}: it is not packed as its name says",
                hint=f"mv {file} {file.with_suffix('')}",
            )
        raw.seek(0)
        yield pa.CompressedInputStream(raw, kind) if kind else raw


@contextmanager
def _lines(file: Path) -> Iterator[Iterator[str]]:
    with _opened(file) as stream:
        yield io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline="")


def _header(file: Path) -> tuple[dict[str, str], str]:
    """The columns of a CSV file, and what separates them: whatever its first line has most of."""
    with _lines(file) as lines:
        first = next(lines, "")
    separator = max(_SEPARATORS, key=first.count)
    names = next(csv.reader([first], delimiter=separator), [])
    return dict.fromkeys(names, ""), separator


def _require_same(first: Path, known: dict[str, str], other: Path, columns: dict[str, str]) -> None:
    """Refuse a file with other columns than the first one: which, and where."""
    if known == columns:
        return
    for name in known:
        if name not in columns:
            raise InputError(f"{other} has no column `{name}`, and {first} has")
    for name, kind in columns.items():
        if name not in known:
            raise InputError(f"{other} has a column `{name}`, and {first} has not")
        if known[name] != kind:
            raise InputError(f"`{name}` is {kind} in {other}, and {known[name]} in {first}")


def _tell_mixed(texts: Sequence[str], types: Mapping[Path, Mapping[str, object]]) -> None:
    """Say which columns are text though one of the files has something else in them."""
    for name in texts:
        for file, kinds in types.items():
            if (kind := str(kinds.get(name, "VARCHAR"))) != "VARCHAR":
                kind = kind.lower()
                say(f"`{name}` is read as text: {file} has {kind} in it, and not all files have")
                break


def _explained(said: str, files: Sequence[Path], *, is_csv: bool) -> str:
    """What DuckDB cannot read, with its line."""
    for file in files:
        if (found := _ragged(file) if is_csv else _malformed(file)) is not None:
            return found
    file = next((f for f in files if str(f) in said), files[0])
    line = re.search(r"Line: (\d+)", said)
    where = f"{file}" if line is None else f"line {line[1]} of {file}"
    reasons = [r.strip() for r in said.splitlines() if r.strip().startswith("Error when")]
    return f"cannot read {where}: {_plain(reasons[0] if reasons else said.splitlines()[0])}"


def _ragged(file: Path) -> str | None:
    """The first line of a CSV file that has not as many values as its header; None: no line."""
    columns, separator = _header(file)
    with _lines(file) as lines:
        read = csv.reader(lines, delimiter=separator)
        before = 0
        for row in read:
            if row and len(row) != len(columns):
                return (
                    f"cannot read line {before + 1} of {file}: it has {len(row)} values, and the "
                    f"header has {len(columns)} columns"
                )
            before = read.line_num
    return None


def _malformed(file: Path) -> str | None:
    """The first line of an NDJSON file that is no JSON; None: no line."""
    with _lines(file) as lines:
        for number, line in enumerate(lines, start=1):
            try:
                if line.strip():
                    json.loads(line)
            except ValueError as failure:
                place = getattr(failure, "pos", 0) + 1
                return (
                    f"cannot read line {number} of {file}: it is no JSON from character {place} on"
                    f"\n\nHint: {_ONE_A_LINE}"
                )
    return None


_ONE_A_LINE = 'every line is a JSON object of its own: {"at": 1, "item": "lamp"}'


def _require_objects(file: Path) -> None:
    """Refuse JSON that is not one object a line, as the first line shows."""
    with _lines(file) as lines:
        first = next((text for line in lines if (text := line.strip())), "{")
    if first.startswith("["):
        raise InputError(
            f"{file} is one JSON array", hint=f"{_ONE_A_LINE}; jq -c '.[]' {file} makes such lines"
        )
    if not first.startswith("{"):
        raise InputError(f"the first line of {file} is no JSON object", hint=_ONE_A_LINE)


def _first(failure: Exception) -> str:
    return _plain(str(failure).strip().splitlines()[0])


def _plain(said: str) -> str:
    """A message without the name of its kind."""
    return re.sub(r"^(Invalid Input|IO|Binder|Conversion) Error: ", "", said)
