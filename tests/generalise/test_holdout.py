"""A reusable holdout: its answers, their cost, its end, and statements about the population that hold."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats

import hedgerow as hr
from hedgerow.errors import BudgetExceeded, InvalidInput
from hedgerow.generalise import metrics, widths
from hedgerow.generalise.holdout import MEASUREMENT, ROUND, Score
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import Laplace
from hedgerow.privacy.ledger import Accountant

BUDGET = Budget(4.0, 1e-6)


def noise_rows(n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.integers(0, 2, (n, d), dtype=np.int8), rng.integers(0, 2, n, dtype=np.int8)


def holdout(n: int = 4000, d: int = 20, budget: Budget = BUDGET, **options):
    options = {"train": noise_rows(n, d, 1), "seed": 1, **options}
    return hr.Holdout(noise_rows(n, d, 0), budget, **options)


def feature(j: int):
    return lambda X: X[:, j]


# What is told


def test_a_score_that_the_training_set_explains_is_the_training_set_s_and_free_but_for_the_round() -> None:
    held = holdout()
    scores = [held.score(feature(j)) for j in range(20)]
    X, y = noise_rows(4000, 20, 1)
    assert [score.value for score in scores] == pytest.approx([float(np.mean(X[:, j] == y)) for j in range(20)])
    assert {score.source for score in scores} == {"guess"}
    assert scores[0].cost > 0 and all(score.cost == 0 for score in scores[1:])


def test_a_score_that_the_guess_misses_is_measured_near_the_holdout_s_own() -> None:
    held = holdout()
    X, y = noise_rows(4000, 20, 0)
    score = held.score(feature(3), guess=0.95)
    assert score.source == "holdout"
    assert score.value == pytest.approx(float(np.mean(X[:, 3] == y)), abs=5 * held.plan.measurement.sigma / 4000)
    assert score.low < 0.5 < score.high


def test_a_measurement_says_no_more_than_its_resolution_and_so_does_the_ledger() -> None:
    held = holdout()
    rows = held.score(feature(0), guess=0.9).value * 4000
    assert rows % held.plan.resolution == 0 and held.plan.resolution > 1
    (entry,) = held.ledger.entries()
    assert entry.why == ROUND and entry.released == (("above", rows),)


def test_a_measurement_outright_costs_a_fifth_of_a_round_and_leaves_the_round_open() -> None:
    held = holdout()
    first = held.score(feature(0))
    final = held.measure(feature(0))
    assert final.source == "holdout" and final.cost == pytest.approx(first.cost / 5, rel=1e-3)
    assert [entry.why for entry in held.ledger.entries()] == [ROUND, MEASUREMENT]
    assert held.score(feature(1)).cost == 0


def test_without_a_training_set_a_guess_is_checked_and_no_guess_is_measured() -> None:
    held = holdout(train=None)
    assert held.score(feature(0), guess=0.5).source == "guess"
    assert held.score(feature(0)).source == "holdout"
    with pytest.raises(InvalidInput, match="guess must be between"):
        held.score(feature(0), guess=50)


def test_a_round_ends_with_its_first_wrong_guess_and_the_next_is_charged() -> None:
    held = holdout(rounds=3)
    costs = [held.score(feature(0), guess=0.95).cost for _ in range(3)]
    assert costs == pytest.approx([BUDGET.total / 3] * 3, rel=1e-6)
    assert [entry.why for entry in held.ledger.entries()] == [ROUND] * 3


def test_an_exhausted_holdout_says_so_and_earlier_scores_remain() -> None:
    held = holdout(rounds=3)
    said = [held.score(feature(0), guess=0.95) for _ in range(3)]
    assert held.exhausted and "exhausted" in repr(held)
    with pytest.raises(BudgetExceeded, match=r"exhausted\. Earlier scores remain"):
        held.score(feature(0), guess=0.95)
    with pytest.raises(BudgetExceeded, match="exhausted"):
        held.score(feature(0))
    assert held.scores == tuple(said)


def test_an_open_round_goes_on_though_nothing_is_left_to_open_another() -> None:
    held = holdout(rounds=1)
    for j in range(20):
        assert held.score(feature(j)).source == "guess"
    assert not held.exhausted and held.ledger.remaining < 1e-6


def test_refusal_comes_before_the_model_sees_a_row() -> None:
    held = holdout(rounds=1)
    held.score(feature(0), guess=0.95)
    seen = []
    with pytest.raises(BudgetExceeded):
        held.score(lambda X: seen.append(len(X)), guess=0.5)
    assert seen == []


def test_a_holdout_is_charged_to_the_ledger_it_is_given() -> None:
    ledger = Accountant(BUDGET)
    held = holdout(ledger=ledger, rounds=2)
    held.score(feature(0))
    assert ledger.spent == pytest.approx(BUDGET.total / 2, rel=1e-6)
    with pytest.raises(InvalidInput, match="that of the ledger"):
        holdout(ledger=Accountant(Budget(1.0, 0.0)))


def test_words_are_counted_only_while_the_ledger_pays_for_nothing_else() -> None:
    ledger = Accountant(Budget(4.0, 1e-6))
    held = holdout(ledger=ledger)
    assert held.score(feature(0)).by == widths.FEW_WORDS and held.measure(feature(0)).by == widths.FEW_WORDS
    ledger.charge(held.plan.measurement, why="a question from elsewhere")
    score = held.score(feature(1))
    assert score.by == widths.NOTHING and (score.low, score.high) == (0.0, 1.0)
    small = Accountant(Budget(0.02, 1e-12))
    small.charge(held.plan.measurement.__class__(1.0, 1e6), why="a question from elsewhere")
    score = holdout(n=1_000_000, d=1, ledger=small, budget=small.budget, rounds=1).measure(feature(0))
    assert score.by.startswith("Jung") and 0.3 < score.low < 0.5 < score.high < 0.7


def test_a_former_holdouts_ledger_is_spent_and_reported_as_such() -> None:
    first = holdout(rounds=2)
    first.score(feature(0), guess=0.9)
    again = Accountant(BUDGET, earlier=first.ledger.entries())
    held = holdout(ledger=again, rounds=2)
    assert again.spent == first.ledger.spent
    assert held.score(feature(1)).by == widths.NOTHING


def test_there_is_one_holdout_and_it_stays_in_its_process() -> None:
    held = holdout()
    assert copy.deepcopy(held) is held
    for one in (held, held.scorer()):
        with pytest.raises(InvalidInput, match="pickle"):
            pickle.dumps(one)


def test_nothing_of_the_rows_is_in_what_is_shown() -> None:
    one, other = holdout(), hr.Holdout((*noise_rows(4000, 20, 5),), BUDGET, train=noise_rows(4000, 20, 1), seed=1)
    assert repr(one) == repr(other) and "NOT PRIVATE" in repr(one)
    assert one.plan == other.plan


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"budget": Budget(1.0, 1e-6, "add-remove")}, "neighbours must be 'replace'"),
        ({"beta": 0.0}, "beta and threshold"),
        ({"threshold": 1.5}, "beta and threshold"),
        ({"rounds": 0}, "rounds must be"),
        ({"train": np.zeros(3)}, "frame with its target"),
        ({"train": (np.zeros((3, 2)), np.zeros(4))}, "one target for each"),
    ],
)
def test_senseless_arguments_are_refused(given: dict, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        holdout(**given)


# Metrics


def test_a_value_that_is_no_number_is_the_worst_and_others_are_clipped() -> None:
    given = np.array([np.nan, np.inf, -np.inf, 2.0, -1.0, 0.25])
    assert metrics.in_units(given, 6, 0.0).tolist() == [0, metrics.UNITS, 0, metrics.UNITS, 0, metrics.UNITS // 4]
    assert metrics.in_units(given, 6, 1.0)[0] == metrics.UNITS


def test_a_metric_s_worst_value_is_its_own() -> None:
    nothing = lambda X: np.full(len(X), np.nan)  # noqa: E731
    held = holdout()
    assert held.score(nothing, lambda y, p: p).value == 0
    assert held.score(nothing, "squared_error").value == 1


def test_the_split_of_a_holdout_is_all_rows_twice() -> None:
    ((fit, guess),) = holdout().cv.split(np.zeros((7, 2)))
    assert fit.tolist() == guess.tolist() == list(range(7))
    assert holdout().cv.get_n_splits() == 1


def test_named_metrics_are_what_they_say() -> None:
    y, p = np.array([0.0, 1.0, 1.0]), np.array([0.0, 0.5, 3.0])
    assert metrics.accuracy.rows(y, p).tolist() == [1, 0, 0]
    assert metrics.zero_one_loss.rows(y, p).tolist() == [0, 1, 1]
    assert metrics.squared_error(2.0).rows(y, p).tolist() == [0, 1 / 16, 1]
    assert metrics.absolute_error(2.0).rows(y, p).tolist() == [0, 0.25, 1]
    told = np.array([[0.5, 0.5], [1.0, 0.0], [0.2, 0.8]])
    found = metrics.log_loss([0, 1], most=2.0).rows(np.array([0, 1, 7]), told)
    assert found[0] == pytest.approx(math.log(2) / 2) and np.isinf(found[1]) and np.isinf(found[2])


@pytest.mark.parametrize("metric", ["accuracy", "zero_one_loss", "squared_error", "absolute_error"])
def test_a_holdout_averages_each_metric(metric: str) -> None:
    X, y = noise_rows(4000, 20, 1)
    score = holdout().score(feature(2), metric)
    right = float(np.mean(X[:, 2] == y))
    assert score.value == pytest.approx(right if metric == "accuracy" else 1 - right)
    assert score.greater_is_better == (metric == "accuracy")


def test_a_metric_of_one_s_own_and_any_function_of_the_rows_can_be_asked() -> None:
    held = holdout()
    X, y = noise_rows(4000, 20, 1)
    assert held.score(feature(0), lambda y, p: 0.5 * (y == p)).value == pytest.approx(
        np.mean(X[:, 0] == y) / 2, abs=1e-5
    )
    assert held.mean(lambda X, y: X[:, 0] * X[:, 1] * 1.0).value == pytest.approx(np.mean(X[:, 0] * X[:, 1]), abs=1e-5)
    with pytest.raises(InvalidInput, match="metric must be"):
        held.score(feature(0), "roc")
    with pytest.raises(InvalidInput, match="one number for each"):
        held.mean(lambda X, y: 0.5)


def test_a_model_that_raises_on_a_row_is_refused_without_its_words_or_judged_row_by_row() -> None:
    X, y = noise_rows(400, 3, 0)
    X = X.copy()
    X[17, 0] = 9

    def model(rows: np.ndarray) -> np.ndarray:
        if (rows == 9).any():
            raise ValueError("row 17 holds 9")
        return rows[:, 1]

    held = hr.Holdout((X, y), Budget(50.0, 1e-6), seed=1)
    with pytest.raises(InvalidInput, match="Found that one of them raised") as refused:
        held.score(model, guess=0.5)
    assert "17" not in str(refused.value) and refused.value.__cause__ is None and refused.value.__context__ is None
    assert held.score(model, guess=0.5, by_row=True).source == "guess"


def test_row_by_row_a_prediction_cannot_depend_on_other_rows() -> None:
    X, y = np.arange(300.0)[:, None], np.zeros(300)
    batch = lambda rows: (rows[:, 0] > rows.mean()).astype(float)  # noqa: E731
    held = hr.Holdout((X, y), Budget(50.0, 1e-6), seed=1)
    assert held.score(batch, guess=0.5).source == "guess"  # half of them, together
    assert held.score(batch, guess=1.0, by_row=True).source == "guess"  # each is its own mean


def test_a_model_cannot_write_to_the_holdout() -> None:
    def vandal(X: np.ndarray) -> np.ndarray:
        X[:] = 0
        return X[:, 0]

    with pytest.raises(InvalidInput):
        holdout(train=None).score(vandal, guess=0.5)


def test_a_frame_with_a_target_is_a_holdout_too() -> None:
    X, y = noise_rows(1000, 2, 0)
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y})
    held = hr.Holdout(frame, BUDGET, target="y", train=frame, seed=1)
    assert held.score(lambda F: F["a"]).value == pytest.approx(float(np.mean(X[:, 0] == y)))
    with pytest.raises(InvalidInput, match="target column"):
        hr.Holdout(frame, BUDGET, target="z")


# Searching


def with_signal(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 6))
    X[:, 2] += 1.5 * y
    X[:, 4] -= 1.0 * y
    return X, y


def test_features_that_tell_are_selected_with_their_side() -> None:
    held = hr.Holdout(with_signal(4000, 0), BUDGET, train=with_signal(4000, 1), seed=1)
    chosen = held.select_features(margin=0.1)
    assert [(one.column, one.above) for one in chosen] == [(2, True), (4, False)]
    with pytest.raises(InvalidInput, match="training set"):
        holdout(train=None).select_features()


def test_columns_of_a_frame_that_hold_no_numbers_tell_nothing() -> None:
    def frame(seed: int) -> pd.DataFrame:
        X, y = with_signal(2000, seed)
        label = np.where(y == 1, "yes", "no")
        return pd.DataFrame(
            {"tells": X[:, 2], "gaps": np.where(X[:, 0] > 0, np.nan, X[:, 2]), "text": label, "y": label}
        )

    held = hr.Holdout(frame(0), BUDGET, target="y", train=frame(1), seed=1)
    assert [one.column for one in held.select_features(margin=0.1)] == ["tells", "gaps"]


def test_early_stopping_stops_after_patience_updates_without_an_improvement() -> None:
    held = holdout()
    for metric, better in (("accuracy", [0.5, 0.52, 0.51, 0.52, 0.5]), ("zero_one_loss", [0.5, 0.48, 0.49, 0.48, 0.5])):
        stopping, told = held.early_stopping(metric, patience=3), iter(better)
        stopping._scored = lambda model, told=told, metric=metric: held.score(model, metric, guess=next(told))
        assert [stopping.update(feature(0)) for _ in better] == [False, False, False, False, True]
        assert stopping.best_update == 2


def test_the_leaderboard_has_the_best_first_whatever_that_is() -> None:
    held = holdout()
    for name, guess in (("one", 0.51), ("two", 0.49), ("three", 0.5)):
        held.score(feature(0), guess=guess, name=name)
        held.score(feature(0), "zero_one_loss", guess=1 - guess, name=name)
    assert held.leaderboard("accuracy")["name"].tolist() == ["one", "three", "two"]
    assert held.leaderboard()["name"].tolist() == ["one", "three", "two"]
    assert list(held.leaderboard().columns) == ["name", "value", "low", "high", "source"]


def test_a_grid_search_is_judged_by_the_holdout() -> None:
    pytest.importorskip("sklearn")
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV

    X, y = with_signal(4000, 1)
    held = hr.Holdout(with_signal(4000, 0), BUDGET, seed=1)
    search = GridSearchCV(
        LogisticRegression(), {"C": [1e-5, 1.0]}, scoring=held.scorer("accuracy"), cv=held.cv, error_score="raise"
    ).fit(X, y)
    assert len(held.scores) == 2 and {score.source for score in held.scores} == {"guess"}
    assert search.best_params_ == {"C": 1.0}
    assert search.best_score_ == max(score.value for score in held.scores)
    folds = GridSearchCV(
        LogisticRegression(), {"C": [1.0]}, scoring=held.scorer("zero_one_loss"), cv=3, error_score="raise"
    ).fit(X, y)
    assert len(held.scores) == 5 and folds.best_score_ < 0


def test_a_grid_search_stops_where_the_holdout_is_exhausted() -> None:
    pytest.importorskip("sklearn")
    from sklearn.model_selection import GridSearchCV
    from sklearn.tree import DecisionTreeClassifier

    X, y = noise_rows(2000, 30, 1)
    held = hr.Holdout(noise_rows(2000, 30, 0), BUDGET, rounds=2, seed=1)
    search = GridSearchCV(  # trees that know the training set by heart
        DecisionTreeClassifier(),
        {"min_samples_split": [2, 3, 4]},
        scoring=held.scorer(),
        cv=held.cv,
        error_score="raise",
    )
    with pytest.raises(BudgetExceeded, match="exhausted"):
        search.fit(X, y)
    assert [score.source for score in held.scores] == ["holdout"] * 2
    assert all(abs(score.value - 0.5) < 0.1 for score in held.scores)


# Widths


def test_the_shares_of_beta_of_all_that_could_be_asked_add_up_to_at_most_one() -> None:
    """Whoever asks: also one who measures outright, or not, by what was said before."""
    plan = holdout().plan
    total = 0.0
    for i in range(1, 60):
        for m in range(i):
            s = i - 1 - m
            for f in range(s + 1):
                each = widths.words(plan, widths.QuestionCounts(i, s, f, m, 1))
                total += math.exp(math.log(math.comb(s, f)) + (f + m) * math.log(plan.values) - each)
    assert 0.1 < total <= 1  # most is for questions beyond these


def test_parts_of_a_probability_add_up_to_at_most_one() -> None:
    assert 0.99 < sum(1 / widths._parts(i, 50) for i in range(1, 100_000)) <= 1


def test_measurements_have_no_more_values_than_are_counted() -> None:
    plan = holdout().plan
    told = {min(4000.0, round(noisy / plan.resolution) * plan.resolution) for noisy in np.arange(0, 4001, 0.5)}
    assert len(told) <= plan.values


@pytest.mark.parametrize("mean", [0.0, 0.02, 0.5, 1.0])
def test_an_interval_is_hoeffdings_or_better_and_leaves_out_what_is_improbable(mean: float) -> None:
    n, spent = 1000, 6.0
    low, high = widths._chernoff(mean, mean, spent, n)
    width = math.sqrt(spent / (2 * n))
    assert mean - width - 1e-9 <= low <= mean <= high <= mean + width + 1e-9
    if (
        mean < 1
    ):  # the largest μ for which a sample mean so low has probability e^−6 by the bound, which the binomial keeps
        assert stats.binom.cdf(round(mean * n), n, high) <= math.exp(-spent)
    if mean > 0:
        assert stats.binom.sf(round(mean * n) - 1, n, low) <= math.exp(-spent)


@pytest.mark.parametrize("centre", [40.0, 400.0, 985.0])
@pytest.mark.parametrize("is_below", [True, False])
def test_both_ends_of_an_interval_fail_together_with_the_share_of_beta_that_the_query_has(centre, is_below) -> None:
    """A query of few words: two thirds of half of β, shared by its words, is what its two sides have for the sample."""
    plan = holdout(n=1000, d=1).plan
    assert plan.epsilon >= 1  # so that no other theorem narrows it
    before, after = widths.QuestionCounts(3, 2, 1, 0, 2), widths.QuestionCounts(3, 3, 1 + (not is_below), 0, 2)
    low, high, by = widths.interval(plan, before, after, centre, is_below)
    off = (widths.below if is_below else widths.measurement_width)(plan, after, plan.beta / 6)
    ends = max(0.0, centre - off) / 1000, min(1000, centre + off) / 1000

    def improbable(mean: float, population: float) -> float:
        """Hoeffding's bound on a sample's mean so far on one side of the population's."""
        pairs = ((mean, population), (1 - mean, 1 - population))
        return math.exp(-1000 * sum(float(special.rel_entr(p, q)) for p, q in pairs)) if 0 < population < 1 else 0.0

    sides = improbable(ends[0], low), improbable(ends[1], high)
    share = plan.beta / 2 * 2 / 3 * math.exp(-widths.words(plan, before))
    assert by == widths.FEW_WORDS and 0 < share < 1e-3
    assert sum(sides) <= share * (1 + 1e-6) and max(sides) == pytest.approx(share / 2, rel=1e-6)


