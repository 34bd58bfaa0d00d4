"""Rates and settings: public limits, refused configurations."""

from __future__ import annotations

from pathlib import Path

import pytest

from hedgerow.errors import InvalidInput
from hedgerow.server.limits import Rate
from hedgerow.server.settings import Limits, Settings, address, read_settings


def test_a_rate_lets_a_minutes_worth_pass_and_then_one_at_a_time() -> None:
    now = [0.0]
    rate = Rate(60, lambda: now[0])
    assert [rate.take("a") for _ in range(60)] == [0.0] * 60
    assert rate.take("a") == pytest.approx(1.0) and rate.take("b") == 0.0
    now[0] = 1.0
    assert rate.take("a") == 0.0 and rate.take("a") > 0


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.5", "::", "data.example.org"])
def test_beyond_this_machine_a_service_needs_tls_or_a_proxys_word(host: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="must use TLS"):
        Settings(host, 1, tmp_path, {}, hosts=("data.example.org",))
    with pytest.raises(InvalidInput, match="hosts must"):
        Settings(host, 1, tmp_path, {}, behind_proxy=True)
    Settings(host, 1, tmp_path, {}, hosts=("data.example.org",), behind_proxy=True)


@pytest.mark.parametrize("given", ["", "8470", "localhost:", "localhost:x", ":1", "a:99999"])
def test_an_address_that_is_none_is_refused(given: str) -> None:
    with pytest.raises(InvalidInput, match="listen must be"):
        address(given)


@pytest.mark.parametrize(
    "text",
    [
        "", "listen = 1", "[datasets]", "[datasets.a]\nfile = 1", '[datasets."../x"]\nfile = "a"', "x = 1",
        '[datasets.a]\nfile = "f"\n[limits]\nbody = 0', '[datasets.a]\nfile = "f"\n[limits]\nbodies = 1',
        'certificate = "c"\n[datasets.a]\nfile = "f"', 'prefix = "a b"\n[datasets.a]\nfile = "f"', "not toml",
    ],
)  # fmt: skip
def test_a_wrong_configuration_is_refused_with_a_sentence(text: str, tmp_path: Path) -> None:
    path = tmp_path / "service.toml"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=r"must|Found"):
        read_settings(path)


def test_limits_have_defaults() -> None:
    assert Limits().body > 0


def test_the_last_ones_may_take_more_than_there_is_and_then_wait() -> None:
    now = [0.0]
    rate = Rate(10, lambda: now[0], seconds=100.0)
    assert (rate.take("a", 0), rate.take("a", 25), rate.take("b", 0)) == (0, 0, 0)
    assert rate.take("a", 0) == pytest.approx(160)
    now[0] = 161.0
    assert rate.take("a", 0) == 0
