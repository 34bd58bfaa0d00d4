"""A front forwards requests, repeats interrupted ones under one key, and forwards nothing else."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import hedgerow as hr
from hedgerow.server.front import front
from hedgerow.server.settings import Limits, Settings, read_settings


class Engine(http.server.BaseHTTPRequestHandler):
    """An engine that notes what arrives, and cuts off the first requests of a path."""

    protocol_version = "HTTP/1.1"
    seen: list[tuple[str, str, dict[str, str], bytes]]
    cut: int

    def _do(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        type(self).seen.append((self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body))
        if type(self).cut > 0:
            type(self).cut -= 1
            self.close_connection = True
            return
        content = json.dumps({"path": self.path}).encode()
        self.send_response(200)
        for name, value in {
            "Content-Type": "application/json",
            "Content-Length": str(len(content)),
            "ETag": '"a"',
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_DELETE = _do

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[tuple[type[Engine], TestClient]]:
    made = type("Made", (Engine,), {"seen": [], "cut": 0})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), made) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        settings = Settings(
            "127.0.0.1", 1, tmp_path, {}, hosts=("testserver",), prefix="/h", limits=Limits(body=1_000, seconds=5),
            engine=f"http://127.0.0.1:{server.server_port}",
        )  # fmt: skip
        with TestClient(front(settings)) as client:
            yield made, client
        server.shutdown()


def test_a_request_is_handed_on_without_headers_that_an_engine_would_believe(engine: Any) -> None:
    made, client = engine
    headers = {"Authorization": "Bearer t", "X-Forwarded-User": "eve", "Cookie": "a=b", "X-Forwarded-For": "10.0.0.5"}
    got = client.get("/h/v1/datasets/a%2Fb/ask?q=count%28a%3D1%29", headers=headers)
    assert (got.status_code, got.headers["etag"]) == (200, '"a"')
    ((method, path, seen, _),) = made.seen
    assert (method, path) == ("GET", "/v1/datasets/a%2Fb/ask?q=count%28a%3D1%29")
    assert seen["authorization"] == "Bearer t" and seen["host"].startswith("127.0.0.1")
    assert not {"x-forwarded-user", "cookie", "x-forwarded-for", "origin", "user-agent"} & seen.keys()


@pytest.mark.parametrize("given", [None, "mine"])
def test_interrupted_requests_are_sent_again_under_one_key(engine: Any, given: str | None) -> None:
    made, client = engine
    made.cut = 2
    headers = {} if given is None else {"Idempotency-Key": given}
    assert client.post("/h/v1/x", json={"a": 1}, headers=headers).status_code == 200
    keys = [seen["idempotency-key"] for _, _, seen, _ in made.seen]
    assert len(keys) == 3 and len(set(keys)) == 1 and (given is None or keys[0] == given)
    assert [body for *_, body in made.seen] == [b'{"a":1}'] * 3


def test_a_token_is_not_made_twice(engine: Any) -> None:
    made, client = engine
    made.cut = 1
    assert client.post("/h/v1/tokens", json={}).status_code == 503 and len(made.seen) == 1


def test_a_front_has_the_checks_of_a_service(engine: Any) -> None:
    made, client = engine
    assert client.get("/h/v1/x", headers={"Host": "evil.example"}).status_code == 421
    assert client.post("/h/v1/x", headers={"Origin": "https://evil.example"}).status_code == 403
    assert client.post("/h/v1/x", content=b" " * 2_000).status_code == 413
    assert client.request("TRACE", "/h/v1/x").status_code == 405
    assert [client.post(path).status_code for path in ("/h/mcp", "/h/", "/h/v1x", "/h/v1/fronts/admissions")] == [
        404
    ] * 4
    assert client.get("/h/v1/health").json() == {"status": "ok"}
    assert made.seen == []


def test_an_engine_that_stays_away_is_a_refusal(tmp_path: Path) -> None:
    settings = Settings(
        "127.0.0.1", 1, tmp_path, {}, hosts=("testserver",), engine="http://127.0.0.1:1", limits=Limits(seconds=0.2)
    )
    with TestClient(front(settings)) as client:
        got = client.get("/v1/x")
    assert got.status_code == 503 and got.json()["type"].endswith("engine-away")


@pytest.mark.parametrize("engine", ["http://engine.internal:1", "ftp://localhost", "https://a@b", "https://a/", "x"])
def test_an_engine_to_which_tokens_must_not_be_sent_is_refused(engine: str, tmp_path: Path) -> None:
    (tmp_path / "front.toml").write_text(f'engine = "{engine}"')
    with pytest.raises(hr.InvalidInput, match="engine must be"):
        read_settings(tmp_path / "front.toml")


def test_a_front_has_no_datasets(tmp_path: Path) -> None:
    (tmp_path / "front.toml").write_text('engine = "http://localhost:1"\n[datasets.a]\nfile = "f"')
    with pytest.raises(hr.InvalidInput, match="Found both"):
        read_settings(tmp_path / "front.toml")