@pytest.mark.parametrize("budget", [Budget(1.0, 0.0), Budget(2.0, 1e-6)], ids=["Laplace", "Gaussian"])
def test_the_width_of_a_measurement_is_left_on_either_side_with_its_share_of_beta(budget: Budget) -> None:
    plan = holdout(budget=budget).plan
    for beta in (0.5, 0.05, 1e-4):
        asked = widths.QuestionCounts(5, 1, 1, 4, 1)
        off = widths.measurement_width(plan, asked, beta) - plan.resolution / 2
        law = stats.norm(scale=plan.measurement.sigma) if budget.delta else stats.laplace(scale=plan.measurement.scale)
        assert 2 * law.sf(off) <= beta / (3 * widths._parts(5, plan.rounds))


def test_a_threshold_is_the_fraction_that_was_given_and_what_is_no_fraction_is_refused() -> None:
    assert holdout(threshold=0.05).plan.threshold == pytest.approx(0.05 * 4000, abs=1)
    for wrong in (0.0, 1.0, -0.1, math.nan):
        for name in ("threshold", "beta"):
            with pytest.raises(hr.InvalidInput, match="beta and threshold must be between 0 and 1"):
                holdout(**{name: wrong})


def test_the_loss_of_a_split_is_stated_for_noise_that_costs_the_whole_budget() -> None:
    for budget in (Budget(1.0, 0.0), BUDGET):
        scale = widths.split_error(budget, 1000, 50, 0.1) * 1000 / math.log(50 / 0.1)
        assert 50 * budget.cost(Laplace(1.0, scale, widths.FINEST)) == pytest.approx(budget.total, rel=1e-6)


