"""The choice of a kernel for each monoid, with the reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from panes.aggregates.monoid import Columns, Lanes, Monoid
from panes.kernels.block_scan import block_scan
from panes.kernels.from_scratch import from_scratch
from panes.kernels.running import running
from panes.kernels.two_stacks import two_stacks
from panes.windows.cover import Cover
from panes.windows.cut import panes_per_window
from panes.windows.spec import Landmark, PanedSpec, Sliding

Kernel = Literal["from scratch", "two stacks", "block scan", "running"]


@dataclass(frozen=True, slots=True)
class Choice:
    """A kernel and the reason it was chosen."""

    kernel: Kernel
    why: str


def choose(monoid: Monoid, spec: PanedSpec) -> Choice:
    """The kernel for this monoid over these windows."""
    panes = panes_per_window(spec)
    if panes is None:
        return Choice("running", "a landmark window only grows")
    if panes <= 2:
        return Choice("from scratch", f"a window is {panes} pane{'s' * (panes > 1)}")
    if isinstance(monoid, Lanes):
        return Choice("two stacks", "numbers, combined by compiled code")
    return Choice("block scan", "any combine, three per answer whatever the overlap")


def roll(
    monoid: Monoid,
    spec: PanedSpec,
    panes: Columns,
    cover: Cover,
    *,
    starts: NDArray[np.int64],
    groups: NDArray[np.int64],
) -> Columns:
    """One partial per answer, by the chosen kernel."""
    if isinstance(spec, Landmark):
        return running(monoid, panes, cover, groups=groups)
    kernel = choose(monoid, spec).kernel
    if kernel == "from scratch":
        return from_scratch(monoid, panes, cover)
    if isinstance(monoid, Lanes):
        return two_stacks(monoid, panes, cover)
    assert isinstance(spec, Sliding)
    return block_scan(monoid, panes, cover, starts=starts, groups=groups, size=spec.size)
