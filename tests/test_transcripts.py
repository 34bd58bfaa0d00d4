"""A seed gives the stored transcript of every mechanism on every machine.

A failure names the first place that differs. Is the new result meant? Then `python tests/transcripts.py --store`.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest
from transcripts import KEPT, OF_ROOMS, difference, read, recomputed

STORED = read()
# Whole numbers, choices, sources and texts are the same everywhere.
# Processors add in other orders, which moves a sum of n terms by n·2⁻⁵³ of their size: 2e-12 for the 20,000 rows here. A few
# hundred such steps, which convex mechanisms do not spread, stay below RTOL. A number near 0 is a difference of numbers up to
# 1, and has their error. Gradients and minimisers are rounded to the grid of their noise before it is added: where one lies
# on the edge between two steps, a processor may take the other. Grids are at most 1e-6, of sums over hundreds of rows: GRID.
RTOL, ATOL, GRID = 1e-9, 1e-12, 1e-6
ROUNDED = ("erm", "convex")
AGAIN = (
    "practical session, replace, approximate",
    "practical session in blocks, add-remove, pure",
    "convex, practical, bought, replace, approximate",
    "session estimator, QuantileRegressor",
)


def test_the_stored_transcripts_are_those_of_textbook_and_privacy() -> None:
    assert list(STORED) == KEPT


def test_every_mechanism_of_a_paper_has_a_stored_transcript() -> None:
    for prefix in (prefix for prefixes in OF_ROOMS.values() for prefix in prefixes):
        assert any(name.startswith(prefix) for name in STORED), prefix


@pytest.mark.parametrize("name", list(STORED))
def test_a_seed_gives_what_it_gave(name) -> None:
    assert difference(STORED[name], recomputed(name), RTOL, GRID if name.startswith(ROUNDED) else ATOL) == ""


def test_a_fit_says_the_same_again_whatever_the_process_did_meanwhile() -> None:
    """To the last bit, in one process: fits are compared with no other machine's."""
    first = {name: recomputed(name) for name in AGAIN}
    assert {name: difference(first[name], recomputed(name)) for name in reversed(AGAIN)} == dict.fromkeys(AGAIN, "")


def changed_at(path: list[Any], value: Any) -> Any:
    after = copy.deepcopy(STORED["noise"])
    place = after
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return after


@pytest.mark.parametrize(
    ("path", "value"),
    [(["laplace", 0], 1e6), (["choices", 3], -1), (["samples", 0], []), (["gaussian", 2], "1.0"), (["more"], 1)],
)
def test_a_changed_number_list_or_name_is_a_difference(path, value) -> None:
    assert difference(STORED["noise"], changed_at(path, value), RTOL, ATOL)


def test_a_change_of_one_bit_is_a_difference_only_where_none_is_allowed() -> None:
    before, after = [1.0, 2], [1.0 + 2**-52, 2]
    assert difference(before, after)
    assert not difference(before, after, RTOL, ATOL)
    assert difference(before, [1.0, 3], RTOL, ATOL)


def test_a_charge_is_compared_by_its_ratio_however_small() -> None:
    assert not difference({"theta": 1e-8}, {"theta": 2e-8}, RTOL, GRID)
    assert difference({"cost": 1e-8}, {"cost": 2e-8}, RTOL, GRID)