def test_an_interval_leaves_room_for_what_values_lose_as_whole_units(monkeypatch) -> None:
    """Even if the interval of the rounded values is a single point, it contains the mean of the values themselves."""
    monkeypatch.setattr(
        widths, "interval", lambda plan, before, after, rows, *_: (rows / plan.rows, rows / plan.rows, "")
    )
    rows = noise_rows(500, 2, 0)
    for value in (0.25 / metrics.UNITS, 1 / 3, 1 - 1e-9):
        kept = metrics.Metric("constant", lambda y, predicted, value=value: np.full(len(y), value))
        score = hr.Holdout(rows, BUDGET, train=rows, seed=1).score(feature(0), metric=kept)
        assert score.source == "guess" and score.low <= value <= score.high <= value + 2 / metrics.UNITS


@pytest.mark.parametrize("budget", [Budget(1.0, 0.0), Budget(2.0, 1e-6)])
def test_noise_stays_within_its_width(budget: Budget) -> None:
    """Widths for β = 0.2 of single questions; 500 runs of one comparison or measurement fail 0.1 of the time at most.

    False fail: below 1e-9 (binomial at the bound of a third of 0.2 each). A width of half the size would fail in a third.
    """
    runs, failures = 500, 0
    for seed in range(runs):
        held = holdout(n=400, d=1, budget=budget, seed=seed, rounds=2)
        score = held.measure(feature(0))
        X, y = noise_rows(400, 1, 0)
        off = widths.measurement_width(held.plan, widths.QuestionCounts(1, 0, 0, 1, 0), 0.2)
        failures += abs(score.value * 400 - float((X[:, 0] == y).sum())) > off
    assert failures <= stats.binom.ppf(1 - 1e-9, runs, 0.2 / 3 / widths._parts(1, 2))


