"""The SDK's own client: every tool, resource, prompt and refusal, both eras of the protocol, approvals and cancellation."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import people
import pytest
from assisting import CALLS, buying_desk, release_desk, release_of, run
from jsonschema import Draft202012Validator
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitResult

import hedgerow as hr
from hedgerow.assistants import protocol
from hedgerow.assistants.desk import AssistantDesk
from hedgerow.assistants.protocol import OneDesk, build_server
from hedgerow.assistants.resources import RESOURCES
from hedgerow.assistants.toolbox import TOOLS

MODES = ("legacy", "auto")
HOSTILE: list[tuple[str, Any, str]] = [
    ("ask", {}, "questions"),
    ("ask", {"questions": []}, "at least 1"),
    ("ask", {"questions": "count()"}, "must be a list"),
    ("ask", {"questions": ["__import__('os').system('id')"]}, "A question must be made of"),
    ("ask", {"questions": ["count(nobody=1)"]}, "must be one of 'age'"),
    ("ask", {"questions": ["count(smoker=True)"] * 201}, "at most 200"),
    ("ask", {"questions": ["count(smoker=True)"], "scale": "people"}, "scale must be one of"),
    ("ask", {"questions": ["count(smoker=True)"], "compare": [[0, 1]]}, "compare must have numbers"),
    ("ask", {"questions": [{"kind": "no_such"}]}, "kind must be one of"),
    ("ask", {"questions": ["count(smoker=True).over_time()"]}, "must be asked of a session"),
    ("ask", {"questions": ["(" * 5000]}, "A question must be"),
    ("ask", {"questions": ["x" * 30_000]}, "at most 20000 characters"),
    ("ask", {"questions": ["count(smoker=True)"], "execute": "rm"}, "must be among"),
    ("sql", {"statement": "DROP TABLE data"}, "must"),
    ("sql", {"statement": "SELECT * FROM data"}, "must"),
    ("sql", {"statement": "SELECT age, sex, smoker, region, count(*) FROM data GROUP BY 1, 2, 3, 4; SELECT 1"}, "must"),
    ("price", {"question": "count(smoker=True)", "within": 0}, "above 0"),
    ("price", {"question": "count(smoker=True)", "within": 1e-9}, "no narrower bar is sold"),
    ("price", {"question": "count(smoker=True)"}, "must have within"),
    ("fit_model", {"target": "nobody", "features": ["age"]}, "target must be a column"),
    ("fit_model", {"target": "smoker", "features": ["age"], "family": "forest"}, "must be one of linear"),
    ("synthetic_rows", {"rows": 10**9}, "rows must be from 1"),
    ("synthetic_rows", {"rows": True}, "whole number"),
    ("describe_dataset", {"columns": ["nobody"]}, "must be"),
    ("buy", {"question": "count(smoker=True)", "within": 0.001}, "A tool must be one of"),
    ("no_such_tool", {}, "A tool must be one of"),
]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> AssistantDesk:
    return release_desk(tmp_path_factory.mktemp("release"))


def client_of(desk: AssistantDesk, mode: str = "auto", **options: Any) -> Client:
    return Client(build_server(OneDesk(desk)), mode=mode, **options)


def text_of(result: Any) -> str:
    return "\n".join(part.text for part in result.content)


@pytest.mark.parametrize("mode", MODES)
def test_every_tool_resource_and_prompt_answers_the_sdks_client(desk: AssistantDesk, mode: str) -> None:
    async def work() -> None:
        async with client_of(desk, mode) as client:
            listed = (await client.list_tools()).tools
            assert {tool.name for tool in listed} == set(CALLS)
            for tool in listed:
                Draft202012Validator.check_schema(tool.input_schema)
                Draft202012Validator(tool.input_schema).validate(CALLS[tool.name])
                assert tool.annotations is not None and tool.annotations.read_only_hint
                result = await client.call_tool(tool.name, CALLS[tool.name])
                assert not result.is_error, text_of(result)
                assert 0 < len(text_of(result)) < 8_000
                assert len(json.dumps(result.structured_content, allow_nan=False)) < 16_000
            for each in (await client.list_resources()).resources:
                read = await client.read_resource(str(each.uri))
                assert read.contents[0].text
                if each.mime_type == "application/json":
                    json.loads(read.contents[0].text)
            prompt = (await client.list_prompts()).prompts[0]
            got = await client.get_prompt(prompt.name, {"question": "who smokes?"})
            assert "who smokes?" in got.messages[0].content.text and "interval" in got.messages[0].content.text
            assert client.instructions and "describe_dataset" in client.instructions

    run(work)


def test_calls_here_cover_every_free_tool() -> None:
    assert set(CALLS) == {tool.name for tool in TOOLS if not tool.spends}


@pytest.mark.parametrize("mode", MODES)
def test_every_refusal_is_a_sentence_that_tells_how_to_mend_the_call(desk: AssistantDesk, mode: str) -> None:
    async def work() -> None:
        async with client_of(desk, mode) as client:
            for name, arguments, part in HOSTILE:
                result = await client.call_tool(name, arguments)
                said = text_of(result)
                assert result.is_error and part in said, (name, arguments, said)
                assert "Traceback" not in said and "File " not in said and len(said) < 4_000
            with pytest.raises(MCPError, match="A resource must be one of"):
                await client.read_resource("hedgerow://secrets")
            with pytest.raises(MCPError, match="A prompt must be"):
                await client.get_prompt("no_such")

    run(work)


def test_a_refused_question_does_not_stop_the_others_of_its_batch(desk: AssistantDesk) -> None:
    async def work() -> None:
        async with client_of(desk) as client:
            result = await client.call_tool("ask", {"questions": ["count(nobody=1)", "count(smoker=True)"]})
            first, second = result.structured_content["answers"]
            assert "must be one of" in first["error"] and second["low"] <= second["value"] <= second["high"]

    run(work)


def test_repeats_are_the_same_to_the_last_byte(desk: AssistantDesk) -> None:
    async def work() -> None:
        async with client_of(desk) as client:
            for name, arguments in CALLS.items():
                one, other = [await client.call_tool(name, arguments) for _ in range(2)]
                assert text_of(one) == text_of(other) and one.structured_content == other.structured_content

    run(work)


def test_concurrent_clients_get_their_own_answers(desk: AssistantDesk) -> None:
    async def work() -> None:
        server = build_server(OneDesk(desk))

        async def ask(age: int) -> float:
            async with Client(server) as client:
                got = await client.call_tool("ask", {"questions": [f"count(age={age})"]})
                return float(got.structured_content["answers"][0]["value"])

        together = await asyncio.gather(*(ask(age) for age in range(8)))
        assert together == [await ask(age) for age in range(8)] and len(set(together)) > 4

    run(work)


class SlowDesk(AssistantDesk):
    """A desk that signals when it is asked, and takes its time."""

    began = threading.Event()
    views = 0

    @property
    def view(self) -> Any:
        SlowDesk.views += 1
        self.began.set()
        time.sleep(0.1)
        return self.table.public_view()


@pytest.mark.parametrize("mode", MODES)
def test_a_cancelled_batch_stops_and_the_next_call_is_answered(desk: AssistantDesk, mode: str) -> None:
    slow = SlowDesk(desk.table)

    async def work() -> None:
        async with client_of(slow, mode) as client:
            SlowDesk.began.clear()
            many = {
                "questions": [
                    f"count(age=({low}, {high}), region={{{i}, {j}}})"
                    for low in range(5)
                    for high in range(low, 8)
                    for i in range(4)
                    for j in range(4)
                ][:200]
            }
            call = asyncio.create_task(client.call_tool("ask", many))
            await asyncio.to_thread(SlowDesk.began.wait, 30)
            before = SlowDesk.views
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            result = await client.call_tool("ask", {"questions": ["count(smoker=True)"]})
            assert not result.is_error
            assert SlowDesk.views - before <= 4  # of 9: the batch has four parts, and either call looks at its bars

    run(work)


async def approve(context: Any, params: Any) -> ElicitResult:
    assert "privacy budget" in params.message and "count(smoker=True)" in params.message
    return ElicitResult(action="accept", content={"approve": True})


async def decline(context: Any, params: Any) -> ElicitResult:
    return ElicitResult(action="decline")


async def accept_without_approval(context: Any, params: Any) -> ElicitResult:
    return ElicitResult(action="accept", content={"approve": False})


@pytest.mark.parametrize("mode", MODES)
def test_a_purchase_waits_for_a_person_and_is_billed_once_under_the_cap(tmp_path: Path, mode: str) -> None:
    desk = buying_desk(tmp_path)
    free_bar = float(desk.view.ask(hr.count(smoker=True)).error)  # type: ignore[arg-type]
    purchase = {"question": "count(smoker=True)", "within": 0.8 * free_bar}

    async def work() -> None:
        for callback in (None, decline, accept_without_approval):
            async with client_of(desk, mode, elicitation_callback=callback) as client:
                refused = await client.call_tool("buy", purchase)
                assert refused.is_error and "approved by a person" in text_of(refused)
        spent = desk.table.spent
        async with client_of(desk, mode, elicitation_callback=approve) as client:
            priced = await client.call_tool("price", purchase)
            bought = await client.call_tool("buy", purchase)
            assert not bought.is_error, text_of(bought)
            charged = bought.structured_content["charged"]
            assert charged == pytest.approx(priced.structured_content["cost"], rel=1e-6)
            assert desk.table.spent - spent == pytest.approx(charged, rel=1e-6)
            again = await client.call_tool("buy", purchase)
            free = await client.call_tool("ask", {"questions": ["count(smoker=True)"]})
            assert again.structured_content["charged"] == 0
            assert free.structured_content["answers"][0]["bar"] <= 0.8 * free_bar
            refused = await client.call_tool("buy", {"question": "count(smoker=True)", "within": 0.00001})
            assert refused.is_error and "nothing was charged" in text_of(refused)

    run(work)
    desk.table.close()  # type: ignore[attr-defined]


def test_without_approval_the_cap_alone_holds(tmp_path: Path) -> None:
    desk = buying_desk(tmp_path, epsilon=0.001, needs_approval=False)
    free_bar = float(desk.view.ask(hr.count(smoker=True)).error)  # type: ignore[arg-type]

    async def work() -> None:
        async with client_of(desk) as client:
            spent = desk.table.spent
            refused = await client.call_tool("buy", {"question": "count(smoker=True)", "within": 0.8 * free_bar})
            assert refused.is_error and "nothing was charged" in text_of(refused)
            assert desk.table.spent == spent

    run(work)
    desk.table.close()  # type: ignore[attr-defined]


def test_free_tools_charge_nothing_even_where_the_session_itself_would(tmp_path: Path) -> None:
    """A guard is billed by the session for each round; the tools read released values only."""
    session = people.opened(people.frame(4000), guard=0.2)
    desk, spent = AssistantDesk(session), session.spent

    async def work() -> None:
        async with client_of(desk) as client:
            for name, arguments in CALLS.items():
                assert not (await client.call_tool(name, arguments)).is_error
            await client.call_tool("ask", {"questions": ["count(smoker=True).over_time()"]})

    run(work)
    assert session.spent == spent
    session.ask(hr.count(smoker=True).over_time())
    assert session.spent > spent  # the session itself charges for it


def test_a_release_file_is_served_over_stdio_and_again_after_the_client_left(tmp_path: Path) -> None:
    path = release_of(tmp_path)
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "hedgerow.cli", "mcp", str(path)], env=dict(os.environ)
    )

    async def ask(mode: str) -> Any:
        async with Client(command, mode=mode) as client:
            names = {tool.name for tool in (await client.list_tools()).tools}
            result = await client.call_tool("ask", {"questions": ["count(smoker=True)", "mean('age')"]})
            return names, result.structured_content

    first, second = run(lambda: ask("legacy")), run(lambda: ask("auto"))
    assert first == second and first[0] == set(CALLS)


def test_nothing_but_the_protocol_reaches_stdout_and_a_fault_is_told_by_its_type(tmp_path: Path) -> None:
    path = tmp_path / "broken.hedgerow"
    path.write_bytes(b"no release")
    command = [sys.executable, "-m", "hedgerow.cli", "mcp", str(path)]
    ran = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ), timeout=120)
    assert ran.returncode == 2 and ran.stdout == "" and "must be" in ran.stderr


def test_a_person_who_does_not_answer_has_not_approved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "PATIENCE", 0.05)
    desk = buying_desk(tmp_path)
    free_bar = float(desk.view.ask(hr.count(smoker=True)).error)  # type: ignore[arg-type]

    async def away(context: Any, params: Any) -> ElicitResult:
        await asyncio.sleep(30)
        return ElicitResult(action="accept", content={"approve": True})

    async def work() -> None:
        async with client_of(desk, "legacy", elicitation_callback=away) as client:
            spent = desk.table.spent
            refused = await client.call_tool("buy", {"question": "count(smoker=True)", "within": 0.8 * free_bar})
            assert refused.is_error and "approved by a person" in text_of(refused) and desk.table.spent == spent

    run(work)
    desk.table.close()  # type: ignore[attr-defined]


SESSION = """
source = "people.csv"
ledger = "sqlite:///people.ledger"
[budget]
epsilon = 2.0
delta = 1e-6
[options]
reserve = 0.5
[universe.age]
kind = "Integers"
low = 0
high = 7
[universe.smoker]
kind = "Flag"
"""


def test_a_session_over_stdio_buys_up_to_a_cap_that_outlives_the_process_and_scores_on_a_holdout(
    tmp_path: Path,
) -> None:
    columns = ["age", "smoker"]
    people.frame(3000)[columns].to_csv(tmp_path / "people.csv", index=False)
    people.frame(3000, seed=8)[columns].to_csv(tmp_path / "held.csv", index=False)
    (tmp_path / "hedgerow.toml").write_text(SESSION)

    def opened() -> hr.Session:
        universe = hr.Universe(age=hr.Integers(0, 7), smoker=hr.Flag())
        ledger = f"sqlite:///{tmp_path / 'people.ledger'}"
        return hr.open(
            tmp_path / "people.csv", universe=universe, budget=hr.Budget(2.0, 1e-6), ledger=ledger, reserve=0.5
        )

    opened().close()
    given = ["--purchases", "1.5", "--no-approval", "--holdout", str(tmp_path / "held.csv"), "--file"]
    arguments = ["-m", "hedgerow.cli", "mcp", *given, str(tmp_path / "hedgerow.toml")]
    command = StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))

    async def work() -> tuple[int, int]:
        async with Client(command, mode="legacy") as client:
            names = {tool.name for tool in (await client.list_tools()).tools}
            assert names == set(CALLS) | {"buy", "score_on_holdout"}
            fitted = (await client.call_tool("fit_model", {"target": "smoker", "features": ["age"]})).structured_content
            scored = await client.call_tool("score_on_holdout", {"model": fitted["model"]})
            assert not scored.is_error and scored.structured_content["low"] < scored.structured_content["high"]
            bought = refused = 0
            for age in range(8):
                question = f"count(smoker=True, age={{{age}}})"
                free = await client.call_tool("ask", {"questions": [question]})
                within = 0.9 * free.structured_content["answers"][0]["bar"]
                found = await client.call_tool("buy", {"question": question, "within": within})
                refused += found.is_error
                bought += not found.is_error and found.structured_content["charged"] > 0
            refused += (await client.call_tool("buy", {"question": "count(smoker=True)", "within": 1e-5})).is_error
            return bought, refused

    first, second = run(work), run(work)  # the cap is above the price of the first, whatever the noise
    assert first[0] > 0 and first[1] > 0 and second[1] > 0
    with opened() as session:
        spent = session.ledger.spending().query("who == 'assistant'")["spent"].sum()  # type: ignore[union-attr]
        assert 0 < spent <= hr.Budget(1.5, 1e-6).total * (1 + 1e-9)

    (tmp_path / "people.csv").unlink()  # free answers do without the table
    without = StdioServerParameters(
        command=sys.executable, args=[*arguments[:3], *arguments[-2:]], env=dict(os.environ)
    )

    async def ask_freely() -> None:
        async with Client(without, mode="legacy") as client:
            assert {tool.name for tool in (await client.list_tools()).tools} == set(CALLS)
            for name, given in (
                ("ask", {"questions": ["count(age=3)"]}),
                ("price", {"question": "count(age=3)", "within": 0.001}),
            ):
                found = await client.call_tool(name, given)
                assert not found.is_error, text_of(found)

    run(ask_freely)


def test_every_resource_is_listed_once() -> None:
    assert len({each.uri for each in RESOURCES}) == len(RESOURCES)
