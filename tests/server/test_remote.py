"""A service asked through the client, through SQL connectors and through the client's own distribution."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import textwrap
import tomllib
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pytest
import serving
import sqlalchemy as sa
from sqlalchemy.dialects import registry as dialects

import hedgerow as hr
from hedgerow.client import ServiceError, connect, connect_async, database
from hedgerow.client.connection import ServiceConnection
from hedgerow.server.people import TokenStore
from hedgerow.server.registry import ServiceRegistry

ROOT = Path(__file__).resolve().parents[2]
STATEMENT = "SELECT sex, count(*) AS n FROM data WHERE age > ? GROUP BY sex"
dialects.register("hedgerow", "hedgerow.client.dialect", "ServiceDialect")


class Running(NamedTuple):
    """A service that runs, and the token of an analyst."""

    host: str
    token: str
    folder: Path

    @property
    def url(self) -> str:
        return f"http://{self.host}"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder, port = tmp_path_factory.mktemp("people"), serving.free_port()
    file = serving.desk(folder)
    (folder / "service.toml").write_text(
        f'listen = "127.0.0.1:{port}"\nworkers = 1\n[datasets.people]\nfile = "{file.name}"\n'
    )
    registry = ServiceRegistry(folder / "hedgerow-service.sqlite")
    token = TokenStore(registry).create("ana", "analyst")[0]
    registry.close()
    with serving.configured(folder / "service.toml", port=port):
        yield Running(f"127.0.0.1:{port}", token, folder)


def test_the_code_of_the_page_runs_against_a_service(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEDGEROW_TOKEN", running.token)
    page = (ROOT / "docs" / "service.md").read_text()
    names = {"hr": hr, "sqlalchemy": sa, "pandas": pd}
    for block in re.findall(r"^(    (?:people|engine) = .*?)\n\n", page, re.DOTALL | re.MULTILINE):
        code = (
            textwrap.dedent(block)
            .replace("https://data.example.org", running.url)
            .replace("data.example.org", running.host)
        )
        exec(compile(code, "service.md", "exec", dont_inherit=True), names)
    assert 0 <= names["answer"].value <= 1
    names["people"].close()
    names["engine"].dispose()


def test_the_client_answers_as_the_session(running: Running) -> None:
    session = hr.open(
        running.folder / "people.csv", universe=serving.UNIVERSE, budget=serving.BUDGET,
        ledger=f"sqlite:///{running.folder}/people.ledger", reserve=0.4,
    )  # fmt: skip
    with connect(running.url, running.token) as people, session:
        query = hr.mean("age", where=hr.count(smoker=True))
        assert people.ask(query).value == session.ask(query).value
        assert people.certificate == session.certificate
        ours, theirs = people.describe(), session.describe()
        assert str(ours) == str(theirs) and ours.frame.equals(theirs.frame)
        assert people.statement().keys() == json.loads(session.statement().json).keys()
        want = hr.estimators.LogisticRegression(session, target="smoker", features=["age"]).fit()
        got = hr.estimators.LogisticRegression(people, target="smoker", features=["age"]).fit()
        assert (got.coef_ == want.coef_).all() and got.predict(serving.people(9)).shape == (9,)
        assert "age, sex, smoker" in people._repr_html_() and running.token not in people._repr_html_()
        answer = people.ask(hr.marginal("sex"))
        assert (answer - answer).value.tolist() == [0, 0] and len(answer.frame) == 2 and "table" in answer._repr_html_()
        assert answer.plot() is not None
        assert len(people.approvals()) == 0
        assert list(people.synthetic(7).columns) == ["age", "sex", "smoker"]


def test_the_async_twin_has_every_question_of_the_client(running: Running) -> None:
    async def asked() -> tuple[object, ...]:
        async with await connect_async(running.url, running.token) as people:
            return await asyncio.gather(
                people.ask(hr.count(smoker=True)), people.sql("SELECT count(*) AS n FROM data"), people.describe(),
                people.certificate(), people.price(hr.count(sex="F"), within=0.9), people.universe(),
            )  # fmt: skip

    answer, frame, _, _, price, universe = asyncio.run(asked())
    assert (price, universe, len(frame)) == (0.0, serving.UNIVERSE, 1)  # type: ignore[arg-type]
    with connect(running.url, running.token) as people:
        assert people.ask(hr.count(smoker=True)).value == answer.value  # type: ignore[attr-defined]


def test_pandas_reads_sql_from_a_service(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    with connect(running.url, running.token) as people:
        want = people.sql(STATEMENT.replace("?", "40"))
    monkeypatch.setenv("HEDGEROW_TOKEN", running.token)
    engine = sa.create_engine(f"hedgerow://{running.host}/people")
    got = pd.read_sql(sa.text(STATEMENT.replace("?", ":age")), engine, params={"age": 40})
    assert got.to_dict() == want.to_dict()
    assert [each["name"] for each in sa.inspect(engine).get_columns("data")] == ["age", "sex", "smoker"]
    engine.dispose()
    monkeypatch.delenv("HEDGEROW_TOKEN")
    engine = sa.create_engine(f"hedgerow://{running.host}/people", connect_args={"token": running.token})
    assert pd.read_sql(STATEMENT.replace("?", "40"), engine).to_dict() == want.to_dict()
    assert running.token not in repr(engine.url)
    engine.dispose()


def test_a_pep_249_connection_asks_a_service(running: Running) -> None:
    with database.connect(f"hedgerow://{running.host}/people", running.token) as connection:
        cursor = connection.cursor().execute(STATEMENT, (40,))
        assert [column[0] for column in cursor.description or ()][:2] == ["sex", "n"]
        assert cursor.rowcount == len(cursor.fetchall()) == 2
        with pytest.raises(database.ProgrammingError, match="must"):
            connection.cursor().execute("SELECT * FROM data")


@pytest.mark.parametrize(
    "url",
    ["hedgerow://token@localhost/a", "hedgerow://localhost/a?token=x", "hedgerow://localhost", "https://localhost/a"],
)
def test_an_address_with_a_token_or_without_a_dataset_is_refused(url: str) -> None:
    with pytest.raises(hr.InvalidInput, match="without a token"):
        database.connect(url, "hr_a_b")
    if url.startswith("hedgerow") and url.count("/") == 3:
        with pytest.raises(hr.InvalidInput, match="without a token"):
            sa.create_engine(url).connect()


@pytest.mark.parametrize(("version", "words"), [("2", "a newer service"), ("0", "an older service"), ("x", "older")])
def test_an_older_and_a_newer_service_are_named(version: str, words: str) -> None:
    with pytest.raises(ServiceError, match=words):
        ServiceConnection("http://localhost", "hr_a_b")._require_interface({"hedgerow-interface": version})


ALONE = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"numba", "opendp", "duckdb", "dp_accounting", "typer", "starlette"}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Refuse())
import hedgerow as hr
with hr.connect(sys.argv[1], dataset="people") as people:
    print(people.ask(hr.count(smoker=True)).value, len(people.synthetic(5)), len(people.sql("SELECT count(*) FROM data")))
    people.describe(), people.certificate
print(hr.__version__, hr.__file__)
"""