def test_after_below_the_guess_is_as_close_as_stated() -> None:
    """Guesses at the edge of what the width allows: "below" has at most the probability that the width was made for."""
    runs, beta = 400, 0.3
    edge = holdout(n=2000, d=1)
    off = widths.below(edge.plan, widths.QuestionCounts(1, 1, 0, 0, 1), beta)
    X, y = noise_rows(2000, 1, 0)
    true = float((X[:, 0] == y).sum())
    said = sum(
        holdout(n=2000, d=1, seed=seed).score(feature(0), guess=(true + off + 1) / 2000).source == "guess"
        for seed in range(runs)
    )
    assert said <= stats.binom.ppf(1 - 1e-9, runs, 2 * beta / 3 / widths._parts(1, 10))


def test_a_better_guess_of_few_words_is_used_at_ordinary_budgets_and_privacy_at_small_ones() -> None:
    few = hr.Holdout(noise_rows(4000, 1, 0), Budget(4.0, 1e-6), seed=1).score(feature(0), guess=0.5)
    assert few.by == widths.FEW_WORDS
    plan = widths.HoldoutPlan(10**8, *_small(), 1e5, 2.0, 0.05, 0.001, 1e-12, 10**6, 10**4)
    many = widths.QuestionCounts(10**6, 10**6, 10**4, 0, 10**4)
    low, high, by = widths.interval(plan, many, many, 5e7, True)
    assert by.startswith("Jung") and 0 < high - low < 0.02


def _small():
    from hedgerow.privacy.events import AboveThreshold, Laplace

    return AboveThreshold(1.0, 1e-3, 1e-3), Laplace(1.0, 1e3)


# The population


def overfit(held, d: int, votes: int = 200) -> list[tuple[Score, float]]:
    """Asks every feature, and then the vote of those that looked best: with the true value of each, ½."""
    said = [held.score(feature(j)) for j in range(d)]
    answers = np.array([score.value for score in said])
    best = np.argsort(-np.abs(answers - 0.5))[:votes]
    weights = np.where(answers[best] > 0.5, 1.0, -1.0)
    final = held.score(lambda X: (X[:, best] * 2.0 - 1) @ weights > 0)
    return [(score, 0.5) for score in (*said, final)]


def test_intervals_for_the_population_hold_for_an_analyst_who_overfits() -> None:
    """30 games at β = 0.3: by the claim at most 0.3 fail. False fail: P[Bin(30, 0.3) > 20] < 1e-4."""
    failures = 0
    for seed in range(30):
        held = hr.Holdout(
            noise_rows(500, 100, 2 * seed),
            Budget(20.0, 1e-6),
            train=noise_rows(500, 100, 2 * seed + 1),
            beta=0.3,
            seed=seed,
        )
        failures += any(not score.low <= true <= score.high for score, true in overfit(held, 100))
    assert failures <= 20


