"""Tables are registered over HTTP: by owners of the whole service, from configured sources, once, and billed before rows are read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import registering
import serving
from registering import BUDGET, DECLARED, Office, office

import hedgerow as hr
from hedgerow.errors import InvalidInput
from hedgerow.server.desk_file import block_text, desk_text
from hedgerow.server.prospect import words_for_people
from hedgerow.server.registration_rule import RegistrationRule, read_rule


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    """A service on which no test opens anything."""
    with office(tmp_path_factory.mktemp("office")) as running:
        yield running


def test_a_file_is_registered_opened_asked_appended_to_and_served_again_after_a_restart(tmp_path: Path) -> None:
    with office(tmp_path) as service:
        made = service.begin("people", root="tables", path="people.csv").json()
        assert made["state"] == "draft" and made["undeclared"] == 3 and made["cells"] == 0
        early = service.send("POST", f"registrations/{made['id']}/open", json=BUDGET)
        assert early.status_code == 422 and "3 that are not" in early.json()["detail"]
        declared = service.declare(made["id"]).json()
        assert declared["cells"] == 74 * 2 * 2 and [each["cells"] for each in declared["columns"]] == [74, 2, 2]
        opened = service.open(made["id"], approve_above=0.2)
        assert (opened["state"], opened["fault"]) == ("open", "")
        free = service.send("GET", "datasets/people/ask", params={"q": "count(smoker=True)"}).json()["answer"]
        assert abs(free["value"] - 1 / 3) <= free["error"] and free["cost"] == 0
        waits = service.send(
            "POST", "datasets/people/price", "analyst", json={"question": "count(sex='F')", "within": 0.001}
        )
        assert waits.json()["cost"] > 0
        serving.people(900, last=40).to_csv(tmp_path / "tables" / "june.csv", index=False)
        block = {"name": "june", "source": {"root": "tables", "path": "june.csv"}, "epsilon": 4.0, "delta": 1e-6}
        appended = service.send("POST", "datasets/people/blocks", json=block)
        assert (appended.status_code, appended.json()["blocks"]) == (201, ["1", "june"]), appended.text
        assert service.send("POST", "datasets/people/blocks", json=block).status_code == 409
        spent = service.send("GET", "datasets/people/ledger/spending").json()["spent"]
    with office(tmp_path) as service:
        facts = service.send("GET", "datasets/people").json()
        assert facts["rows"] == 3900 and facts["blocks"] == ["1", "june"]
        assert service.send("GET", "datasets/people/ledger/spending").json()["spent"] == spent
        again = service.begin("other", root="tables", path="people.csv")
        assert again.status_code == 409 and "'people'" in again.json()["detail"]


def test_a_table_of_a_database_has_what_its_schema_says_and_is_opened(tmp_path: Path) -> None:
    with office(tmp_path) as service:
        made = service.begin("visits", database="clinic", table="visits").json()
        kinds = {each["name"]: (each["declaration"]["kind"], each["note"]) for each in made["columns"]}
        assert kinds == {"age": ("Range", "from the schema"), "sex": ("Categories", "from the schema")}
        assert service.open(made["id"])["state"] == "open"
        assert service.begin("again", database="clinic", table="visits").status_code == 409
        written = (tmp_path / "registered" / "visits" / "hedgerow.toml").read_text()
        assert "clinic.sqlite" in written and "[universe.age]" in written


def test_an_upload_moves_into_its_datasets_folder_and_nothing_of_it_is_left_elsewhere(tmp_path: Path) -> None:
    content = serving.people(800).to_csv(index=False).encode()
    with office(tmp_path) as service:
        number = service.upload("../../people.csv", content).json()["upload"]
        assert service.files() == [f"registered/.uploads/{number}/table.csv"]
        made = service.begin("people", upload=number).json()
        service.declare(made["id"])
        assert service.open(made["id"])["state"] == "open"
        assert service.files() == ["registered/people/table.csv"]
        assert (tmp_path / "registered" / "people" / "table.csv").stat().st_mode & 0o077 == 0
        assert (tmp_path / "registered").stat().st_mode & 0o077 == 0
        second = service.upload("june.csv", content).json()["upload"]
        same = service.begin("june", upload=second)
        assert same.status_code == 409, "the same bytes under another name are the same table"
        given_up = service.upload("other.csv", serving.people(801).to_csv(index=False).encode()).json()["upload"]
        unwanted = service.begin("other", upload=given_up).json()
        assert service.send("DELETE", f"registrations/{unwanted['id']}").status_code == 200
        assert not [name for name in service.files() if given_up in name]
    with office(tmp_path) as service:
        assert service.send("GET", "datasets").json()["datasets"] == ["people"]


def test_a_draft_is_paid_for_before_rows_are_read_and_stays_paid_after_it_is_given_up(tmp_path: Path) -> None:
    with office(tmp_path) as service:
        made = service.begin("people", root="tables", path="people.csv").json()
        price = {"columns": ["sex", "smoker"], "epsilon": 0.4, "delta": 1e-7}
        drafted = service.send("POST", f"registrations/{made['id']}/draft", json=price).json()
        assert drafted["draft"] == {"epsilon": 0.4, "delta": 1e-7} and drafted["undeclared"] == 1
        assert drafted["columns"][1]["note"].startswith("drafted")
        service.send("DELETE", f"registrations/{made['id']}")
        again = service.begin("people", root="tables", path="people.csv").json()
        assert again["draft"] == {"epsilon": 0.4, "delta": 1e-7} and again["undeclared"] == 3
        service.declare(again["id"])
        little = service.open(again["id"], epsilon=0.3)
        assert "epsilon = 0.4" in little["detail"]
        other = service.open(again["id"], neighbours="add-remove")
        assert "draft that was paid for" in other["detail"]
        assert service.open(again["id"], epsilon=8.4, delta=1e-6)["state"] == "open"
        assert service.send("GET", "datasets/people").json()["budget"]["epsilon"] == 8.0


def test_the_same_records_in_another_file_are_recognized_under_the_same_universe(tmp_path: Path) -> None:
    with office(tmp_path) as service:
        made = service.begin("people", root="tables", path="people.csv").json()
        service.declare(made["id"])
        service.open(made["id"])
        serving.people()[::-1].to_parquet(tmp_path / "tables" / "other.parquet")
        other = service.begin("other", root="tables", path="other.parquet").json()
        service.declare(other["id"], {"age": DECLARED["age"], "sex": DECLARED["sex"], "smoker": DECLARED["smoker"]})
        refused = service.open(other["id"])
        assert refused["status"] == 409 and "'people'" in refused["detail"]


def test_a_table_that_the_services_own_file_names_is_recognized(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    file = serving.desk(tmp_path / "tables")
    from hedgerow.cli.service import _open_dataset
    from hedgerow.ledger.chain import Head

    with office(tmp_path, {"own": _open_dataset(file, Head())}, {"own": file}) as service:
        (tmp_path / "tables" / "copy.csv").write_bytes((tmp_path / "tables" / "people.csv").read_bytes())
        for path in ("people.csv", "copy.csv"):
            refused = service.begin("people", root="tables", path=path)
            assert refused.status_code == 409 and "'own'" in refused.json()["detail"]


def test_an_opening_that_is_refused_before_anything_is_spent_can_be_corrected(tmp_path: Path) -> None:
    with office(tmp_path) as service:
        path = tmp_path / "tables" / "people.parquet"
        serving.people(500).to_parquet(path)
        content = path.read_bytes()
        made = service.begin("people", root="tables", path="people.parquet").json()
        assert made["columns"][2]["declaration"]["kind"] == "Flag", "the schema says so"
        assert service.declare(made["id"], {"nowhere": DECLARED["age"]}).status_code == 422
        service.declare(made["id"])
        path.write_bytes(content[: len(content) // 2])
        stopped = service.open(made["id"])
        assert stopped["state"] == "draft" and "must open" in stopped["fault"]
        path.write_bytes(content)
        assert service.open(made["id"])["state"] == "open"


def test_a_page_states_what_a_budget_buys_before_it_is_committed(shared: Office) -> None:
    made = shared.begin("prospect", root="tables", path="people.csv").json()
    shared.declare(made["id"])
    path = f"registrations/{made['id']}/prospect"
    found = shared.send("POST", path, json={"rows": 3000, "epsilon": 1.0, "delta": 1e-6}).json()
    assert "factor of at most 2.72" in found["people"][0] and "73.2 %" in found["people"][1]
    assert [point["epsilon"] for point in found["by_epsilon"]] == [0.5, 1.0, 2.0]
    assert "2,990" in words_for_people(hr.Budget(8, 0))[0] and "99.967 %" in words_for_people(hr.Budget(8, 0))[1]
    assert "once in 1,000,000,000 tables" in words_for_people(hr.Budget(1, 1e-9))[2]
    errors = [point["error"] for point in found["by_epsilon"]]
    assert errors[0] > errors[2] and found["verdict"]
    chosen = found["by_epsilon"][1]
    assert found["by_rows"][3]["error"] == pytest.approx(chosen["error"] / 2)
    shared.send("DELETE", f"registrations/{made['id']}")


def test_only_an_owner_of_the_whole_service_registers(shared: Office) -> None:
    made = shared.begin("mine", root="tables", path="people.csv").json()
    for role in ("some", "analyst", "auditor"):
        for method, path, body in (
            ("GET", "sources", None),
            ("GET", "registrations", None),
            ("GET", f"registrations/{made['id']}", None),
            ("POST", "registrations", {"name": "x", "source": {"root": "tables", "path": "people.csv"}}),
            ("POST", f"registrations/{made['id']}/columns", {"columns": {}}),
            ("POST", f"registrations/{made['id']}/draft", {"columns": ["sex"], "epsilon": 1.0, "delta": 0.0}),
            ("POST", f"registrations/{made['id']}/open", BUDGET),
            ("DELETE", f"registrations/{made['id']}", None),
        ):
            got = shared.send(method, path, role, **({} if body is None else {"json": body}))
            assert (role, path, got.status_code) == (role, path, 403)
        assert shared.upload("x.csv", b"a\n1\n", role).status_code == 403
    shared.send("DELETE", f"registrations/{made['id']}")


def test_without_the_rule_there_is_no_registration(tmp_path: Path) -> None:
    from starlette.testclient import TestClient

    from hedgerow.server.people import TokenStore
    from hedgerow.server.registry import ServiceRegistry
    from hedgerow.server.run import application
    from hedgerow.server.settings import Settings

    registry = ServiceRegistry(tmp_path / "r")
    token, _ = TokenStore(registry).create("o", "owner")
    app = application(
        Settings("127.0.0.1", 1, tmp_path / "r", {}, hosts=("testserver",)), {}, registry, desk=registering.desk()
    )
    with TestClient(app) as client:
        for method, path in (("GET", "sources"), ("GET", "registrations"), ("POST", "uploads")):
            assert (
                client.request(method, f"/v1/{path}", headers={"Authorization": f"Bearer {token}"}).status_code == 404
            )
    registry.close()


def test_the_rule_is_read_and_wrong_ones_are_refused(tmp_path: Path) -> None:
    given = {
        "folder": "r",
        "upload": 5,
        "roots": {"a": "tables"},
        "databases": {"b": "postgresql://${PGPASSWORD}@db/x"},
    }
    rule = read_rule(given, tmp_path)
    assert rule.roots == {"a": tmp_path / "tables"} and rule.upload == 5 and "PGPASSWORD" not in repr(rule)
    for wrong in (
        {},
        {"folder": ""},
        {"folder": "r", "more": 1},
        {"folder": "r", "roots": []},
        {"folder": "r", "roots": {"a/b": "x"}},
        {"folder": "r", "roots": {"a": 1}},
        {"folder": "r", "upload": -1},
        {"folder": "r", "upload": True},
        {"folder": "tables/r", "roots": {"a": "tables"}},
    ):
        with pytest.raises(InvalidInput):
            read_rule(wrong, tmp_path)
    with pytest.raises(InvalidInput):
        RegistrationRule(tmp_path, {"a": tmp_path / "tables"})


@pytest.mark.parametrize("name", ['"], x = 1\n[evil]\n', "a\x00b", "\ud800", "é" * 10_000, "${HOME}", "[[blocks]]"])
def test_a_file_of_a_dataset_holds_what_it_was_given_or_is_not_written(name: str) -> None:
    import tomllib

    universe = {name: {"kind": "Categories", "values": [name]}}
    budget = {"epsilon": 1.0, "delta": 0.0, "neighbours": "replace"}
    try:
        text = desk_text({"source": "/x/people.csv"}, universe, budget, {"epsilon": 0.0, "delta": 0.0}, 0.1)
        written = tomllib.loads(text)
        assert list(written["universe"]) == [name] and set(written) == {
            "source",
            "ledger",
            "budget",
            "practical",
            "universe",
        }
    except InvalidInput as refused:
        assert "hold" in str(refused) or "Unicode" in str(refused)
    try:
        assert tomllib.loads(block_text({"name": name, "source": "x"})) == {"blocks": [{"name": name, "source": "x"}]}
    except InvalidInput as refused:
        assert "hold" in str(refused)


def test_names_of_datasets_are_new_and_short(shared: Office) -> None:
    assert shared.begin("people", root="tables", path="people.csv").status_code == 201
    for name in ("people", "PEOPLE", "", "../x", ".uploads", "a/b", "a" * 65, "é", "a\n"):
        assert shared.begin(name, root="tables", path="people.csv").status_code == 422
    assert hr.__version__
