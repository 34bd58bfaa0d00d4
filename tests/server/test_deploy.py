"""The files of deploy/ fit the service and each other."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

from hedgerow.server.settings import read_settings

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"


def test_the_example_is_a_configuration_that_the_health_check_may_ask() -> None:
    settings = read_settings(DEPLOY / "service.toml")
    assert settings.behind_proxy and settings.approvals and settings.heads
    docker = (DEPLOY / "Dockerfile").read_text()
    (host, port) = re.findall(r"http://([\w.]+):(\d+)/v1/ready", docker)[0]
    assert host in settings.hosts and int(port) == settings.port and f"EXPOSE {port}" in docker


def test_the_container_and_the_unit_are_unprivileged_and_see_a_read_only_root() -> None:
    docker, compose = (DEPLOY / "Dockerfile").read_text(), (DEPLOY / "compose.yaml").read_text()
    last_stage = docker.rpartition("FROM ")[2]
    assert re.search(r"^USER hedgerow$", last_stage, re.MULTILINE) and "HEALTHCHECK" in last_stage
    for line in ("read_only: true", "cap_drop: [ALL]", "no-new-privileges:true"):
        assert line in compose
    assert not re.search(r"PASSWORD: [^$\s]", compose)  # credentials come from the environment
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[method-assign, assignment]
    unit.read(DEPLOY / "hedgerow.service")
    service = unit["Service"]
    assert service["User"] != "root" and service["NoNewPrivileges"] == "yes" and service["ProtectSystem"] == "strict"
    assert service["CapabilityBoundingSet"] == "" and "/srv/hedgerow" in service["ReadWritePaths"]
