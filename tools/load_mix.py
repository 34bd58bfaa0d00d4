"""The mixed requests of `make load`, and what must hold of their responses."""

from __future__ import annotations

import json
import time
import zlib
from collections import Counter
from typing import Any

from load_service import AT, LoadClient, LoadedService, Response

FREE = [
    f"count(age=({low}, {high}), smoker={smoker}, region='{region}')"
    for region in ("east", "north", "south", "west")
    for smoker in ("True", "False")
    for low in range(17, 60, 2)
    for high in range(60, 90, 2)
]
SQL = [
    f"SELECT {column}, count(*) AS n, avg(age) AS a FROM data WHERE smoker AND age > {low} GROUP BY {column}"
    for column in ("sex", "region", "sex, region")
    for low in range(20, 60, 3)
]
FITS = [
    {"loss": loss, "target": "smoker", "features": features, "radius": radius}
    for loss in ("Logistic", "Squared")
    for features in (["age"], ["age", "sex"], ["sex", "region"])
    for radius in (1.0, 2.0)
]
REFUSED: list[tuple[str, Any, int]] = [
    ("/ask", {"question": "count(nothing=1)"}, 422),
    ("/ask", {"question": "count(smoker=True)", "within": 1e-9}, 403),
    ("/ask", b"[", 422),
    ("/sql", {"statement": "SELECT * FROM data"}, 422),
    ("/nothing", {}, 404),
    ("/ask", b"\xff", 400),
]
PAID = 400  # different purchases
WITHIN = 0.0015  # narrower than the free bars, so that every purchase costs


class MixChecks:
    """The responses so far: every repetition must be the same, and every key must be billed once."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.paid: dict[str, bytes] = {}
        self.costs: dict[str, float] = {}
        self.people: dict[str, str] = {}  # the token of each key
        self.statuses: Counter[str] = Counter()
        self.seconds: dict[str, list[float]] = {}

    async def one(self, client: LoadClient, number: int, began: float | None = None) -> None:
        """Send the request of this number, and check its response. It has waited since ``began``."""
        mixed = zlib.crc32(str(number).encode())
        kind, which = mixed % 100, mixed // 100
        began = time.perf_counter() if began is None else began
        if kind < 55:
            name, found = "free", await self._ask(client, FREE[which % len(FREE)])
        elif kind < 72:
            name, found = "repeat", await self._ask(client, FREE[which % 50])
        elif kind < 80:
            name, found = "SQL", await self._post(client, "/sql", {"statement": SQL[which % len(SQL)]})
        elif kind < 84:
            name, found = "convex", await self._post(client, "/fit", FITS[which % len(FITS)])
        elif kind < 92:
            path, body, status = REFUSED[which % len(REFUSED)]
            name, found = "refused", await client.send("POST", AT + path, body)
            assert found.status == status, (path, body, found.status, found.body)
        else:
            name, found = "paid", await self._buy(client, which % PAID)
        self.seconds.setdefault(name, []).append(time.perf_counter() - began)
        self.statuses[f"{name} {found.status}"] += 1

    async def _ask(self, client: LoadClient, question: str) -> Response:
        return await self._post(client, "/ask", {"question": question})

    async def _post(self, client: LoadClient, path: str, body: dict[str, Any]) -> Response:
        found = await client.send("POST", AT + path, body)
        assert found.status == 200, (path, body, found.status, found.body)
        said = found.json
        said.pop("judgement", None)  # of the present hypothesis, which purchases improve; the answer itself stays
        for answer in [said["answer"]] if "answer" in said else []:
            answer.pop("source")
            assert answer.pop("cost") == 0
        kept = self.answers.setdefault(f"{path} {json.dumps(body)}", said)
        assert kept == said, ("a repeated question has two answers", path, body, kept, said)
        return found

    async def _buy(self, client: LoadClient, which: int, within: float = WITHIN) -> Response:
        """Buy an answer under a key of its own; half of the time another key, which must cost nothing more."""
        low, high = 17 + which % 40, 60 + which // 40
        body = {"question": f"count(age=({low}, {high}), sex='{'FM'[which % 2]}')", "within": within}
        key = f"{client.token[:10]}-{which}"
        found = await client.send("POST", AT + "/ask", body, key=key)
        assert found.status in (200, 403), (found.status, found.body)
        kept = self.paid.setdefault(key, found.body) if found.status == 200 else found.body
        assert kept == found.body, ("a retried purchase has two answers", key)
        if found.status == 200:
            answer = found.json["answer"]
            self.costs[key], self.people[key] = answer["cost"], client.token
            value = self.answers.setdefault(f"paid {which}", answer["value"])
            assert value == answer["value"], ("a purchase has two answers", which)
        return found

    async def buy(self, client: LoadClient, which: int, within: float) -> None:
        """Buy an answer, and check it."""
        found = await self._buy(client, which, within)
        self.statuses[f"paid {found.status}"] += 1

    def check_bills(self, service: LoadedService, before: float, *, kills: int = 0) -> dict[str, Any]:
        """Compare what was answered with the ledger and the trail. Return the figures."""
        spending = service.owner_reads("/ledger/spending")
        whole = service.owner_reads("/ledger/verify")
        entries, page = [], service.owner_reads("/ledger/entries?most=10000")["entries"]
        while page:
            entries += page
            page = service.owner_reads(f"/ledger/entries?most=10000&after={len(entries)}")["entries"]
        assert [entry["number"] for entry in entries] == sorted({entry["number"] for entry in entries})
        billed, charged = sum(self.costs.values()), spending["spent"] - before
        assert spending["spent"] <= spending["total"] * (1 + 1e-9), "overspent"
        assert whole["is_whole"]
        charges = Counter(entry["asked"] for entry in entries if entry["asked"])
        lost = sum(times - 1 for times in charges.values())  # charged, and killed before the noise was on record
        assert lost <= kills, ("charged again", charges.most_common(3))
        by_person = Counter[str]()
        for each in next(iter(spending["by"].values())):
            by_person[each["who"]] += each["spent"]
        for number, token in enumerate(service.analysts):
            bill = sum(cost for key, cost in self.costs.items() if self.people[key] == token)
            found = by_person[f"load/analyst{number}"]
            assert found >= bill * (1 - 1e-9), ("billed more than was charged", number, bill, found)
            assert kills or found <= bill + 1e-9 * spending["total"], (
                "charged more than was billed",
                number,
                bill,
                found,
            )
        if kills:
            assert charged >= billed * (1 - 1e-9), (charged, billed)
        else:
            assert abs(charged - billed) <= 1e-9 * spending["total"], ("billed otherwise than charged", charged, billed)
        return {
            "purchases": sum(cost > 0 for cost in self.costs.values()), "billed": billed, "charged": charged,
            "share of the budget spent": spending["spent"] / spending["total"], "ledger entries": len(entries),
            **({"charges lost to a kill and paid again": lost} if kills else {}),
            "ledger lines": whole["lines"],
        }  # fmt: skip


def quantile(values: list[float], share: float) -> float:
    """Return the value below which this share lies, in milliseconds."""
    return 1e3 * sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else float("nan")
