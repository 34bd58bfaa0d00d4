"""Closed by default: every route needs a valid token, no reply contains a row, and refusals look alike."""

from __future__ import annotations

import itertools
import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recorder import Drawn, Recorder
from starlette.testclient import TestClient

import hedgerow as hr
from hedgerow.data import HistogramSource
from hedgerow.engine.practical.engine import build_practical_engine
from hedgerow.ledger import opened
from hedgerow.server import people
from hedgerow.server.api import ENDPOINTS
from hedgerow.server.people import TokenStore
from hedgerow.server.registry import ServiceRegistry
from hedgerow.server.run import application
from hedgerow.server.settings import ApprovalRule, Limits, Settings
from hedgerow.session import Session

UNIVERSE = hr.Universe.from_sizes({"y": 2, "a": 3, "b": 3})
BUDGET = hr.Budget(1.0, 1e-6)
AT = "/v1/datasets/people"
BODIES: dict[str, Any] = {
    "ask": {"question": "count(y=1)"}, "ask_batch": {"questions": ["count(y=1)"]}, "fit": {"loss": "Logistic", "target": "y", "features": ["a"]},
    "run_sql": {"statement": "SELECT count(*) FROM data"}, "price": {"question": "count(y=1)", "within": 0.1}, "plan": {"rows": 1000},
    "decide_approval": {"decision": "approve"}, "set_cap": {"who": "eve", "epsilon": 0.1}, "create_token": {"person": "eve", "role": "owner"},
    "add_block": {"name": "june", "source": {"root": "a", "path": "b.csv"}}, "declare_columns": {"columns": {}},
    "create_registration": {"name": "x", "source": {"root": "a", "path": "b.csv"}},
    "draft_columns": {"columns": ["a"], "epsilon": 1.0, "delta": 0.0}, "open_registration": {},
    "read_prospect": {"rows": 1000, "epsilon": 1.0, "delta": 0.0},
}  # fmt: skip


def table(is_neighbour: bool = False) -> np.ndarray:
    counts = ((np.arange(UNIVERSE.size) * 7) % 5 + 150).reshape(UNIVERSE.shape)
    if is_neighbour:  # one person has another row
        counts[0, 0, 0] -= 1
        counts[1, 2, 1] += 1
    return counts


class Served:
    """A service of one dataset of this table, with a token of every role and of every wrong kind."""

    def __init__(
        self, folder: Path, counts: np.ndarray, history: tuple[Drawn, ...] | None = None, seed: int = 0
    ) -> None:
        self.noise = Recorder(seed, history)
        ledger, data = opened(f"sqlite:///{folder}/ledger", BUDGET), HistogramSource(UNIVERSE, counts)
        engine = build_practical_engine(
            data, ledger, self.noise, workload=None, queries=100, beta=0.05, guard=0.0, reserve=0.3
        )
        self.session = Session(data, ledger, self.noise, engine)
        self.registry = ServiceRegistry(folder / "registry.sqlite")
        tokens = TokenStore(self.registry)
        self.tokens = {f"right {role}": tokens.create(role, role)[0] for role in ("owner", "analyst", "auditor")}
        self.tokens |= {
            f"elsewhere {r}": tokens.create(r, r, datasets=["b"])[0] for r in ("owner", "analyst", "auditor")
        }
        self.tokens["expired"] = tokens.create("late", "owner", days=1e-9)[0]
        self.tokens["revoked"], gone = tokens.create("gone", "owner")
        tokens.revoke(gone.id)
        self.tokens["wrong"] = self.tokens["right owner"][:-1] + "x"
        self.tokens["unknown"] = "hr_" + "0" * 16 + "_" + "0" * 64
        self.tokens["empty"], self.tokens["account"] = "", f"hr_{tokens.create('on', 'owner', signs_on=True)[1].id}_"
        settings = Settings(
            "127.0.0.1",
            1,
            folder,
            {"people": folder},
            hosts=("testserver",),
            approvals={"people": ApprovalRule(0.05)},
            limits=Limits(wrong_tokens_per_minute=10**6),
        )
        self.client = TestClient(
            application(settings, {"people": self.session}, self.registry), raise_server_exceptions=False
        )

    def request(self, method: str, path: str, token: str | None, **options: Any) -> Any:
        headers = {} if token is None else {"Authorization": f"Bearer {self.tokens[token]}"}
        return self.client.request(method, path, headers={**headers, **options.pop("headers", {})}, **options)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    made = Served(tmp_path_factory.mktemp("closed"), table())
    with made.client:
        yield made
    made.registry.close()


def said(response: Any) -> tuple[Any, ...]:
    """A refusal without the number of its request."""
    return response.status_code, {**response.json(), "request": ""}, sorted(set(response.headers) - {"x-request-id"})


