"""The story of a dataset in a real browser: registered, opened, explored, bought from, approved, refused at exhaustion, exported,
verified, appended to, and there again after a restart. Behind a prefix; no error, violation or request elsewhere.
"""

from __future__ import annotations

import json
import re
import sqlite3
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import browsing
import pytest
import serving
from browsing import Served, visiting

import hedgerow as hr
from hedgerow.server.registration_rule import RegistrationRule

PREFIX = "/behind"
HOSTILE_COLUMNS = ["age", "<img src=x onerror=alert(1)>\"'", "\u202eevil שלום", "x" * 10_000]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browsing.chromium() as running:
        yield running


def office(folder: Path) -> RegistrationRule:
    """Make a root, a database, and the rule that allows to register from them."""
    tables = folder / "tables"
    tables.mkdir(exist_ok=True)
    serving.people(900, last=40).to_csv(tables / "june.csv", index=False)
    serving.people().to_csv(folder / "people.csv", index=False)
    header = ",".join('"' + name.replace('"', '""') + '"' for name in HOSTILE_COLUMNS)
    (tables / "hostile.csv").write_text(header + "\n" + "1,2,3,4\n" * 50)
    with closing(sqlite3.connect(folder / "clinic.sqlite")) as database:
        database.execute("CREATE TABLE IF NOT EXISTS visits (age INTEGER CHECK (age BETWEEN 17 AND 90))")
        database.commit()
    databases = {"clinic": f"sqlite:///{folder}/clinic.sqlite"}
    return RegistrationRule(folder / "registered", {"tables": tables}, databases, upload=2_000_000)


def price(served: Served, within: float) -> float:
    body = json.dumps({"question": "marginal('smoker', 'sex')", "within": within}).encode()
    headers = {"Authorization": f"Bearer {served.tokens['owner']}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{served.url}/v1/datasets/people/price", body, headers)
    with urllib.request.urlopen(request) as got:
        return float(json.load(got)["cost"])


def test_a_dataset_is_registered_opened_explored_bought_from_refused_exported_verified_and_appended_to(
    browser: Any, tmp_path: Path
) -> None:
    rule = office(tmp_path)
    with browsing.served(tmp_path, {}, prefix=PREFIX, registration=rule) as served:
        port = int(served.url.split(":")[2].split("/")[0])
        with visiting(browser, served, "owner") as (page, watch):
            register(page, tmp_path / "people.csv", watch)
            with visiting(browser, served, "analyst") as (analyst, asked):
                buy_and_wait_for_approval(analyst, page, served)
            assert not [path for path in (*asked.paths, *watch.paths) if "hr_" in path]
            page.goto(f"{served.url}/data/people/budget")
            with page.expect_download() as download:
                page.get_by_role("link", name="Release file").click()
            download.value.save_as(tmp_path / "people.hedgerow")
            page.goto(f"{served.url}/data/people/log")
            page.get_by_text("The ledger is whole.").wait_for()
            head = page.locator("code.wrap").inner_text()
            page.get_by_label("Check against a head").fill(head)
            page.get_by_role("button", name="Check").click()
            page.get_by_text("the head that you noted is among them").wait_for()
            page.goto(f"{served.url}/data/people/budget")
            page.get_by_role("link", name="Append a block").click()
            assert browsing.faults_of_access(page, watch) == []
            form = page.locator("section", has=page.get_by_role("heading", name="A file of the service"))
            form.get_by_label("File").select_option("tables/june.csv")
            form.get_by_label("Name of the block").fill("june")
            form.get_by_label("Nobody in these rows").check()
            form.get_by_role("button", name="Append and open it").click()
            page.get_by_text("There are 2 blocks now").wait_for()
    assert hr.load(tmp_path / "people.hedgerow").ask(hr.count(sex="F")).value > 0
    with (
        browsing.served(tmp_path, {}, prefix=PREFIX, registration=rule, port=port) as served,
        visiting(browser, served, "owner") as (page, _),
    ):
        page.goto(f"{served.url}/data/people")
        page.get_by_text("3,900").first.wait_for()


def register(page: Any, table: Path, watch: browsing.Watch) -> None:
    """Upload a table, declare its columns, see what a budget buys, and open it."""
    form = page.locator("section", has=page.get_by_role("heading", name="A file of yours"))
    assert browsing.faults_of_access(page, watch) == []
    form.get_by_label("Name of the dataset").fill("people")
    form.get_by_label("File, up to 2 MB").set_input_files(table)
    form.get_by_role("button", name="Upload it").click()
    page.get_by_text("No row has been read.").wait_for()
    page.locator("[name=kind-0]").select_option("Integers")
    page.locator("[name=low-0]").fill("17")
    page.locator("[name=high-0]").fill("90")
    page.locator("[name=high-0]").blur()
    page.locator("#column-0 output").get_by_text("74").wait_for()
    page.locator("[name=kind-1]").select_option("Categories")
    page.locator("[name=values-1]").fill("F\nM")
    page.locator("[name=kind-2]").select_option("Flag")
    page.get_by_text("296 possible records").wait_for()
    assert browsing.faults_of_access(page, watch) == []
    page.get_by_role("button", name="Go on to the budget").click()
    for label, text in (("Rows of the table", "3000"), ("ε: how much", "8"), ("δ: how often", "1e-6"), ("Keep for", "60"), ("Purchases above", "25")):  # fmt: skip
        page.get_by_label(label).fill(text)
    page.get_by_role("button", name="Show what it buys").click()
    page.get_by_role("heading", name="Open it").wait_for()
    page.get_by_text("factor of at most 2,990").wait_for()
    assert browsing.faults_of_access(page, watch) == []
    page.get_by_label("I am sure").check()
    page.get_by_role("button", name="Open with").click()
    page.get_by_text("people is open.").wait_for()
    assert browsing.faults_of_access(page, watch) == []


