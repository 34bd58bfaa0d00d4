"""Sources and uploads under attack: paths that lead out, links, bombs, wrong kinds, races and interruptions."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import io
import os
import sqlite3
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import serving
from registering import BUDGET, Office, office

from hedgerow.cli.service import _open_dataset
from hedgerow.data.readers import open_batches
from hedgerow.errors import InvalidInput
from hedgerow.ledger.chain import Head
from hedgerow.server.problems import Refusal
from hedgerow.server.registration_rule import RegistrationRule
from hedgerow.server.sources import Marks, Place, Source, SourceList
from hedgerow.server.upload_trial import _size_of
from hedgerow.server.uploads import MOST, Uploads


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    with office(tmp_path_factory.mktemp("office")) as running:
        yield running


def test_no_path_leads_out_of_its_root(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder in (root / "sub", outside):
        folder.mkdir(parents=True)
        (folder / "t.csv").write_text("a\n1\n")
    (root / "t.csv").write_text("a\n1\n")
    (root / ".hidden.csv").write_text("a\n1\n")
    (root / "a*.csv").write_text("a\n1\n")
    (root / "${HEDGEROW_KEY}.csv").write_text("a\n1\n")  # whose name would be filled in from the environment
    (root / "note.txt").write_text("a\n1\n")
    (root / "folder.csv").mkdir()
    os.mkfifo(root / "pipe.csv")
    (root / "link.csv").symlink_to(outside / "t.csv")
    (root / "inner.csv").symlink_to(root / "t.csv")
    (root / "away").symlink_to(outside)
    sources = SourceList(RegistrationRule(tmp_path / "r", {"root": root}), lambda text, _: text)
    assert sources.files("root") == ["sub/t.csv", "t.csv"]
    assert sources.file("root", "sub/t.csv") == root / "sub" / "t.csv"
    for path in (
        "../outside/t.csv", "sub/../../outside/t.csv", str(outside / "t.csv"), "/etc/passwd", "link.csv", "inner.csv", "away/t.csv",
        "folder.csv", "pipe.csv", "note.txt", ".hidden.csv", "a*.csv", "t.csv\0", "sub\\t.csv", "", ".", "nowhere.csv",
        "${HEDGEROW_KEY}.csv", "x/" * 2_000 + "t.csv", "sub/./t.csv/..", "file:///etc/passwd.csv",
    ):  # fmt: skip
        with pytest.raises(InvalidInput) as refused:
            sources.file("root", path)
        assert str(outside) not in str(refused.value)
    with pytest.raises(InvalidInput):
        sources.file("other", "t.csv")


def test_a_file_that_became_a_link_is_not_opened(tmp_path: Path) -> None:
    with office(tmp_path) as service:
        made = service.begin("people", root="tables", path="people.csv").json()
        service.declare(made["id"])
        (tmp_path / "tables" / "people.csv").rename(tmp_path / "secret.csv")
        (tmp_path / "tables" / "people.csv").symlink_to(tmp_path / "secret.csv")
        assert service.send("POST", f"registrations/{made['id']}/open", json=BUDGET).status_code == 422
        assert not (tmp_path / "registered" / "people").exists()


def test_a_registered_file_that_became_a_link_is_not_served_again_and_the_rest_is(tmp_path: Path) -> None:
    with office(tmp_path) as service:
        made = service.begin("people", root="tables", path="people.csv").json()
        service.declare(made["id"])
        service.open(made["id"])
    (tmp_path / "tables" / "people.csv").rename(tmp_path / "secret.csv")
    (tmp_path / "tables" / "people.csv").symlink_to(tmp_path / "secret.csv")
    with office(tmp_path) as service:
        assert service.send("GET", "datasets").json()["datasets"] == []
        found = service.send("GET", f"registrations/{made['id']}").json()
        assert found["state"] == "stopped" and "link" in found["fault"]
        (tmp_path / "tables" / "people.csv").unlink()
        (tmp_path / "secret.csv").rename(tmp_path / "tables" / "people.csv")
        assert service.open(made["id"])["state"] == "open"


def test_a_dataset_whose_ledger_is_gone_never_spends_again(tmp_path: Path) -> None:
    with office(tmp_path) as service:
        made = service.begin("people", root="tables", path="people.csv").json()
        service.declare(made["id"])
        service.open(made["id"])
    ledger = tmp_path / "registered" / "people" / "people.ledger"
    ledger.rename(tmp_path / "away")
    with office(tmp_path) as service:
        assert service.send("GET", "datasets").json()["datasets"] == []
        for body in ({}, BUDGET):
            assert service.send("POST", f"registrations/{made['id']}/open", json=body).status_code == 422
        found = service.send("GET", f"registrations/{made['id']}").json()
        assert found["state"] == "stopped" and "ledger" in found["fault"]
        assert service.begin("again", root="tables", path="people.csv").status_code == 409
        assert service.send("DELETE", f"registrations/{made['id']}").status_code == 422
    assert not ledger.exists()
    (tmp_path / "away").rename(ledger)
    with office(tmp_path) as service:
        assert service.open(made["id"])["state"] == "open"


def test_a_dataset_whose_ledger_is_gone_while_it_is_resumed_stays_as_it_is(tmp_path: Path) -> None:
    with office(tmp_path) as service:
        made = service.begin("people", root="tables", path="people.csv").json()
        service.declare(made["id"])
        service.open(made["id"])
    table, ledger = tmp_path / "tables" / "people.csv", tmp_path / "registered" / "people" / "people.ledger"
    content = table.read_bytes()
    table.write_bytes(content[:100])
    with office(tmp_path) as service:  # it has another table now, which the ledger refuses
        again = service.open(made["id"])
        assert (again["state"], ledger.exists()) == ("stopped", True)
        assert service.declare(made["id"]).status_code == 422
        moved = ledger.rename(tmp_path / "ledger")
        assert service.send("POST", f"registrations/{made['id']}/open", json=BUDGET).status_code == 422
        moved.rename(ledger)
        table.write_bytes(content)
        assert service.open(made["id"])["state"] == "open"


@pytest.mark.parametrize(
    "source",
    [
        {},
        {"root": "tables", "database": "clinic", "table": "visits"},
        {"root": "tables", "path": "people.csv", "table": "x"},
        {"root": "http://evil.example", "path": "people.csv"},
        {"database": "postgresql://evil.example/x", "table": "visits"},
        {"database": "clinic"},
        {"database": "clinic", "table": "nowhere"},
        {"database": "clinic", "table": "visits; DROP TABLE visits"},
        {"database": "clinic", "table": "visits", "delimiter": ";"},
        {"upload": "../people"},
        {"upload": "0" * 16},
        {"root": "tables", "path": "people.csv", "encoding": "utf-7"},
        {"root": "tables", "path": "people.csv", "delimiter": "long"},
    ],
)
def test_a_source_that_is_not_configured_is_refused(shared: Office, source: dict[str, Any]) -> None:
    assert shared.begin("x", **source).status_code in (422, 503)
    assert shared.begin("x", **source, extra=1).status_code == 422


@pytest.mark.parametrize(
    ("name", "content", "status"),
    [
        ("people.exe", b"MZ", 415),
        ("people", b"a\n1\n", 415),
        ("people.csv.exe", b"a\n1\n", 415),
        ("people\u202e.csv", b"a\n1\n", 415),
        ("p" * 300 + ".csv", b"a\n1\n", 415),
        ("people.csv", b"", 415),
        ("people.csv", b"PK\x03\x04 a spreadsheet", 415),
        ("people.csv", b"\x1f\x8b packed", 415),
        ("people.csv", b"PAR1 parquet", 415),
        ("people.parquet", b"a,b\n1,2\n", 415),
        ("people.parquet", b"PAR1 and nothing that is true PAR1", 422),
        ("people.csv.gz", b"a,b\n1,2\n", 415),
        ("people.csv.gz", b"\x1f\x8b and nothing that is true", 422),
        ("people.csv", b"a\n" + b"1\n" * 1_000_000, 413),
    ],
)
def test_an_upload_of_a_wrong_kind_or_size_is_refused_and_leaves_nothing(
    shared: Office, name: str, content: bytes, status: int
) -> None:
    got = shared.upload(name, content)
    assert got.status_code == status
    assert ".uploads" not in str(shared.files()) and str(shared.folder) not in got.text


def test_bombs_are_refused_and_leave_nothing(shared: Office) -> None:
    packed = gzip.compress(b"a\n" + b"0" * 30_000_000)
    assert len(packed) < 100_000
    assert shared.upload("bomb.csv.gz", packed).status_code == 422
    with io.BytesIO() as file:  # a million equal texts are a few bytes
        pd.DataFrame({"a": ["x" * 100] * 1_000_000}).to_parquet(file)
        content = file.getvalue()
    assert len(content) < 200_000
    assert shared.upload("bomb.parquet", content).status_code == 422
    assert ".uploads" not in str(shared.files())


def test_the_trial_counts_content_and_stops_at_the_limit(tmp_path: Path) -> None:
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"0" * 5_000_000))
    assert _size_of(tmp_path / "t.csv.gz", 10_000_000) == 5_000_000
    assert 1_000_000 < _size_of(tmp_path / "t.csv.gz", 1_000_000) <= 2_100_000
    pd.DataFrame({"a": range(1000)}).to_parquet(tmp_path / "t.parquet")
    assert 8_000 <= _size_of(tmp_path / "t.parquet", 10**6) <= 20_000
    assert _size_of(tmp_path / "t.parquet", 100) > 100


async def _stream(*parts: bytes, forever: bool = False) -> AsyncIterator[bytes]:
    for part in parts:
        yield part
    if forever:
        await asyncio.sleep(60)


def test_an_upload_that_stops_or_breaks_off_or_is_too_many_leaves_nothing(tmp_path: Path) -> None:
    uploads = Uploads(RegistrationRule(tmp_path / "r", upload=1000), 2_000_000_000, 0.05)
    (tmp_path / "r" / ".uploads" / "00").mkdir(parents=True, exist_ok=True)

    async def broken() -> AsyncIterator[bytes]:
        yield b"a\n"
        raise ConnectionError

    with pytest.raises(Refusal) as slow:
        asyncio.run(uploads.receive("t.csv", _stream(b"a\n", forever=True)))
    assert slow.value.status == 408
    with pytest.raises(ConnectionError):
        asyncio.run(uploads.receive("t.csv", broken()))
    assert [each.name for each in (tmp_path / "r" / ".uploads").iterdir()] == ["00"]
    Uploads(RegistrationRule(tmp_path / "r", upload=1000), 2_000_000_000, 0.05)
    assert list((tmp_path / "r" / ".uploads").iterdir()) == [], "parts of uploads are deleted at the start"
    for k in range(MOST):
        (tmp_path / "r" / ".uploads" / f"{k:016x}").mkdir()
    with pytest.raises(Refusal) as many:
        asyncio.run(uploads.receive("t.csv", _stream(b"a\n1\n")))
    assert many.value.status == 503
    os.utime(tmp_path / "r" / ".uploads" / f"{0:016x}", (0, 0))
    uploads.remove_old()
    assert len(list((tmp_path / "r" / ".uploads").iterdir())) == MOST - 1


def test_one_of_two_simultaneous_registrations_of_a_table_is_opened(tmp_path: Path) -> None:
    with office(tmp_path) as service:
        made = [service.begin(name, root="tables", path="people.csv").json()["id"] for name in ("one", "two")]
        for identity in made:
            service.declare(identity)
        codes: list[int] = []
        threads = [
            threading.Thread(
                target=lambda i=identity: codes.append(  # type: ignore[misc]
                    service.send("POST", f"registrations/{i}/open", json=BUDGET).status_code
                )
            )
            for identity in [*made, made[0]]
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(codes) in ([202, 409, 409], [202, 409, 422])


def test_a_name_under_which_answers_or_approvals_are_on_record_is_not_given_again(tmp_path: Path) -> None:
    with office(tmp_path) as service:
        service.registry.write("INSERT INTO questions VALUES ('old', 'ana', x'00')")
        service.registry.write("INSERT INTO given (dataset, answers) VALUES ('older', '[]')")
        for name in ("old", "older"):
            refused = service.begin(name, root="tables", path="people.csv")
            assert refused.status_code == 422 and "earlier one" in refused.json()["detail"]


def test_a_block_that_is_refused_can_be_appended_again_from_the_same_upload(tmp_path: Path) -> None:
    with office(tmp_path) as service:
        made = service.begin("people", root="tables", path="people.csv").json()
        service.declare(made["id"])
        service.open(made["id"])
        number = service.upload("june.csv", serving.people(700).to_csv(index=False).encode()).json()["upload"]
        body = {"name": "june", "source": {"upload": number}, "epsilon": 1.0, "delta": 0.0}
        assert service.send("POST", "datasets/people/blocks", json=body).status_code == 422, (
            "its budget is of another kind"
        )
        assert service.files() == [f"registered/.uploads/{number}/table.csv"]
        assert service.send("POST", "datasets/people/blocks", json=body | {"delta": 1e-6}).status_code == 201
        assert [*(tmp_path / "registered" / ".uploads").iterdir()] == []
    with office(tmp_path) as service:
        assert service.send("GET", "datasets/people").json()["blocks"] == ["1", "june"]


def test_a_head_line_that_is_far_too_long_is_refused(tmp_path: Path) -> None:
    with office(tmp_path) as service:
        for head in (",".join(f"c{i}" for i in range(501)), "x" * 200_001, "a,a"):
            (tmp_path / "tables" / "wide.csv").write_text(f"{head}\n1\n")
            assert service.begin("wide", root="tables", path="wide.csv").status_code in (413, 422)


def test_marks_know_a_table_by_content_and_place_and_say_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a\n1\n")
    (tmp_path / "b.csv").write_text("a\n1\n")
    marks, again = Marks(tmp_path), Marks(tmp_path)
    a, b = marks.of(Place(str(tmp_path / "a.csv"))), again.of(Place(str(tmp_path / "b.csv")))
    assert a[0] == b[0] and a[1] != b[1]
    (tmp_path / "a.csv").write_text("a\n2\n")
    changed = marks.of(Place(str(tmp_path / "a.csv")))
    assert changed[0] != a[0] and changed[1] == a[1]
    one = marks.of(Place("postgresql://x:y@DB:5432/d", "t"))
    assert (
        one
        == marks.of(Place("postgresql+psycopg://z@db:5432/d", "t"))
        != marks.of(Place("postgresql://db:5432/d", "u"))
    )
    (tmp_path / "other").mkdir()
    assert Marks(tmp_path / "other").of(Place(str(tmp_path / "b.csv"))) != b
    assert (tmp_path / ".key").stat().st_mode & 0o077 == 0


def test_nothing_of_a_row_is_in_a_registration_or_the_trail(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "people.csv").write_text("name,town\n" + "Rosalind,Quuxville\n" * 50)
    with office(tmp_path) as service:
        made = service.begin("people", root="tables", path="people.csv")
        service.declare(made.json()["id"], {"town": {"kind": "Categories", "values": ["1", "2"]}}, ("name",))
        headless = service.begin("headless", root="tables", path="people.csv", header=["n", "a"])
        every = repr(service.registry.rows("SELECT * FROM registrations")) + repr(
            service.registry.rows("SELECT * FROM requests")
        )
        for text in (made.text, headless.text, every):
            assert "Rosalind" not in text and "Quux" not in text


def test_one_table_of_a_database_has_one_name_however_it_is_spelled(tmp_path: Path) -> None:
    with office(tmp_path) as service:
        made = service.begin("visits", database="clinic", table="visits").json()
        assert service.open(made["id"])["state"] == "open"
        refused = service.begin("again", database="clinic", table="VISITS")
        assert refused.status_code == 409 and "'visits'" in refused.json()["detail"]
    marks, file = Marks(tmp_path), f"{tmp_path}/clinic.sqlite"
    (tmp_path / "link.sqlite").symlink_to(file)
    assert len({marks.of(Place(url, "visits")) for url in (f"sqlite://{file}", f"sqlite:///{file}", f"sqlite:///{tmp_path}/link.sqlite")}) == 1  # fmt: skip
    spelled = (("postgresql://a@h/d", "people"), ("postgres://h:5432/d", "public.people"), ("postgresql+psycopg://H/d", "People"))  # fmt: skip
    assert len({marks.of(Place(*each)) for each in spelled}) == 1
    assert marks.of(Place("postgresql://h/d", "other.people")) != marks.of(Place(*spelled[0]))


def test_the_name_of_a_table_reads_nothing_beside_its_database(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "d.duckdb")) as database:
        database.execute("CREATE TABLE people (a INTEGER)")
        database.execute("CREATE VIEW seen AS SELECT * FROM people")
    (tmp_path / "secret.csv").write_text("name\nRosalind\n")
    url = f"duckdb://{tmp_path}/d.duckdb"
    assert [open_batches(url, name, None).columns for name in ("people", "PEOPLE", "seen")] == [["a"]] * 3
    for name in (
        f"{tmp_path}/secret.csv",
        "http://127.0.0.1:9/x.csv",
        f"read_csv('{tmp_path}/secret.csv')",
        "duckdb_settings",
    ):
        with pytest.raises(InvalidInput, match="must have the table"):
            open_batches(url, name, None)
    with contextlib.closing(sqlite3.connect(tmp_path / "s.sqlite")) as database:
        database.execute("CREATE TABLE people (a INTEGER)")
        database.execute("CREATE VIEW seen AS SELECT * FROM people")
    url = f"sqlite://{tmp_path}/s.sqlite"
    assert [open_batches(url, name, None).columns for name in ("people", "seen")] == [["a"]] * 2
    for name in ("sqlite_master", "pragma_database_list"):
        with pytest.raises(InvalidInput, match="must have the table"):
            open_batches(url, name, None)


def test_a_block_of_a_dataset_in_the_services_own_file_is_recognized_too(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    file = serving.desk(tmp_path / "tables")
    serving.people(700).to_csv(tmp_path / "tables" / "june.csv", index=False)
    june = {"root": "tables", "path": "june.csv"}
    with office(tmp_path, {"own": _open_dataset(file, Head())}, {"own": file}) as service:
        assert service.send("POST", "datasets/own/blocks", json={"name": "june", "source": june}).status_code == 201
        (tmp_path / "tables" / "copy.csv").write_bytes((tmp_path / "tables" / "june.csv").read_bytes())
        for path in ("june.csv", "copy.csv"):
            assert service.begin("june", root="tables", path=path).status_code == 409
            body = {"name": "again", "source": {"root": "tables", "path": path}}
            assert service.send("POST", "datasets/own/blocks", json=body).status_code == 409


def test_the_people_of_a_paid_draft_do_not_pay_again_as_a_block(tmp_path: Path) -> None:
    with office(tmp_path) as service:
        made = service.begin("people", root="tables", path="people.csv").json()
        service.declare(made["id"])
        service.open(made["id"])
        june = {"root": "tables", "path": "june.csv"}
        serving.people(700).to_csv(tmp_path / "tables" / "june.csv", index=False)
        drafted = service.begin("june", **june).json()
        price = {"columns": ["smoker"], "epsilon": 0.4, "delta": 1e-7}
        assert service.send("POST", f"registrations/{drafted['id']}/draft", json=price).status_code == 200
        service.send("DELETE", f"registrations/{drafted['id']}")
        refused = service.send("POST", "datasets/people/blocks", json={"name": "june", "source": june})
        assert refused.status_code == 422 and "paid for a draft" in refused.json()["detail"]


def test_a_draft_stays_with_the_content_that_it_read_when_the_file_is_changed(tmp_path: Path) -> None:
    with office(tmp_path) as service:
        table = tmp_path / "tables" / "people.csv"
        content, price = table.read_bytes(), {"columns": ["smoker"], "epsilon": 0.4, "delta": 1e-7}
        made = service.begin("people", root="tables", path="people.csv").json()
        for more in (b"", b"30,F,True\n"):
            table.write_bytes(content + more)
            assert service.send("POST", f"registrations/{made['id']}/draft", json=price).status_code == 200
        (tmp_path / "tables" / "first.csv").write_bytes(content)
        again = service.begin("first", root="tables", path="first.csv").json()
        assert again["draft"]["epsilon"] == 0.8


def test_a_table_is_recognized_by_the_content_that_it_had_when_it_was_opened(tmp_path: Path) -> None:
    with office(tmp_path) as service:
        table = tmp_path / "tables" / "people.csv"
        content = table.read_bytes()
        made = service.begin("people", root="tables", path="people.csv").json()
        service.declare(made["id"])
        service.open(made["id"])
        table.write_bytes(content + b"30,F,True\n")
        (tmp_path / "tables" / "first.csv").write_bytes(content)
        assert service.begin("first", root="tables", path="first.csv").status_code == 409


def test_a_registration_that_cost_nothing_leaves_nothing_when_it_is_given_up(tmp_path: Path) -> None:
    with office(tmp_path) as service:
        made = service.begin("people", root="tables", path="people.csv").json()
        assert service.send("DELETE", f"registrations/{made['id']}").json() == {"dropped": made["id"]}
        assert service.registry.rows("SELECT count(*) FROM registrations") == [(0,)]
        assert service.send("GET", f"registrations/{made['id']}").status_code == 404


def test_a_block_whose_file_became_a_link_is_not_opened_again(tmp_path: Path) -> None:
    with office(tmp_path) as service:
        made = service.begin("people", root="tables", path="people.csv").json()
        service.declare(made["id"])
        service.open(made["id"])
        june = tmp_path / "tables" / "june.csv"
        serving.people(700).to_csv(june, index=False)
        body = {"name": "june", "source": {"root": "tables", "path": "june.csv"}}
        assert service.send("POST", "datasets/people/blocks", json=body).status_code == 201
    june.rename(tmp_path / "secret.csv")
    june.symlink_to(tmp_path / "secret.csv")
    with office(tmp_path) as service:
        found = service.send("GET", f"registrations/{made['id']}").json()
        assert found["state"] == "stopped" and "link" in found["fault"]
        june.unlink()
        (tmp_path / "secret.csv").rename(june)
        assert service.open(made["id"])["state"] == "open"


def test_a_key_that_was_cut_short_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".key").touch()
    with pytest.raises(InvalidInput, match="32 bytes"):
        Marks(tmp_path)


def test_a_source_says_its_format_only_where_it_has_one() -> None:
    assert Source(root="a", path="b.csv").csv() is None
    found = Source(root="a", path="b.csv", delimiter=";", header=["x"]).csv()
    assert found is not None and found.delimiter == ";" and found.columns == ["x"]
    assert serving.UNIVERSE
