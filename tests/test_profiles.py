"""The options of a session, grouped by profile: objects, keywords and a file give the same session."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.cli.file import PRACTICAL, THEORY, File
from hedgerow.data.source import HistogramSource
from hedgerow.errors import InvalidInput
from hedgerow.profiles import PROFILES

UNIVERSE = hr.Universe(age=hr.Range(0, 80, bins=8), smoker=hr.Flag())
COUNTS = np.arange(1, 17).reshape(8, 2) * 1000
FILE = """\
source = "people.csv"
ledger = "sqlite:///people.ledger"

[budget]
epsilon = 1.0
delta = 1e-6

[universe.smoker]
kind = "Flag"

"""


def opened(**options: Any) -> hr.Session:
    return hr.open(
        HistogramSource(UNIVERSE, COUNTS),
        universe=UNIVERSE,
        budget=hr.Budget(1.0, 1e-6),
        seed=4,
        progress=False,
        **options,
    )


def answers(session: hr.Session) -> list[Any]:
    asked = [hr.count(smoker=True), hr.count(age=(10, 40)), hr.count(age=(10, 40), smoker=False)]
    return [*((a.value, a.error) for a in map(session.ask, asked)), session.spent, session.ledger.budget]


@pytest.mark.parametrize(
    ("profile", "options"),
    [
        (hr.Practical(), {}),
        (hr.Practical(reserve=0.2, guard=0.0), {"profile": "practical", "reserve": 0.2, "guard": 0.0}),
        (hr.Practical(queries=10, beta=0.1, model_cells=50), {"queries": 10, "beta": 0.1, "model_cells": 50}),
        (hr.Practical(workload=hr.marginals(1)), {"workload": hr.marginals(1)}),
        (hr.Theory(queries=50), {"profile": "theory", "queries": 50}),
        (hr.Theory(alpha=0.3, beta=0.1, queries=50), {"profile": "theory", "alpha": 0.3, "beta": 0.1, "queries": 50}),
    ],
)
def test_a_profile_and_the_keywords_that_it_groups_open_the_same_session(profile: Any, options: Any) -> None:
    assert answers(opened(profile=profile)) == answers(opened(**options))


def test_a_durable_ledger_that_was_opened_with_keywords_is_resumed_with_a_profile(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'people.ledger'}"
    first = opened(ledger=url, reserve=0.2, workload=[hr.count(smoker=True)])
    said, spent = first.ask(hr.count(age=(10, 40))).value, first.spent
    first.close()
    again = opened(ledger=url, profile=hr.Practical(reserve=0.2, workload=[hr.count(smoker=True)]))
    assert (again.ask(hr.count(age=(10, 40))).value, again.spent) == (said, spent)
    again.close()
    with pytest.raises(InvalidInput, match="Found another reserve"):
        opened(ledger=url, profile=hr.Practical(reserve=0.3, workload=[hr.count(smoker=True)]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0.1}, r"alpha must come with profile='theory'. Found alpha=0.1 with 'practical'."),
        ({"profile": hr.Practical(), "alpha": 0.1}, "alpha must come with profile='theory'"),
        ({"profile": "theory", "reserve": 0.1}, "reserve must come with profile='practical'"),
        ({"profile": "theory", "guard": 0.1}, r"Leave it out, or write profile=hr.Practical\(guard=…\)"),
        ({"profile": hr.Theory(), "model_cells": 10}, "model_cells must come with profile='practical'"),
        ({"profile": hr.Practical(), "reserve": 0.1}, r"reserve must be given in the profile. .*=hr.Practical\(\)"),
        ({"profile": hr.Theory(), "queries": 5}, r"Write profile=hr.Theory\(queries=…\)"),
        ({"profile": "best"}, r"profile must be 'practical' or 'theory'. .* or give"),
        ({"profile": None}, r"profile must be 'practical' or 'theory'. .* or give"),
        ({"profile": hr.Practical}, r"profile must be 'practical' or 'theory'. .* or give"),
    ],
)
def test_an_option_in_the_wrong_place_is_refused_before_the_table_is_read(options: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        hr.open("there is no such table.csv", universe=UNIVERSE, budget=hr.Budget(1.0, 1e-6), **options)


def test_an_unknown_option_is_refused_as_python_refuses_one() -> None:
    with pytest.raises(TypeError, match=r"open\(\) got an unexpected keyword argument 'reserves'"):
        opened(reserves=0.1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: hr.Practical(queries=0), "queries must be"),
        (lambda: hr.Theory(queries=True), "queries must be"),
        (lambda: hr.Theory(beta=1.0), "beta must be"),
        (lambda: hr.Practical(beta=float("nan")), "beta must be"),
        (lambda: hr.Practical(reserve=0.9, guard=0.1), "reserve and guard must be"),
        (lambda: hr.Practical(model_cells=0), "model_cells must be"),
        (lambda: hr.Theory(alpha=0.0), "alpha must be"),
        (lambda: hr.Practical(workload=3), "workload must be"),
        (lambda: hr.Theory(workload=[1]), "workload must be"),
    ],
)
def test_a_profile_refuses_an_option_outside_its_range_when_it_is_made(make: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        make()


def test_a_profile_is_shown_by_the_options_that_differ_from_the_defaults_and_cannot_be_changed() -> None:
    made = hr.Practical(reserve=0.1, workload=[hr.count(smoker=True)])
    assert repr(made).startswith("Practical(workload=[count(") and repr(made).endswith("reserve=0.1)")
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.reserve = 0.2  # type: ignore[misc]


def test_the_file_of_the_command_line_has_a_table_for_each_profile(tmp_path: Path) -> None:
    path = tmp_path / "hedgerow.toml"

    def options(text: str) -> dict[str, Any]:
        path.write_text(FILE + text)
        return File(path).options

    assert options('[practical]\nreserve = 0.2\nworkload = "marginals(2)"') == {
        "profile": hr.Practical(reserve=0.2, workload="marginals(2)")
    }
    for name in ("keep_rows", "rows"):  # the second is the name in files of earlier versions
        given = options(f"[theory]\nalpha = 0.2\n[options]\n{name} = true")
        assert given == {"profile": hr.Theory(alpha=0.2), "keep_rows": True}
    assert File(path).reserve == 0.01
    for both in ("[practical]\n[theory]", '[practical]\n[options]\nprofile = "practical"'):
        with pytest.raises(InvalidInput, match="must name one profile"):
            options(both)
    with pytest.raises(InvalidInput, match="Found 'alpha'"):
        options("[practical]\nalpha = 0.2")
    options("[practical]\nreserve = 0.2")
    assert File(path).reserve == 0.2
    assert {"practical": set(PRACTICAL), "theory": set(THEORY)} == {
        name: {field.name for field in dataclasses.fields(kind)} for name, kind in PROFILES.items()
    }
