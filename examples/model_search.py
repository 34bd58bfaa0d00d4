"""Search for a model with one test set, and believe its scores: python examples/model_search.py

Who scores many models on one test set, and keeps the best, fits the test set as well. ``hr.Holdout`` answers the same
questions with intervals that hold for fresh people, however long the search. Here the outcome is a coin that was tossed,
so no model can be right more than half of the time. The people are made up, and fresh ones can be made to check.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np

import hedgerow as hr

COLUMNS, ROWS, LOOKS = 100, 4000, 1000
Rows = tuple[np.ndarray, np.ndarray]


def people(rows: int, seed: int) -> Rows:
    """Make up people with 100 measurements, and toss a coin for each."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, COLUMNS)), rng.random(rows) < 0.5


class Model:
    """A weighted sum of some columns, each weighted by how it differs in training. Any scikit-learn model would do."""

    def __init__(self, train: Rows, columns: np.ndarray) -> None:
        features, outcome = train
        self.weights = columns * (features[outcome].mean(axis=0) - features[~outcome].mean(axis=0))

    def predict(self, features: np.ndarray) -> np.ndarray:
        return features @ self.weights > 0


def search(train: Rows, score: Callable[[Model], float]) -> Model:
    """Add or drop one column at a time, and keep the change if the score is better."""
    rng = np.random.default_rng(0)
    columns = rng.random(COLUMNS) < 0.1
    best = Model(train, columns)
    best_score = score(best)
    for _ in range(LOOKS - 1):
        trial = columns.copy()
        trial[rng.integers(COLUMNS)] ^= True
        model = Model(train, trial)
        found = score(model)
        if found > best_score:
            best, best_score, columns = model, found, trial
    return best


def accuracy(model: Model, rows: Rows) -> float:
    return float(np.mean(model.predict(rows[0]) == rows[1]))


def main(seed: int | None) -> None:
    train, validation, test, fresh = people(ROWS, 1), people(ROWS, 2), people(ROWS, 3), people(50_000, 4)
    print("The outcome is a coin: every model is right half of the time. Is that what a search says?\n")

    naive = search(train, lambda model: accuracy(model, test))
    print(
        f"After {LOOKS:,} looks at the test set, the best model is right {accuracy(naive, test):.1%} of the time there."
    )
    print(f"  On fresh people: {accuracy(naive, fresh):.1%}. The search fitted the test set.\n")

    # A score on the validation rows is the guess that the holdout confirms or corrects.
    budget = hr.Budget(epsilon=4, delta=0)
    holdout = hr.Holdout(test, budget, train=validation, questions=LOOKS, rounds=2, seed=seed)
    careful = search(train, lambda model: holdout.score(model).value)
    final = holdout.measure(careful, name="the chosen model")
    told = sum(score.source == "holdout" for score in holdout.scores) - 1
    print(f"The same search asked a holdout {LOOKS:,} times. Validation rows answered, the test set corrected {told}.")
    print(f"  The chosen model: {final.value:.1%}, and for fresh people between {final.low:.1%} and {final.high:.1%}.")
    print(f"  On fresh people: {accuracy(careful, fresh):.1%}.")
    verdict = "nothing was found" if final.low <= 0.5 else "something was found"
    print(f"  The interval {'includes' if final.low <= 0.5 else 'excludes'} a half: {verdict}.")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else None)  # a seed repeats the same noise: for tests, not private
