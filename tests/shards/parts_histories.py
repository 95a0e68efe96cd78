"""Histories of registers of any queries over shards, which tests and planted bugs share."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from panes.planning.terms import StreamOptions
from panes.shards.parts_shard import PARTS
from tests.shards.parts_host import PartsHost
from tests.shards.parts_queries import (
    COUNTED,
    LATENESS,
    OVER_SEVERAL,
    WINDOWS,
    batches,
    final,
    rows,
    wanted_of,
)
from tests.support import assert_rows


def given_by(
    host: PartsHost, lists: list[set[str]], texts: dict[str, str], streams: dict[str, pa.Table]
) -> tuple[dict[str, list[pa.Table]], dict[str, object]]:
    """What a history of queries gives; queries of each batch are listed."""
    given: dict[str, list[pa.Table]] = {}
    exact: dict[str, object] = {}
    parts = {name: batches(table, len(lists)) for name, table in streams.items()}
    for number, wanted in enumerate(lists):
        for name in sorted(host.queries() - wanted):
            host.remove(name)
        for name in sorted(wanted - host.queries()):
            host.add(name, texts[name])
            exact[name] = host.exact_from(name)
        for name, table in host.push(**{s: some[number] for s, some in parts.items()}).items():
            given.setdefault(name, []).append(table)
        for name in wanted:
            assert host.exact_from(name) == exact[name], name
    for name, table in host.finish().items():
        given.setdefault(name, []).append(table)
    return given, exact


def assert_exact(
    given: dict[str, list[pa.Table]],
    exact: dict[str, object],
    texts: dict[str, str],
    streams: dict[str, pa.Table],
) -> None:
    for name in exact:
        want = wanted_of(texts[name], exact[name], streams)
        if name not in given:
            assert not len(want), name
            continue
        assert_rows(final(given[name]), want)


def queries_come_later(seed: int) -> None:
    rng = np.random.default_rng(seed)
    streams = {"s": rows(seed)}
    names = sorted(WINDOWS)
    first = {*rng.choice(names, 2, replace=False), "sums", "other"}
    lists = [set(map(str, first))]
    for _ in range(4):
        lists.append(lists[-1] | set(map(str, rng.choice(names, 2))))
    host = PartsHost({"s": streams["s"].schema}, StreamOptions(lateness=LATENESS))
    given, exact = given_by(host, lists, WINDOWS, streams)
    assert_exact(given, exact, WINDOWS, streams)
    assert any(exact.values())


def joins_and_windows_in_one_register(seed: int) -> None:
    rng = np.random.default_rng(seed)
    streams = {"s": rows(seed), "r": rows(seed + 100)}
    texts = {**WINDOWS, **OVER_SEVERAL}
    first = {"pairs", "per k", "both", "r by b", "other", "of r", "sums"}
    lists = [first]
    for _ in range(3):
        lists.append(lists[-1] | set(map(str, rng.choice(sorted(texts), 3))))
    host = PartsHost({n: t.schema for n, t in streams.items()}, StreamOptions(lateness=LATENESS))
    given, exact = given_by(host, lists, texts, streams)
    assert_exact(given, exact, texts, streams)
    assert not any(exact[name] for name in first)
    assert any(exact.values())


def windows_come_to_joins() -> None:
    """How far their stream has come is known by the join alone."""
    streams = {"s": rows(3), "r": rows(4)}
    texts = {**WINDOWS, **OVER_SEVERAL}
    host = PartsHost({n: t.schema for n, t in streams.items()}, StreamOptions(lateness=LATENESS))
    lists = [{"pairs"}, {"pairs", "sums", "of r"}, {"pairs", "sums", "of r", "large", "both"}]
    given, exact = given_by(host, lists, texts, streams)
    assert None not in [exact[name] for name in ("sums", "of r", "large", "both")]
    assert_exact(given, exact, texts, streams)


def another_column_is_followed() -> None:
    streams = {"s": rows(7)}
    host = PartsHost({"s": streams["s"].schema}, StreamOptions(lateness=LATENESS))
    lists = [{"large", "other"}, {"large", "other"}, {"large", "other", "by b"}]
    texts = {**WINDOWS, "by b": "SELECT k, sum(x) AS a FROM s [TUMBLING 20 WATTR b] GROUP BY k"}
    given, exact = given_by(host, lists, texts, streams)
    assert isinstance(exact["by b"], int)
    assert_exact(given, exact, texts, streams)


def nothing_is_kept_of_what_has_gone() -> None:
    host = PartsHost({"s": rows(1).schema}, StreamOptions(lateness=LATENESS))
    texts = {**WINDOWS, **COUNTED}
    for name, text in texts.items():
        host.add(name, text)
    parts = batches(rows(1), 3)
    host.push(s=parts[0])
    alone = {one.key for one in host.alone.values()}
    held = {name.split("/")[0] for state in host.below for name in state}
    assert alone <= held
    for name in texts.keys() - {"sums"}:
        host.remove(name)
    host.push(s=parts[1])
    names = {name for state in host.below for name in state}
    assert not {name for name in names if name.split("/")[0] in alone}
    again = {"about", "ledger", f"{PARTS}/missed"}
    assert {name for name in names if not name[0].isdigit()} <= again
