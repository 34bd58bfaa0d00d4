"""The console without a browser: signing in and out, forms, headers, roles, and numbers equal to the service's."""

from __future__ import annotations

import html
import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import browsing
import numpy as np
import pytest
import serving
from starlette.testclient import TestClient

import hedgerow as hr
from hedgerow import console
from hedgerow.console import wording
from hedgerow.console.exploration import Exploration
from hedgerow.console.site import COOKIE as COOKIES
from hedgerow.console.site import PAGES
from hedgerow.console.visits import IDLE, LONGEST, VisitStore
from hedgerow.errors import InvalidInput
from hedgerow.server.people import TokenStore
from hedgerow.server.registry import ServiceRegistry
from hedgerow.server.run import application
from hedgerow.server.settings import Limits, Settings

AT = "/behind/data/people"
COOKIE = f"{COOKIES}-8470"


@dataclass
class Reached:
    """A console behind a prefix, with its registry and the tokens by role."""

    client: TestClient
    registry: ServiceRegistry
    tokens: dict[str, str]

    def sign_in(self, role: str) -> Any:
        self.client.cookies.clear()
        return self.client.post("/behind/sign-in", data={"token": self.tokens[role]}, follow_redirects=False)

    def form_key(self) -> str:
        found = re.search(r'name="form_key" value="(\w+)"', self.client.get(f"{AT}/promise").text)
        assert found is not None
        return found[1]


@pytest.fixture(scope="module")
def reached(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reached]:
    folder = tmp_path_factory.mktemp("console")
    registry = ServiceRegistry(folder / "registry.sqlite")
    settings = Settings(
        "127.0.0.1", 8470, folder / "r", {"people": folder, "hostile": folder}, hosts=("testserver",), prefix="/behind",
        behind_proxy=True, limits=Limits(wrong_tokens_per_minute=20),
    )  # fmt: skip
    made = {role: TokenStore(registry).create(role, role)[0] for role in ("owner", "analyst", "auditor")}
    sessions = {"people": browsing.open_people(folder), "hostile": browsing.open_hostile()}
    app = application(settings, sessions, registry, console.pages)
    with TestClient(app, base_url="https://testserver", raise_server_exceptions=False) as client:
        yield Reached(client, registry, made)
    registry.close()


def numbers(page: str) -> list[str]:
    return [html.unescape(found) for found in re.findall(r'<td class="number"[^>]*>([^<]+)</td>', page)]


def test_a_token_is_exchanged_for_a_cookie_that_scripts_and_other_sites_cannot_use(reached: Reached) -> None:
    cookie = reached.sign_in("analyst").headers["set-cookie"]
    assert re.match(
        rf"{COOKIE}=\w{{64}}; HttpOnly; Max-Age={LONGEST:.0f}; Path=/behind; SameSite=strict; Secure", cookie
    )
    assert reached.tokens["analyst"] not in cookie
    stored = reached.registry.rows("SELECT digest FROM visits")
    assert cookie.partition("=")[2][:64] not in repr(stored)


def test_signing_out_ends_the_visit(reached: Reached) -> None:
    reached.sign_in("analyst")
    cookie = reached.client.cookies[COOKIE]
    assert reached.client.get(AT).status_code == 200
    reached.client.post("/behind/sign-out", data={"form_key": reached.form_key()})
    reached.client.cookies.set(COOKIE, cookie, path="/behind")
    assert reached.client.get(AT, follow_redirects=False).headers["location"].startswith("/behind/sign-in")
    reached.client.cookies.clear()


def test_without_a_visit_every_page_asks_to_sign_in(reached: Reached) -> None:
    reached.client.cookies.clear()
    for page in PAGES:
        address = "/behind" + re.sub(r"{(?!dataset)\w+(:path)?}", "x", page.path).format(dataset="people")
        got = reached.client.request(page.method, address, follow_redirects=False)
        assert (page.path, got.status_code) == (page.path, 303)
        assert got.headers["location"].startswith("/behind/sign-in")


