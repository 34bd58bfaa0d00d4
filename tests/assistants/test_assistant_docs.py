"""The page on assistants shows what the tools do: its transcript, its table of tools and its snippets are theirs."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from hedgerow.assistants.toolbox import TOOLS
from hedgerow.server.settings import PURCHASES

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "assistants.md").read_text()


@pytest.fixture(scope="module")
def script() -> Any:
    spec = importlib.util.spec_from_file_location("assistant_transcript", ROOT / "tools" / "assistant_transcript.py")
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_the_transcript_is_what_a_client_gets(script: Any) -> None:
    """Words are compared, because numbers differ with the processor and with every better fit."""
    number = re.compile(r"-?\d[\d,]*\.?\d*(e-\d+)?")
    written = PAGE.partition(script.BEGIN)[2].partition(script.END)[0].strip()
    found = asyncio.run(script.transcript()).strip()
    plain = [re.sub(r"\s+", " ", number.sub("#", text)).replace("; may be #", "") for text in (written, found)]
    assert plain[0] == plain[1], "run python tools/assistant_transcript.py"


def test_the_page_lists_every_tool_and_what_it_charges() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| .* \| (.*) \|$", PAGE, re.MULTILINE))
    assert rows.keys() == {tool.name for tool in TOOLS}
    assert {name for name, charge in rows.items() if charge != "nothing"} == {
        tool.name for tool in TOOLS if tool.spends
    }


def test_every_snippet_of_the_page_can_be_read() -> None:
    for text in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL):
        assert json.loads(text)
    tables = [tomllib.loads(text) for text in re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)]
    assert any(table.get("assistants", {}).get("purchases") in PURCHASES for table in tables)
    assert all(f'"{each}"' in PAGE for each in PURCHASES)
