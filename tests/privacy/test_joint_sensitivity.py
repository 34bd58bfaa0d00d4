"""Residuals that are released as one event: their sensitivity against all rows and all pairs of rows."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.engine.practical.fit.residuals import coordinates
from hedgerow.engine.practical.measurement import helmert, of_ranges
from hedgerow.privacy import budget
from hedgerow.privacy.budget import Contribution


def largest_distance(kinds, sets, times, neighbours) -> float:
    """The largest distance by enumeration of all rows of the universe."""
    by = [(of_ranges if kind[0] == "r" else helmert)(int(kind[1:])) for kind in kinds]
    vectors = []
    for row in np.ndindex(*(each.size for each in by)):
        parts = []
        for s, k in zip(sets, times, strict=True):
            one = np.zeros([by[i].size for i in s], np.int64)
            one[tuple(row[i] for i in s)] = 1
            parts.append(coordinates(one, 2.0**-40, [by[i] for i in s], k).ravel())
        vectors.append(np.concatenate(parts))
    if neighbours == "add-remove":
        return max(float(np.linalg.norm(v)) for v in vectors)
    return max(float(np.linalg.norm(v - w)) for v, w in itertools.combinations(vectors, 2))


def singles_and_pairs(count: int) -> list[tuple[int, ...]]:
    return [s for size in (1, 2) for s in itertools.combinations(range(count), size)]


CASES = [
    ("h2", "h2", "h2"),
    ("h2", "h3", "h4", "h2"),
    ("h2",) * 6,
    ("h3", "h3", "h5"),
    ("r4", "h2", "h3"),
    ("r5", "r4", "h2"),
]


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("kinds", CASES)
def test_no_rows_are_further_apart_than_the_joint_sensitivity_and_some_are_as_far(kinds, neighbours) -> None:
    sets = [*singles_and_pairs(len(kinds)), tuple(range(min(3, len(kinds))))]
    times = [64 + 37 * i for i in range(len(sets))]
    by = [(of_ranges if kind[0] == "r" else helmert)(int(kind[1:])) for kind in kinds]
    stated = hr.Budget(1, 1e-6, neighbours).joint_l2([each.contribution for each in by], sets, times)
    largest = largest_distance(kinds, sets, times, neighbours)
    assert largest <= stated * (1 + 1e-9)
    assert stated <= largest * (1 + 1e-9 if not any(kind[0] == "r" for kind in kinds) else 1.02)


@pytest.mark.parametrize("seed", range(8))
def test_the_bound_for_many_attributes_is_never_below_the_maximum_and_near_it(seed, monkeypatch) -> None:
    """With and without weights that are products of one number for each attribute."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 9, 8).tolist()
    contributions = [Contribution.centered_bounds(m) for m in sizes]
    if seed % 2:
        contributions[0] = of_ranges(6).contribution
    sets = [*singles_and_pairs(8), (0, 3, 5)]
    blur = rng.uniform(0.6, 1.4, len(sets)) if seed % 4 == 0 else np.ones(len(sets))
    times = [round(64 * b * math.sqrt(math.prod(sizes[i] for i in s))) for s, b in zip(sets, blur, strict=True)]
    if seed in (2, 3):  # singles that weigh much, so that the best two rows differ in all attributes
        times = [50 * k if len(s) == 1 else k for s, k in zip(sets, times, strict=True)]
    exact = budget.apart_square(contributions, sets, times)
    monkeypatch.setattr(budget, "MOST_CORNERS", 0)
    bound = budget.apart_square(contributions, sets, times)
    assert exact * (1 - 1e-12) <= bound <= (1.35 if seed % 4 == 0 else 1.06) * exact


def test_all_pairs_of_many_flags_cost_little_more_than_twice_what_they_cost_under_add_remove() -> None:
    """One pair of flags alone costs four times as much."""
    contributions, sets = [Contribution.centered_bounds(2)] * 28, list(itertools.combinations(range(28), 2))
    ratio = {
        each: hr.Budget(1, 1e-6, each).joint_l2(contributions, sets, [1] * len(sets)) ** 2
        for each in ("replace", "add-remove")
    }
    # The rows agree on half of the attributes: t = ±½, Σ t = 0.
    assert ratio["replace"] == pytest.approx(2 * (378 / 4 + 28 / 8))
    assert ratio["add-remove"] == pytest.approx(378 / 4)


def test_a_multiple_of_coordinates_is_the_nearest_step_to_the_exact_number() -> None:
    rng = np.random.default_rng(0)
    counts, grid, times = rng.integers(0, 10**6, (5, 7)), 2.0**-14, 1237
    found = coordinates(counts, grid, times=times)
    by = [helmert(5), helmert(7)]
    whole = by[0].rows.astype(object) @ counts.astype(object) @ by[1].rows.astype(object).T
    for cell in np.ndindex(found.shape):
        P = math.prod(int(each.squares[i]) for each, i in zip(by, cell, strict=True))
        steps, twice = int(found[cell] / grid), 2 * int(whole[cell]) * 2**14
        assert max(0, 2 * abs(steps) - 1) ** 2 * P <= twice**2 * times <= (2 * abs(steps) + 1) ** 2 * P
