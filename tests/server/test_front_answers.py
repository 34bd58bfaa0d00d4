"""A front with a token gives the engine's free answers and decides nothing about people. Its token opens nothing else."""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from load_service import AT, LoadedService, free_port

import hedgerow as hr
from hedgerow.errors import HedgerowError
from hedgerow.ledger.answer_log import line_body
from hedgerow.privacy.accounts import BlocksQuestion
from hedgerow.query.bound import Estimate
from hedgerow.release_file.replica import Replica, StateFile, public_state
from hedgerow.serialize import bound_question
from hedgerow.server.api import ENDPOINTS
from hedgerow.server.messages import pack, unpack
from hedgerow.server.people import TokenStore
from hedgerow.server.pool import PublishedState
from hedgerow.server.reading import release_file
from hedgerow.server.registry import ServiceRegistry
from hedgerow.server.shared_answers import GivenAnswers, read_proposed

FREE = [f"count(age=({low}, 70), smoker={smoker})" for low in range(17, 60) for smoker in ("True", "False")]
FREE_REQUESTS: list[tuple[str, str, Any]] = [
    ("POST", "/ask", {"question": FREE[0], "scale": "rows"}), ("GET", "/ask?q=mean('age')&resolution=bins", None),
    ("POST", "/batch", {"questions": FREE[:20] + FREE[:2], "form": "exact"}), ("GET", "/describe", None),
    ("POST", "/sql", {"statement": "SELECT sex, count(*) AS n, avg(age) AS a FROM data GROUP BY sex"}),
    ("POST", "/fit", {"loss": "Logistic", "target": "smoker", "features": ["age", "sex"], "radius": 2.0}),
    ("POST", "/fit", {"loss": "Squared", "target": "age", "features": ["region"]}), ("GET", "/synthetic?rows=0", None),
    ("POST", "/ask", {"question": "median('age', where=count(region='east'))"}),
    ("POST", "/ask", {"question": "count("}), ("POST", "/ask", {"question": "count(nothing=1)"}),
    ("POST", "/ask", {"question": 1}), ("POST", "/sql", {"statement": "SELECT * FROM data"}), ("GET", "/ask", None),
]  # fmt: skip


class Fronted:
    """A real service and a front of it."""

    def __init__(self, service: LoadedService, port: int) -> None:
        self.service, self.port = service, port
        registry = ServiceRegistry(service.folder / "registry.sqlite")
        tokens = TokenStore(registry)
        self.auditor = tokens.create("auditor", "auditor")[0]
        self.elsewhere = tokens.create("eve", "analyst", datasets=["other"])[0]
        self.expired = tokens.create("late", "analyst", days=1e-9)[0]
        registry.close()

    def send(
        self, port: int, token: str | None, method: str, path: str, body: Any = None, headers: Any = None
    ) -> tuple[int, Any, dict[str, str]]:
        content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        given = {"Content-Type": "application/json", **(headers or {})}
        if token is not None:
            given["Authorization"] = f"Bearer {token}"
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", content, given, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as got:
                return got.status, got.read(), {name.lower(): value for name, value in got.headers.items()}
        except urllib.error.HTTPError as got:
            return got.code, got.read(), {name.lower(): value for name, value in got.headers.items()}

    def at_front(self, token: str | None, *request: Any, **options: Any) -> tuple[int, Any, dict[str, str]]:
        return self.send(self.port, token, *request, **options)

    def at_engine(self, token: str | None, *request: Any, **options: Any) -> tuple[int, Any, dict[str, str]]:
        return self.send(self.service.port, token, *request, **options)

    def answered_by_engine(self) -> float:
        """Requests that the engine's own endpoints of questions have had."""
        text = self.at_engine(self.service.owner, "GET", "/v1/metrics")[1].decode()
        names = {each.name for each in ENDPOINTS if each.is_answered_by_fronts}
        return sum(
            float(line.rpartition(" ")[2])
            for line in text.splitlines()
            if line.startswith("hedgerow_requests_total") and line.split('"')[1] in names
        )


@pytest.fixture(scope="module")
def fronted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fronted]:
    service = LoadedService(tmp_path_factory.mktemp("fronted"), rows=5_000)
    service.start()
    front, port = None, free_port()
    try:
        front = service.start_front(port)
        yield Fronted(service, port)
    finally:
        if front is not None:
            front.kill()
            front.wait()
        service.stop()
    log = (service.folder / "log").read_text()
    assert "Traceback" not in log and "request " not in log, log


def said(response: tuple[int, bytes, dict[str, str]]) -> Any:
    """A response but for the number of its request, and its date."""
    status, body, headers = response
    content: Any = body
    if headers.get("content-type") == "application/problem+json":
        content = {**json.loads(body), "request": ""}
    left_out = {"x-request-id", "date"} | ({"content-length"} if status >= 400 else set())
    return status, content, {name: value for name, value in headers.items() if name not in left_out}


