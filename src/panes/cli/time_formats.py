"""How dates and times are written in text files: said by an option, or told from the values.

`03/02/2026` is a day of February or of March. Where all values of a file can be read both ways, the
file is refused with the option that says which.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb

from panes.errors import InputError, OptionError

_LETTERS = {
    "yyyy": "%Y", "y": "%Y", "yy": "%y", "MM": "%m", "M": "%m", "MMM": "%b", "MMMM": "%B",
    "dd": "%d", "d": "%d", "HH": "%H", "H": "%H", "hh": "%I", "h": "%I", "mm": "%M", "m": "%M",
    "ss": "%S", "s": "%S", "SSS": "%g", "SSSSSS": "%f", "a": "%p", "XXX": "%z", "Z": "%z",
    "E": "%a", "EEE": "%a", "EEEE": "%A",
}  # fmt: skip
_PIECE = re.compile(r"([A-Za-z])\1*|'((?:[^']|'')*)'|[^A-Za-z']+")
_CLOCK = re.compile("[HhmsSa]")
_TWO_WAYS = re.compile(r"%d(.)%m\1%[Yy]|%m(.)%d\2%[Yy]")


def options_of(pattern: str) -> dict[str, str]:
    """What DuckDB is told of a pattern of Spark's: how dates are written, or dates with a time.

    >>> options_of("dd/MM/yyyy HH:mm")
    {'timestampformat': '%d/%m/%Y %H:%M'}
    """
    pieces = list(_PIECE.finditer(pattern))
    written = ""
    for piece in pieces:
        if piece[1] is None:
            written += (piece[0] if piece[2] is None else piece[2]).replace("%", "%%")
        elif piece[0] in _LETTERS:
            written += _LETTERS[piece[0]]
        else:
            raise OptionError(
                f"--timestamp-format {pattern!r}: `{piece[0]}` is not known",
                hint="--timestamp-format 'dd/MM/yyyy HH:mm:ss'",
            )
    if "".join(p[0] for p in pieces) != pattern or "%" not in written:
        raise OptionError(
            f"--timestamp-format {pattern!r} is no pattern of dates",
            hint="--timestamp-format 'dd/MM/yyyy HH:mm:ss'",
        )
    return {f"{_what(pattern)}format": written}


def spark_options_of(pattern: str) -> dict[str, str]:
    """The same for Spark, which takes the pattern as it is."""
    options_of(pattern)
    return {f"{_what(pattern)}Format": pattern}


def _what(pattern: str) -> str:
    return "timestamp" if _CLOCK.search(re.sub("'[^']*'", "", pattern)) else "date"


def require_one_reading(
    connection: duckdb.DuckDBPyConnection, files: Sequence[Path], options: Mapping[str, object]
) -> None:
    """Refuse CSV files with dates in which day and month could be either."""
    found: dict[str, Path] = {}
    known = {n: v for n, v in options.items() if n not in ("union_by_name", "hive_partitioning")}
    said = ", ".join(f"{name} = ${name}" for name in known)
    for file in files:
        given = {"file": str(file), **known}
        sniffed = connection.sql(f"SELECT * FROM sniff_csv($file, {said})", params=given)
        told = dict(zip(sniffed.columns, sniffed.fetchall()[0], strict=True))
        for kinds, name in ((("DATE",), "DateFormat"), (("TIMESTAMP",), "TimestampFormat")):
            format = str(told.get(name))
            if not _TWO_WAYS.match(format):
                continue
            columns = [c["name"] for c in told["Columns"] if str(c["type"]).startswith(kinds)]
            _require_other_fails(connection, said, given, columns, format)
            found[format.partition(" ")[0]] = file
    if len(found) > 1:
        (one, first), (other, second), *_ = found.items()
        raise InputError(
            f"dates are written as {_shown(one)} in {first}, and as {_shown(other)} in {second}",
            hint=f"--timestamp-format '{_shown(one)}' says which",
        )


def _require_other_fails(
    connection: duckdb.DuckDBPyConnection,
    said: str,
    given: Mapping[str, object],
    columns: Sequence[str],
    format: str,
) -> None:
    """Refuse a column that could be read with day and month the other way round."""
    other = format.translate(str.maketrans("dm", "md"))
    for column in columns:
        name = '"' + column.replace('"', '""') + '"'
        ((value, failing),) = connection.execute(
            f"SELECT any_value({name}), count(*) - count(try_strptime({name}, $other))"
            f" FROM read_csv($file, all_varchar = true, {said}) WHERE trim({name}) <> ''",
            {**given, "other": other},
        ).fetchall()
        if value is not None and not failing:
            one, two = (_shown(f) for f in sorted((format, other)))
            raise InputError(
                f"`{column}` of {given['file']} could be {one} or {two}: {value!r}, for one",
                hint=f"--timestamp-format '{one}', or --timestamp-format '{two}'",
            )


def _shown(format: str) -> str:
    """DuckDB's letters as a pattern of Spark's."""
    letters = {v: k for k, v in reversed(_LETTERS.items())}
    return re.sub("%[A-Za-z]", lambda m: letters.get(m[0], m[0]), format)
