"""Single sign-on: a header names a person, and is believed from the proxy's address alone."""

from __future__ import annotations

from ipaddress import ip_network
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import hedgerow as hr
from hedgerow.server.people import TokenStore
from hedgerow.server.registry import ServiceRegistry
from hedgerow.server.run import application
from hedgerow.server.settings import ProxyRule, Settings, read_settings

PROXY, OTHER = ("10.0.0.5", 1), ("10.0.0.6", 1)


def test_a_person_is_named_by_the_proxy_alone_once_and_without_a_token(tmp_path: Path) -> None:
    registry = ServiceRegistry(tmp_path / "registry.sqlite")
    rule = ProxyRule("x-forwarded-user", (ip_network("10.0.0.5/32"),))
    settings = Settings("127.0.0.1", 1, tmp_path, {}, hosts=("testserver",), sign_on=rule)
    tokens = TokenStore(registry)
    secret, account = tokens.create("ana", "analyst", signs_on=True)
    ben, _ = tokens.create("ben", "analyst")
    app = application(settings, {}, registry)

    def status(headers: list[tuple[str, str]], client: tuple[str, int] = PROXY) -> int:
        return int(TestClient(app, client=client).get("/v1/datasets", headers=headers).status_code)  # type: ignore[arg-type]

    named = ("X-Forwarded-User", "ana")
    assert secret == "" and status([named]) == 200
    assert status([named], OTHER) == 401
    assert status([named], ("testclient", 1)) == 401
    assert status([named, named]) == 401
    assert status([named, ("X-Forwarded-For", "10.0.0.5")], OTHER) == 401
    assert status([("X-Forwarded-User", "")]) == status([("X-Forwarded-User", "ANA")]) == 401
    assert status([("X-Forwarded-User", "ben")]) == 401  # who has a token, and no account
    assert status([named, ("Authorization", "Bearer wrong")]) == 401
    assert status([named, ("Authorization", f"Bearer {ben}")]) == 200
    assert [
        status([named, ("Sec-Fetch-Site", site)]) for site in ("cross-site", "same-site", "same-origin", "none")
    ] == [403, 403, 200, 200]
    with pytest.raises(hr.InvalidInput, match="one account"):  # which would take the place of the first
        tokens.create("ana", "auditor", signs_on=True)
    with pytest.raises(hr.InvalidInput, match="not"):
        tokens.create("*", "analyst")
    for sent in (f"hr_{account.id}_", f"hr_{account.id}", f"hr_{account.id}_{account.id}"):
        assert status([("Authorization", f"Bearer {sent}")]) == 401
    tokens.revoke(account.id)
    assert status([named]) == 401
    registry.close()


@pytest.mark.parametrize(
    "text",
    [
        'header = "Authorization"\naddresses = ["10.0.0.5"]', 'header = "X-User"', 'header = "X-User"\naddresses = ["0.0.0.0/0"]',
        'header = "X User"\naddresses = ["10.0.0.5"]', 'header = "X-User"\naddresses = ["proxy"]', 'header = "X-User"\naddresses = []',
    ],
)  # fmt: skip
def test_a_proxy_that_is_everybody_or_nobody_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "service.toml"
    path.write_text(f'[datasets.a]\nfile = "f"\n[sign_on]\n{text}')
    with pytest.raises(hr.InvalidInput, match="sign_on"):
        read_settings(path)


def test_a_proxy_may_have_a_network_of_addresses(tmp_path: Path) -> None:
    path = tmp_path / "service.toml"
    path.write_text('[datasets.a]\nfile = "f"\n[sign_on]\nheader = "X-User"\naddresses = ["10.0.1.0/24", "::1"]')
    rule = read_settings(path).sign_on
    assert (
        rule is not None and rule.is_trusted("10.0.1.77") and rule.is_trusted("::1") and not rule.is_trusted("10.0.2.1")
    )