def test_a_front_and_the_engine_say_the_same_whichever_is_asked_first(fronted: Fronted) -> None:
    ana, ben = fronted.service.analysts[:2]
    for number, request in enumerate(FREE_REQUESTS):
        method, path, body = request
        ways = [lambda t, r=(method, AT + path, body): fronted.at_front(t, *r), lambda t, r=(method, AT + path, body): fronted.at_engine(t, *r)]  # fmt: skip
        first, second = ways if number % 2 else ways[::-1]
        assert said(first(ana)) == said(second(ben)), request


def test_a_front_computes_free_answers_itself(fronted: Fronted) -> None:
    before = fronted.answered_by_engine()
    for method, path, body in FREE_REQUESTS:
        fronted.at_front(fronted.service.analysts[2], method, AT + path, body)
    lines = fronted.at_front(
        fronted.service.analysts[2],
        "POST",
        f"{AT}/batch",
        {"questions": FREE},
        headers={"Accept": "application/x-ndjson"},
    )
    assert lines[0] == 200 and lines[1].count(b"\n") == len(FREE)
    assert fronted.answered_by_engine() == before


def test_a_front_hands_on_what_a_person_asks_beyond_its_limit_of_new_questions(fronted: Fronted) -> None:
    """The engine knows which questions are new to the person, and decides."""
    port, ana = free_port(), fronted.service.analysts[2]
    front = fronted.service.start_front(port, "new_answers_per_day = 5\n")
    try:
        before = fronted.answered_by_engine()
        for number in range(8):
            body = {"question": f"count(age=(31, {40 + number}), region='north')"}
            for media in ({}, {"Accept": "application/x-ndjson"}):
                path, asked = ("/batch", {"questions": [body["question"]]}) if media else ("/ask", body)
                got = fronted.send(port, ana, "POST", AT + path, asked, media)
                assert got[0] == 200 and b"problem" not in got[1]
        assert fronted.answered_by_engine() - before == 7  # the second time of the fifth, and three questions twice
    finally:
        front.kill()
        front.wait()


def test_a_request_at_a_front_is_in_the_trail_when_its_answer_comes(fronted: Fronted) -> None:
    question = "count(age=(23, 29), region='west')"
    _, _, headers = fronted.at_front(fronted.service.analysts[3], "POST", f"{AT}/ask", {"question": question})
    (latest, *_) = fronted.service.owner_reads("/trail?most=1")["requests"]
    assert latest["request"] == headers["x-request-id"] and latest["asked"] == question
    assert (latest["person"], latest["cost"], latest["status"], latest["endpoint"]) == ("analyst3", 0, 200, "ask")


def test_after_a_purchase_a_front_repeats_what_was_given_and_answers_from_the_new_state(fronted: Fronted) -> None:
    ana, ben = fronted.service.analysts[4:6]
    known = [fronted.at_front(ana, "POST", f"{AT}/ask", {"question": each}) for each in [*FREE[20:24], FREE[30]]][:4]
    bought = fronted.at_front(ana, "POST", f"{AT}/ask", {"question": FREE[30], "within": 0.003})
    assert json.loads(bought[1])["answer"]["cost"] > 0
    again = [fronted.at_front(ana, "POST", f"{AT}/ask", {"question": each}) for each in FREE[20:24]]
    values = [[json.loads(each[1])["answer"][name] for name in ("value", "error")] for each in (*known, *again)]
    assert values[:4] == values[4:]
    for each in FREE[30:36]:
        at = [f(ben, "POST", f"{AT}/ask", {"question": each}) for f in (fronted.at_front, fronted.at_engine)]
        assert [json.loads(got[1])["answer"]["value"] for got in at[:1]] == [json.loads(at[1][1])["answer"]["value"]]
    repeated = fronted.at_front(ben, "POST", f"{AT}/ask", {"question": FREE[30]})
    assert json.loads(repeated[1])["answer"]["value"] == json.loads(bought[1])["answer"]["value"]


def test_an_analyst_cannot_make_fronts_forget_by_asking_for_wide_bars(fronted: Fronted) -> None:
    """Such a question costs nothing, and replaces no answer, so that the revision of the fronts stays the same."""

    def revision() -> str:
        return fronted.at_engine(fronted.service.front, "GET", "/v1/fronts/people/state")[2]["hedgerow-revision"]

    before = revision()
    for high in (80, 81, 82):
        asked = {"question": f"count(age=(21, {high}))", "within": 0.9}
        assert (
            json.loads(fronted.at_front(fronted.service.analysts[0], "POST", f"{AT}/ask", asked)[1])["answer"]["cost"]
            == 0
        )
    assert revision() == before
    bought = {"question": "count(age=(21, 80))", "within": 0.002}
    assert json.loads(fronted.at_front(fronted.service.owner, "POST", f"{AT}/ask", bought)[1])["answer"]["cost"] > 0
    assert revision() != before


