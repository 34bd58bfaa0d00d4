"""The console in a real browser: accessible pages, hostile names, the editor, people and exports, without one error, violation
or request elsewhere. The story of a whole dataset is in ``test_console_owner``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import browsing
import pytest
from browsing import Served, visiting

import hedgerow as hr

PHONE = {"viewport": {"width": 390, "height": 800}, "color_scheme": "dark"}
PAGES = {
    "owner": (
        "", "/explore?by=1&by=2", "/compare", "/sql?q=SELECT+sex,+count(*)+FROM+data+GROUP+BY+sex", "/models?target=2&feature=0",
        "/models?target=0&feature=1&loss=Squared&over=Box", "/synthetic", "/history", "/budget", "/approvals", "/log", "/promise",
    ),
    "auditor": ("/budget", "/log", "/promise"),
}  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browsing.chromium() as running:
        yield running


@pytest.fixture(scope="module")
def served(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("console")
    sessions = {"people": browsing.open_people(folder), "hostile": browsing.open_hostile()}
    with browsing.served(folder, sessions) as running:
        yield running


def test_pages_are_accessible_on_a_phone_in_the_dark(browser: Any, served: Served) -> None:
    require_access(browser, served, "owner", ("", "/explore?by=1&by=2", "/budget"), **PHONE)


@pytest.mark.audit
@pytest.mark.parametrize("role", ["owner", "auditor"])
@pytest.mark.parametrize("options", [{}, PHONE], ids=["desktop", "phone"])
def test_every_page_is_accessible(browser: Any, served: Served, role: str, options: dict[str, Any]) -> None:
    require_access(browser, served, role, PAGES[role], **options)


def require_access(browser: Any, served: Served, role: str, paths: tuple[str, ...], **options: Any) -> None:
    """Require that axe-core finds nothing serious, and that no page is wider than its window."""
    with visiting(browser, served, role, **options) as (page, watch):
        for path in paths:
            page.goto(f"{served.url}/data/people{path}")
            assert (path, browsing.faults_of_access(page, watch)) == (path, [])
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path


def test_hostile_names_and_values_are_texts(browser: Any, served: Served) -> None:
    with visiting(browser, served, "owner", viewport={"width": 390, "height": 800}) as (page, _):
        for path in (
            "",
            "/explore?by=0&by=1",
            "/explore?f0=0",
            "/explore?f0=3",
            "/compare",
            "/sql",
            "/synthetic",
            "/models?target=1&feature=0",
        ):
            page.goto(f"{served.url}/data/hostile{path}")
            page.locator("h1").wait_for()
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
        assert page.locator("main script, main img").count() == 0


def test_the_sql_editor_completes_and_marks_an_error_at_its_place(browser: Any, served: Served) -> None:
    with visiting(browser, served, "analyst") as (page, _):
        page.goto(f"{served.url}/data/people/sql?q=SELECT+count(*)+FORM+data")
        page.locator(".cm-lintRange-error, .cm-lintPoint-error").first.wait_for(state="attached")
        editor = page.get_by_role("textbox", name="Statement")
        editor.click()
        page.keyboard.press("Control+A")
        page.keyboard.type("SELECT smo")
        page.locator(".cm-tooltip-autocomplete").get_by_text("smoker", exact=True).click()
        page.keyboard.type(", count(*) FROM data GROUP BY 1")
        page.keyboard.press("Control+Enter")
        page.get_by_role("region", name="Rows").wait_for()


def test_an_owner_invites_and_ends_a_person_and_exports(browser: Any, served: Served, tmp_path: Path) -> None:
    with visiting(browser, served, "owner") as (page, _):
        page.get_by_role("link", name="People").click()
        page.get_by_label("Name").fill('Eve & "co"')
        page.get_by_role("button", name="Make a token").click()
        assert (page.locator("#made").text_content() or "").startswith("hr_")
        page.get_by_role("button", name='End the token of Eve & "co"').click()
        page.get_by_text("ended").wait_for()
        page.goto(f"{served.url}/data/people/budget")
        with page.expect_download() as download:
            page.get_by_role("link", name="Release file").click()
        download.value.save_as(tmp_path / "people.hedgerow")
        page.goto(f"{served.url}/data/people/log")
        page.get_by_text("The ledger is whole.").wait_for()
    assert hr.load(tmp_path / "people.hedgerow").ask(hr.count(sex="F")).value > 0
