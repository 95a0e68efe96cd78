"""What a shard gives in a batch, whatever it is a shard of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import pyarrow as pa

from panes.answers.portions import Portion
from panes.axis import BEGINNING, FOREVER
from panes.nodes.join_stage import Above
from panes.shards.names import ASIDE, REJECTED
from panes.shards.packages import Packages
from panes.shards.sent_answers import SentAnswers

Placed: TypeAlias = Above | Literal["positions"]
"""A position of joined rows: what windows lie on, or the batch that groups by positions end in."""
Promised: TypeAlias = Mapping[Placed | Literal["end"], int]
"""What is promised of answers to come: of their positions, or of the ends of their windows."""
_NOTHING = pa.Table.from_batches([], pa.schema({"reason": pa.string()}))


@dataclass(frozen=True, slots=True)
class ShardOutcome:
    """Answers before the SELECT's expressions, rows set aside, what is promised, and sizes.

    `portions` are the answers of queries that share panes. `aside` are rows that a shard below has
    set aside, and that are passed on. `newest` is where the newest row lies, and `late_from` the
    oldest late one of this batch, `FOREVER` if there is none. All shards that take the same batches
    promise the same: in the windows that end there, or at the position, the first answers to come
    lie. With `has_ended`, none will.
    """

    progress: int
    partials: int
    nbytes: int
    answers: pa.Table = field(default_factory=lambda: _NOTHING)
    late: pa.Table = field(default_factory=lambda: _NOTHING)
    rejected: pa.Table = field(default_factory=lambda: _NOTHING)
    aside: tuple[pa.Table, ...] = ()
    portions: Sequence[Portion] = ()
    promised: Promised = field(default_factory=dict)
    newest: int = BEGINNING
    late_from: int = FOREVER
    has_ended: bool = False

    def beside(self, packages: Packages, late: Sequence[pa.Table] = ()) -> ShardOutcome:
        """With the late rows of a batch, and those that its tasks have set aside or pass on."""
        return replace(
            self,
            late=_together(late),
            rejected=_together(packages.named(REJECTED)),
            aside=tuple(packages.named(ASIDE)),
        )

    def followed_by(self, rest: ShardOutcome) -> ShardOutcome:
        """A batch that was the last one: what it gave, and all that is left."""
        answers = pa.concat_tables([self.answers, rest.answers])
        return replace(rest, answers=answers, late=self.late, rejected=self.rejected,
                       aside=self.aside, late_from=self.late_from)  # fmt: skip


@dataclass(slots=True)
class PartsOutcome:
    """What all parts of a register gave: answers on their way to sinks, or to the shards above.

    Shards above are sent `packages`.
    """

    sent: list[SentAnswers] = field(default_factory=list)
    packages: list[tuple[int, bytes]] = field(default_factory=list)
    answers: int = 0
    late: int = 0
    rejected: int = 0
    progress: int = FOREVER
    partials: int = 0
    nbytes: int = 0
    newest: int = BEGINNING
    late_from: int = FOREVER

    def count(self, part: ShardOutcome, *, sets_aside: bool = True) -> None:
        """Add the sizes of what one part gave, and the rows that it set aside, if it does."""
        self.progress = min(self.progress, part.progress)
        self.partials += part.partials
        self.nbytes += part.nbytes
        self.newest = max(self.newest, part.newest)
        if sets_aside:
            self.late += len(part.late)
            self.rejected += len(part.rejected)
            self.late_from = min(self.late_from, part.late_from)


def _together(tables: Sequence[pa.Table]) -> pa.Table:
    """Rows that were set aside, with their reasons."""
    return pa.concat_tables(tables) if tables else _NOTHING
