"""A question goes through a limited number of modules, and the tool that counts them can fail."""

from __future__ import annotations

import subprocess
import sys

import stops

import hedgerow as hr


def test_no_question_has_more_stops_than_allowed() -> None:
    ran = subprocess.run([sys.executable, stops.__file__, "--check"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "engine.practical.engine" in ran.stdout


def test_a_path_that_is_too_long_is_refused() -> None:
    found = {"open": {"session": True}, "count": {"session": True, "query.counts": True, "query.linear": False}}
    assert stops.too_many(found, {"open": (1, 1), "count": (2, 3)}) == []
    assert stops.too_many(found, {"open": (1, 1), "count": (1, 2)}) == [
        "count must have at most 1 stops. Found 2. Shorten it.",
        "count must have at most 2 modules. Found 3. Shorten it.",
    ]


def test_a_stop_is_a_module_entered_from_another_room() -> None:
    found = stops.modules(lambda: hr.count(a=True).on(hr.Universe(a=hr.Flag())))
    behind = {"query.linear": False}
    assert found == {
        "universe.attributes.attribute": True,
        "universe.attributes.flags": True,
        "universe.universe": True,
        "query.counts": True,
        **behind,
    }


def test_generated_code_and_helpers_are_no_stops() -> None:
    assert stops.modules(lambda: hr.not_("north")) == {}
    assert stops.modules(lambda: hr.L2Ball(1.0)) == {"convex.sets.elementary": True}  # and not _checks
