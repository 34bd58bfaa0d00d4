"""The code that privacy rests on stays small enough to be read whole, and the tool that counts it can fail."""

from __future__ import annotations

import core


def test_the_core_that_a_reviewer_must_read_is_below_its_limit() -> None:
    assert sum(core.core().values()) <= core.LIMIT


def test_every_module_that_could_read_rows_or_draw_is_in_the_core_and_those_that_cannot_are_not() -> None:
    modules = core.core()
    for module in (
        "privacy/noise",
        "data/table",
        "engine/practical/guard",
        "answering/over_time",
        "generalise/holdout",
    ):
        assert modules[module] > 0
    for module in ("model/log_linear", "display/pictures", "answering/summary", "server/app", "research/games"):
        assert module not in modules


def test_docstrings_comments_and_blank_lines_are_no_code(tmp_path) -> None:
    path = tmp_path / "module.py"
    path.write_text('"""Two\nlines."""\n\n# why\nx = 1\n\n\ndef f():\n    """One."""\n    return """text\n    """\n')
    assert core.code_lines(path) == 4