def test_a_revoked_token_ends_at_a_front_that_has_just_answered_it(fronted: Fronted) -> None:
    made = fronted.at_engine(fronted.service.owner, "POST", "/v1/tokens", {"person": "zoe", "role": "analyst"})
    token = json.loads(made[1])
    question = {"question": FREE[1]}
    assert fronted.at_front(token["token"], "POST", f"{AT}/ask", question)[0] == 200
    fronted.at_engine(fronted.service.owner, "DELETE", f"/v1/tokens/{token['id']}")
    at = [f(token["token"], "POST", f"{AT}/ask", question) for f in (fronted.at_front, fronted.at_engine)]
    assert said(at[0]) == said(at[1]) and at[0][0] == 401


def test_refusals_of_people_are_the_engines(fronted: Fronted) -> None:
    tokens = (None, "", "x", fronted.auditor, fronted.elsewhere, fronted.expired, fronted.service.front)
    places = (AT, "/v1/datasets/none", "/v1/datasets/other", "/v1/datasets/" + "a" * 300, "/v1/datasets/a%3Fb")
    for token, place, (method, path, body) in itertools.product(tokens, places, FREE_REQUESTS[:2]):
        at = [f(token, method, place + path, body) for f in (fronted.at_front, fronted.at_engine)]
        assert said(at[0]) == said(at[1]) and at[0][0] in (401, 403, 404), (token, place)


def test_a_key_of_one_free_request_is_not_used_for_another_wherever_it_is_sent(fronted: Fronted) -> None:
    ana, key = fronted.service.analysts[6], {"Idempotency-Key": "k"}
    for ask in (fronted.at_front, fronted.at_engine):
        assert ask(ana, "POST", f"{AT}/ask", {"question": FREE[2]}, headers=key)[0] == 200
        other = ask(ana, "POST", f"{AT}/ask", {"question": FREE[3]}, headers=key)
        assert (other[0], json.loads(other[1])["type"]) == (422, "urn:hedgerow:problem:key-reused")


FRONT_ROUTES = [("GET", f"/v1/fronts/{name}/state") for name in ("people", "none")] + [
    ("POST", f"/v1/fronts/{rest}") for rest in ("people/answers", "none/answers", "admissions")
]


def test_a_fronts_token_opens_the_way_of_fronts_alone_and_no_other_token_opens_that(fronted: Fronted) -> None:
    people = (None, "", "x", fronted.service.owner, fronted.service.analysts[0], fronted.auditor, fronted.expired)
    refusals = [said(fronted.at_engine(token, *route)) for token in people for route in FRONT_ROUTES]
    assert refusals == [refusals[0]] * len(refusals) and refusals[0][0] == 401
    paths = [
        *((each.method, each.path.format(dataset="people", approval="x", token="x", registration="x")) for each in ENDPOINTS),
        ("GET", "/v1/metrics"), ("GET", "/v1/openapi.json"), ("GET", "/mcp"), ("GET", "/elsewhere"), ("GET", "/v1/tokens"),
    ]  # fmt: skip
    for method, path in paths:
        body = {} if method == "POST" else None
        assert said(fronted.at_engine(fronted.service.front, method, path, body))[:2] == refusals[0][:2], path


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'{"items": [1]}', b'{"items": [{}]}', b'{"revision": "", "answers": "x"}', b"\xff", b"[" * 10_000,
     b'{"revision": "x", "answers": "{\\"answers\\": [{}], \\"v\\": 1}"}'],
)  # fmt: skip
def test_a_malformed_message_of_a_front_is_refused(fronted: Fronted, body: bytes) -> None:
    for _, path in FRONT_ROUTES[2:]:
        assert fronted.at_engine(fronted.service.front, "POST", path, body)[0] in (400, 404)


def test_a_request_that_the_engine_would_not_read_is_refused_alone(fronted: Fronted) -> None:
    """Messages have the requests of several people. One that is malformed must not spoil them for the others."""
    ana, ben = fronted.service.analysts[:2]
    for path, token in ((f"{AT}/ask?q=count(smoker=True)", "hr_" + "x" * 5_000), (f"{AT}/ask?q=%ED%A0%80%00", ben)):
        assert fronted.at_front(token, "GET", path)[0] in (400, 401, 422)
    assert (
        fronted.at_front(ben, "GET", f"{AT}/ask?q=count(smoker=True)", headers={"Idempotency-Key": "\xe9" * 250})[0]
        == 200
    )
    long = {"Idempotency-Key": "k" * 250}
    assert fronted.at_front(ben, "POST", f"{AT}/ask", {"question": FREE[0]}, headers=long)[0] == 400
    assert fronted.at_front(ana, "GET", f"{AT}/ask?q=count(smoker=True)")[0] == 200


