"""Linear queries, many at once."""

from __future__ import annotations

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.query.linear import Linear, Products, answer_all


def test_counts_kept_as_masks_are_the_counts_they_were_made_of() -> None:
    rng, universe = np.random.default_rng(0), hr.Universe.from_sizes({"a": 3, "b": 4, "c": 5})
    table = rng.random((3, 4, 5))
    masks = [
        {n: rng.permutation(np.arange(m) < rng.integers(1, m)) for n, m in zip("abc", (3, 4, 5), strict=True)}
        for _ in range(30)
    ]
    queries = [Linear.product(universe, each) for each in masks]
    kept = Products.of(queries)
    assert len(kept) == 30 and list(kept) == queries
    assert kept.sizes.tolist() == [[int(mask.sum()) for mask in each.values()] for each in masks]
    assert np.array_equal(answer_all(kept, lambda names: table), answer_all(queries, lambda names: table))
    assert answer_all(kept, lambda names: table) == pytest.approx([q.dot(table) for q in queries])
