import math

import pytest

from hedgerow.errors import InvalidInput
from hedgerow.textbook import bounds


def test_theorem_4_14_has_the_corrected_constant_36():
    alpha, beta, epsilon, k, cells = 0.1, 0.05, 0.5, 1000, 2**10
    c = 4 * math.log(cells) / alpha**2
    # NumericSparse needs 9c(ln(2k) + ln(4c/β))/ε, in rows, to be at most αn
    assert bounds.pmw_rows(alpha, beta, epsilon, 0.0, k, cells) == pytest.approx(
        9 * c * (math.log(2 * k) + math.log(4 * c / beta)) / epsilon / alpha
    )


def test_theorem_4_15_follows_from_its_sparse_vector():
    alpha, beta, epsilon, delta, k, cells = 0.1, 0.05, 0.5, 1e-6, 1000, 2**10
    c = 4 * math.log(cells) / alpha**2
    needs = (1 + 16 * math.sqrt(2)) * math.sqrt(c * math.log(2 / delta)) * (math.log(2 * k) + math.log(4 * c / beta))
    assert bounds.pmw_rows(alpha, beta, epsilon, delta, k, cells) == pytest.approx(needs / epsilon / alpha)


@pytest.mark.parametrize("delta", [0.0, 1e-9])
@pytest.mark.parametrize("rows", [10**7, 10**9, 10**12])
def test_every_bound_is_the_inverse_of_its_other_way(delta, rows):
    a = bounds.pmw_alpha(rows, 0.05, 1.0, delta, 10**4, 2**20)
    assert bounds.pmw_rows(a, 0.05, 1.0, delta, 10**4, 2**20) == pytest.approx(rows, rel=1e-6)
    a = bounds.mwem_alpha(rows, 0.05, 1.0, delta, 10**4, 2**20)
    # the number of rounds is whole, so rows_needed has steps; the answer is just on the cheap side of one
    assert bounds.mwem_rows(a, 0.05, 1.0, delta, 10**4, 2**20) <= rows
    assert bounds.mwem_rows(a * 0.999, 0.05, 1.0, delta, 10**4, 2**20) > rows
    for dimension in (None, 3):
        a = bounds.small_db_alpha(rows, 0.05, 1.0, 10**4, 2**20, dimension)
        assert bounds.small_db_rows(a, 0.05, 1.0, 10**4, 2**20, dimension) <= rows
        assert bounds.small_db_rows(a * 0.99, 0.05, 1.0, 10**4, 2**20, dimension) > rows
    a = bounds.threshold_game_alpha(rows, 0.05, 1.0, 1e-9, 10**4, 100)
    assert bounds.threshold_game_rows(a, 0.05, 1.0, 1e-9, 10**4, 100) == pytest.approx(rows)


def test_no_error_below_one_is_reachable_with_a_handful_of_rows():
    assert bounds.pmw_alpha(100, 0.05, 1.0, 1e-9, 1000, 2**10) == math.inf


def test_more_queries_or_cells_take_more_rows_and_more_privacy_loss_fewer():
    base = dict(alpha=0.1, beta=0.05, epsilon=1.0, delta=1e-9, queries=1000, cells=2**10)
    for rows_of in (bounds.pmw_rows, bounds.mwem_rows):
        rows = rows_of(**base)
        assert rows_of(**base | {"queries": 2000}) > rows
        assert rows_of(**base | {"cells": 2**11}) > rows
        assert rows_of(**base | {"beta": 0.01}) > rows
        assert rows_of(**base | {"epsilon": 2.0}) < rows
        assert rows_of(**base | {"delta": 1e-6}) < rows


def test_theorem_12_6_grows_as_it_says():
    rows = lambda **change: bounds.mwem_rows(  # noqa: E731
        **dict(alpha=0.01, beta=0.05, epsilon=0.1, delta=1e-9, queries=10**6, cells=10**6) | change
    )
    # Õ(ln k √(ln|X| ln 1/δ)/(α² ε)), up to logarithms of what is asked
    assert rows(alpha=0.005) / rows() == pytest.approx(4, rel=0.1)
    assert rows(cells=10**12) / rows() == pytest.approx(math.sqrt(2), rel=0.1)
    assert rows(queries=10**60) / rows(queries=10**30) == pytest.approx(2, rel=0.15)


def test_the_small_database_has_the_size_of_lemma_4_3():
    assert bounds.small_db_size(0.1, 1000) == math.ceil(math.log(1000) / 0.01)
    m = bounds.small_db_size(0.2, 50)
    assert 2 * 50 * math.exp(-2 * m * 0.2**2) < 1  # a random one works with positive probability
    m = bounds.small_db_size(0.2, 1)  # the lemma needs |Q| > 2
    assert 2 * 1 * math.exp(-2 * m * 0.2**2) < 1


def test_the_vc_size_is_the_least_that_the_deviation_bound_allows():
    for d, alpha in [(1, 0.5), (2, 0.1), (10, 0.3)]:
        m = bounds.small_db_size_vc(alpha, d)
        deviation = lambda m, d=d: 2 * math.sqrt(2 * (math.log(2) + d * math.log(math.e * m / d)) / m)  # noqa: E731
        assert deviation(m) <= alpha < deviation(m - 1)


def test_the_number_of_databases_is_counted_exactly_and_never_above_the_books():
    assert bounds.ln_databases(4, 10) == pytest.approx(math.log(math.comb(13, 10)))
    assert bounds.ln_databases(10**6, 5000) <= 5000 * math.log(10**6)
    assert bounds.ln_databases(10**6, 5000) == pytest.approx(math.log(math.comb(10**6 + 4999, 5000)), rel=1e-9)
    assert bounds.ln_databases(10**100, 50) == pytest.approx(50 * math.log(10**100))


def test_proposition_4_4_is_met_at_the_rows_of_theorem_4_5():
    alpha, beta, epsilon, k, cells = 0.2, 0.05, 1.0, 100, 64
    rows = bounds.small_db_rows(alpha, beta, epsilon, k, cells)
    size = bounds.small_db_size(alpha / 2, k)
    assert bounds.small_db_error(rows, size, beta, epsilon, cells, alpha / 2) <= alpha


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alpha": 0.0}, "alpha must be between 0 and 1. Found 0.0"),
        ({"beta": 1.0}, "beta must be between 0 and 1"),
        ({"epsilon": -1.0}, "epsilon must be finite and above 0"),
        ({"epsilon": math.nan}, "epsilon must be finite and above 0"),
        ({"delta": 1.0}, "delta must be at least 0 and below 1"),
        ({"queries": 0}, "queries must be a whole number of at least 1"),
        ({"cells": 1}, "cells must be a whole number of at least 2"),
    ],
)
def test_parameters_out_of_range_are_refused_by_name(change, message):
    with pytest.raises(InvalidInput, match=message):
        bounds.pmw_rows(**dict(alpha=0.1, beta=0.05, epsilon=1.0, delta=0.0, queries=10, cells=16) | change)