def test_a_page_that_was_wanted_before_signing_in_is_shown_after_it_but_no_other_site(reached: Reached) -> None:
    reached.client.cookies.clear()
    for after, place in (
        ("/data/people", "/behind/data/people"),
        ("//evil.example", "/behind/"),
        ("https://evil.example", "/behind/"),
    ):
        got = reached.client.post(
            "/behind/sign-in", params={"after": after}, data={"token": reached.tokens["owner"]}, follow_redirects=False
        )
        assert got.headers["location"] == place


def test_a_wrong_token_is_refused_and_many_are_refused_for_a_while(reached: Reached) -> None:
    reached.client.cookies.clear()
    statuses = [reached.client.post("/behind/sign-in", data={"token": "hr_no"}).status_code for _ in range(25)]
    assert statuses[0] == 401 and statuses[-1] == 429
    assert reached.sign_in("analyst").status_code == 303  # a right token passes


def test_visits_survive_a_restart_and_end_with_idleness_age_and_the_token(tmp_path: Path) -> None:
    now = [1_000_000.0]
    registry = ServiceRegistry(tmp_path / "r")
    tokens = TokenStore(registry, lambda: now[0])
    _, token = tokens.create("ana", "analyst")
    cookie = VisitStore(registry, tokens, lambda: now[0]).begin(token)
    registry.close()
    registry = ServiceRegistry(tmp_path / "r")
    tokens = TokenStore(registry, lambda: now[0])
    visits = VisitStore(registry, tokens, lambda: now[0])
    for _ in range(int(LONGEST / IDLE * 2) - 1):
        now[0] += IDLE / 2
        assert visits.find(cookie) is not None
    now[0] += IDLE / 2 + 1
    assert visits.find(cookie) is None  # too old, although never idle
    idle, ended = visits.begin(token), visits.begin(token)
    assert visits.find(idle) is not None
    tokens.revoke(token.id)
    assert visits.find(ended) is None
    now[0] += IDLE + 1
    assert visits.find(idle) is None
    registry.close()


def test_forms_without_their_key_or_from_another_site_change_nothing(reached: Reached) -> None:
    reached.sign_in("owner")
    before = len(TokenStore(reached.registry).list())
    form = {"person": "eve", "role": "owner", "days": ""}
    assert reached.client.post("/behind/people", data=form).status_code == 403
    assert reached.client.post("/behind/people", data={**form, "form_key": "0" * 32}).status_code == 403
    good = {**form, "form_key": reached.form_key()}
    assert (
        reached.client.post("/behind/people", data=good, headers={"Origin": "https://evil.example"}).status_code == 403
    )
    assert len(TokenStore(reached.registry).list()) == before
    assert reached.client.post("/behind/people", data=good, headers={"Origin": "https://testserver"}).status_code == 200
    assert len(TokenStore(reached.registry).list()) == before + 1


def test_pages_allow_no_inline_script_or_style_and_are_not_kept(reached: Reached) -> None:
    reached.sign_in("owner")
    for path in (
        "",
        "/explore",
        "/compare",
        "/sql",
        "/models",
        "/synthetic",
        "/history",
        "/budget",
        "/log",
        "/promise",
    ):
        got = reached.client.get(AT + path)
        assert (path, got.status_code) == (path, 200)
        assert "script-src 'self'; style-src 'self'" in got.headers["content-security-policy"]
        assert "unsafe" not in got.headers["content-security-policy"] and got.headers["cache-control"] == "no-store"
        assert not re.search(r"<style|style=|<script(?! src=)|\son\w+=|javascript:", got.text)
        assert not re.search(r'(?:href|src|action)="(?!/behind|\?|#|")', got.text), "every address is behind the prefix"


def test_each_role_sees_its_pages_alone(reached: Reached) -> None:
    for role, seen, hidden in (
        ("analyst", ("", "/explore", "/promise"), ("/budget", "/log", "/release")),
        ("auditor", ("/budget", "/log", "/promise"), ("", "/explore", "/sql", "/synthetic")),
    ):
        reached.sign_in(role)
        assert [reached.client.get(AT + path).status_code for path in seen] == [200] * len(seen)
        assert [reached.client.get(AT + path).status_code for path in hidden] == [403] * len(hidden)
        assert reached.client.get("/behind/people").status_code == 403
    assert reached.client.get("/behind/data/nowhere/promise").status_code == 404


