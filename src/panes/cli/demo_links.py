"""The demo's job: two queries over three disordered links, every answer held to the oracle's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

import panes
from panes.cli.demo_stage import (
    Running,
    Stage,
    require_same,
    start,
    tell,
    watch,
    written,
)
from panes.cli.live_view import read_panes
from panes.crash.place import cut, read_stream, write_batches
from panes.sample_streams import packets

LATENESS = "30 seconds"
TURNS = 3
LINKS = ("main1", "main2", "control")
UNION = f"({' UNION ALL '.join(LINKS)})"
QUERIES = {
    "packets per source, last 10 minutes": "SELECT srcIP, count(*) AS packets, "
    f"max(len) AS largest FROM {UNION} [RANGE 10 minutes SLIDE 1 minute WATTR ts] "
    "GROUP BY srcIP HAVING packets > 5",
    "heavy sources of the last 5 minutes": f"SELECT heavy_hitters(srcIP, 0.1) AS heavy "
    f"FROM {UNION} [RANGE 5 minutes SLIDE 30 seconds WATTR ts] WHERE proto = 'tcp'",
}


def answer_links(stage: Stage, rows: int) -> None:
    """All queries at the same time, over the same three links, a file of each per micro-batch."""
    links = packets(rows)
    total = sum(map(len, links.values()))
    tell(f"a job: three links, {total:,} packets in 45 minutes, out of order, with a lull.")
    tell(f"A packet may be {LATENESS} late; the slowest link decides; later ones are set aside.\n")
    for name, table in links.items():
        write_batches(stage.folder / name, cut(table, TURNS))
    places = {title: stage.folder / f"query-{n}" for n, title in enumerate(QUERIES)}
    watch(stage, [_ask(stage, title, place) for title, place in places.items()], TURNS + 1)
    for title, place in places.items():
        _check(stage, title, links, place)


def _ask(stage: Stage, title: str, place: Path) -> Running:
    """Start a query of the links; answers and rows set apart go to folders of their own."""
    tagged = panes.sql(
        QUERIES[title],
        lateness=LATENESS,
        late="drop",
        bounded=True,
        with_late=True,
        name=title,
        **{name: read_stream(stage.spark, stage.folder / name) for name in LINKS},
    )
    split = stage.host.split(**{kind: place / kind for kind in ("answers", "late", "rejected")})
    query = start(tagged.writeStream.foreachBatch(split), place)
    return Running(title, query, lambda reports: read_panes(reports, title))


def _check(stage: Stage, title: str, links: Mapping[str, pa.Table], place: Path) -> None:
    """Show a few answers of a query, and hold all of them to the oracle's."""
    answers, late = (written(stage.spark, place / kind) for kind in ("answers", "late"))
    early = pc.sum(pc.less(answers["batch"], TURNS)).as_py() or 0
    on_time = {
        name: table.filter(pc.invert(pc.is_in(table["seq"], value_set=late["seq"])))
        for name, table in links.items()
    }
    want = panes.oracle(QUERIES[title], **on_time)
    got = answers.select(want.column_names).cast(want.schema)
    tell(f"{title}: {len(got):,} answers, {early:,} before the end; {len(late):,} late rows")
    tell(_shown(got.slice(len(got) // 2, 2)))
    require_same(title, got, want)
    tell("  checked: every answer is the oracle's over the rows that were on time\n")


def _shown(answers: pa.Table) -> str:
    lines = []
    for row in answers.to_pylist():
        shown = {k: v.strftime("%H:%M:%S") if hasattr(v, "strftime") else v for k, v in row.items()}
        lines.append("  " + ", ".join(f"{k} {v}" for k, v in shown.items()))
    return "\n".join(lines)
