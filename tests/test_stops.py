"""The way of a question through the modules is short, and the tool that says so counts what runs."""

from __future__ import annotations

import subprocess
import sys

import stops

import hedgerow as hr
from hedgerow.questions.universe import subsets


def test_no_question_goes_through_more_modules_than_allowed() -> None:
    ran = subprocess.run([sys.executable, stops.__file__, "--check"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "engines.practical.engine" in ran.stdout


def test_a_way_that_is_too_long_is_refused() -> None:
    found = {"open": ["session"], "count": ["session", "_checks"]}
    assert stops.too_many(found, {"open": 1, "count": 2}) == []
    assert stops.too_many(found, {"open": 1, "count": 1}) == [
        "count must go through at most 1 modules. Found 2. Give it a straighter way."
    ]


def test_a_stop_is_a_module_with_a_function_that_runs_named_once_in_the_order_of_entry() -> None:
    def way() -> None:
        hr.count(a=True).on(hr.Universe(a=hr.Flag()))
        subsets(("a", "b"))

    assert stops.stops(way)[:3] == ["questions.counts", "questions.universe", "questions.linear"]
    assert len(set(stops.stops(way))) == len(stops.stops(way))


def test_what_is_generated_is_no_stop() -> None:
    assert stops.stops(lambda: hr.isnt("north")) == []


def test_a_goal_that_is_reached_is_not_waived() -> None:
    assert all(stops.GOALS[way] < most for way, most in stops.NOT_YET.items())