@pytest.mark.parametrize(
    ("query", "question", "scale", "measure"),
    [
        ("by=1", "marginal('sex')", "fraction", "share"),
        ("by=1&f2=1&measure=rows", "group_by('sex').count(count(smoker=True))", "rows", "rows"),
        ("measure=mean&of=0&f1=0", "mean('age', where=count(sex='F'))", "fraction", "mean"),
        ("by=2&measure=median&of=0", "group_by('smoker').median('age')", "fraction", "median"),
        ("by=1&measure=rate&f2=1", "group_by('sex').share(count(smoker=True))", "fraction", "rate"),
        ("f0=3-20&f1=0", "count(age=(20, 37), sex='F')", "fraction", "share"),
    ],
)
def test_the_numbers_of_a_page_are_those_of_the_interface(
    reached: Reached, query: str, question: str, scale: str, measure: str
) -> None:
    reached.sign_in("analyst")
    page = reached.client.get(f"{AT}/explore?{query}").text
    got = reached.client.post(
        "/behind/v1/datasets/people/ask", json={"question": question, "scale": scale, "form": "exact"},
        headers={"Authorization": f"Bearer {reached.tokens['analyst']}"},
    ).json()["answer"]  # fmt: skip
    answer = hr.wire.from_json(got, hr.Answer)
    shown = numbers(page)
    half = [(bar.high - bar.low) / 2 for bar in ends(answer, measure)]
    middle = (
        sorted(half)[len(half) // 2]
        if len(half) % 2
        else sum(sorted(half)[len(half) // 2 - 1 : len(half) // 2 + 1]) / 2
    )
    assert shown == [wording.number(bar.value, measure, middle) for bar in ends(answer, measure)]


FIGURES = re.compile(r'<figcaption>(\w+) .*?<code dir="ltr">(.*?)</code>', re.DOTALL)


def recipes_of(page: str) -> dict[str, str]:
    return {name: html.unescape(text) for name, text in FIGURES.findall(page)}


class Listener:
    """A client that notes what it is asked."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def ask(self, query: hr.Query) -> None:
        self.heard.append(query)

    ask_all = sql = ask


def heard_by_python(code: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run the code of a page, and return what it asks for."""
    listener = Listener()
    monkeypatch.setattr(hr, "connect", lambda url, dataset: listener)
    exec(code, {})
    (found,) = listener.heard
    return found


@pytest.mark.parametrize(
    "query",
    [
        "", "by=1", "f2=1", "f2=0&by=1", "f0=3-20&f1=0", "f0=3.5&by=2", "by=1&by=2&measure=rows", "measure=mean&of=0&f1=0&by=2",
        "by=1&measure=rate&f2=1",
    ],
)  # fmt: skip
def test_the_code_of_a_page_asks_the_question_of_the_page(
    reached: Reached, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached.sign_in("analyst")
    found = recipes_of(reached.client.get(f"{AT}/explore?{query}").text)
    assert list(found) == ["Python", "SQL", "curl"]
    universe = serving.UNIVERSE
    question = Exploration.read(universe, [tuple(part.split("=")) for part in query.split("&") if part]).question()
    assert hr.wire.to_json(heard_by_python(found["Python"], monkeypatch)) == hr.wire.to_json(question)

    def post(endpoint: str, body: Any) -> Any:
        headers = {"Authorization": f"Bearer {reached.tokens['analyst']}"}
        return reached.client.post(f"/behind/v1/datasets/people/{endpoint}", json=body, headers=headers).json()

    words = shlex.split(found["curl"].replace("\\\n", " "))
    body = json.loads(words[words.index("-d") + 1])
    assert words[-1].endswith("/behind/v1/datasets/people/ask") and "hr_" not in found["curl"]
    answer = post("ask", body)["answer"]
    rows = post("sql", {"statement": found["SQL"]})
    value = next(k for k, name in enumerate(rows["columns"]) if name in ("n", "mean", "share"))
    by_sql = np.array([row[value] for row in rows["rows"]], float)
    wanted = np.ravel(answer["value"]) * (3_000 if rows["columns"][value] == "n" else 1)
    assert by_sql == pytest.approx(wanted, rel=0.02, abs=0.02)  # two estimates of one number, each from the same model


def test_history_has_the_code_of_everything_that_was_asked(reached: Reached, monkeypatch: pytest.MonkeyPatch) -> None:
    reached.sign_in("owner")
    for page in (
        "explore?f1=1&by=2", "compare?column=1", "models?loss=Logistic&target=2&feature=0&radius=3", "promise",
        "sql?q=SELECT+count(*)+AS+n+FROM+data", "synthetic",
    ):  # fmt: skip
        assert reached.client.get(f"{AT}/{page}").status_code == 200
    page = reached.client.get(f"{AT}/history").text
    entries = [entry for entry in page.split("<li>") if "</time>" in entry]
    kinds = [re.findall(r"</time> · ([\w ]+) ·", entry)[0] for entry in entries]
    assert kinds[:5] == ["synthetic records", "SQL", "model", "questions", "questions"]
    assert "in all" not in page
    codes = [recipes_of(entry) for entry in entries[:5]]
    assert [list(code) for code in codes] == [[], ["Python", "SQL", "curl"], *[["Python", "curl"]] * 3]
    statement, model, compared, explored = (heard_by_python(code["Python"], monkeypatch) for code in codes[1:])
    assert statement == "SELECT count(*) AS n FROM data" and len(compared) == 4
    loss = hr.losses.Logistic(target="smoker", features=["age"])
    assert hr.wire.to_json(model) == hr.wire.to_json(hr.minimize(loss, over=hr.L2Ball(3.0)))
    assert hr.wire.to_json(explored[0]) == hr.wire.to_json(hr.group_by("smoker").count(hr.count(sex="M")))


def test_an_address_that_no_page_has_is_refused_on_a_page_and_a_slash_at_the_end_is_forgiven(reached: Reached) -> None:
    reached.sign_in("analyst")
    for address in (f"{AT}/nothing", f"{AT}/explore/more", "/behind/data/none", "/behind/people/x/y", "/behind/tour/x"):
        got = reached.client.get(address)
        assert got.status_code == 404 and "There is no such page" in got.text and "/v1/" not in got.text
    slash = reached.client.get(f"{AT}/", follow_redirects=False)
    assert slash.status_code == 303 and slash.headers["location"] == AT


@dataclass
class End:
    value: float
    low: float
    high: float


def ends(answer: hr.Answer, measure: str) -> list[End]:
    """Return each value with its interval, cut where no truth can be."""
    assert answer.interval is not None
    values, low, high = (
        np.broadcast_to(part, np.shape(answer.value)).ravel() for part in (answer.value, *answer.interval)
    )
    least = 0.0 if measure in ("share", "rows", "rate") else -np.inf
    most = 1.0 if measure in ("share", "rate") else np.inf
    return [
        End(float(v), float(min(max(a, least), v)), float(max(min(b, most), v)))
        for v, a, b in zip(values, low, high, strict=True)
    ]


def test_a_purchase_that_is_sent_twice_is_billed_once_and_priced_as_the_interface_prices_it(reached: Reached) -> None:
    reached.sign_in("analyst")
    form = {
        "form_key": reached.form_key(),
        "question": '"count(age=(30, 50), smoker=True)"',
        "within": "0.004",
        "measure": "points",
    }
    quoted = reached.client.post(f"{AT}/price", data=form).text
    headers = {"Authorization": f"Bearer {reached.tokens['analyst']}"}
    body = {"question": "count(age=(30, 50), smoker=True)", "within": 0.004}
    cost = reached.client.post("/behind/v1/datasets/people/price", json=body, headers=headers).json()["cost"]
    assert cost > 0 and wording.amount(cost, "rho") in html.unescape(quoted)
    bought = [reached.client.post(f"{AT}/buy", data={**form, "key": "once"}).text for _ in range(2)]
    assert bought[0] == bought[1] and "Bought for" in bought[0]
    history = reached.client.get("/behind/v1/datasets/people/history", headers=headers).json()["requests"]
    assert [entry["cost"] > 0 for entry in history if entry["endpoint"] == "ask"].count(True) == 1


def test_an_owner_caps_somebody_and_the_report_is_the_sessions(reached: Reached) -> None:
    reached.sign_in("owner")
    form = {"form_key": reached.form_key(), "who": "eve", "epsilon": "0.5"}
    assert "eve" in reached.client.post(f"{AT}/caps", data=form).text
    headers = {"Authorization": f"Bearer {reached.tokens['owner']}"}
    spending = reached.client.get("/behind/v1/datasets/people/ledger/spending", headers=headers).json()
    ((_, caps),) = spending["caps"].items()
    assert 0 < caps["eve"] < spending["total"]
    assert wording.percent(caps["eve"] / spending["total"]) in reached.client.get(f"{AT}/budget").text
    assert reached.client.post(f"{AT}/caps", data={**form, "epsilon": "-1"}).status_code == 422
    assert reached.client.get(f"{AT}/report").text.startswith("<!doctype html>")


def test_hostile_names_and_values_are_escaped(reached: Reached) -> None:
    reached.sign_in("owner")
    for path in (
        "",
        "/explore?by=0&by=1",
        "/explore?f0=0",
        "/compare",
        "/sql",
        "/models",
        "/models?target=1&feature=0",
        "/synthetic",
        "/words",
    ):
        got = reached.client.get(f"/behind/data/hostile{path}")
        assert (path, got.status_code) == (path, 200)
        assert "<script>alert" not in got.text or path == "/words"
        beside_code = re.sub(r"<code.*?</code>|<textarea.*?</textarea>", "", got.text, flags=re.DOTALL)
        assert not set(map(ord, beside_code)) & wording.DIRECTIONS.keys() or path == "/words", path
    overview = reached.client.get("/behind/data/hostile").text
    assert "{{ 7 * 7 }}" in overview and "x" * wording.LONGEST not in overview
    assert reached.client.get("/behind/data/hostile/words").headers["content-type"] == "application/json"


def test_an_address_names_its_exploration_and_back() -> None:
    for query in ("", "by=1&by=0", "by=0&measure=mean&of=0&f1=0&f2=1", "f0=0.3-5.73", "by=1&measure=rate&f2=0"):
        pairs = [tuple(part.split("=")) for part in query.split("&") if part]
        chosen = Exploration.read(serving.UNIVERSE, pairs)  # type: ignore[arg-type]
        assert chosen.address == (f"?{query}" if query else "")
        again = chosen.toggle("sex", 1).toggle("sex", 1)
        assert sorted(again.pairs()) == sorted(chosen.pairs())
    assert Exploration.read(serving.UNIVERSE, [("from0", "12"), ("to0", "9")]).filters == {"age": (9, 10, 11, 12)}


@pytest.mark.parametrize(
    "pair", [("by", "9"), ("by", "x"), ("by", "٣"), ("f1", "2"), ("f1", "1-"), ("f0", "0-99999999"), ("of", "-1")]
)
def test_an_address_that_names_no_cell_is_refused(pair: tuple[str, str]) -> None:
    with pytest.raises(InvalidInput):
        Exploration.read(serving.UNIVERSE, [pair])


def test_an_answer_is_said_in_one_sentence() -> None:
    assert (
        wording.sentence(0.15, 0.142, 0.161, 0.002, "share", 0.0095)
        == "Between 14.2 % and 16.1 %, typically within 0.20 points."
    )
    assert wording.sentence(2.8, 2.3, float("inf"), None, "mean", None) == "At least 2.30."
    assert (
        wording.sentence(2.8, None, None, None, "mean", None)
        == "About 2.80, uninformative: it has no guaranteed error."
    )
    assert wording.is_wide(0.01, -0.02, 0.08, "share") and not wording.is_wide(0.01, 0.0, 0.03, "share")


def test_static_files_are_the_committed_ones_and_nothing_else(reached: Reached) -> None:
    for name in ("console.css", "console.js", "htmx.min.js", "editor.min.js", "LICENSES.txt"):
        assert reached.client.get(f"/behind/static/{name}").status_code == 200
    assert reached.client.get("/behind/static/../site.py").status_code in (401, 404, 429)
    assert reached.client.get("/behind/static/%2e%2e%2fsite.py").status_code in (401, 404, 429)