ASK = {"ask_by_text", "ask", "ask_batch", "run_sql", "price", "synthesize", "describe", "fit", "plan", "read_history"}
READ = {"download_report", "download_release", "read_spending", "read_entries", "verify_ledger", "read_trail"}
REGISTER = {
    "add_block", "list_sources", "list_registrations", "create_registration", "read_registration", "give_up_registration",
    "declare_columns", "draft_columns", "read_prospect", "open_registration",
}  # fmt: skip
MANAGE = {"set_cap", "decide_approval", "list_tokens", "create_token", "revoke_token"} | REGISTER


def test_analysts_ask_auditors_read_ledger_and_trail_and_owners_alone_decide() -> None:
    """A list beside the table of endpoints: a role that is widened there must be widened here, too."""
    of = {role: {each.name for each in ENDPOINTS if role in each.roles} for role in ("owner", "analyst", "auditor")}
    assert of["analyst"] - of["auditor"] == ASK
    assert of["auditor"] - of["analyst"] == READ
    assert of["owner"] - of["analyst"] - of["auditor"] == MANAGE
    assert of["analyst"] & of["auditor"] == {
        "list_datasets", "describe_dataset", "read_universe", "read_certificate", "read_statement", "list_approvals",
    }  # fmt: skip


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda each: each.name)
def test_no_route_opens_without_a_right_token_or_for_the_token_of_another_dataset(
    served: Served, endpoint: Any
) -> None:
    body, spent = BODIES.get(endpoint.name), served.session.spent
    paths = [
        endpoint.path.format(dataset=name, approval="x", token="x", registration="x") + "?q=count(y=1)"
        for name in ("people", "none")
    ]
    refusals = [
        said(served.request(endpoint.method, path, token, json=body))
        for path, token in itertools.product(
            paths, (None, "expired", "revoked", "wrong", "unknown", "empty", "account")
        )
    ]
    assert refusals == [refusals[0]] * len(refusals) and refusals[0][0] == 401
    if "{dataset}" in endpoint.path:
        for role in ("owner", "analyst", "auditor"):
            there = said(served.request(endpoint.method, paths[0], f"elsewhere {role}", json=body))
            nowhere = said(served.request(endpoint.method, paths[1], f"right {role}", json=body))
            assert there == nowhere and there[0] == (404 if role in endpoint.roles else 403)
    assert served.session.spent == spent


@pytest.mark.parametrize(
    "path", ["/v1/metrics", "/v1/openapi.json", "/v1", "/", "/v1/datasets/", "/docs", "/v1/datasets/people/ask/"]
)
def test_paths_that_no_endpoint_has_need_a_token_too(served: Served, path: str) -> None:
    for method in ("GET", "POST", "DELETE", "OPTIONS", "TRACE"):
        assert served.client.request(method, path, follow_redirects=False).status_code == 401, (method, path)


