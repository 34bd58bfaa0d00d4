"""The adversarial assistant succeeds if nothing protects a row, and stays within the budget otherwise."""

from __future__ import annotations

import numpy as np
import pytest

from hedgerow.research.audit_cases.assistant_cases import (
    CLAIM,
    KNOWN,
    PAIR,
    ROWS,
    Adversary,
    FreshNoiseTool,
    HedgerowTools,
    ReadOnlyDatabase,
)


def guesses(tool: type, questions: int, runs: int) -> float:
    """The share of runs in which the adversary says which table it was."""
    found = [
        Adversary(np.random.default_rng(seed)).attack(tool(data), questions)[0] * side > 0
        for data, side in zip(PAIR, (1, -1), strict=True)
        for seed in range(runs)
    ]
    return float(np.mean(found))


def test_the_known_rows_are_all_but_one() -> None:
    assert KNOWN.sum() == ROWS - 1 and KNOWN.min() > 0
    assert all(data.rows == ROWS for data in PAIR)


def test_a_database_gives_the_row_away_with_a_few_questions_and_fresh_noise_with_enough_of_them() -> None:
    assert guesses(ReadOnlyDatabase, 5, 3) == 1.0
    assert guesses(FreshNoiseTool, 30_000, 1) == 1.0  # half a row, 6 deviations of the mean: fails once in 10^9 times


@pytest.mark.parametrize("data", PAIR)
def test_the_tools_charge_no_more_than_the_budget_and_repeat_their_answers(data: object) -> None:
    tools = HedgerowTools(data, records=True)  # type: ignore[arg-type]
    Adversary(np.random.default_rng(0)).attack(tools, 600)
    assert tools.session.budget == CLAIM and 0.6 * CLAIM.total < tools.session.spent <= CLAIM.total
    assert tools.calls is not None
    last: dict[str, float] = {}
    after = max(i for i, (name, _, _) in enumerate(tools.calls) if name == "buy")
    for name, arguments, found in tools.calls[after + 1 :]:
        assert name == "ask"
        for question, answer in zip(arguments["questions"], found["answers"], strict=True):
            assert last.setdefault(question, answer["value"]) == answer["value"]
    assert len(last) < 400  # of 400 questions, some were asked again
