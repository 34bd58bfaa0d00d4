"""The area under the ROC curve on a holdout: the influence of a row, estimates from pairs, and intervals that hold."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, roc_auc_score
from sklearn.model_selection import GridSearchCV

import hedgerow as hr
from hedgerow.errors import InvalidInput
from hedgerow.generalise import pairs, widths
from hedgerow.generalise.metrics import UNITS, brier

VALUES = (0.0, 0.3, 1.0, np.nan, np.inf, -np.inf)


def test_a_row_moves_a_sum_over_pairs_by_at_most_one() -> None:
    """Every table of three rows, with each row replaced by every other."""
    rows = list(itertools.product(VALUES, (False, True)))
    most = 0
    for table in itertools.combinations_with_replacement(rows, 3):
        for other in rows:
            sums = []
            for found in (table, (other, *table[1:])):
                scores, positive = np.array([s for s, _ in found]), np.array([p for _, p in found])
                sums.append((pairs.concordant_units(scores, positive), pairs.discordant_units(positive)))
            most = max(most, *(abs(a - b) for a, b in zip(*sums, strict=True)))
    assert most == UNITS  # attained, and never exceeded


@pytest.mark.parametrize("seed", range(5))
def test_the_quotient_is_the_area(seed: int) -> None:
    rng = np.random.default_rng(seed)
    positive, scores = rng.random(300) < 0.3, rng.integers(0, 20, 300).astype(float)
    found = pairs.concordant_units(scores, positive) / pairs.discordant_units(positive)
    assert found == pytest.approx(roc_auc_score(positive, scores), abs=1e-7)


def test_an_interval_of_pairs_is_that_of_half_as_many_rows() -> None:
    from hedgerow.privacy.allowance import Amount

    budget = hr.Budget(1e6, 0.0)  # hardly any noise: what remains is the sampling of rows

    def plan(rows: int) -> widths.HoldoutPlan:
        return widths.plan_holdout(
            Amount(budget, budget.total),
            budget,
            rows=rows,
            trained_on=None,
            rounds=5,
            questions=100,
            beta=0.05,
            threshold=None,
        )

    first = widths.QuestionCounts(1, measured=1)
    low, high, _ = widths.interval(plan(2000), first, first, 500.0, False, pairs=True)
    half_low, half_high, _ = widths.interval(plan(1000), first, first, 500.0, False)
    assert low == pytest.approx(half_low, abs=2e-3) and high == pytest.approx(half_high, abs=2e-3)
    assert widths.interval(plan(2000), first, first, 500.0, False, pairs=True, alone=False)[:2] == (0.0, 1.0)


def people(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    X = rng.normal(size=(n, 2))
    return X, (X[:, 0] + rng.normal(size=n) > 0.5).astype(int)


def test_areas_losses_and_calibration_hold_for_the_population() -> None:
    rng = np.random.default_rng(0)
    train, world = people(rng, 4000), people(rng, 200_000)
    model = LogisticRegression().fit(*train)
    says = model.predict_proba(world[0])[:, 1]
    true = {"auc": roc_auc_score(world[1], says), "brier": brier_score_loss(world[1], says)}
    for seed in range(5):  # intervals fail with probability 0.05, and are far wider than that in practice
        holdout = hr.Holdout(people(rng, 4000), hr.Budget(20.0, 0.0), train=train, questions=20, seed=seed)
        for metric, value in true.items():
            score = holdout.score(model, metric)
            assert score.low - 0.005 <= value <= score.high + 0.005 and score.error < 0.45
        table = holdout.calibration(model, bins=4)
        assert table["from"].tolist() == [0.0, 0.25, 0.5, 0.75] and table["to"].tolist() == [0.25, 0.5, 0.75, 1.0]
        for start, end, low, high in table[["from", "to", "low", "high"]].itertuples(index=False):
            inside = (says >= start) & (says < end)
            assert low - 0.01 <= world[1][inside].mean() <= high + 0.01


def test_a_guess_far_off_is_measured_and_the_classes_are_measured_once() -> None:
    rng = np.random.default_rng(1)
    holdout = hr.Holdout(people(rng, 4000), hr.Budget(20.0, 0.0), questions=20, seed=1)
    first = holdout.score(lambda X: X[:, 0], "auc", guess=0.1)
    second = holdout.measure(lambda X: X[:, 0], "auc")
    assert first.source == second.source == "holdout" and first.value == pytest.approx(second.value, abs=0.02)
    assert len(holdout.scores) == 2 and len(holdout.ledger.entries()) == 3
    by_row = holdout.measure(lambda X: X[:, 0] if X[0, 0] < 1 else 1 / 0, "auc", by_row=True)  # some rows fail, unseen
    assert by_row.value < first.value
    assert sum(score.cost for score in holdout.scores) == pytest.approx(holdout.ledger.spent)  # no charge is told twice


def test_a_search_may_be_by_area() -> None:
    rng = np.random.default_rng(2)
    train = people(rng, 2000)
    holdout = hr.Holdout(people(rng, 2000), hr.Budget(20.0, 0.0), train=train, seed=1)
    search = GridSearchCV(
        LogisticRegression(), {"C": [0.01, 1.0]}, scoring=holdout.scorer("auc"), cv=holdout.cv, error_score="raise"
    )
    assert 0.75 < search.fit(*train).best_score_ < 0.95
    stopping = holdout.early_stopping("brier", patience=1)
    assert not stopping.update(search.best_estimator_) and stopping.update(search.best_estimator_)


def test_a_brier_score_is_half_the_squared_distance() -> None:
    metric = brier(["a", "b"])
    found = metric.rows(np.array(["a", "b", "z"]), np.array([[0.8, 0.2], [0.8, 0.2], [0.5, 0.5]]))
    assert np.allclose(found, [0.04, 0.64, (0.25 + 0.25 + 1) / 2])


@pytest.mark.parametrize(
    ("model", "metric", "why"),
    [
        (lambda X: X, "auc", "one score for each"),
        (3, "auc", "must have predict_proba"),
        (lambda X: X[:, 0], "log_loss", "must know the classes"),
        (lambda X: X[:, 0], "roc", "one of accuracy"),
    ],
)
def test_scores_without_an_area_under_the_curve_are_refused(model, metric, why) -> None:
    rng = np.random.default_rng(2)
    holdout = hr.Holdout(people(rng, 50), hr.Budget(20.0, 0.0), train=people(rng, 50), seed=1)
    with pytest.raises(InvalidInput, match=why):
        holdout.score(model, metric)


def test_three_classes_have_no_one_area() -> None:
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(300, 2)), rng.integers(0, 3, 300)
    holdout = hr.Holdout((X, y), hr.Budget(20.0, 0.0), train=(X, y), seed=1)
    with pytest.raises(InvalidInput, match=r"of two classes\. Found a model of 3"):
        holdout.score(LogisticRegression().fit(X, y), "auc")
