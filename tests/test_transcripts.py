"""Every mechanism says, from a seed, what it said when its transcript was stored.

A failure names the first place that differs. Is the new result meant? Then `python tests/transcripts.py --write`.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest
from transcripts import FITTED, TRANSCRIPTS, difference, recomputed, stored

STORED = stored()
# Other machines' linear algebra differs in the last bits, and what is near 0 may be rounding alone.
RTOL, ATOL = 1e-7, 1e-10


def test_the_stored_transcripts_are_those_that_are_run() -> None:
    assert list(STORED) == list(TRANSCRIPTS)


@pytest.mark.parametrize("name", [name for name in TRANSCRIPTS if name != "arithmetic"])
def test_a_seed_gives_what_it_gave(name) -> None:
    if name.startswith(FITTED) and recomputed("arithmetic") != STORED["arithmetic"]:
        pytest.skip("stored on a machine whose arithmetic has other last bits, after which a fit stops elsewhere")
    assert difference(STORED[name], recomputed(name), RTOL, ATOL) == ""


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
