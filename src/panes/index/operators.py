"""The questions to a window, classified as in the paper (3.1 and 3.2).

The mode says on which side of an operator there are windows. The group says what a new answer can
be made from. Both together say which index helps: none, one of values and counts, or one of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum


class OperatorMode(IntEnum):
    """Where an operator has windows."""

    PASSING = 1
    """No windows: each row is looked at once, as by a filter."""
    WINDOW_IN = 2
    """A window on the input; answers come as rows come, as of a join or a question."""
    WINDOW_OUT = 3
    """No window on the input; the output is stored as one, as of a filter that is asked later."""
    WINDOW_IN_AND_OUT = 4
    """Both: the answers over windows are stored as a window themselves."""

    @property
    def needs_rows(self) -> bool:
        """True if rows of the input must be stored."""
        return self in (OperatorMode.WINDOW_IN, OperatorMode.WINDOW_IN_AND_OUT)


class Group(Enum):
    """The input from which an answer follows when the window slides."""

    INCREMENTAL = "from the answer before, and the basic windows that come and go"
    BY_HISTOGRAM = "from values and their counts"
    BY_ROWS = "from the rows of the window"


@dataclass(frozen=True, slots=True)
class IndexOperator:
    """A question, its mode and group; `in_order` if it needs values by size."""

    name: str
    mode: OperatorMode
    group: Group
    in_order: bool = False

    @property
    def helped_by(self) -> str:
        """The index that makes it cheap."""
        if not self.mode.needs_rows or self.group is Group.INCREMENTAL:
            return "none"
        return "set-valued" if self.group is Group.BY_HISTOGRAM else "attribute-valued"


OPERATORS: dict[str, IndexOperator] = {
    operator.name: operator
    for operator in (
        IndexOperator("filter", OperatorMode.PASSING, Group.INCREMENTAL),
        IndexOperator("filter stored as a window", OperatorMode.WINDOW_OUT, Group.INCREMENTAL),
        IndexOperator("sum", OperatorMode.WINDOW_IN, Group.INCREMENTAL),
        IndexOperator("count", OperatorMode.WINDOW_IN, Group.BY_HISTOGRAM),
        IndexOperator("values", OperatorMode.WINDOW_IN, Group.BY_HISTOGRAM, in_order=True),
        IndexOperator("histogram", OperatorMode.WINDOW_IN, Group.BY_HISTOGRAM, in_order=True),
        IndexOperator("quantiles", OperatorMode.WINDOW_IN, Group.BY_HISTOGRAM, in_order=True),
        IndexOperator("rank", OperatorMode.WINDOW_IN, Group.BY_HISTOGRAM, in_order=True),
        IndexOperator("nearest", OperatorMode.WINDOW_IN, Group.BY_HISTOGRAM, in_order=True),
        IndexOperator("top", OperatorMode.WINDOW_IN, Group.BY_HISTOGRAM, in_order=True),
        IndexOperator("intersection", OperatorMode.WINDOW_IN, Group.BY_HISTOGRAM, in_order=True),
        IndexOperator("difference", OperatorMode.WINDOW_IN, Group.BY_HISTOGRAM, in_order=True),
        IndexOperator("semi_join", OperatorMode.WINDOW_IN, Group.BY_HISTOGRAM),
        IndexOperator("rows", OperatorMode.WINDOW_IN, Group.BY_ROWS),
        IndexOperator("between", OperatorMode.WINDOW_IN, Group.BY_ROWS, in_order=True),
        IndexOperator("sorted", OperatorMode.WINDOW_IN, Group.BY_ROWS, in_order=True),
        IndexOperator("join", OperatorMode.WINDOW_IN, Group.BY_ROWS),
        IndexOperator("windowed join", OperatorMode.WINDOW_IN_AND_OUT, Group.BY_ROWS),
    )
}

QUESTIONS: tuple[str, ...] = tuple(
    name
    for name, operator in OPERATORS.items()
    if operator.helped_by != "none" and operator.name not in ("join", "windowed join")
)
"""The questions to a window index, by the names of its methods."""
