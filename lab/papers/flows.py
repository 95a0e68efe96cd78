"""Packets of NetFlows that cross links in both directions, for the joins of the thesis.

A flow is a pair of addresses with a pair of ports. Links of the left side carry its packets one
way, links of the right side the other way, so that the answers to a packet are on the other side.
Same seed, same rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lab.papers.disorder import SECOND
from lab.papers.skew import Link
from panes.sample_streams import START

SAME_FLOW = """{l}.srcIP = {r}.destIP and {l}.destIP = {r}.srcIP and
         {l}.srcPort = {r}.destPort and {l}.destPort = {r}.srcPort"""
_PORTS = 50


@dataclass(frozen=True, slots=True)
class Traffic:
    """What a link carries: packets a second, seconds that it is late, and the direction."""

    rate: float
    delay: float = 0.0
    is_answer: bool = False


def flow_links(
    traffic: Mapping[str, Traffic], *, seconds: float, flows: int, seed: int = 7
) -> dict[str, Link]:
    """Links in time order, each packet of a flow that is as likely as any other."""
    rng = np.random.default_rng(seed)
    links = {}
    for name, carries in traffic.items():
        count = max(round(carries.rate * seconds), 2)
        at = START + np.sort(rng.integers(0, int(seconds * SECOND), count))
        rows = _packets(at, rng.integers(0, flows, count), is_answer=carries.is_answer)
        links[name] = Link(rows, at + int(carries.delay * SECOND))
    return links


def _packets(at: NDArray[np.int64], flow: NDArray[np.int64], *, is_answer: bool) -> pa.Table:
    here, there = ("dest", "src") if is_answer else ("src", "dest")
    columns = {
        f"{here}IP": flow // _PORTS,
        f"{there}IP": 1_000_000 + flow // _PORTS,
        f"{here}Port": 1_024 + flow % _PORTS,
        f"{there}Port": np.full(len(flow), 443),
    }
    return pa.table(
        {
            "ts": pa.array(at, pa.timestamp("us", "UTC")),
            **{name: pa.array(columns[name], pa.int32())
               for name in ("srcIP", "destIP", "srcPort", "destPort")},
        }
    )  # fmt: skip
