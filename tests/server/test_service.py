"""The service as a client meets it: the real application and a real session, in this process."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import serving
from openapi_spec_validator import validate
from starlette.testclient import TestClient

import hedgerow as hr
from hedgerow.errors import BudgetExceeded, DataUnavailable, LedgerBroken, LedgerUnavailable
from hedgerow.report import plain
from hedgerow.server.api import ENDPOINTS
from hedgerow.server.dataset import Dataset
from hedgerow.server.people import TokenStore
from hedgerow.server.problems import Refusal, problem_of
from hedgerow.server.registry import ServiceRegistry
from hedgerow.server.run import application
from hedgerow.server.settings import Limits, Settings

AT = "/v1/datasets/people"


@dataclass
class Served:
    """A service with its session, its tokens by role, and a client without a token."""

    client: TestClient
    session: hr.Session
    registry: ServiceRegistry
    tokens: dict[str, str]

    def request(self, method: str, path: str, role: str = "analyst", **options: Any) -> Any:
        headers = {"Authorization": f"Bearer {self.tokens[role]}", **options.pop("headers", {})}
        return self.client.request(method, path, headers=headers, **options)

    def ask(self, question: Any, role: str = "analyst", headers: dict[str, str] | None = None, **body: Any) -> Any:
        return self.request("POST", f"{AT}/ask", role, json={"question": question, **body}, headers=headers or {})


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("service")
    registry = ServiceRegistry(folder / "registry.sqlite")
    session = hr.open(
        serving.people(),
        universe=serving.UNIVERSE,
        budget=serving.BUDGET,
        ledger=f"sqlite:///{folder}/ledger",
        reserve=0.4,
    )
    limits = Limits(body=20_000, questions=2_000, wrong_tokens_per_minute=1_000)
    settings = Settings("127.0.0.1", 8470, folder / "r", {"people": folder}, hosts=("testserver",), limits=limits)
    tokens = TokenStore(registry)
    made = {role: tokens.create(role, role)[0] for role in ("owner", "analyst", "auditor")}
    made |= {
        "other": tokens.create("other", "analyst")[0],
        "elsewhere": tokens.create("elsewhere", "owner", datasets=["another"])[0],
        "expired": tokens.create("late", "owner", days=1e-9)[0],
    }
    ended, record = tokens.create("gone", "owner")
    tokens.revoke(record.id)
    made["revoked"] = ended
    with TestClient(application(settings, {"people": session}, registry), raise_server_exceptions=False) as client:
        yield Served(client, session, registry, made)
    registry.close()


def test_an_answer_is_the_sessions(served: Served) -> None:
    got = served.ask("count(smoker=True)").json()["answer"]
    want = served.session.ask(hr.count(smoker=True))
    assert (got["value"], got["error"], got["typical"]) == (want.value, want.error, want.typical)


def test_a_question_may_be_text_or_the_json_form(served: Served) -> None:
    form = hr.wire.to_json(hr.mean("age", where=hr.count(sex="F")))
    by_text = served.ask('mean("age", where=count(sex="F"))').json()
    assert served.ask(form).json()["answer"]["value"] == by_text["answer"]["value"]


def test_a_batch_and_its_stream_have_the_answers_of_single_questions(served: Served) -> None:
    questions = [f"count(age=(17, {a}))" for a in range(20, 40)]
    single = [served.ask(question).json()["answer"]["value"] for question in questions]
    body = {"questions": questions}
    batch = served.request("POST", f"{AT}/batch", json=body).json()["answers"]
    lines = served.request("POST", f"{AT}/batch", json=body, headers={"Accept": "application/x-ndjson"})
    streamed = [json.loads(line)["answer"] for line in lines.text.splitlines()]
    assert [a["value"] for a in batch] == single == [a["value"] for a in streamed]


def test_sql_has_the_rows_of_the_session(served: Served) -> None:
    statement = "SELECT sex, count(*) AS n FROM data GROUP BY sex"
    got = served.request("POST", f"{AT}/sql", json={"statement": statement}).json()
    want = served.session.sql(statement)
    assert got["columns"] == list(want.columns)
    assert got["rows"] == want.to_numpy(object).tolist()


@pytest.mark.parametrize("form", ["csv", "parquet", "arrow"])
def test_synthetic_records_come_in_the_form_that_was_asked_for(served: Served, form: str) -> None:
    got = served.request("GET", f"{AT}/synthetic?rows=50&format={form}")
    assert got.status_code == 200
    start = {"csv": b"age,sex,smoker", "parquet": b"PAR1", "arrow": b"\xff\xff\xff\xff"}[form]
    assert got.content.startswith(start)


def test_a_purchase_is_billed_to_the_person_and_shown_to_the_owner(served: Served) -> None:
    before = served.session.spent
    got = served.ask("count(smoker=True, age=(40, 65))", within=0.012)
    assert got.status_code == 200, got.text
    assert served.session.spent - before == pytest.approx(got.json()["answer"]["cost"]) != 0
    (paid,) = [r for r in served.request("GET", f"{AT}/trail", "owner").json()["requests"] if r["cost"] > 0][:1]
    assert (paid["person"], paid["endpoint"]) == ("analyst", "ask")
    billed = served.request("GET", f"{AT}/ledger/spending", "owner").json()["by"]
    shares = {record["who"]: record["share"] for records in billed.values() for record in records}
    assert shares["analyst"] > 0
    own = served.request("GET", f"{AT}/history", "analyst").json()["requests"]
    assert next(r["cost"] for r in own if r["cost"] > 0) == pytest.approx(got.json()["answer"]["cost"])


def test_an_analyst_with_a_cap_buys_nothing_beyond_it_and_others_do(served: Served) -> None:
    cap = served.request("POST", f"{AT}/caps", "owner", json={"who": "other", "epsilon": 1e-6})
    assert cap.status_code == 200, cap.text
    spent = served.session.spent
    refused = served.ask("count(smoker=False, age=(31, 64))", "other", within=0.012)
    assert (refused.status_code, served.session.spent) == (403, spent)
    assert refused.json()["type"].endswith("budget-exceeded")
    assert served.ask("count(smoker=False, age=(31, 64))", "analyst", within=0.012).status_code == 200


@pytest.mark.parametrize("kind", [BudgetExceeded, DataUnavailable, LedgerBroken, LedgerUnavailable])
def test_amounts_lines_and_places_in_a_refusal_are_shown_to_the_owner_alone(kind: Any) -> None:
    error = kind("Found 7 lines of 8 at /srv/table.csv, and 0.25 left.")
    assert problem_of(error, is_owner=True).detail == str(error)
    told = problem_of(error, is_owner=False).detail
    assert not any(mark.isdigit() for mark in told) and "srv" not in told


def test_a_repetition_with_the_same_key_is_billed_once_and_answered_alike(served: Served) -> None:
    key = {"Idempotency-Key": "one"}
    first = served.ask("count(sex='F', age=(30, 50))", within=0.013, headers=key)
    spent = served.session.spent
    again = served.ask("count(sex='F', age=(30, 50))", within=0.013, headers=key)
    assert first.status_code == 200 and again.content == first.content
    assert again.headers["Idempotency-Replayed"] == "true"
    assert served.session.spent == spent


def test_a_key_that_belongs_to_another_request_is_refused(served: Served) -> None:
    key = {"Idempotency-Key": "two"}
    assert served.ask("count(smoker=True)", headers=key).status_code == 200
    assert served.ask("count(sex='F')", headers=key).status_code == 422
    assert served.ask("count(sex='F')", "other", headers=key).status_code == 200  # keys are each person's own


def test_a_question_that_another_person_asked_looks_new(served: Served) -> None:
    question = "count(age=(33, 44), smoker=False)"
    sources = [served.ask(question, role).json()["answer"]["source"] for role in ("analyst", "other", "other")]
    assert sources == ["hypothesis", "hypothesis", "repeat"]


def test_an_analyst_sees_neither_others_nor_the_amounts_that_they_spent(served: Served) -> None:
    served.ask("count(age=(50, 51))", "other")
    history = served.request("GET", f"{AT}/history").text
    assert "age=(50, 51)" not in history and "other" not in history
    refused = served.ask("count(smoker=True)", within=1e-9)
    assert refused.status_code == 403
    assert refused.json()["type"].endswith("budget-exceeded")
    assert not any(character.isdigit() for character in refused.json()["detail"])
    assert any(
        character.isdigit() for character in served.ask("count(smoker=True)", "owner", within=1e-9).json()["detail"]
    )


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda each: each.name)
def test_every_endpoint_needs_a_valid_token_of_the_right_role_and_dataset(served: Served, endpoint: Any) -> None:
    path = endpoint.path.format(dataset="people", token="none", approval="none", registration="none")
    bare = served.client.request(endpoint.method, path)
    assert bare.status_code == 401
    for bad in ("expired", "revoked"):
        refused = served.request(endpoint.method, path, bad)
        assert (refused.status_code, _without_id(refused)) == (401, _without_id(bare))
    for role in {"owner", "analyst", "auditor"} - set(endpoint.roles):
        assert served.request(endpoint.method, path, role, json={}).status_code == 403
    if "{dataset}" in endpoint.path and "owner" in endpoint.roles:
        bodies = {"ask": {"question": "count(smoker=True)"}, "ask_batch": {"questions": ["count(smoker=True)"]},
                  "run_sql": {"statement": "SELECT count(*) FROM data"}, "price": {"question": "count(smoker=True)", "within": 0.1},
                  "fit": {"loss": "Logistic", "target": "smoker", "features": ["age"]}, "plan": {"rows": 1000},
                  "decide_approval": {"decision": "refuse"}, "set_cap": {"who": "ana", "epsilon": 1.0},
                  "add_block": {"name": "june", "source": {"root": "a", "path": "b.csv"}}}  # fmt: skip
        body = bodies.get(endpoint.name)
        there = served.request(endpoint.method, path + "?q=count(smoker=True)", "elsewhere", json=body)
        nowhere = served.request(
            endpoint.method,
            endpoint.path.format(dataset="nothing", approval="none") + "?q=count(smoker=True)",
            "owner",
            json=body,
        )
        assert there.status_code == nowhere.status_code == 404
        assert _without_id(there) == _without_id(nowhere)


def _without_id(response: Any) -> Any:
    return {**response.json(), "request": ""}


def test_only_health_answers_without_a_token(served: Served) -> None:
    for path, status in [("/v1/health", 200), ("/v1/ready", 200), ("/v1/metrics", 401), ("/v1/openapi.json", 401),
                         ("/", 401), ("/v1/other", 401), ("/docs", 401)]:  # fmt: skip
        assert served.client.get(path).status_code == status, path


def test_a_request_for_another_name_or_from_another_site_is_refused(served: Served) -> None:
    for host in ("evil.example", "evil.example:80", "testserver:8470@evil.example", "testserver:", "a.testserver"):
        assert served.request("GET", "/v1/datasets", headers={"Host": host}).status_code == 421
    assert served.request("GET", "/v1/datasets", headers={"Host": "testserver:8470"}).status_code == 200
    body = {"question": "count(smoker=True)"}
    assert served.request("POST", f"{AT}/ask", json=body, headers={"Origin": "https://evil.example"}).status_code == 403
    assert served.request("POST", f"{AT}/ask", json=body, headers={"Origin": "http://testserver"}).status_code == 200


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400), (b"[]", 422), (b"{}", 422), (b"\xff\xfe", 400), (b"[" * 10_000, 422), (b" " * 30_000, 413),
        (b'{"question": 1}', 422), (b'{"question": "__import__(1)"}', 422), (b'{"question": {"kind": "budget"}}', 422),
        (b'{"question": "count(smoker=True)", "within": -1}', 422), (b'{"question": "count(smoker=True)", "x": 1}', 422),
        (b'{"question": "' + b"(" * 5_000 + b'"}', 422), (b'{"question": "statistic(1)"}', 422),
    ],
)  # fmt: skip
def test_a_malformed_body_is_a_problem_and_spends_nothing(served: Served, body: bytes, status: int) -> None:
    spent = served.session.spent
    got = served.request("POST", f"{AT}/ask", content=body, headers={"Content-Type": "application/json"})
    assert got.status_code == status, got.text
    assert got.headers["content-type"] == "application/problem+json"
    assert served.session.spent == spent


def test_a_read_answer_has_a_tag_and_is_not_sent_twice(served: Served) -> None:
    paths = ("", "/universe", "/certificate", "/statement", "/describe", "/approvals", "/ask?q=count(smoker=True)")
    for path in ("/v1/openapi.json", "/v1/datasets", *(AT + path for path in paths)):
        served.request("GET", path)  # the first answer to a question is no repetition
        got = served.request("GET", path)
        assert got.headers["Cache-Control"] == "private, no-cache" and "Authorization" in got.headers["Vary"]
        again = served.request("GET", path, headers={"If-None-Match": got.headers["ETag"]})
        assert (path, again.status_code, again.content) == (path, 304, b"")
        assert served.request("GET", path, headers={"If-None-Match": '"other"'}).content == got.content


def test_the_description_is_valid_and_names_every_endpoint(served: Served) -> None:
    found = served.request("GET", "/v1/openapi.json").json()
    validate(found)
    assert {(p, m.upper()) for p, each in found["paths"].items() for m in each} == {
        (e.path, e.method) for e in ENDPOINTS
    }


def test_many_threads_get_the_answers_of_one(served: Served) -> None:
    questions = [f"count(age=(17, {a}), smoker=True)" for a in range(18, 34)]
    want = [served.ask(question).json()["answer"]["value"] for question in questions]
    got: dict[int, float] = {}

    def one(i: int) -> None:
        got[i] = served.ask(questions[i], ("analyst", "other")[i % 2]).json()["answer"]["value"]

    threads = [threading.Thread(target=one, args=(i,)) for i in range(len(questions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [got[i] for i in range(len(questions))] == want


def test_a_fault_says_and_logs_nothing_of_its_message(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("row 17 is secret")

    monkeypatch.setattr(served.session, "price", broken)
    got = served.request("POST", f"{AT}/price", json={"question": "count(smoker=True)", "within": 0.1})
    assert got.status_code == 500 and "secret" not in got.text
    assert "RuntimeError" in caplog.text and "secret" not in caplog.text


def test_tokens_are_made_listed_and_revoked_by_owners(served: Served) -> None:
    made = served.request("POST", "/v1/tokens", "owner", json={"person": "ana", "role": "analyst", "project": "heart"})
    assert made.status_code == 201
    headers = {"Authorization": f"Bearer {made.json()['token']}"}
    assert served.client.get("/v1/datasets", headers=headers).json() == {"datasets": ["people"]}
    listed = served.request("GET", "/v1/tokens", "owner").text
    assert made.json()["id"] in listed and made.json()["token"] not in listed
    assert served.request("DELETE", f"/v1/tokens/{made.json()['id']}", "elsewhere").status_code == 404
    assert served.request("DELETE", f"/v1/tokens/{made.json()['id']}", "owner").status_code == 200
    assert served.client.get("/v1/datasets", headers=headers).status_code == 401


def test_an_owner_of_some_datasets_makes_tokens_for_these_alone(served: Served) -> None:
    before = served.request("GET", "/v1/tokens", "owner").json()
    for datasets in (None, ["people"], ["another", "people"]):
        body = {"person": "ana", "role": "analyst", "datasets": datasets}
        refused = served.request("POST", "/v1/tokens", "elsewhere", json=body)
        assert refused.status_code == 422 and "token" not in refused.json()
    assert served.request("GET", "/v1/tokens", "owner").json() == before


def test_no_secret_of_a_token_is_in_the_registrys_file(served: Served) -> None:
    content = b"".join(path.read_bytes() for path in Path(served.registry.path).parent.glob("registry.sqlite*"))
    for token in served.tokens.values():
        assert token.rpartition("_")[2].encode() not in content


def test_a_new_token_is_not_stored_under_an_idempotency_key(served: Served) -> None:
    body = {"person": "eve", "role": "analyst"}
    made = served.request("POST", "/v1/tokens", "owner", json=body, headers={"Idempotency-Key": "token"})
    assert made.status_code == 201
    secret = made.json()["token"].rpartition("_")[2].encode()
    content = b"".join(path.read_bytes() for path in Path(served.registry.path).parent.glob("registry.sqlite*"))
    assert secret not in content


def test_a_stream_of_another_dataset_is_refused_before_it_begins(served: Served) -> None:
    accept = {"Accept": "application/x-ndjson"}
    body = {"questions": ["count(smoker=True)"]}
    assert served.request("POST", f"{AT}/batch", "elsewhere", json=body, headers=accept).status_code == 404


def test_a_method_that_no_endpoint_has_needs_a_token_too(served: Served) -> None:
    for path in ("/v1/health", f"{AT}/ask", "/"):
        assert served.client.request("PROPFIND", path).status_code == 401
    assert served.request("PROPFIND", f"{AT}/ask").status_code == 405


def test_the_trail_has_the_words_of_refused_questions_and_the_refused_roles(served: Served) -> None:
    served.ask("count(age=(61, 62))", within=1e-9)
    served.request("GET", f"{AT}/trail", "analyst")
    found = served.request("GET", f"{AT}/trail", "owner").json()["requests"]
    assert any(r["status"] == 403 and "61, 62" in r["asked"] for r in found)
    assert any(r["status"] == 403 and r["endpoint"] == "read_trail" for r in found)


def test_a_right_token_passes_after_many_wrong_ones(tmp_path: Path) -> None:
    registry = ServiceRegistry(tmp_path / "registry.sqlite")
    settings = Settings("127.0.0.1", 1, tmp_path, {}, hosts=("testserver",), limits=Limits(wrong_tokens_per_minute=2))
    right = {"Authorization": f"Bearer {TokenStore(registry).create('ana', 'analyst')[0]}"}
    with TestClient(application(settings, {}, registry)) as client:
        assert [client.get("/v1/datasets").status_code for _ in range(3)] == [401, 401, 429]
        assert client.get("/v1/datasets", headers=right).status_code == 200
    registry.close()


def test_a_fault_of_a_batch_reaches_every_request_that_waits(served: Served) -> None:
    async def asked() -> list[object]:
        dataset = Dataset("people", served.session, 10)
        dataset._thread.shutdown()
        waiting = [dataset.ask("ana", [hr.count(smoker=True)]) for _ in range(3)]
        return await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 10)

    assert all(isinstance(outcome, RuntimeError) for outcome in asyncio.run(asked()))


def test_one_person_cannot_take_all_places_of_the_queue(served: Served) -> None:
    async def asked() -> list[object]:
        dataset = Dataset("people", served.session, 10, 2)
        waiting = [dataset.ask(who, [hr.count(smoker=True)]) for who in ("ana", "ana", "ana", "ben")]
        return await asyncio.gather(*waiting, return_exceptions=True)

    assert [isinstance(outcome, Refusal) for outcome in asyncio.run(asked())] == [False, False, True, False]


@pytest.mark.parametrize("fault", [StopIteration, KeyboardInterrupt, RuntimeError])
def test_no_kind_of_fault_leaves_a_request_waiting(
    served: Served, monkeypatch: pytest.MonkeyPatch, fault: type[BaseException]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise fault

    monkeypatch.setattr(served.session, "ask_all", broken)
    monkeypatch.setattr(served.session, "price", broken)
    assert served.ask("count(smoker=True)").status_code == 500
    body = {"question": "count(smoker=True)", "within": 0.1}
    assert served.request("POST", f"{AT}/price", json=body).status_code == 500


def test_a_statement_asks_no_more_questions_than_a_batch(served: Served) -> None:
    aggregates = ", ".join(f"count(*) FILTER (WHERE age > {a}) AS n{a}" for a in range(20, 40))
    statement = f"SELECT age, sex, {aggregates} FROM data GROUP BY age, sex"
    assert served.request("POST", f"{AT}/sql", json={"statement": statement}).status_code == 413


def test_namesakes_in_two_projects_have_two_histories(served: Served) -> None:
    for project in ("heart", "lung"):
        made = served.request(
            "POST", "/v1/tokens", "owner", json={"person": "sam", "role": "analyst", "project": project}
        )
        served.tokens[project] = made.json()["token"]
    question = "count(age=(51, 52), sex='F')"
    assert [served.ask(question, role).json()["answer"]["source"] for role in ("heart", "lung", "lung")] == [
        "hypothesis", "hypothesis", "repeat",
    ]  # fmt: skip
    histories = [served.request("GET", f"{AT}/history", role).json()["requests"] for role in ("heart", "lung")]
    assert [len(history) for history in histories] == [1, 2]


def test_the_trail_has_the_true_cost_of_a_request_that_was_refused_in_part(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    price = served.session.price

    def buys_and_refuses(*_: Any, **__: Any) -> float:
        served.session.ask(hr.count(age=(18, 48), sex="M"), within=0.012)
        return price(hr.count(nothing=1), within=0.1)

    monkeypatch.setattr(served.session, "price", buys_and_refuses)
    spent = served.session.spent
    body = {"question": "count(smoker=True)", "within": 0.1}
    assert served.request("POST", f"{AT}/price", json=body).status_code == 422
    (latest, *_) = served.request("GET", f"{AT}/trail", "owner").json()["requests"]
    assert latest["endpoint"] == "price" and latest["cost"] == pytest.approx(served.session.spent - spent) != 0


def test_a_fit_has_the_coefficients_of_the_sessions_own_question(served: Served) -> None:
    body = {"loss": "Logistic", "target": "smoker", "features": ["age"], "radius": 2}
    got = served.request("POST", f"{AT}/fit", json=body).json()
    want = served.session.ask(hr.minimize(hr.losses.Logistic(target="smoker", features=["age"]), over=hr.L2Ball(2.0)))
    assert [each["value"] for each in got["coefficients"]] == want.value.tolist()
    wrong = served.request("POST", f"{AT}/fit", json={**body, "target": "nothing"})
    assert wrong.status_code == 422 and "nothing" in wrong.json()["detail"]


def test_summary_plan_statement_release_and_verification(served: Served) -> None:
    summary = served.request("GET", f"{AT}/describe").json()
    assert summary["columns"] == plain(served.session.describe().columns)
    plan = served.request("POST", f"{AT}/plan", json={"rows": 3000}).json()
    assert plan["options"] and plan["rows"] == 3000
    statement = served.request("GET", f"{AT}/statement", "auditor").json()
    assert statement == json.loads(served.session.statement().json)
    to_analysts = served.request("GET", f"{AT}/statement").json()
    for each in (statement, to_analysts):
        each["deployment"]["privacy_loss"]["privacy_parameters"].pop("spent")
    assert to_analysts == statement
    content = served.request("GET", f"{AT}/release?answers=none", "auditor").content
    assert hr.load(content).universe == serving.UNIVERSE
    whole = served.request("GET", f"{AT}/ledger/verify", "auditor").json()
    assert whole["is_whole"] and whole["lines"] > 0
    again = served.request("GET", f"{AT}/ledger/verify?head={whole['head']}", "auditor")
    assert again.status_code == 200
    other = served.request("GET", f"{AT}/ledger/verify?head=5:{'0' * 64}", "auditor")
    assert other.status_code == 503 and other.json()["type"].endswith("ledger-broken")
