"""The service as a process: started by the command line, asked by the client, killed and started again."""

from __future__ import annotations

import http.server
import json
import re
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import serving

import hedgerow as hr
from hedgerow.client import ServiceError, connect
from hedgerow.client.connection import ATTEMPTS, ServiceConnection


def token(folder: Path, *arguments: str) -> str:
    command = [
        sys.executable,
        "-m",
        "hedgerow.cli",
        "token",
        "create",
        *arguments,
        "--file",
        str(folder / "hedgerow.toml"),
    ]
    made = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
    return str(json.loads(made.stdout)["token"])


def test_a_service_is_started_asked_killed_and_started_again(tmp_path: Path) -> None:
    file, port = serving.desk(tmp_path), serving.free_port()
    url = f"http://127.0.0.1:{port}"
    with serving.process("--file", str(file), port=port) as running:
        ana = token(tmp_path, "ana", "--project", "heart")
        with connect(url, ana) as people:
            free = people.ask(hr.count(smoker=True))
            bought = people.ask(hr.count(smoker=True, age=(40, 65)), within=0.012)
            assert bought.error is not None and bought.error <= 0.012 and bought.cost > 0
            assert (free / bought).error is not None
            assert people.universe == serving.UNIVERSE
        running.send_signal(signal.SIGKILL)
        running.wait()
    with serving.process("--file", str(file), port=port), connect(url, ana) as people:
        again = people.ask(hr.count(smoker=True, age=(40, 65)), within=0.012)
        assert (again.value, again.error, again.cost) == (bought.value, bought.error, 0.0)
        assert people.ask(hr.count(smoker=True)).value == free.value
        frame = people.sql("SELECT sex, count(*) AS n FROM data GROUP BY sex")
        assert list(frame["sex"]) == ["F", "M"]
        assert len(people.synthetic(100)) == 100
        assert people.price(hr.count(smoker=True), within=0.5) == 0.0
        assert len(people.ask_all([hr.count(age=(17, a)) for a in range(18, 60)])) == 42
        with pytest.raises(hr.BudgetExceeded):
            people.ask(hr.count(sex="F"), within=1e-7)
        with pytest.raises(hr.InvalidInput, match="Found 'smoke'"):
            people.ask(hr.count(smoke=True))
        with pytest.raises(ServiceError):
            connect(url, ana[:-1] + "x")


def test_the_first_token_is_printed_once_and_stopping_is_clean(tmp_path: Path) -> None:
    file, port = serving.desk(tmp_path), serving.free_port()
    with serving.process("--file", str(file), port=port) as running:
        running.send_signal(signal.SIGTERM)
        _, said = running.communicate(timeout=60)
    (owner,) = re.findall(r"shown once: (hr_\S+)", said)
    with (
        serving.process("--file", str(file), port=port) as running,
        connect(f"http://127.0.0.1:{port}", owner) as people,
    ):
        assert people.ask(hr.count(smoker=True)).source in ("hypothesis", "repeat")
        running.send_signal(signal.SIGTERM)
        _, said = running.communicate(timeout=60)
    assert "shown once" not in said


def test_a_head_that_never_ends_is_given_up_and_others_are_answered(tmp_path: Path) -> None:
    (tmp_path / "service.toml").write_text(
        "workers = 0\nlisten = '127.0.0.1:PORT'\n[datasets.people]\nfile = 'hedgerow.toml'\n[limits]\nheader_seconds = 0.5\n".replace(
            "PORT", str(port := serving.free_port())
        )
    )
    serving.desk(tmp_path)
    with serving.configured(tmp_path / "service.toml", port=port):
        silent, slow, whole = (socket.create_connection(("127.0.0.1", port)) for _ in range(3))
        slow.sendall(b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
        whole.sendall(b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert whole.recv(100).startswith(b"HTTP/1.1 200")
        for waiting in (silent, slow):
            waiting.settimeout(10)
            assert waiting.recv(100) == b""
        for each in (silent, slow, whole):
            each.close()


def test_the_client_waits_for_its_own_request_that_is_still_running() -> None:
    """Longer than it would try to reach a service that is away."""
    answers = [(409, "in-progress")] * (ATTEMPTS + 2) + [(200, "")]

    class Answering(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            status, name = answers.pop(0)
            body = json.dumps({"type": f"urn:hedgerow:problem:{name}", "detail": name, "cost": 0.5}).encode()
            self.send_response(status)
            for key, value in {"Hedgerow-Interface": "1", "Content-Length": str(len(body)), "Retry-After": "0"}.items():
                self.send_header(key, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Answering) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        connection = ServiceConnection(f"http://127.0.0.1:{server.server_port}", "hr_a_b")
        assert connection.post("/v1/x", {})["cost"] == 0.5 and answers == []
        connection.close()
        server.shutdown()


def test_the_client_loads_no_engine() -> None:
    code = (
        "import sys; from hedgerow import client, wire; from hedgerow.query.counts import count; wire.to_json(count(a=1));"
        "print(*[name for name in ('numba', 'opendp', 'duckdb', 'scipy.optimize', 'pandas') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == ""


@pytest.mark.parametrize("url", ["ftp://a", "http://data.example.org", "https://user:secret@a", "people"])
def test_an_address_that_would_leak_a_token_is_refused(url: str) -> None:
    with pytest.raises(hr.InvalidInput, match="url must be"):
        connect(url, "hr_a_b")
