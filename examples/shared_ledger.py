"""Share one budget between two analysts: python examples/shared_ledger.py

The ledger is a file. It knows who spent what, repeats for everybody what anybody paid for, and refuses what would be too
much: for one analyst (a cap), or for all. Here the two sessions are in one process; they may be on two days, or in two.
The people are made up.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import hedgerow as hr


def people() -> pd.DataFrame:
    """Make up 20,000 people."""
    rng = np.random.default_rng(4)
    age = rng.integers(18, 90, 20_000)
    return pd.DataFrame(
        {
            "age": age,
            "sex": rng.choice(["F", "M"], 20_000),
            "region": rng.choice(["north", "east", "south", "west"], 20_000),
            "smoker": rng.random(20_000) < 0.4 - 0.003 * age,
        }
    )


def main(folder: Path, seed: int | None) -> None:
    # The key by which a ledger knows its table is the owner's secret. Without this line it is kept in the home folder.
    os.environ["HEDGEROW_LEDGER_KEY_FILE"] = str(folder / "ledger.key")
    ledger = f"sqlite:///{folder / 'people.ledger'}"
    table = people()
    options = {
        "universe": hr.Universe(
            age=hr.Integers(18, 89),
            sex=hr.Categories(["F", "M"]),
            region=hr.Categories(["north", "east", "south", "west"]),
            smoker=hr.Flag(),
        ),
        "budget": hr.Budget(epsilon=1, delta=1e-6),
        "reserve": 0.4,  # of the budget, for questions that must be more accurate than the free answers
        "ledger": ledger,
        "seed": seed,
    }

    owner = hr.open(table, **options)
    owner.ledger.cap("ana", epsilon=0.7)
    owner.ledger.cap("ben", epsilon=0.2)
    print(
        f"The owner opened the table for {owner.spent / owner.ledger.budget.total:.0%} of the budget, and capped both analysts."
    )
    owner.ledger.close()

    ana = hr.open(table, **options, analyst="ana")
    question = hr.count(smoker=True, age=(18, 30), region="north")
    free = ana.ask(question)
    print(f"\nAna asks how many of all are young smokers in the north. Free: {free.value:.2%} ± {free.error:.2%}.")
    paid = ana.ask(question, within=free.error / 2)
    print(
        f"She pays for half the error: {paid.value:.2%} ± {paid.error:.2%}, for {paid.cost / ana.ledger.budget.total:.1%} of the budget."
    )
    ana.ledger.close()

    ben = hr.open(table, **options, analyst="ben")
    same = ben.ask(question, within=free.error / 2)
    agree = "the same answer" if same.value == paid.value else "another answer"
    print(f"\nBen asks the same tomorrow, and gets {agree}, for {same.cost:g}: it was paid for.")
    other = hr.count(smoker=True, age=(60, 89), region="south")
    try:
        ben.ask(other, within=0.002)
    except hr.BudgetExceeded as refused:
        print(f"He asks for an error of 0.2 % on another question, and is refused:\n  {refused}")
    looser = ben.ask(other)
    print(f"Free answers are never refused: {looser.value:.2%} ± {looser.error:.2%}.")

    print("\nWho spent what:")
    for row in ben.ledger.spending().itertuples(index=False):
        print(f"  {row.who or 'the owner':<10} {row.charges:3d} charges, {row.share:6.1%} of the budget")
    ben.ledger.close()
    log = hr.ledger.read(ledger)
    log.verify()
    print("Every line of the ledger was checked: none was changed or removed from the middle.")
    log.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder), int(sys.argv[1]) if len(sys.argv) > 1 else None)  # a seed: for tests, not private
