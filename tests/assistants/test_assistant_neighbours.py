"""Two neighbouring tables with the same released history give an assistant the same results, to the last byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from assisting import release_desk, run
from mcp import Client
from recorder import Recorder

import hedgerow as hr
from hedgerow.assistants.desk import AssistantDesk, PurchaseRule
from hedgerow.assistants.protocol import OneDesk, build_server
from hedgerow.assistants.resources import RESOURCES
from hedgerow.assistants.toolbox import TOOLS, call_tool
from hedgerow.data import HistogramSource
from hedgerow.engine.practical.engine import build_practical_engine
from hedgerow.privacy.ledger import Accountant
from hedgerow.session import Session

U = hr.Universe.from_sizes({"y": 2, "a": 3, "b": 3})
NARROWER = "90 % of the free bar"
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("describe_dataset", {}),
    ("summarise_columns", {}),
    ("ask", {"questions": ["count(y=1, a={0, 2})", "mean('b', where=count(y=1))", "marginal('a', 'b')", "nonsense("]}),
    ("ask", {"questions": ["count(a=0, b=0, y=0)", "count(a=2, b=1, y=1)"], "compare": [[0, 1]]}),
    ("price", {"question": "count(a=1)", "within": 0.006}),
    ("buy", {"question": "count(a=1)", "within": NARROWER}),
    ("buy", {"question": "count(a=0, b=0, y=0)", "within": NARROWER}),
    ("buy", {"question": "count(a=0)", "within": 1e-7}),
    ("ask", {"questions": ["count(a=1)", "count(a=0, b=0, y=0)", "count(a=0, b=0)"]}),
    ("sql", {"statement": "SELECT a, count(*), avg(b) FROM data WHERE y = 1 GROUP BY a ORDER BY 2 DESC"}),
    ("explain_answer", {"question": "count(a=0, b=0, y=0)", "other": "count(a=1)"}),
    ("fit_model", {"target": "y", "features": ["a", "b"]}),
    ("synthetic_rows", {"rows": 20}),
    ("sql", {"statement": "SELECT * FROM data"}),
    ("describe_dataset", {}),
]


def people() -> np.ndarray:
    return ((np.arange(U.size) * 7) % 5 + 150).reshape(U.shape)


def neighbour(counts: np.ndarray, neighbours: str) -> np.ndarray:
    other = counts.copy()
    other[0, 0, 0] -= 1
    if neighbours == "replace":
        other[1, 2, 1] += 1
    return other


def told(counts: np.ndarray, neighbours: str, noise: Recorder) -> list[str]:
    """Return all that an assistant reads, as it arrives at the SDK's client."""
    ledger, data = Accountant(hr.Budget(4.0, 1e-6, neighbours)), HistogramSource(U, counts)
    engine = build_practical_engine(data, ledger, noise, workload=None, queries=100, beta=0.05, guard=0.0, reserve=0.8)
    desk = AssistantDesk(
        Session(data, ledger, noise, engine), "people", PurchaseRule("assistant", needs_approval=False)
    )

    async def work() -> list[str]:
        async with Client(build_server(OneDesk(desk)), mode="auto") as client:
            results = [(await client.list_tools()).model_dump_json()]
            for name, given in CALLS:
                if given.get("within") == NARROWER:
                    free = await client.call_tool("ask", {"questions": [given["question"]]})
                    given = given | {"within": 0.9 * free.structured_content["answers"][0]["bar"]}
                results.append((await client.call_tool(name, given)).model_dump_json())
            for each in RESOURCES:
                results.append((await client.read_resource(each.uri)).model_dump_json())
            return results

    return run(work)


def test_the_transcript_has_every_tool_without_a_holdout() -> None:
    assert {name for name, _ in CALLS} == {tool.name for tool in TOOLS} - {"score_on_holdout"}


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_neighbours_with_the_same_releases_tell_an_assistant_the_same(neighbours: str) -> None:
    counts, noise = people(), Recorder(0)
    one = told(counts, neighbours, noise)
    bought = [json.loads(each) for (name, _), each in zip(CALLS, one[1:], strict=False) if name == "buy"]
    paid = [(each.get("structured_content") or {"charged": 0.0})["charged"] for each in bought]
    assert max(paid) > 0 and bought[2]["is_error"]
    other = told(neighbour(counts, neighbours), neighbours, Recorder(0, noise.draws))
    assert one == other
    fresh = told(neighbour(counts, neighbours), neighbours, Recorder(1))
    assert fresh != one  # other releases show


def test_answers_that_are_left_out_of_a_long_result_are_not_in_its_data_either(tmp_path: Path) -> None:
    desk = release_desk(tmp_path)
    found = call_tool(desk, "ask", {"questions": ["marginal('sex','region','age')", "marginal('age','region')"] * 10})
    answers = found.data["answers"]
    assert [answer.get("left_out", False) for answer in answers].count(True) >= 10
    assert all(("cells" in answer) != answer.get("left_out", False) for answer in answers)
    assert sum(len(answer.get("cells", ())) for answer in answers) <= desk.limits.shown
