"""Malformed requests of every kind: none may be a fault of the service, and none may hang."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

from load_service import AT, LoadClient, LoadedService, at_once, free_port

PATHS = [
    "/ask", "/batch", "/sql", "/price", "/fit", "/plan", "/synthetic", "/certificate", "/history", "/approvals",
    "/ledger/entries", "/../../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//evil.example/", "/ask;x=1", "/ask%00", "/describe",
    "/approvals/x", "/ledger/verify?head=%ff", "/synthetic?rows=-1", "/synthetic?rows=999999999999", "/synthetic?format=x",
    "/ask?q=count(", "/ask?q=%ff%fe", "/ask?q=count(age=(1e999,2))", "/history?most=0", "/history?before=x", "/universe", "/statement",
]  # fmt: skip
METHODS = ["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE", "BREW"]
WORDS = [
    "count(age=5)", "count(age=(9, 1))", "count(", "mean('age')", "minimize(1)", "count(age=" + "9" * 400 + ")", "__import__('os')",
    "count(age=float('nan'))", "count(**{})", "lambda: 1", "'" * 50, "count(smoker=True) & " * 60 + "count(smoker=True)", "\u0000", "💥",
    "(" * 900, "count(age=1e400)", "count(region='east') - count(region='west')", "ratio(1, 2)", "marginal('age', 'sex')", "",
]  # fmt: skip
STATEMENTS = [
    "SELECT", "SELECT * FROM data", "SELECT count(*) FROM data; DROP TABLE data", "SELECT count(*) FROM data GROUP BY CUBE (age, sex)",
    "SELECT count(*) FROM read_csv('/etc/passwd')", "SELECT count(*) FROM data WHERE age = 'x' OR 1=1", "WITH a AS (SELECT 1) SELECT 1",
    "SELECT count(*) FROM data TABLESAMPLE 1", "SELECT avg(age) / 0 FROM data", "SELECT count(*) FROM data WHERE " + "NOT " * 300 + "smoker",
    "SELECT count(*) FROM data LIMIT -1", "SELECT sum(age) FROM data WHERE age BETWEEN NULL AND 'a'", "COPY data TO '/tmp/x'", "💥",
]  # fmt: skip
VALUES: list[Any] = [
    None,
    True,
    -1,
    0,
    1e308,
    10**30,
    "",
    "x" * 3_000,
    [],
    {},
    [[]],
    {"v": 1},
    {"kind": "count"},
    1e-300,
]
NAMES = [
    "question",
    "questions",
    "within",
    "scale",
    "resolution",
    "form",
    "statement",
    "loss",
    "target",
    "features",
    "radius",
    "rows",
]
HEADERS = [
    "Content-Length: 5", "Content-Length: -1", "Content-Length: 99999999999999999999", "Transfer-Encoding: chunked", "Host: evil.example",
    "Origin: https://evil.example", "Authorization: Bearer", "Authorization: Basic eDp5", "Idempotency-Key: " + "k" * 300,
    "Idempotency-Key: \x01", "Accept: application/x-ndjson", "Content-Type: text/plain", "If-None-Match: *", "X-Forwarded-For: 127.0.0.1",
    "X-Original-URL: /v1/tokens", "Cookie: a=b", "Range: bytes=0-1", "Expect: 100-continue", "Upgrade: websocket", "Bad Header: 1", ": x",
]  # fmt: skip


def fuzz(service: LoadedService, requests: int) -> dict[str, Any]:
    """Send malformed paths, headers, bodies, questions and statements to the service and to a front. No status may be 500."""
    statuses: Counter[int] = Counter()
    closed = 0

    async def one(client: LoadClient, number: int) -> None:
        nonlocal closed
        message = malformed(number, client.token)
        try:
            found = await asyncio.wait_for(client.raw(message), 60)
        except (OSError, EOFError):  # such a request has no response
            closed += 1
            return
        client.close()
        statuses[found.status] += 1
        assert found.status != 500, (number, message, found.body)

    port = free_port()
    front = service.start_front(port)
    try:
        clients = [LoadClient((service.port, port)[i % 2], service.analysts[i % 8]) for i in range(16)]
        asyncio.run(at_once(clients, requests, one))
    finally:
        front.terminate()
        front.wait()
    log = (service.folder / "log").read_text()
    assert "Traceback" not in log and "ERROR" not in log, log[-2_000:]
    return {"requests": requests, "statuses": dict(sorted(statuses.items())), "closed without a response": closed}


def find_schemathesis() -> str | None:
    """Return the program schemathesis, or None if it is not installed. It is no dependency of this package."""
    return shutil.which("st", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))


def described(service: LoadedService, examples: int) -> dict[str, Any]:
    """Let schemathesis make requests from the OpenAPI document. No status may be 5xx, or differ from the document.

    It has one worker: several meet a fault of the interpreter.
    """
    program = find_schemathesis()
    if program is None:
        raise SystemExit("schemathesis must be installed for this phase. Found none. Run `pip install schemathesis`.")
    document = service.owner_reads("/v1/openapi.json", "")
    for path in list(document["paths"]):  # requests about the dataset that there is
        methods = document["paths"].pop(path)
        for operation in methods.values():
            operation["parameters"] = [each for each in operation["parameters"] if each["name"] != "dataset"]
        document["paths"][path.replace("{dataset}", "people")] = methods
    (service.folder / "openapi.json").write_text(json.dumps(document))
    checks = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
    found: dict[str, Any] = {}
    for role, token in (("owner", service.owner), ("analyst", service.analysts[0])):
        command = [
            program, "run", "openapi.json", "--url", f"http://127.0.0.1:{service.port}", "-H", f"Authorization: Bearer {token}",
            "--checks", checks, "--max-examples", str(examples), "--request-timeout", "60",
        ]  # fmt: skip
        ran = subprocess.run(command, cwd=service.folder, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stdout[:6_000]
        made = re.search(r"(\d+) generated, (\d+) passed", ran.stdout)
        assert made is not None and made[1] == made[2], ran.stdout[:6_000]
        found[f"requests as {role}"] = int(made[1])
    log = (service.folder / "log").read_text()
    assert "Traceback" not in log and "ERROR" not in log, log[-2_000:]
    return {"operations": sum(map(len, document["paths"].values())), **found}


def malformed(number: int, token: str) -> bytes:
    """Return the malformed request of this number."""
    drawn = zlib.crc32(f"fuzz {number}".encode())

    def pick(among: Any, place: int) -> Any:
        return among[zlib.crc32(f"{drawn} {place}".encode()) % len(among)]

    kind = drawn % 5
    method, path, body, header = "POST", pick(PATHS, 1), b"", ""
    if kind == 0:
        method, body = pick(METHODS, 2), b"{}"
    elif kind == 1:
        given = {pick(NAMES, i): pick([*VALUES, *WORDS], 10 + i) for i in range(1 + drawn % 4)}
        body = json.dumps(given).encode()
    elif kind == 2:
        path, body = "/ask", json.dumps({"question": pick(WORDS, 3), "within": pick([0.1, 1e-9], 4)}).encode()
    elif kind == 3:
        path, body = "/sql", json.dumps({"statement": _spoiled(pick(STATEMENTS, 5), drawn)}).encode()
    else:
        header = pick(HEADERS, 6) + "\r\n"
        body = b'{"question": "count(smoker=True)"}'[: drawn % 40]
    if method in ("HEAD",):
        method = "GET"
    head = f"{method} {AT}{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    if "Authorization" not in header:
        head += f"Authorization: Bearer {token}\r\n"
    if body and "Content-Length" not in header and "Transfer" not in header:
        head += f"Content-Length: {len(body)}\r\n"
    message = bytearray((head + header + "\r\n").encode("utf-8") + body)
    if kind == 4 and drawn % 3 == 0:  # a byte of the head is another one
        with contextlib.suppress(IndexError):
            message[drawn // 7 % 60] = drawn % 256
    return bytes(message)


def _spoiled(statement: str, drawn: int) -> str:
    """Return a statement with a character replaced, one time of two."""
    if drawn % 2 or not statement:
        return statement
    place = drawn // 3 % len(statement)
    return statement[:place] + "'\"();*%\\\n-"[drawn // 5 % 10] + statement[place + 1 :]
