"""A purchase above a set share of the budget waits for an owner's yes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import serving
from starlette.testclient import TestClient

import hedgerow as hr
from hedgerow.client import ApprovalNeeded
from hedgerow.client.connection import ServiceConnection
from hedgerow.server import approvals
from hedgerow.server.approvals import ApprovalStore
from hedgerow.server.people import TokenStore
from hedgerow.server.registry import ServiceRegistry
from hedgerow.server.run import application
from hedgerow.server.settings import ApprovalRule, Settings, read_settings

AT = "/v1/datasets/people"
RULE = ApprovalRule(share=0.001, days=2)


class Desk:
    """A service whose purchases above 0.1 % of the budget need an approval."""

    def __init__(self, folder: Path, client: TestClient, session: hr.Session, registry: ServiceRegistry) -> None:
        self.folder, self.client, self.session, self.registry = folder, client, session, registry
        self.tokens = {r: TokenStore(registry).create(r, r)[0] for r in ("owner", "analyst", "auditor")}
        self.tokens["other"] = TokenStore(registry).create("other", "analyst")[0]

    def request(self, method: str, path: str, role: str = "analyst", **options: Any) -> Any:
        headers = {"Authorization": f"Bearer {self.tokens[role]}", **options.pop("headers", {})}
        return self.client.request(method, path, headers=headers, **options)

    def buy(self, question: str, within: float = 0.013, role: str = "analyst", **options: Any) -> Any:
        return self.request("POST", f"{AT}/ask", role, json={"question": question, "within": within}, **options)

    def decide(self, identity: str, decision: str, role: str = "owner") -> Any:
        return self.request("POST", f"{AT}/approvals/{identity}", role, json={"decision": decision})

    def state(self, identity: str) -> str:
        found = self.request("GET", f"{AT}/approvals").json()["approvals"]
        return str(next(each["state"] for each in found if each["id"] == identity))


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("approvals")
    registry = ServiceRegistry(folder / "hedgerow-service.sqlite")
    session = hr.open(
        serving.people(),
        universe=serving.UNIVERSE,
        budget=serving.BUDGET,
        ledger=f"sqlite:///{folder}/ledger",
        reserve=0.4,
    )
    settings = Settings(
        "127.0.0.1", 1, folder, {"people": folder}, hosts=("testserver",), approvals={"people": RULE}
    )  # fmt: skip
    with TestClient(application(settings, {"people": session}, registry), raise_server_exceptions=False) as client:
        yield Desk(folder, client, session, registry)
    registry.close()


def test_a_large_purchase_waits_and_is_charged_once_when_it_is_approved(desk: Desk) -> None:
    spent, key = desk.session.spent, {"Idempotency-Key": "large"}
    waiting = desk.buy("count(age=(30, 50))", headers=key)
    assert waiting.status_code == 202 and waiting.json()["approval"]["state"] == "pending"
    again = desk.buy("count(age=(30, 50))", headers=key)
    identity = waiting.json()["approval"]["id"]
    assert again.json()["approval"]["id"] == identity and desk.session.spent == spent
    decided = desk.decide(identity, "approve").json()["approval"]
    assert (decided["state"], decided["decided_by"]) == ("approved", "owner")
    assert desk.state(identity) == "approved" and desk.session.spent == spent
    bought = desk.buy("count(age=(30, 50))", headers=key)
    assert bought.status_code == 200
    assert desk.session.spent - spent == pytest.approx(bought.json()["answer"]["cost"]) != 0
    repeated = desk.buy("count(age=(30, 50))", headers=key)
    assert repeated.content == bought.content and desk.state(identity) == "bought"
    assert desk.buy("count(age=(30, 50))").json()["answer"]["cost"] == 0


def test_an_approved_purchase_that_is_sent_many_times_at_once_is_charged_once(desk: Desk) -> None:
    desk.decide(desk.buy("count(age=(44, 70))").json()["approval"]["id"], "approve")
    spent, keys = desk.session.spent, ["same", "same", "same", "other", None, None]
    with ThreadPoolExecutor(len(keys)) as pool:
        got = list(
            pool.map(
                lambda key: desk.buy("count(age=(44, 70))", headers={} if key is None else {"Idempotency-Key": key}),
                keys,
            )
        )
    answered = [each.json()["answer"] for each in got if each.status_code == 200]
    assert {each.status_code for each in got} <= {200, 409} and len({answer["value"] for answer in answered}) == 1
    paid = {each.content for each in got if each.status_code == 200 and each.json()["answer"]["cost"] > 0}
    assert len(paid) == 1  # a repetition under one key has the bytes of the first
    assert desk.session.spent - spent == pytest.approx(json.loads(*paid)["answer"]["cost"])


def test_a_refused_purchase_stays_refused_and_spends_nothing(desk: Desk) -> None:
    spent = desk.session.spent
    identity = desk.buy("count(age=(20, 47))").json()["approval"]["id"]
    assert desk.decide(identity, "approve").status_code == 200
    assert desk.decide(identity, "refuse").json()["approval"]["state"] == "refused"
    refused = desk.buy("count(age=(20, 47))")
    assert refused.status_code == 403 and refused.json()["type"].endswith("approval-refused")
    assert desk.decide(identity, "approve").status_code == 422
    assert desk.session.spent == spent


def test_an_approval_is_of_one_person_one_question_and_one_error(desk: Desk) -> None:
    identity = desk.buy("count(age=(35, 61))").json()["approval"]["id"]
    desk.decide(identity, "approve")
    spent = desk.session.spent
    assert desk.buy("count(age=(35, 61))", role="other").status_code == 202
    assert [desk.buy("count(age=(35, 61))", within=w).status_code for w in (0.0131, 0.012)] == [202, 202]
    assert desk.buy("count(age=(35, 62))").status_code == 202
    assert desk.session.spent == spent


def test_an_analyst_sees_the_own_approvals_and_decides_none(desk: Desk) -> None:
    identity = desk.buy("count(age=(22, 55))", role="other").json()["approval"]["id"]
    assert identity not in desk.request("GET", f"{AT}/approvals").text
    assert "decided_by" not in desk.request("GET", f"{AT}/approvals", "other").text
    assert identity in desk.request("GET", f"{AT}/approvals?state=pending", "auditor").text
    assert [desk.decide(identity, "approve", role).status_code for role in ("other", "analyst", "auditor")] == [403] * 3
    assert desk.decide("0" * 16, "approve").status_code == 404


def test_small_and_free_questions_and_an_owners_purchases_do_not_wait(desk: Desk) -> None:
    assert desk.request("POST", f"{AT}/ask", json={"question": "count(smoker=True)"}).status_code == 200
    assert desk.buy("count(smoker=True)", within=0.4).status_code == 200
    assert desk.buy("count(age=(25, 66))", role="owner").status_code == 200


def test_the_first_price_of_a_fit_is_not_all_of_it_so_every_bought_fit_waits(desk: Desk) -> None:
    body = {"loss": "Logistic", "target": "smoker", "features": ["age"], "radius": 1.0}
    assert desk.request("POST", f"{AT}/fit", json=body).status_code == 200
    free = desk.request("POST", f"{AT}/fit", json={**body, "within": 1.0})
    assert free.status_code == 200
    assert desk.request("POST", f"{AT}/fit", json={**body, "within": 0.3}).status_code == 202  # for less than the share


def test_unaffordable_requests_are_refused_at_once(desk: Desk) -> None:
    refused = desk.buy("count(smoker=True)", within=1e-9)
    assert refused.status_code == 403 and refused.json()["type"].endswith("budget-exceeded")


def test_the_command_line_lists_and_decides(desk: Desk) -> None:
    serving.desk(desk.folder)
    identity = desk.buy("count(age=(19, 52))").json()["approval"]["id"]

    def run(*arguments: str) -> Any:
        command = [sys.executable, "-m", "hedgerow.cli", "approvals", *arguments, "--file"]
        ran = subprocess.run([*command, str(desk.folder / "hedgerow.toml"), "--json"], capture_output=True, check=True)
        return json.loads(ran.stdout)

    assert identity in [each["id"] for each in run("list")["approvals"]]
    assert run("approve", identity)["approval"]["state"] == "approved"
    assert desk.buy("count(age=(19, 52))").status_code == 200
    assert run("list", "--state", "bought")["approvals"][0]["id"] == identity


def test_the_client_says_that_a_purchase_waits() -> None:
    connection = ServiceConnection("http://localhost", "hr_a_b")
    body = json.dumps({"type": "urn:hedgerow:problem:approval-needed", "detail": "It waits.", "approval": {"id": "a"}})
    waiting = connection._refusal(202, {}, body.encode())
    assert isinstance(waiting, ApprovalNeeded) and waiting.approval == {"id": "a"}


def test_approvals_expire_and_a_dearer_purchase_needs_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry, now = ServiceRegistry(tmp_path / "registry.sqlite"), [1_000.0]
    store = ApprovalStore(registry, lambda: now[0])
    _, ana = TokenStore(registry).create("ana", "analyst")

    def ask(cost: float, purchase: bytes = b"one") -> approvals.Approval:
        return store.require("people", ana, purchase, RULE, asked="count()", within=0.1, cost=cost, share=0.5)

    first = ask(1.0)
    now[0] += 2 * approvals.DAY
    assert store.find(first.id).state == "expired"  # type: ignore[union-attr]
    with pytest.raises(hr.InvalidInput, match="Found it expired"):
        store.decide(first.id, is_approved=True, by="eve")
    second = ask(1.0)
    assert second.id != first.id and [each.id for each in store.list(state="expired")] == [first.id]
    store.decide(second.id, is_approved=True, by="eve")
    assert ask(1.0).state == "approved"
    dearer = ask(1.1)
    assert (dearer.state, store.find(second.id).state) == ("pending", "expired")  # type: ignore[union-attr]
    monkeypatch.setattr(approvals, "WAITING", 1)
    with pytest.raises(hr.InvalidInput, match="may wait"):
        ask(1.0, b"two")
    registry.close()


def test_the_rule_is_in_the_services_file(tmp_path: Path) -> None:
    path = tmp_path / "service.toml"
    path.write_text('[datasets.a]\nfile = "f"\napprove_above = 0.05\napproval_days = 3\n[datasets.b]\nfile = "g"')
    assert read_settings(path).approvals == {"a": ApprovalRule(0.05, 3)}
    for wrong in (
        "approve_above = 2",
        "approve_above = true",
        "approval_days = 3",
        "approve_above = 0.1\napproval_days = 0",
    ):
        path.write_text(f'[datasets.a]\nfile = "f"\n{wrong}')
        with pytest.raises(hr.InvalidInput, match="appro"):
            read_settings(path)
