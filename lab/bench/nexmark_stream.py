"""The Nexmark auction stream: persons who register, auctions they open, bids on these auctions.

Written from the public description of the model (Tucker, Tufte, Papadimos, Maier 2002, and its
common configuration): of every 50 events one is a person, three are auctions and 46 are bids. Half
of the bids go to the hot auction of the moment, three quarters of all bids come from the hot
bidder, and three quarters of the auctions are opened by the hot seller. Prices are in cents and lie
between one and a million dollars, evenly by their logarithm. Texts that no query of ours reads are
left out.

Invariant: the same seed and number of events give the same three tables, each sorted by `ts`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

PER_SECOND = 10_000
PERSONS, AUCTIONS, EVENTS = 1, 3, 50
"""Of so many events so many are persons and auctions; the others are bids."""
FIRST_ID = 1_000
_START = 1_767_225_600_000_000  # 2026-01-01
_HOT_AUCTION, _HOT_SELLER, _HOT_BIDDER = 2, 4, 4
"""One in so many goes to any other, and the rest to the hot one."""
_HOT_EVERY = 100
_IN_FLIGHT, _ACTIVE = 100, 1_000
_LONGEST = 20_000_000
_CATEGORIES, _FIRST_CATEGORY = 5, 10
_NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter")

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Nexmark:
    """The three streams."""

    persons: pa.Table
    auctions: pa.Table
    bids: pa.Table


def nexmark(events: int, seed: int = 1) -> Nexmark:
    """So many events, at ten thousand a second."""
    rng = np.random.default_rng(seed)
    number = np.arange(events)
    epoch, offset = number // EVENTS, number % EVENTS
    ts = _START + number * (1_000_000 // PER_SECOND)
    is_person, is_bid = offset < PERSONS, offset >= PERSONS + AUCTIONS
    is_auction = ~is_person & ~is_bid
    return Nexmark(
        persons=_persons(rng, ts[is_person]),
        auctions=_auctions(rng, ts[is_auction], epoch[is_auction]),
        bids=_bids(rng, ts[is_bid], epoch[is_bid]),
    )


def _persons(rng: np.random.Generator, ts: Numbers) -> pa.Table:
    ids = FIRST_ID + np.arange(len(ts))
    names = np.array(_NAMES)[rng.integers(0, len(_NAMES), len(ts))]
    return pa.table({"ts": _instants(ts), "id": ids, "name": names})


def _auctions(rng: np.random.Generator, ts: Numbers, epoch: Numbers) -> pa.Table:
    newest = epoch * PERSONS + PERSONS - 1
    seller = _chosen(rng, newest, hot_one_in=_HOT_SELLER, active=_ACTIVE)
    reserve = _prices(rng, len(ts))
    return pa.table(
        {
            "ts": _instants(ts),
            "id": FIRST_ID + np.arange(len(ts)),
            "seller": FIRST_ID + seller,
            "category": _FIRST_CATEGORY + rng.integers(0, _CATEGORIES, len(ts)),
            "reserve": reserve,
            "expires": _instants(ts + rng.integers(1_000_000, _LONGEST, len(ts))),
        }
    )


def _bids(rng: np.random.Generator, ts: Numbers, epoch: Numbers) -> pa.Table:
    auction = _chosen(
        rng, epoch * AUCTIONS + AUCTIONS - 1, hot_one_in=_HOT_AUCTION, active=_IN_FLIGHT
    )
    bidder = _chosen(rng, epoch * PERSONS + PERSONS - 1, hot_one_in=_HOT_BIDDER, active=_ACTIVE)
    return pa.table(
        {
            "ts": _instants(ts),
            "auction": FIRST_ID + auction,
            "bidder": FIRST_ID + bidder,
            "price": _prices(rng, len(ts)),
        }
    )


def _chosen(rng: np.random.Generator, newest: Numbers, *, hot_one_in: int, active: int) -> Numbers:
    """Who is meant: the hot one, or any of the last so many."""
    hot = newest // _HOT_EVERY * _HOT_EVERY
    some = newest - (rng.random(len(newest)) * np.minimum(newest + 1, active)).astype(np.int64)
    chosen: Numbers = np.where(rng.integers(0, hot_one_in, len(newest)) > 0, hot, some)
    return chosen


def _prices(rng: np.random.Generator, count: int) -> Numbers:
    prices: Numbers = np.round(10 ** (rng.random(count) * 6) * 100).astype(np.int64)
    return prices


def _instants(ts: Numbers) -> pa.Array:
    return pa.array(ts, pa.timestamp("us", "UTC"))