def buy_and_wait_for_approval(page: Any, owner: Any, served: Served) -> None:
    """Explore, ask for a purchase, buy it once the owner approved it, and be refused what is more than is left."""
    dear = 0.02
    total = hr.Accountant(hr.Budget(8, 1e-6)).budget.total
    while price(served, dear) < 0.26 * total:
        dear *= 0.95
    page.get_by_role("link", name="F", exact=True).click()
    page.get_by_text("rows match").wait_for()
    page.get_by_role("link", name="Explore these rows").click()
    page.locator("select[name=by]").first.select_option(label="smoker")
    page.get_by_role("heading", name=re.compile("where sex is F, by smoker")).wait_for()
    here = page.url
    ask_price(page, dear)
    page.get_by_text("Nothing is spent yet").wait_for()
    page.get_by_role("button", name=re.compile("Buy for")).click()
    page.get_by_text("waits for an owner").wait_for()
    owner.goto(f"{served.url}/data/people/approvals")
    owner.get_by_role("button", name="Approve").click()
    owner.get_by_role("cell", name="approved").wait_for()
    page.get_by_role("link", name="Approvals").last.click()
    page.get_by_role("button", name="Buy it").click()
    page.get_by_text(re.compile("Bought for")).wait_for()
    page.goto(here)
    ask_price(page, dear)  # the same error is on record now
    page.get_by_text("is on record already").wait_for()
    page.evaluate("document.querySelector('#quote [name=within]').value = '0.0005'")
    page.get_by_role("button", name="Show it").click()
    page.get_by_text("Nothing was spent").wait_for()
    page.goto(f"{served.url}/data/people/history")
    page.get_by_text("cost").first.wait_for()


def ask_price(page: Any, within: float) -> None:
    page.evaluate(f"document.querySelector('[name=within] option').value = '{within}'")
    page.locator("select[name=within]").select_option(index=0)
    page.get_by_role("button", name="Show the price").click()


def test_names_of_columns_are_texts_and_a_wrong_declaration_is_named_beside_its_column(
    browser: Any, tmp_path: Path
) -> None:
    rule = office(tmp_path)
    with (
        browsing.served(tmp_path, {}, registration=rule) as served,
        visiting(browser, served, "owner", viewport={"width": 390, "height": 844}, color_scheme="dark") as (
            page,
            watch,
        ),
    ):
        page.goto(f"{served.url}/register")
        assert browsing.faults_of_access(page, watch) == []
        form = page.locator("section", has=page.get_by_role("heading", name="A file of the service"))
        form.get_by_label("File").select_option("tables/hostile.csv")
        form.get_by_label("Name of the dataset").fill("hostile")
        form.get_by_role("button", name="Look at its columns").click()
        page.get_by_role("heading", name="Columns of hostile").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.locator("main img, main script").count() == 0
        page.locator("[name=kind-0]").select_option("Integers")
        page.locator("[name=low-0]").fill("9")
        page.locator("[name=high-0]").fill("1")
        page.locator("[name=high-0]").blur()
        page.locator("#column-0 [role=alert]").wait_for()
        assert page.locator("[name=high-0]").input_value() == "1"
        page.locator("[name=kind-3]").select_option("Categories")
        page.locator("[name=values-3]").fill("</textarea><script>alert(1)</script>\n\u202eא")
        page.locator("[name=values-3]").blur()
        page.locator("#column-3 output").get_by_text("2").wait_for()
        assert page.locator("main img, main script").count() == 0
        assert browsing.faults_of_access(page, watch) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_draft_is_paid_for_and_said_and_an_unfit_upload_is_refused_on_its_page(browser: Any, tmp_path: Path) -> None:
    rule = office(tmp_path)
    with browsing.served(tmp_path, {}, registration=rule) as served, visiting(browser, served, "owner") as (page, _):
        page.goto(f"{served.url}/register")
        form = page.locator("section", has=page.get_by_role("heading", name="A file of yours"))
        form.get_by_label("Name of the dataset").fill("people")
        form.get_by_label("File, up to").set_input_files(
            {"name": "x.csv", "mimeType": "text/csv", "buffer": b"PK\x03\x04"}
        )
        form.get_by_role("button", name="Upload it").click()
        page.get_by_role("alert").get_by_text("must be what its name says").wait_for()
        form = page.locator("section", has=page.get_by_role("heading", name="A file of the service"))
        form.get_by_label("File").select_option("tables/june.csv")
        form.get_by_label("Name of the dataset").fill("june")
        form.get_by_role("button", name="Look at its columns").click()
        page.get_by_label("ε", exact=True).fill("2")
        page.get_by_label("δ", exact=True).fill("1e-7")
        page.get_by_role("button", name="Pay, and read the rows").click()
        page.get_by_text("Reading rows for a draft has cost ε = 2").wait_for()
        page.locator("#column-2 output").get_by_text("cells").wait_for()
