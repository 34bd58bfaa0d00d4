"""The guides' examples run as printed."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest

from hedgerow.errors import NotPrivateWarning

DOCS = Path(__file__).resolve().parent.parent / "docs"


@pytest.mark.parametrize("guide", ["erm.md", "reading.md", "wire.md"])
def test_the_examples_of_a_guide_run_in_order(guide) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / guide).read_text(), re.DOTALL)
    assert blocks
    names: dict[str, object] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error", NotPrivateWarning)  # a guide does nothing that is not private
        for block in blocks:
            exec(compile(block, guide, "exec", dont_inherit=True), names)


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.name)
def test_every_link_between_pages_leads_somewhere(page) -> None:
    links = re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []
