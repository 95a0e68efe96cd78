"""`panes demo`: the main job, start to end, with its answers checked."""

from __future__ import annotations

import time
from typing import Annotated

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer

import panes
from panes.bench.workloads import bids, packets
from panes.cli.show import meter
from panes.errors import PanesError
from panes.reference.compare import difference

EXAMPLE = "Example: panes demo --rows 4000"

LATENESS = "30 seconds"
UNION = "(main1 UNION ALL main2 UNION ALL control)"
QUERIES = {
    "packets per source, last 10 minutes": "SELECT srcIP, count(*) AS packets, "
    f"max(len) AS largest FROM {UNION} [RANGE 10 minutes SLIDE 1 minute WATTR ts] "
    "GROUP BY srcIP HAVING packets > 5",
    "bytes and median length, last 90 seconds": f"SELECT sum(len) AS bytes, median(len) AS mid "
    f"FROM {UNION} [RANGE 90 seconds SLIDE 20 seconds WATTR ts]",
    "heavy sources of the last 5 minutes": f"SELECT heavy_hitters(srcIP, 0.1) AS heavy "
    f"FROM {UNION} [RANGE 5 minutes SLIDE 30 seconds WATTR ts] WHERE proto = 'tcp'",
}


def demo(
    rows: Annotated[int, typer.Option(help="Packets on the three links together.")] = 6_000,
) -> None:
    """Stream packets of three disordered links through window queries, and check every answer."""
    links = packets(rows)
    total = sum(map(len, links.values()))
    print(f"three links, {total:,} packets in 45 minutes, out of order, with a lull.")
    print(f"A packet may be {LATENESS} late; the slowest link decides; later ones are set aside.\n")
    for title, text in QUERIES.items():
        _stream(title, text, links)
    _price()


def _stream(title: str, text: str, links: dict[str, pa.Table]) -> None:
    query = panes.open(text, lateness=LATENESS, late="drop")
    found: list[pa.Table] = []
    with meter(title, sum(map(len, links.values()))) as bar:
        for turn in _turns(links):
            found.append(query.push(**turn))
            bar.advance(sum(map(len, turn.values())))
    early = sum(map(len, found))
    found.append(query.finish())
    answers, late = pa.concat_tables(found), query.late
    print(f"{title}: {len(answers):,} answers, {early:,} before the end; {len(late):,} late rows")
    print(_shown(answers.slice(len(answers) // 2, 3)))
    on_time = {
        n: t.filter(pc.invert(pc.is_in(t["seq"], value_set=late["seq"].combine_chunks())))
        for n, t in links.items()
    }
    wrong = difference(answers, panes.oracle(text, **on_time))
    if wrong is not None:
        raise PanesError(f"the demo's answers differ from the oracle's: {wrong}")
    print("  checked: every answer is the oracle's over the rows that were on time\n")


def _turns(links: dict[str, pa.Table], turns: int = 60) -> list[dict[str, pa.Table]]:
    """The links side by side, in the order of arrival."""
    cuts = {name: np.linspace(0, len(t), turns + 1).astype(int) for name, t in links.items()}
    return [
        {n: t.slice(cuts[n][i], cuts[n][i + 1] - cuts[n][i]) for n, t in links.items()}
        for i in range(turns)
    ]


def _price() -> None:
    """What overlap costs: the same rows, tumbling and sliding."""
    table = bids(1_000_000)
    text = (
        "SELECT item, max(price) AS high, count(*) AS n "
        "FROM bids [RANGE {} SLIDE 1 minute WATTR ts] GROUP BY item"
    )
    print("the price of overlap, 1,000,000 bids, 1,000 items, max and count:")
    for size, windows in (("1 minute", 1), ("10 minutes", 10), ("1 hour", 60)):
        panes.sql(text.format(size), bids=table)
        begin = time.perf_counter()
        answers = panes.sql(text.format(size), bids=table)
        seconds = time.perf_counter() - begin
        print(f"  each row in {windows:>2} windows: {len(answers):>7,} answers in {seconds:.3f} s")


def _shown(answers: pa.Table) -> str:
    lines = []
    for row in answers.to_pylist():
        shown = {k: v.strftime("%H:%M:%S") if hasattr(v, "strftime") else v for k, v in row.items()}
        lines.append("  " + ", ".join(f"{k} {v}" for k, v in shown.items()))
    return "\n".join(lines)
