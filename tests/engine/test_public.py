"""The public part of an engine gives all free answers, and no private value can be reached from it."""

from __future__ import annotations

import gc
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from test_engines import CASES, LATER, LOGISTIC, QUESTIONS, UNIVERSE, guarded, practical, theory

import hedgerow as hr
from hedgerow.data.source import DataSource
from hedgerow.privacy.ledger import Ledger, Receipt
from hedgerow.privacy.noise import Noise
from hedgerow.query.counts import bound
from hedgerow.textbook.sparse_vector import SparseVector

PRIVATE = (DataSource, Ledger, Noise, Receipt, SparseVector)


def reachable(start: object) -> Iterator[object]:
    """Every object that can be reached from this one, through methods and closures too, but not through code."""
    seen, waiting = {id(start)}, [start]
    while waiting:
        found = waiting.pop()
        yield found
        if isinstance(found, types.FunctionType):
            others: list[Any] = [cell.cell_contents for cell in found.__closure__ or ()]
            others += [*(found.__defaults__ or ()), *(found.__kwdefaults__ or {}).values()]
        elif isinstance(found, type | types.ModuleType | types.BuiltinFunctionType):
            continue
        else:
            others = gc.get_referents(found)
        for other in others:
            if id(other) not in seen:
                seen.add(id(other))
                waiting.append(other)


@pytest.mark.parametrize(("opened", "budget"), CASES)
def test_neither_rows_nor_ledger_nor_noise_can_be_reached_from_what_is_public(opened, budget) -> None:
    session = opened(budget)
    for query in (*QUESTIONS[:4], *LATER[:2]):
        session.ask(query)
    private = [type(found).__name__ for found in reachable(session._engine.public) if isinstance(found, PRIVATE)]
    assert private == []


def test_the_walk_finds_what_a_closure_or_a_method_holds() -> None:
    session = practical(hr.Budget(1.0, 1e-6))
    data = session._data
    for holder in (lambda: data, data.marginal, [{"a": (data,)}], session):
        assert any(found is data for found in reachable(holder))


@pytest.mark.parametrize(("opened", "budget"), CASES)
def test_free_answers_equal_those_of_the_public_part_to_the_last_bit(opened, budget) -> None:
    session = opened(budget)
    engine = session._engine
    assert engine.public.rows == engine.rows == session.rows
    assert engine.public.certificate == session.certificate
    for query in (*QUESTIONS, *LATER):
        if opened in (guarded, theory) or query is LOGISTIC:
            continue
        asked = bound(query, UNIVERSE)
        mine, theirs = asked.ask(engine, None), asked.ask(engine.public, None)
        assert np.array_equal(mine.value, theirs.value)
        assert (mine.error is None and theirs.error is None) or np.array_equal(mine.error, theirs.error)


@pytest.mark.parametrize(("opened", "budget"), CASES)
def test_the_public_part_sells_nothing(opened, budget) -> None:
    session = opened(budget)
    asked, spent = bound(hr.count(a=3, d=1), UNIVERSE), session.spent
    free = asked.ask(session._engine.public, None).error
    for within in (1e-7, 1e-3):
        if free is None or free > within:
            with pytest.raises(hr.HedgerowError, match="within must be"):
                session._engine.public.price(asked, within)
            with pytest.raises(hr.HedgerowError, match="within must be"):
                asked.ask(session._engine.public, within)
    assert session.spent == spent
