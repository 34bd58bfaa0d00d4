"""Sessions killed at any step, and many at once: every draw is billed, and no answer is lost.

A sample; ``make crashes`` does hundreds.
"""

from __future__ import annotations

import pytest
from crashing import Lives, crowd, warm_up
from fresh_ledgers import postgres_url, sqlite_url

everywhere = pytest.mark.parametrize("fresh", [sqlite_url, postgres_url], ids=["SQLite", "PostgreSQL"])


@everywhere
def test_the_ledger_of_a_killed_session_has_every_draw_and_every_answer(fresh) -> None:
    warm_up()
    lives = Lives(fresh)
    lives.run(10)
    assert lives.kills.total() == 10
    assert len(lives.kills) > 3  # at different steps


@everywhere
def test_processes_that_share_a_ledger_spend_no_more_than_there_is(fresh) -> None:
    warm_up()
    found = crowd(fresh(), processes=3, count=50)
    assert found["questions"] == 150 and found["paid"] > 30
