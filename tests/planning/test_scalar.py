"""An interrupt while DuckDB evaluates an expression stays what it is."""

from __future__ import annotations

import pyarrow as pa
import pytest
from sqlglot import exp

import panes
from panes.expressions import projection as scalar
from panes.expressions.projection import Projection

INTERRUPTS = [KeyboardInterrupt(), SystemExit(3)]
DOUBLED = exp.Mul(this=exp.column("price"), expression=exp.Literal.number(2))
ROWS = pa.table({"at": [1, 2], "price": [1.0, 2.0]})


def interrupted(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def answered(connection: object, batch: pa.Table, text: str) -> pa.Table:
        raise error

    monkeypatch.setattr(scalar, "_answered", answered)


@pytest.mark.parametrize("error", INTERRUPTS, ids=lambda e: type(e).__name__)
def test_an_interrupt_is_told_as_one_and_the_next_call_answers(
    monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    doubled = Projection((DOUBLED,), None)
    with monkeypatch.context() as patch:
        interrupted(patch, error)
        with pytest.raises(type(error)):
            doubled(ROWS)
    assert doubled(ROWS)[1][0].to_pylist() == [2.0, 4.0]


@pytest.mark.parametrize("error", INTERRUPTS, ids=lambda e: type(e).__name__)
def test_an_interrupted_push_can_be_repeated(
    monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    text = "SELECT sum(price * 2) AS s FROM bids [RANGE 10 SLIDE 10 WATTR at]"
    query = panes.open(text, lateness=0)
    query.push(bids=ROWS.slice(0, 1))
    with monkeypatch.context() as patch:
        interrupted(patch, error)
        with pytest.raises(type(error)):
            query.push(bids=ROWS.slice(1))
    query.push(bids=ROWS.slice(1))
    assert query.finish()["s"].to_pylist() == [6.0]


def test_another_error_of_python_stays_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted(monkeypatch, RuntimeError("something else"))
    with pytest.raises(RuntimeError, match="something else"):
        Projection((DOUBLED,), None)(ROWS)
