"""The pages of registration without a browser: who sees them, forms from elsewhere, forms with files, and numbers of the service."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import serving
from starlette.testclient import TestClient

from hedgerow import console
from hedgerow.cli.service import desk
from hedgerow.console import wording
from hedgerow.console.column_form import ColumnForm
from hedgerow.server.people import TokenStore
from hedgerow.server.registration_rule import RegistrationRule
from hedgerow.server.registry import ServiceRegistry
from hedgerow.server.run import application
from hedgerow.server.settings import Limits, Settings


@dataclass
class Office:
    client: TestClient
    folder: Path
    tokens: dict[str, str]

    def sign_in(self, role: str) -> None:
        self.client.cookies.clear()
        self.client.post("/behind/sign-in", data={"token": self.tokens[role]})

    def form_key(self, path: str = "/behind/register") -> str:
        found = re.search(r'name="form_key" value="(\w+)"', self.client.get(path).text)
        assert found is not None
        return found[1]

    def upload(self, fields: dict[str, str], content: bytes = b"a,b\n1,2\n", name: str = "t.csv") -> Any:
        return self.client.post(
            "/behind/register/upload", data=fields, files={"file": (name, content)}, follow_redirects=False
        )

    def uploads(self) -> list[str]:
        return [each.name for each in (self.folder / "registered" / ".uploads").iterdir()]


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    folder = tmp_path_factory.mktemp("office")
    (folder / "tables").mkdir()
    serving.people().to_csv(folder / "tables" / "people.csv", index=False)
    registry = ServiceRegistry(folder / "registry.sqlite")
    settings = Settings(
        "127.0.0.1", 8470, folder / "r", {}, hosts=("testserver",), prefix="/behind", behind_proxy=True,
        limits=Limits(requests_per_minute=100_000),
        registration=RegistrationRule(folder / "registered", {"tables": folder / "tables"}, upload=100_000),
    )  # fmt: skip
    store = TokenStore(registry)
    made = {role: store.create(role, role)[0] for role in ("owner", "analyst", "auditor")}
    made["some"] = store.create("sam", "owner", datasets=["people"])[0]
    app = application(settings, {}, registry, console.pages, desk())
    with TestClient(app, base_url="https://testserver", raise_server_exceptions=False) as client:
        yield Office(client, folder, made)
    registry.close()


def begin(office: Office, name: str) -> str:
    form = {"form_key": office.form_key(), "file": "tables/people.csv", "name": name}
    made = office.client.post("/behind/register", data=form, follow_redirects=False)
    assert made.status_code == 303, made.text
    return str(made.headers["location"])


def test_an_owner_of_the_service_sees_the_page_and_nobody_else_does(office: Office) -> None:
    office.sign_in("owner")
    assert office.client.get("/behind/", follow_redirects=False).headers["location"] == "/behind/register"
    assert "tables/people.csv" in office.client.get("/behind/register").text
    here = begin(office, "seen")
    for role in ("some", "analyst", "auditor"):
        office.sign_in(role)
        assert "/register" not in office.client.get("/behind/").text
        for path in ("/behind/register", here, f"{here}/progress"):
            assert office.client.get(path).status_code in (403, 404)


def test_forms_with_files_need_their_key_before_the_file_and_nothing_of_others_is_kept(office: Office) -> None:
    office.sign_in("owner")
    key = office.form_key()
    for fields in ({"name": "x"}, {"name": "x", "form_key": "0" * 32}):
        assert office.upload(fields).status_code == 403
    assert "malformed" in office.client.post("/behind/register/upload", data={"form_key": key, "name": "x"}).text
    elsewhere = office.client.post(
        "/behind/register/upload", data={"form_key": key, "name": "x"}, files={"file": ("t.csv", b"a\n1\n")},
        headers={"Origin": "https://evil.example"},
    )  # fmt: skip
    assert elsewhere.status_code == 403 and office.uploads() == []
    body = b'--x\r\nContent-Disposition: form-data; name="file"; filename="t.csv"\r\n\r\na\n1\n\r\n--x--\r\n'
    first = office.client.post(
        "/behind/register/upload", content=body, headers={"Content-Type": "multipart/form-data; boundary=x"}
    )
    assert first.status_code == 403 and office.uploads() == [], "a file before its key is not kept"


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("text/plain", b"x"),
        ("multipart/form-data", b"x"),
        ("multipart/form-data; boundary=", b"x"),
        ("multipart/form-data; boundary=" + "x" * 100, b"x"),
        ("multipart/form-data; boundary=x", b"not a part"),
        ("multipart/form-data; boundary=x", b"--x\r\n" + b"A: b\r\n" * 100),
        ("multipart/form-data; boundary=x", b"--x\r\nContent-Disposition: form-data; name=a\r\n\r\n" + b"y" * 200_000),
        ("multipart/form-data; boundary=x", b"--x\r\nContent-Disposition: form-data; name=\xff\r\n\r\ny\r\n" * 9),
    ],
)
def test_a_broken_form_with_a_file_is_refused(office: Office, kind: str, body: bytes) -> None:
    office.sign_in("owner")
    got = office.client.post("/behind/register/upload", content=body, headers={"Content-Type": kind})
    assert got.status_code < 500 and "malformed" in got.text and office.uploads() == []


def test_a_file_that_ends_early_is_not_kept(office: Office) -> None:
    office.sign_in("owner")
    key = office.form_key().encode()
    part = b'--x\r\nContent-Disposition: form-data; name="form_key"\r\n\r\n' + key + b"\r\n"
    file = b'--x\r\nContent-Disposition: form-data; name="file"; filename="t.csv"\r\n\r\na,b\n1,2\n'
    got = office.client.post(
        "/behind/register/upload", content=part + file, headers={"Content-Type": "multipart/form-data; boundary=x"}
    )
    assert "malformed" in got.text and office.uploads() == []
    whole = office.upload({"form_key": key.decode(), "name": "whole", "delimiter": "semicolon", "header": "a, b"})
    assert whole.status_code == 303 and len(office.uploads()) == 1


def test_the_sizes_and_prospects_of_a_page_are_those_of_the_interface(office: Office) -> None:
    office.sign_in("owner")
    here = begin(office, "sizes")
    key = office.form_key(here)
    form = {
        "form_key": key, "use-0": "on", "kind-0": "Range", "low-0": "17", "high-0": "90", "bins-0": "8", "missing-0": "on",
        "use-1": "on", "kind-1": "Categories", "values-1": " F \r\nM\r\n\r\n", "kind-2": "Flag",
    }  # fmt: skip
    page = office.client.post(f"{here}/columns", data=form).text
    headers = {"Authorization": f"Bearer {office.tokens['owner']}"}
    record = office.client.get(f"/behind/v1/registrations/{here.rpartition('/')[2]}", headers=headers).json()
    assert [each["cells"] for each in record["columns"]] == [9, 2, None] and record["cells"] == 18
    assert re.findall(r"<strong>(\d+)</strong> cells", page) == ["9", "2"] and "<strong>18</strong> possible" in page
    ask = {
        "form_key": key,
        "rows": "3000",
        "epsilon": "2",
        "delta": "1e-6",
        "reserve": "10",
        "neighbours": "replace",
        "approve": "",
    }
    shown = html.unescape(office.client.post(f"{here}/prospect", data=ask).text)
    body = {"rows": 3000, "epsilon": 2.0, "delta": 1e-6}
    path = f"/behind/v1/registrations/{record['id']}/prospect"
    found = office.client.post(path, json=body, headers=headers).json()
    assert all(words in shown for words in found["people"]) and found["verdict"] in shown
    assert all(f"± {100 * point['error']:.2g} %" in shown for point in (*found["by_epsilon"], *found["by_rows"]))
    unsure = office.client.post(f"{here}/open", data=ask)
    assert unsure.status_code == 422 and "confirmed" in unsure.text
    for wrong in ({"epsilon": "much"}, {"epsilon": "0"}, {"rows": "0"}, {"delta": "2"}, {"reserve": "100"}):
        assert office.client.post(f"{here}/prospect", data={**ask, **wrong}).status_code == 422


@pytest.mark.parametrize(
    "declaration",
    [
        None,
        {"kind": "Categories", "values": ["a", "b c"], "spaces": "strip", "other": True},
        {"kind": "Flag", "missing": True},
        {"kind": "Integers", "low": 1, "high": 5},
        {"kind": "Range", "low": 0.0, "high": 10.5, "bins": 4},
        {
            "kind": "Dates",
            "low": {"kind": "date", "text": "2015-01-01"},
            "high": {"kind": "date", "text": "2024-12-31"},
            "by": "month",
        },
    ],
)
def test_a_declaration_is_a_form_and_back(declaration: dict[str, Any] | None) -> None:
    form = ColumnForm.of(3, {"name": "x", "declaration": declaration, "left_out": False})
    fields = {f"{key}-3": value for key, value in form.values.items()} | {"kind-3": form.kind, "use-3": "on"}
    fields |= {f"{flag}-3": "on" for flag in ("missing", "other") if getattr(form, flag)}
    again = ColumnForm.read(3, "x", fields)
    assert again == form and form.kind != "kept"
    usual = None if declaration is None else {key: value for key, value in declaration.items() if key != "spaces"}
    assert again.declaration() == usual


def test_a_declaration_that_the_form_cannot_show_is_kept() -> None:
    for declaration in (
        {"kind": "Range", "edges": [0.0, 1.0, 5.0]},
        {"kind": "Categories", "values": [1, 2]},
        {"kind": "Flag", "true": ["y"]},
    ):
        assert ColumnForm.of(0, {"name": "x", "declaration": declaration, "left_out": False}).kind == "kept"


def test_large_numbers_are_written_as_powers() -> None:
    assert [wording.count(each) for each in (0, 1_234, 10**9, 3 * 10**40)] == [
        "0",
        "1,234",
        "about 1.0 × 10⁹",
        "about 3.0 × 10⁴⁰",
    ]
    assert [wording.size(each) for each in (10, 2_000, 5 * 10**6, 10**9)] == ["10 bytes", "2 kB", "5 MB", "1 GB"]