# Parts


@pytest.fixture(scope="module")
def session() -> Iterator[hr.Session]:
    universe = hr.Universe(age=hr.Integers(17, 40), sex=hr.Categories(["F", "M"]))
    rows = pd.DataFrame({"age": [17 + i % 24 for i in range(2_000)], "sex": ["FM"[i % 2] for i in range(2_000)]})
    with hr.open(rows, universe=universe, budget=hr.Budget(2, 1e-6)) as opened:
        yield opened


def test_a_replica_of_a_file_answers_as_one_of_the_state_itself_to_the_last_bit(session: hr.Session) -> None:
    state = public_state(session)
    assert state is not None
    model = hr.minimize(hr.losses.Logistic(target="sex", features=["age"]), over=hr.L2Ball(2.0))
    asked = [*(hr.count(age=(17, high)) for high in range(18, 30)), hr.mean("age"), hr.median("age"), model]
    ours, theirs = Replica(), Replica()
    ours.learn(unpack(pack(state)))
    theirs.learn(unpack(pack(StateFile(release_file(session, "none")))))
    assert line_body(_noted(ours, asked)) == line_body(_noted(theirs, asked))
    assert str(ours.release.describe()) == str(theirs.release.describe())


def _noted(replica: Replica, asked: list[Any]) -> Any:
    replica.release.ask_all(asked)
    return replica.take_fresh()


def test_an_answer_that_was_not_accepted_is_forgotten_and_the_accepted_one_repeats(session: hr.Session) -> None:
    replica, question = Replica(), hr.count(age=(20, 30))
    replica.learn(StateFile(release_file(session, "none")))
    own = replica.release.ask(question)
    ((bound, estimate),) = replica.take_fresh()
    replica.forget_own()
    replica.adopt([(bound, replace(estimate, value=estimate.value + 0.25))])
    assert replica.release.ask(question).value == own.value + 0.25 and replica.take_fresh() == []


def test_the_first_answer_to_a_question_is_everybodys(session: hr.Session) -> None:
    """Two fronts propose answers whose last digits differ, and one that is the same."""

    def proposed(more: float) -> list[Any]:
        bounds = [hr.count(age=(17, high)).on(session.universe) for high in (20, 21)]
        return [(bounds[0], Estimate(0.1 + more, 0.01, "hypothesis")), (bounds[1], Estimate(0.2, 0.01, "hypothesis"))]

    async def run() -> None:
        published, given = PublishedState(b"", pack([])), GivenAnswers()
        await given.read(published)
        mine, yours = (read_proposed(line_body(proposed(more)), session.universe) for more in (0.0, 1e-16))
        others, fresh = given.accept(published, mine)
        assert others == "" and len(unpack(fresh)) == 2 and len(published.given) == 2
        others, fresh = given.accept(published, yours)
        assert fresh == b"" and [e.value for _, (_, e) in read_proposed(others, session.universe)] == [0.1]
        assert given.accept(published, mine) == ("", b"") and len(published.given) == 2
        assert given.has_any(pack(proposed(0))) and given.count == 1
        published.add(
            "worker", pack([(hr.count(age=(17, 22)).on(session.universe), Estimate(0.3, 0.01, "hypothesis"))])
        )
        await given.read(published)
        late = [(hr.count(age=(17, 22)).on(session.universe), Estimate(0.4, 0.01, "hypothesis"))]
        others, _ = given.accept(published, read_proposed(line_body(late), session.universe))
        assert [e.value for _, (_, e) in read_proposed(others, session.universe)] == [0.3]

    asyncio.run(run())


def test_an_answer_of_another_form_than_its_question_is_not_taken_from_a_front(session: hr.Session) -> None:
    """It would be written down, and every purchase and every later start would stumble over it."""
    lie, table = Estimate(0.5, 0.01, "hypothesis"), np.zeros((3, 3))
    asked = (hr.count(age=(17, 23)), hr.mean("age"), hr.marginal("age", "sex"))
    count, mean, marginal = (bound_question(query, session.universe, "values") for query in asked)
    forged = [(bound, replace(lie, value=value)) for bound in (count, mean) for value in (math.nan, table)]
    forged += [
        (count, replace(lie, value=math.inf)),
        (count, replace(lie, error=-1.0)),
        (count, replace(lie, error=math.nan)),
    ]
    forged += [(marginal, replace(lie, value=table)), (marginal, lie), (mean, replace(lie, lower=math.nan))]
    forged += [(BlocksQuestion(("1", "2"), count), lie)]  # type: ignore[list-item]
    for each in forged:
        with pytest.raises(HedgerowError):
            read_proposed(line_body([each]), session.universe)
    assert len(read_proposed(line_body([(count, lie), (mean, lie)]), session.universe)) == 2
