"""The service as a process: started by the command line, asked by the client, killed and started again."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import serving

import hedgerow as hr
from hedgerow.client import ServiceError, connect


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
