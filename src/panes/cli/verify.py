"""`panes verify`: every engine against the oracle."""

from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Annotated, Literal

import numpy as np
import pyarrow as pa
import typer

import panes
from panes.cli.files import InputFiles
from panes.cli.meter import meter
from panes.cli.options import TimestampFormat, read_query, require_spark
from panes.cli.show import say
from panes.cli.verdict import Outcome, judge, why_no_answers
from panes.errors import ASKED_WRONGLY, OptionError, PanesError
from panes.language.join_query import JoinQuery
from panes.language.query_graph import read_graph
from panes.sample_streams import bids, packets
from panes.windows.spec import PerRow

EXAMPLE = "Example: panes verify busy.sql --input bids=bids.parquet --rows 1000"

Streams = dict[str, pa.Table]
Engine = Callable[[str, Streams], pa.Table]

QUERIES = (
    "SELECT item, max(price) AS high, count(*) AS n, avg(price) AS mean "
    "FROM bids [RANGE 10 minutes SLIDE 1 minute WATTR ts] GROUP BY item",
    "SELECT median(price) AS mid, count(DISTINCT item) AS items, mode(item) AS hot "
    "FROM bids [RANGE 7 minutes SLIDE 3 minutes WATTR ts] HAVING items > 2",
    "SELECT item, sum(price) / count(*) AS mean, stddev(price) AS spread, last(price) AS last "
    "FROM bids [RANGE ALL SLIDE 5 minutes WATTR ts] WHERE price > 20 GROUP BY item",
    "SELECT min(price) AS low, heavy_hitters(item, 0.05) AS hot FROM bids "
    "[RANGE 100 ROWS SLIDE 7 ROWS]",
    "SELECT srcIP, sum(len) AS bytes, count(*) FILTER (WHERE proto = 'tcp') AS tcp "
    "FROM (main1 UNION ALL main2 UNION ALL control) [RANGE 2 minutes SLIDE 10 seconds WATTR ts] "
    "GROUP BY srcIP",
    "SELECT item, sum(price) AS total, median(price) AS mid "
    "FROM bids [RANGE 20 ROWS SLIDE 5 ROWS PA item]",
    "SELECT ts, item, price, max(price) AS high, count(*) AS n "
    "FROM bids [RANGE 1 minute RATTR ts SLIDE 1 ROW PA item] WHERE price > 20",
    "SELECT proto, max(len) AS largest, max_by(srcIP, len) AS sender "
    "FROM main1 [RANGE 20 seconds SLIDE 1 minute WATTR ts] GROUP BY proto",
    "SELECT a.ts, a.len, b.len FROM main1 a LEFT JOIN main2 b "
    "ON a.srcIP = b.srcIP AND b.ts BETWEEN a.ts - INTERVAL 2 SECONDS AND a.ts + INTERVAL 1 SECOND",
    "SELECT a.srcIP, count(*) AS pairs, max(b.len) AS largest [TUMBLING 1 minute WATTR a.ts] "
    "FROM main1 a [RANGE 3 seconds WATTR ts], main2 b [RANGE 2 seconds WATTR ts] "
    "WHERE a.srcIP = b.srcIP GROUP BY a.srcIP",
)


def verify(
    query: Annotated[
        str | None, typer.Argument(help="A query file. Without one, a built-in set is checked.")
    ] = None,
    inputs: Annotated[
        list[str] | None, typer.Option("--input", "-i", help="A stream, as name=path.")
    ] = None,
    timestamp_format: TimestampFormat = None,
    rows: Annotated[
        int, typer.Option(min=1, help="How many rows of each stream to use. The oracle is slow.")
    ] = 1_000,
    spark: Annotated[bool, typer.Option(help="Check Spark too, if it is installed.")] = True,
    crash: Annotated[
        int | None,
        typer.Option(
            help="Instead, run the query as a stream on Spark and kill it this many times: the "
            "driver, a Python worker, an executor; at random and at named points. Each time it is "
            "started again. No answer may be lost, come twice, or be wrong."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="With --crash: draws other moments to kill at.")] = 0,
) -> None:
    """Compare the answers of every engine with the oracle, the slow and obvious way.

    The engines: in one process, at once and in batches; Spark, over bounded DataFrames and as a
    stream. Answers that differ are printed, up to 20 of each engine. The exit code is 1 if any
    differ, and if there is nothing to compare.
    """
    if crash is not None:
        _crash(query, inputs or [], rows, crash, seed, timestamp_format)
        return
    if query is None and inputs:
        raise OptionError(
            "--input is given without a query that reads it",
            hint=f"panes verify busy.sql --input {inputs[0]}",
        )
    work = list(_given(query, inputs or [], rows, timestamp_format) if query else _built_in(rows))
    engines = dict(LOCAL)
    if spark and importlib.util.find_spec("pyspark") is not None:
        engines |= {"spark": _on_spark("bounded"), "spark, streamed": _on_spark("streamed")}
    verdicts = Counter[str]()
    not_compared = []
    with meter("verifying", len(work) * len(engines)) as bar:
        for text, streams in work:
            want = _outcome(_oracle, text, streams)
            if isinstance(want, ASKED_WRONGLY):
                raise want
            count = "no" if isinstance(want, PanesError) else f"{len(want):,}"
            print(f"{count:>8} answers  {_short(text)}")
            keys = [] if isinstance(want, PanesError) else _key_columns(text, want)
            found = Counter[str]()
            for name, engine in engines.items():
                verdict, said, rows_told = judge(_outcome(engine, text, streams), want, keys)
                print(f"         {name:<16} {said}")
                for line in rows_told:
                    print(f"           {line}")
                found[verdict] += 1
                bar.advance(1)
            verdicts += found
            if why := _why_not_compared(text, streams, rows, want, found):
                not_compared.append(why)
    told = _counted(verdicts, len(work), len(not_compared))
    say(f"{len(work)} queries x {len(engines)} engines: {told}")
    if verdicts["differs"]:
        raise typer.Exit(1)
    if not_compared:
        raise not_compared[0]


