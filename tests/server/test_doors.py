"""One question has one answer in Python, on the command line, over HTTP, in SQL and through the client."""

from __future__ import annotations

import contextlib
import json
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import serving
from typer.testing import CliRunner

import hedgerow as hr
from hedgerow.cli import app
from hedgerow.cli.desk import open_session
from hedgerow.cli.file import File
from hedgerow.server.people import TokenStore
from hedgerow.server.registry import ServiceRegistry
from hedgerow.server.run import FRONT_TOKEN

QUESTIONS = [
    hr.count(age=(low, high), sex=sex, smoker=smoker)
    for low in range(17, 42)
    for high in (60, 75)
    for sex in "FM"
    for smoker in (True, False)
]
SERVICE = """
listen = "127.0.0.1:{port}"
[datasets.people]
file = "hedgerow.toml"
"""
FRONT = """
listen = "127.0.0.1:{port}"
engine = "http://127.0.0.1:{engine}"
"""
Found = list[tuple[float, float]]
"""The value and the bar of each answer, in rows."""


def pairs(answers: Sequence[Any]) -> Found:
    return [(float(each.value), float(each.error)) for each in answers]


class Doors:
    """The ways to ask about one ledger: in this folder while no service runs, and through a service and its front."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.file = folder, serving.desk(folder)

    def python(self, chosen: slice) -> Found:
        session = open_session(File(self.file))
        try:
            return pairs(session.ask_all(QUESTIONS[chosen], scale="rows", progress=False))
        finally:
            session.close()

    def command_line(self, chosen: slice) -> Found:
        place = ["--file", str(self.file)]
        got = CliRunner().invoke(app, ["ask", *map(repr, QUESTIONS[chosen]), "--scale", "rows", "--json", *place])
        assert got.exit_code == 0, got.output
        return [(each["value"], each["error"]) for each in json.loads(got.stdout)["answers"]]

    def release(self, chosen: slice) -> Found:
        session = open_session(File(self.file))
        path = session.publish(self.folder / "people.hedgerow", answers="all")
        session.close()
        return pairs(hr.load(path).ask_all(QUESTIONS[chosen], scale="rows", progress=False))


class ServedDoors:
    """A service of that ledger, with a front, which both answer."""

    def __init__(self, port: int, front: int, token: str) -> None:
        self.port, self.front, self.token = port, front, token

    def post(self, port: int, path: str, body: Any) -> Any:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/v1/datasets/people{path}", json.dumps(body).encode(), headers
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.load(response)

    def engine(self, chosen: slice) -> Found:
        return self._batch(self.port, chosen)

    def at_front(self, chosen: slice) -> Found:
        return self._batch(self.front, chosen)

    def _batch(self, port: int, chosen: slice) -> Found:
        got = self.post(port, "/batch", {"questions": list(map(repr, QUESTIONS[chosen])), "scale": "rows"})
        return [(each["value"], each["error"]) for each in got["answers"]]

    def client(self, chosen: slice) -> Found:
        with hr.connect(f"http://127.0.0.1:{self.port}", token=self.token) as people:
            return pairs(people.ask_all(QUESTIONS[chosen], scale="rows"))

    def sql(self, chosen: slice) -> Found:
        found: Found = []
        for query in QUESTIONS[chosen]:
            (low, high), sex, smoker = parts(query)
            where = f"age BETWEEN {low} AND {high} AND sex = '{sex}' AND {'' if smoker else 'NOT '}smoker"
            got = self.post(self.front, "/sql", {"statement": f"SELECT count(*) AS n FROM data WHERE {where}"})
            (row,) = got["rows"]
            found.append((row[0], row[1]))
        return found


def parts(query: Any) -> tuple[tuple[int, int], str, bool]:
    number = next(i for i, each in enumerate(QUESTIONS) if each is query)
    low, rest = divmod(number, 8)
    high, rest = divmod(rest, 4)
    sex, smoker = divmod(rest, 2)
    return (17 + low, (60, 75)[high]), "FM"[sex], smoker == 0


@pytest.fixture
def tokens(tmp_path: Path) -> tuple[str, str]:
    registry = ServiceRegistry(tmp_path / "hedgerow-service.sqlite")
    made = TokenStore(registry)
    found = made.create("ana", "analyst")[0], made.create("front", "front")[0]
    registry.close()
    return found


def test_200_questions_have_the_same_answers_at_every_door(
    tmp_path: Path, tokens: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each door asks some of the questions first, and all of them later."""
    assert len(QUESTIONS) == 200
    doors, ports = Doors(tmp_path), (serving.free_port(), serving.free_port())
    first = doors.python(slice(0, 40)) + doors.command_line(slice(40, 80))
    (tmp_path / "service.toml").write_text(SERVICE.format(port=ports[0]))
    (tmp_path / "front.toml").write_text(FRONT.format(port=ports[1], engine=ports[0]))
    everything = slice(0, 200)
    with contextlib.ExitStack() as stack:
        engine = stack.enter_context(serving.configured(tmp_path / "service.toml", port=ports[0]))
        monkeypatch.setenv(FRONT_TOKEN, tokens[1])
        stack.enter_context(serving.configured(tmp_path / "front.toml", port=ports[1]))
        served = ServedDoors(*ports, tokens[0])
        first += served.engine(slice(80, 110)) + served.at_front(slice(110, 140)) + served.client(slice(140, 170))
        first += served.sql(slice(170, 200))
        for door in (served.engine, served.at_front, served.client, served.sql):
            assert door(everything) == first, door
        engine.terminate()
        engine.wait(60)
    for found in (doors.python(everything), doors.command_line(everything), doors.release(everything)):
        assert found == first