def asked_by(python: str | Path, running: Running, environment: dict[str, str]) -> list[str]:
    """Ask a service from another interpreter, which has none of the engines' libraries, and return what it prints."""
    ran = subprocess.run(
        [python, "-c", ALONE, running.url], capture_output=True, text=True,
        env={**environment, "HEDGEROW_TOKEN": running.token},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


def test_the_client_answers_without_the_libraries_of_the_engines(running: Running) -> None:
    answer, _ = asked_by(sys.executable, running, dict(os.environ))
    assert answer.split()[1:] == ["5", "1"]


def test_the_clients_own_distribution_has_the_version_and_needs_no_engine() -> None:
    project = tomllib.loads((ROOT / "packaging" / "client" / "pyproject.toml").read_text())
    assert [re.split("[>=]", need)[0] for need in project["project"]["dependencies"]] == ["numpy", "scipy", "pandas"]
    version = project["tool"]["hatch"]["version"]
    (found,) = re.findall(version["pattern"], (ROOT / "packaging" / "client" / version["path"]).resolve().read_text())
    assert found == hr.__version__
    whole = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["project"]["entry-points"] == whole["entry-points"]


@pytest.mark.audit
def test_the_client_alone_is_built_installed_in_an_empty_environment_and_answers(
    running: Running, tmp_path: Path
) -> None:
    """Its wheel and what it names come from the package registry."""
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    subprocess.run([*pip, "wheel", "--no-deps", "-w", tmp_path, ROOT / "packaging" / "client"], check=True, env=clean)
    (wheel,) = tmp_path.glob("hedgerow_client-*.whl")
    subprocess.run([*pip, "install", wheel], check=True, env=clean)
    answer, about = asked_by(python, running, clean)
    assert answer.split()[1:] == ["5", "1"] and "site-packages" in about
    listed = subprocess.run([*pip, "list", "--format", "json"], capture_output=True, text=True, check=True, env=clean)
    names = {each["name"] for each in json.loads(listed.stdout)}
    assert "hedgerow-client" in names and not names & {"numba", "opendp", "duckdb", "hedgerow", "pyarrow"}