def _crash(
    query: str | None,
    inputs: list[str],
    rows: int,
    kills: int,
    seed: int,
    timestamp_format: str | None,
) -> None:
    if query is None:
        raise OptionError(
            "--crash kills one query", hint="panes verify busy.sql --input bids=bids.parquet ..."
        )
    [(text, streams)] = _given(query, inputs, rows, timestamp_format)
    if not len(panes.oracle(text, **streams)):
        raise _nothing(text, streams, rows)
    require_spark()
    from panes.cli.crash import crash

    crash(text, streams, kills, seed)


def _outcome(engine: Engine, text: str, streams: Streams) -> Outcome:
    """What an engine answers, or what it fails of."""
    try:
        return engine(text, streams)
    except PanesError as failure:
        return failure


def _why_not_compared(
    text: str, streams: Streams, rows: int, want: Outcome, found: Counter[str]
) -> PanesError | None:
    """What to say of a query that nothing was compared of; None if there was something."""
    if isinstance(want, PanesError):
        return None if found["differs"] else want.of("nothing to compare, the oracle fails")
    if not found["equal"] and not found["differs"]:
        return PanesError("nothing to compare: every engine refuses the query")
    if len(want) or found["differs"]:
        return None
    return _nothing(text, streams, rows)


def _nothing(text: str, streams: Streams, rows: int) -> PanesError:
    asked = read_graph(text).asked
    return PanesError(
        f"nothing to compare: no answers to {_short(text)}",
        hint=why_no_answers(asked, streams, rows),
    )


def _counted(verdicts: Counter[str], queries: int, not_compared: int) -> str:
    """All verdicts in a few words."""
    if verdicts["differs"]:
        return f"{verdicts['differs']} differ"
    if not_compared == queries:
        return "nothing was compared"
    refused = f", {verdicts['refused']} refused" if verdicts["refused"] else ""
    nothing = f", and of {not_compared} queries nothing was compared" if not_compared else ""
    return f"all equal{refused}{nothing}"


def _on_spark(how: Literal["bounded", "streamed"]) -> Engine:
    """Answers of Spark, in the order and types of the other engines."""

    def answer(text: str, streams: Streams) -> pa.Table:
        require_spark()
        from panes.cli import verify_on_spark

        bounded = how == "bounded"
        engine = verify_on_spark.bounded if bounded else verify_on_spark.streamed
        return _in_order(text, engine(text, streams)).cast(panes.sql(text, streams).schema)

    return answer


def _in_order(text: str, answers: pa.Table) -> pa.Table:
    """Answers by window and key; those of joins and per-row windows by all columns."""
    names = _key_columns(text, answers)
    return answers.sort_by([(name, "ascending", "at_start") for name in names])


def _key_columns(text: str, answers: pa.Table) -> list[str]:
    """The columns that say which question an answer is to."""
    query = read_graph(text).asked
    columns: list[str] = answers.column_names
    if isinstance(query, JoinQuery):
        return columns
    is_per_row = query.window is not None and isinstance(query.window.spec, PerRow)
    return columns if is_per_row else columns[: 2 + len(query.keys)]


def _oracle(text: str, streams: Streams) -> pa.Table:
    """The answers that all engines should give."""
    return _in_order(text, panes.oracle(text, **streams))


def _at_once(text: str, streams: Streams) -> pa.Table:
    return _in_order(text, panes.sql(text, **streams))


def _in_batches(text: str, streams: Streams) -> pa.Table:
    """Streams shuffled (unless rows are counted) and pushed in turns, in uneven batches."""
    query = panes.open(text)
    rng = np.random.default_rng(0)
    asked = read_graph(text).asked
    counted = (
        not isinstance(asked, JoinQuery)
        and asked.window is not None
        and asked.window.measure == "rows"
    )
    found = []
    for name, table in streams.items():
        order = np.arange(len(table)) if counted else rng.permutation(len(table))
        shuffled = table.take(pa.array(order))
        cuts = np.sort(np.r_[0, rng.integers(0, len(table) + 1, 7), len(table)])
        found += [query.push(**{name: shuffled.slice(a, b - a)}) for a, b in _pairs(cuts)]
    found.append(query.finish())
    return _in_order(text, pa.concat_tables([f for f in found if f.num_columns]))


LOCAL: dict[str, Engine] = {"local": _at_once, "local, streamed": _in_batches}


def _pairs(cuts: np.ndarray) -> Iterator[tuple[int, int]]:
    yield from zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True)


def _given(
    path: str, inputs: list[str], rows: int, timestamp_format: str | None
) -> Iterator[tuple[str, Streams]]:
    if not inputs:
        raise OptionError("verify needs the streams that the query reads", hint="--input name=path")
    text = read_query(path)
    sources = InputFiles.parse_all(inputs, timestamp_format, read=read_graph(text).streams)
    yield text, {s.name: pa.concat_tables(s.batches()).slice(0, rows) for s in sources}


def _built_in(rows: int) -> Iterator[tuple[str, Streams]]:
    streams = {"bids": bids(rows, keys=12, hours=0.5), **packets(rows, minutes=4)}
    for text in QUERIES:
        named = read_graph(text).streams
        yield text, {name: streams[name].slice(0, rows) for name in named}


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 100 else line[:97] + "..."
