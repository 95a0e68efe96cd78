"""Seeded streams for benchmarks, the demo and `panes verify`. Same seed, same rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

START = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z, in microseconds
HOUR = 3_600_000_000


def bids(rows: int, *, keys: int = 1_000, hours: float = 4, seed: int = 7) -> pa.Table:
    """Bids in time order: skewed items, gamma prices."""
    rng = np.random.default_rng(seed)
    at = START + np.sort(rng.integers(0, int(hours * HOUR) // 1_000, rows)) * 1_000
    return pa.table(
        {
            "ts": pa.array(at, pa.timestamp("us", "UTC")),
            "item": rng.zipf(1.3, rows) % keys,
            "price": rng.gamma(2, 50, rows),
        }
    )


def packets(rows: int, *, minutes: float = 40, seed: int = 1) -> dict[str, pa.Table]:
    """Packets of three links in arrival order: two busy, one quiet, each with its own disorder.

    A packet arrives up to 20 seconds after it was stamped, a few much later; in the middle there
    is a lull of five minutes. `seq` tells packets apart.
    """
    rng = np.random.default_rng(seed)
    links = {}
    first = 0
    for name, share in {"main1": 0.5, "main2": 0.49, "control": 0.01}.items():
        count = max(int(rows * share), 3)
        numbers = pa.array(np.arange(first, first + count))
        link = _link(rng, count, int(minutes * HOUR) // 60)
        links[name] = link.append_column("seq", numbers)
        first += count
    return links


def _link(rng: np.random.Generator, rows: int, length: int) -> pa.Table:
    at = rng.integers(0, length, rows)
    lull = length // 2
    at = np.where((at > lull) & (at < lull + HOUR // 12), at + HOUR // 12, at)
    delay = rng.exponential(4_000_000, rows).clip(0, 20_000_000)
    delay = np.where(rng.random(rows) < 0.005, rng.uniform(0, HOUR / 4, rows), delay)
    order = np.argsort(at + delay, kind="stable")
    hosts = np.array([f"10.0.{i // 8}.{i % 8}" for i in range(40)])
    return pa.table(
        {
            "ts": pa.array(START + at[order], pa.timestamp("us", "UTC")),
            "srcIP": hosts[rng.zipf(1.4, rows) % len(hosts)],
            "len": rng.integers(40, 1_500, rows),
            "proto": np.array(["tcp", "udp"])[(rng.random(rows) < 0.3).astype(int)],
        }
    )
