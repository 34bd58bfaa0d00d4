"""The assurance page agrees with the stored results, and names only checks that exist."""

from __future__ import annotations

import assurance
import pytest


def test_the_page_is_what_its_command_writes() -> None:
    assert assurance.PAGE.read_text("utf-8") == assurance.page(), "run `make assurance`"


@pytest.mark.parametrize("where", ["tests/test_gone.py", "tests/test_assurance.py::test_that_is_not_there"])
def test_a_check_that_does_not_exist_is_refused(where: str) -> None:
    with pytest.raises(SystemExit, match="must name a file and a test that exist"):
        assurance.require_place(where)
