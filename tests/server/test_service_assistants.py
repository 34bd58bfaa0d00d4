"""AI assistants on the service: the SDK's own client at /mcp, with tokens, roles, caps, approvals, limits and the trail."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
import serving
import uvicorn
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult

import hedgerow as hr
from hedgerow.answering.privacy_statement import FOR_READERS
from hedgerow.assistants.desk import AssistantDesk
from hedgerow.assistants.toolbox import call_tool
from hedgerow.server import assistants
from hedgerow.server.app import FLUSH_EVERY
from hedgerow.server.approvals import ApprovalStore
from hedgerow.server.people import TokenStore
from hedgerow.server.registry import ServiceRegistry
from hedgerow.server.run import application
from hedgerow.server.settings import ApprovalRule, Limits, Settings, read_settings
from hedgerow.server.trail import Trail

MODES = ("legacy", "auto")
QUESTION = "count(smoker=True, age=(20, 41))"
CALLS: dict[str, dict[str, Any]] = {
    "describe_dataset": {},
    "summarise_columns": {"columns": ["age"]},
    "synthetic_rows": {"rows": 3},
    "ask": {"questions": [QUESTION, "mean('age', where=count(sex='F'))"], "compare": [[0, 0]]},
    "sql": {"statement": "SELECT sex, count(*) FROM data GROUP BY sex"},
    "explain_answer": {"question": QUESTION},
    "fit_model": {"target": "smoker", "features": ["sex"]},
    "price": {"question": QUESTION, "within": 0.5},
}


@dataclass
class Served:
    """A service on a port, its session, and its tokens by the name of their person."""

    url: str
    session: hr.Session
    store: TokenStore
    registry: ServiceRegistry
    tokens: dict[str, str]

    @contextlib.asynccontextmanager
    async def client(self, who: str, mode: str = "auto", path: str = "/mcp", **options: Any) -> AsyncIterator[Client]:
        headers = {"Authorization": f"Bearer {self.tokens[who]}"}
        async with httpx2.AsyncClient(headers=headers, timeout=60) as web:
            transport = streamable_http_client(self.url + path, http_client=web)
            async with Client(transport, mode=mode, **options) as client:
                yield client

    def post(self, who: str | None, path: str = "/mcp", body: Any = None, **headers: str) -> httpx2.Response:
        given = {"accept": "application/json, text/event-stream", **headers}
        if who is not None:
            given["authorization"] = f"Bearer {self.tokens[who]}"
        return httpx2.post(self.url + path, json=INITIALIZE if body is None else body, headers=given)

    def trail(self, person: str, endpoint: str) -> list[Any]:
        """The requests of a person, once one of this endpoint is written: free ones are a moment later."""
        for _ in range(200):
            found = [each for each in Trail(self.registry).requests("people", most=1000) if each.person == person]
            if endpoint in {each.endpoint for each in found}:
                break
            time.sleep(FLUSH_EVERY)
        return found


INITIALIZE = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}  # fmt: skip


@contextlib.contextmanager
def service(folder: Path, purchases: str, workers: int = 0, **options: Any) -> Iterator[Served]:
    registry = ServiceRegistry(folder / "registry.sqlite")
    session = hr.open(
        serving.people(), universe=serving.UNIVERSE, budget=serving.BUDGET, ledger=f"sqlite:///{folder}/ledger",
        reserve=0.4,
    )  # fmt: skip
    session.ledger.cap("robot", 2.0)
    port = serving.free_port()
    settings = Settings(
        "127.0.0.1", port, folder / "r", {"people": folder}, assistants=purchases, workers=workers, **options,
        limits=Limits(body=100_000, wrong_tokens_per_minute=1_000, seconds=60),
    )  # fmt: skip
    store = TokenStore(registry)
    tokens = {name: store.create(name, "analyst")[0] for name in ("robot", "other")}
    tokens |= {"owner": store.create("owner", "owner")[0], "auditor": store.create("auditor", "auditor")[0]}
    tokens["elsewhere"] = store.create("elsewhere", "analyst", datasets=["another"])[0]
    server = uvicorn.Server(
        uvicorn.Config(application(settings, {"people": session}, registry), port=port, log_level="error")
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield Served(f"http://127.0.0.1:{port}", session, store, registry, tokens)
    finally:
        server.should_exit = True
        thread.join(60)
        registry.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with service(tmp_path_factory.mktemp("service"), "approved", workers=1) as found:
        yield found


@pytest.fixture(scope="module")
def capped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with service(tmp_path_factory.mktemp("capped"), "capped") as found:
        yield found


def run(work: Any, seconds: float = 120) -> Any:
    async def limited() -> Any:
        return await asyncio.wait_for(work(), seconds)

    return asyncio.run(limited())


def text_of(result: Any) -> str:
    return "\n".join(part.text for part in result.content)


@pytest.mark.parametrize("mode", MODES)
def test_every_free_tool_answers_as_in_process_and_is_in_the_trail(served: Served, mode: str) -> None:
    desk = AssistantDesk(served.session, "people", shows_spending=False)

    async def work() -> None:
        spent = served.session.spent
        async with served.client("other", mode) as client:
            listed = {tool.name for tool in (await client.list_tools()).tools}
            assert listed == set(CALLS)  # no cap, so nothing to buy
            for name, arguments in CALLS.items():
                result = await client.call_tool(name, arguments)
                assert not result.is_error, text_of(result)
                if name != "explain_answer":  # a worker quotes no prices
                    want = json.loads(json.dumps(call_tool(desk, name, arguments).data))
                    assert result.structured_content == want, name
            for each in (await client.list_resources()).resources:
                assert (await client.read_resource(str(each.uri))).contents[0].text
        assert served.session.spent == spent

    run(work)
    mine = {entry.endpoint: entry for entry in served.trail("other", "mcp read_resource")}
    assert {f"mcp {name}" for name in CALLS} <= mine.keys() and "mcp read_resource" in mine
    assert QUESTION in mine["mcp ask"].asked and mine["mcp ask"].cost == 0 and mine["mcp ask"].status == 200


def test_a_resource_shows_no_spending_of_others(served: Served) -> None:
    async def work() -> None:
        async with served.client("other") as client:
            read = json.loads((await client.read_resource("hedgerow://statement")).contents[0].text)
            assert read["deployment"]["privacy_loss"]["privacy_parameters"]["spent"] == FOR_READERS
            described = (await client.call_tool("describe_dataset", {})).structured_content
            assert "spent" not in described["budget"]
        async with served.client("owner") as client:
            described = (await client.call_tool("describe_dataset", {})).structured_content
            assert described["budget"]["spent"] > 0

    run(work)


@pytest.mark.parametrize(
    ("who", "path", "headers", "status"),
    [
        (None, "/mcp", {}, 401),
        ("auditor", "/mcp", {}, 403),
        ("elsewhere", "/mcp/people", {}, 404),
        ("other", "/mcp/nobody", {}, 404),
        ("other", "/mcp", {"host": "evil.example"}, 421),
        ("other", "/mcp", {"origin": "https://evil.example"}, 403),
        ("other", "/mcp/people", {}, 200),
    ],
)
def test_a_request_passes_the_checks_of_every_request(
    served: Served, who: str | None, path: str, headers: dict[str, str], status: int
) -> None:
    found = served.post(who, path, **headers)
    assert found.status_code == status
    assert found.headers["X-Content-Type-Options"] == "nosniff" and "X-Request-Id" in found.headers


def test_a_large_body_is_refused_before_it_is_read(served: Served) -> None:
    assert served.post("other", body={"jsonrpc": "2.0", "id": 1, "method": "x" * 200_000}).status_code == 413


def test_a_session_belongs_to_its_token_and_a_revoked_token_ends(served: Served) -> None:
    name = served.post("other").headers["mcp-session-id"]
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    assert served.post("other", body=ping, **{"mcp-session-id": name}).status_code == 200
    assert served.post("robot", body=ping, **{"mcp-session-id": name}).status_code == 404
    token, record = served.store.create("brief", "analyst")
    served.tokens["brief"] = token
    own = served.post("brief").headers["mcp-session-id"]
    served.store.revoke(record.id)
    assert served.post("brief", body=ping, **{"mcp-session-id": own}).status_code == 401


def test_one_token_cannot_open_every_session(served: Served) -> None:
    served.tokens["many"] = served.store.create("many", "analyst")[0]
    statuses = [served.post("many").status_code for _ in range(assistants.SESSIONS_OF_ONE + 3)]
    assert statuses == [200] * assistants.SESSIONS_OF_ONE + [503] * 3
    assert served.post("other").status_code == 200


def test_concurrent_sessions_and_a_reconnection_get_the_same_answers(served: Served) -> None:
    async def ask(who: str, mode: str) -> Any:
        async with served.client(who, mode) as client:
            result = await client.call_tool("ask", {"questions": [f"count(age={age})" for age in range(20, 30)]})
            return result.structured_content

    async def work() -> None:
        together = await asyncio.gather(*(ask(who, mode) for who in ("robot", "other", "owner") for mode in MODES))
        assert all(found == together[0] for found in together)
        assert await ask("robot", "legacy") == together[0]  # a new connection

    run(work)


@pytest.mark.parametrize("mode", MODES)
def test_a_cancelled_call_leaves_the_service_able_to_answer(served: Served, mode: str) -> None:
    async def work() -> None:
        async with served.client("other", mode) as client:
            call = asyncio.create_task(
                client.call_tool("ask", {"questions": [f"count(age=({a}, 80))" for a in range(20, 80)]})
            )
            await asyncio.sleep(0.02)
            call.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await call
            assert not (await client.call_tool("ask", {"questions": [QUESTION]})).is_error

    run(work)


def free_bar(served: Served, question: str) -> float:
    return float(call_tool(AssistantDesk(served.session), "ask", {"questions": [question]}).data["answers"][0]["bar"])


@pytest.mark.parametrize("mode", MODES)
def test_a_purchase_waits_for_a_person_and_is_billed_to_the_token(served: Served, mode: str) -> None:
    question = f"count(smoker=True, age=(20, {30 + 7 * MODES.index(mode)}))"
    purchase = {"question": question, "within": 0.7 * free_bar(served, question)}
    asked: list[str] = []

    async def approve(context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="accept", content={"approve": True})

    async def decline(context: Any, params: Any) -> ElicitResult:
        return ElicitResult(action="decline")

    async def work() -> None:
        spent = served.session.spent
        for callback in (None, decline):
            async with served.client("robot", mode, elicitation_callback=callback) as client:
                refused = await client.call_tool("buy", purchase)
                assert refused.is_error and "approved by a person" in text_of(refused)
        assert served.session.spent == spent
        async with served.client("robot", mode, elicitation_callback=approve) as client:
            bought = await client.call_tool("buy", purchase)
            assert not bought.is_error, text_of(bought)
            charged = bought.structured_content["charged"]
            assert served.session.spent - spent == pytest.approx(charged, rel=1e-6) and charged > 0
            again = await client.call_tool("buy", purchase)
            assert again.structured_content["charged"] == 0 and len(asked) == 1
            free = await client.call_tool("ask", {"questions": [question]})
            assert free.structured_content["answers"][0]["bar"] <= purchase["within"]
        assert served.session.ledger.spending().query("who == 'robot'")["spent"].sum() > 0

    run(work)
    assert any(entry.cost > 0 for entry in served.trail("robot", "mcp buy") if entry.endpoint == "mcp buy")


def test_a_purchase_that_an_owner_must_approve_waits_for_the_owner(tmp_path: Path) -> None:
    with service(tmp_path, "capped", approvals={"people": ApprovalRule(0.0001)}) as found:
        purchase = {"question": QUESTION, "within": 0.7 * free_bar(found, QUESTION)}

        async def buy() -> Any:
            async with found.client("robot") as client:
                return await client.call_tool("buy", purchase)

        spent, store = found.session.spent, ApprovalStore(found.registry)
        for _ in range(2):
            refused = run(buy)
            assert refused.is_error and "must be approved by an owner" in text_of(refused)
        assert found.session.spent == spent
        (waiting,) = store.list(state="pending")
        assert waiting.analyst == "robot"
        store.decide(waiting.id, is_approved=True, by="owner")
        bought = run(buy)
        assert not bought.is_error and found.session.spent > spent
        assert store.list(state="bought")[0].id == waiting.id


def test_nobody_buys_without_a_cap_or_where_purchases_are_not_allowed(served: Served, tmp_path: Path) -> None:
    async def work(found: Served, who: str) -> None:
        async with found.client(who) as client:
            result = await client.call_tool("buy", {"question": QUESTION, "within": 0.0001})
            assert result.is_error and "A tool must be one of" in text_of(result)

    run(lambda: work(served, "owner"))
    with service(tmp_path, "none") as closed:
        run(lambda: work(closed, "robot"))


def test_concurrent_purchases_stay_within_the_cap(capped: Served) -> None:
    questions = [f"count(smoker=True, age=(20, {age}))" for age in range(30, 60, 3)]
    wanted = [{"question": q, "within": 0.3 * free_bar(capped, q)} for q in questions]

    async def buy(client: Client, purchase: dict[str, Any]) -> Any:
        return await client.call_tool("buy", purchase)

    async def work() -> None:
        async with capped.client("robot") as one, capped.client("robot", "legacy") as two:
            found = await asyncio.gather(*(buy((one, two)[i % 2], each) for i, each in enumerate(wanted)))
            refused = [text_of(result) for result in found if result.is_error]
            assert refused and len(refused) < len(found)
            # the amounts of a refusal would tell what others have spent
            assert all("Nothing was spent" in said and not any(c.isdigit() for c in said) for said in refused)

    run(work)
    cap = hr.Budget(2.0, 1e-6).total
    mine = capped.session.ledger.spending().query("who == 'robot'")["spent"].sum()
    assert 0 < mine <= cap * (1 + 1e-9)


def test_the_configuration_offers_assistants_only_where_it_says_so(tmp_path: Path) -> None:
    path = tmp_path / "service.toml"
    path.write_text('[datasets.people]\nfile = "hedgerow.toml"\n')
    assert read_settings(path).assistants is None
    path.write_text('[datasets.people]\nfile = "hedgerow.toml"\n[assistants]\npurchases = "approved"\n')
    assert read_settings(path).assistants == "approved"
    path.write_text('[datasets.people]\nfile = "hedgerow.toml"\n[assistants]\npurchases = "everything"\n')
    with pytest.raises(hr.InvalidInput, match=r"must be one of none, approved, capped"):
        read_settings(path)