def test_right_and_wrong_tokens_take_the_same_steps(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """One read of the registry, one digest and one comparison of two digests of the same length."""
    steps: list[tuple[str, int]] = []
    rows, compare, digest = served.registry.rows, people.hmac.compare_digest, people._digest
    monkeypatch.setattr(served.registry, "rows", lambda *given: steps.append(("read", 1)) or rows(*given))
    monkeypatch.setattr(people, "_digest", lambda secret: steps.append(("digest", 1)) or digest(secret))
    monkeypatch.setattr(people.hmac, "compare_digest", lambda a, b: steps.append(("compare", len(a))) or compare(a, b))
    taken = {}
    for name in ("right owner", "expired", "revoked", "wrong", "unknown", "empty"):
        steps.clear()
        TokenStore(served.registry).find(served.tokens[name])
        taken[name] = list(steps)
    assert set(map(tuple, taken.values())) == {(("read", 1), ("digest", 1), ("compare", 32))}


REQUESTS: list[tuple[str, str, str, Any]] = [
    ("GET", "", "analyst", None), ("GET", "/universe", "analyst", None), ("GET", "/certificate", "auditor", None),
    ("POST", "/ask", "analyst", {"question": "count(y=1, a={0, 2})"}),
    ("POST", "/ask", "analyst", {"question": "count(b=1)", "within": 0.0165}),
    ("POST", "/ask", "owner", {"question": "count(a=1)", "within": 0.0165}), ("POST", "/ask", "analyst", {"question": "count(a=1)", "within": 1e-9}),
    ("POST", "/ask", "analyst", {"question": "count(nothing=1)"}), ("POST", "/ask", "analyst", {"question": 1}),
    ("POST", "/batch", "analyst", {"questions": ["mean('b', where=count(y=1))", "marginal('a', 'y')"]}),
    ("POST", "/sql", "analyst", {"statement": "SELECT a, count(*), avg(b) FROM data GROUP BY a"}),
    ("POST", "/sql", "analyst", {"statement": "SELECT * FROM data"}), ("POST", "/price", "analyst", {"question": "count(a=2)", "within": 0.02}),
    ("POST", "/fit", "analyst", {"loss": "Logistic", "target": "y", "features": ["a"], "radius": 1.0}),
    ("GET", "/describe", "analyst", None), ("GET", "/history", "analyst", None), ("GET", "/approvals", "owner", None),
    ("GET", "/statement", "analyst", None), ("GET", "/ledger/spending", "owner", None), ("GET", "/ledger/entries", "owner", None),
    ("GET", "/ledger/verify", "owner", None), ("GET", "/trail", "owner", None), ("GET", "/release?answers=none", "owner", None),
    ("GET", "/synthetic?rows=0", "analyst", None),
]  # fmt: skip
RANDOM = re.compile(
    rb'"(id|request|token|head|published|at|decided|expires|number|made|day|date|time)": ?("[^"]*"|[0-9.e+-]+|null)'
)  # ids of requests and tokens, the keyed head, and times


def transcript(served: Served, caplog: pytest.LogCaptureFixture) -> list[Any]:
    """All that leaves the service: statuses, headers, bodies, logs and metrics."""
    caplog.clear()
    found: list[Any] = []
    with served.client:
        for method, path, role, body in REQUESTS:
            got = served.request(method, AT + path, f"right {role}", json=body)
            headers = {
                name: value
                for name, value in got.headers.items()
                if name not in ("x-request-id", "etag", "content-length")
            }
            content = b"" if path.startswith("/release") else RANDOM.sub(b"", got.content)
            found.append((method, path, body, got.status_code, headers, content))
        metrics = served.request("GET", "/v1/metrics", "right owner").text
        found.append([line for line in metrics.splitlines() if "requests_total" in line])
    served.registry.close()
    found.append(
        [(each.name, each.levelname, re.sub(r"[0-9a-f]{16}", "", each.getMessage())) for each in caplog.records]
    )
    return found


def test_neighbouring_tables_with_one_released_history_give_one_transcript(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Identical but for ids of requests and tokens, times, latencies, and the keyed head of the ledger."""
    caplog.set_level(logging.INFO)
    for name in ("one", "other", "fresh"):
        (tmp_path / name).mkdir()
    one = Served(tmp_path / "one", table())
    first = transcript(one, caplog)
    other = transcript(Served(tmp_path / "other", table(is_neighbour=True), tuple(one.noise.draws)), caplog)
    for ours, theirs in zip(first, other, strict=True):
        assert ours == theirs
    statuses = [each[3] for each in first[: len(REQUESTS)]]
    assert statuses.count(200) >= 17 and {202, 403, 422} <= set(statuses)
    assert one.session.log[-1].cost > 0 and "count(a=1)" in repr(one.session.log[-1].asked)  # the owner has bought
    assert transcript(Served(tmp_path / "fresh", table(), seed=1), caplog) != first  # other releases show


FREE = [
    *[(method, path, body) for method, path, role, body in REQUESTS if role == "analyst" and "within" not in (body or {})],
    ("GET", "/ask?q=count(y=1,a=1)", None), ("POST", "/ask", {"question": "count(a=1)", "form": "exact"}), ("GET", "/approvals", None),
    ("POST", "/batch", {"questions": ["count(b=2)", "count(b=2)"]}), ("POST", "/plan", {"rows": 100}), ("GET", "/history?before=4", None),
    ("POST", "/price", {"question": "count(b=0)", "within": 0.02}),
]  # fmt: skip
BUY = ("POST", "/ask", {"question": "count(b=1)", "within": 0.0165})


def curious(folder: Path, others: list[tuple[str, str, Any]]) -> tuple[list[Any], float]:
    """Return what an analyst sees of two rounds of questions after an owner's, and what the owner's cost."""
    folder.mkdir()
    served, found = Served(folder, table()), []
    with served.client:
        before = served.session.spent
        for method, path, body in others:
            assert served.request(method, AT + path, "right owner", json=body).status_code < 500
        cost = served.session.spent - before
        for method, path, body in FREE * 2:
            got = served.request(method, AT + path, "right analyst", json=body)
            left_out = ("x-request-id", *(("etag", "content-length") if "/history" in path else ()))
            headers = {name: value for name, value in got.headers.items() if name not in left_out}
            content = re.sub(rb'"(request|at)": ?[^,}]*', b"", got.content)
            found.append((method, path, body, got.status_code, headers, content))
    served.registry.close()
    return found, cost


def test_an_analyst_sees_nothing_of_what_others_ask_for_free_and_no_amount_of_what_they_buy(tmp_path: Path) -> None:
    """Statuses, headers, tags, sizes and bodies are the same, to the last bit, whoever asked the same questions before."""
    alone, _ = curious(tmp_path / "alone", [])
    after, cost = curious(tmp_path / "after", FREE * 2)
    assert alone == after and cost == 0 and {422} < {each[3] for each in alone}
    bought, cost = curious(tmp_path / "bought", [BUY])
    assert cost > 0
    for ours, theirs in zip(alone, bought, strict=True):
        if ours[1] == "/statement":  # where the kinds of noise are named, of all releases
            one, other = (json.loads(each[5]) for each in (ours, theirs))
            del one["deployment"]["implementation"]["mechanisms"], other["deployment"]["implementation"]["mechanisms"]
            assert one == other
        elif ours[1].startswith(("/history", "/approvals", "/universe", "/plan")):
            assert ours == theirs