def test_the_holdout_does_not_believe_what_a_naive_one_does() -> None:
    """The classic, at a fifth of its size: naive answers find what is not there, the holdout's do not."""
    n, d = 2000, 2000
    train, test = noise_rows(n, d, 0), noise_rows(n, d, 1)
    means = [np.mean(y[:, None] == X, axis=0) - 0.5 for X, y in (train, test)]
    agree = np.flatnonzero(np.sign(means[0]) == np.sign(means[1]))
    best = agree[np.argsort(-np.abs(means[1][agree]))[:200]]
    X, y = test
    naive = float(np.mean(((X[:, best] * 2.0 - 1) @ np.sign(means[1][best]) > 0) == y))
    held = hr.Holdout(test, Budget(4.0, 1e-6), train=train, questions=2000, seed=3)
    final, _ = overfit(held, d)[-1]
    assert naive - 0.5 > 0.1
    assert final.source == "holdout" and abs(final.value - 0.5) < 0.03
    assert final.low <= 0.5 <= final.high


@pytest.mark.audit
def test_the_classic_at_full_size() -> None:
    """10,000 rows, 10,000 features, ε = 1. False fail: 1e-4, that ours is off by 0.02, four deviations of the holdout itself."""
    from hedgerow.research.stories.false_discovery import false_discovery

    found = false_discovery(10_000, 10_000, Budget(1.0, 0.0), np.random.default_rng(), voters=(500,))
    assert found.naive[0] - 0.5 >= 0.10
    assert abs(found.scores[0].value - 0.5) <= 0.02
    assert len(found.holdout.scores) > 10_000 and not found.holdout.exhausted
    assert all(score.low <= 0.5 <= score.high for score in found.holdout.scores)


@pytest.mark.audit
def test_the_same_budget_buys_a_tenth_of_the_questions_with_noise_on_each() -> None:
    held = holdout(n=10_000, d=1, budget=Budget(1.0, 1e-6), rounds=5, train=None)
    error = widths.on_sample(held.plan, 10_000, 5)
    split = widths.split_questions(held.ledger.budget, 10_000, error, held.plan.beta)
    assert 0.05 < error < 0.2 and 100 < split <= 1000
    for _ in range(10 * split):
        held.score(feature(0), guess=0.5)
    assert not held.exhausted


def test_a_split_budget_answers_as_many_as_its_noise_allows() -> None:
    k = widths.split_questions(Budget(1.0, 0.0), 10_000, 0.1, 0.05)
    assert k * math.log(k / 0.05) <= 1000 < (k + 1) * math.log((k + 1) / 0.05)


@pytest.mark.parametrize("beta", [0.05, 0.2])
def test_intervals_fail_as_seldom_as_the_owner_says_and_are_no_wider_for_it(beta) -> None:
    assert holdout(beta=beta).plan.beta == beta
