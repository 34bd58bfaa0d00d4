"""Pages that run a dataset: the budget, the log, what is promised, exports, and people with their tokens."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from starlette.responses import RedirectResponse, Response

from hedgerow._json import write_spaced
from hedgerow.answering.privacy_statement import PrivacyStatement
from hedgerow.console import wording
from hedgerow.console.bars import Bar
from hedgerow.console.page_request import PageRequest
from hedgerow.errors import InvalidInput
from hedgerow.server.problems import Refusal

OPENING = "the opening, for everybody"
ENTRIES = 50  # entries of the ledger on a page
LONG_NUMBER = re.compile(r"\d+\.\d{4,}(e-?\d+)?")
CAP = re.compile(r"\d{1,4}(\.\d{1,6})?")
FORMS = {"json": ("json", "application/json"), "md": ("markdown", "text/markdown"), "html": ("html", "text/html")}


async def budget(asked: PageRequest) -> Response:
    """Show what is spent and left: in all, by day, and by person."""
    found = await asked.call("read_spending")
    total = found["total"]
    records = [record for records in found["by"].values() for record in records]
    people: dict[str, float] = defaultdict(float)
    days: dict[str, float] = defaultdict(float)
    for record in records:
        people[record["who"] or OPENING] += record["share"]
        days[str(record["day"])[:10]] += record["share"]
    spent, left = found["spent"] / total, found["remaining"] / total
    opening = people.get(OPENING, spent if not records else 0.0)
    return asked.page(
        "budget.html", found=found, spent=spent, left=left, opening=opening, bought=sum(share for name, share in people.items() if name != OPENING),
        total=wording.amount(total, found["currency"]), remaining=wording.amount(found["remaining"], found["currency"]),
        people=_shares(people), caps={name: cap / total for caps in found["caps"].values() for name, cap in caps.items()}, steps=_burn_down(days), has_days=bool(days), is_owner=asked.visit.token.role == "owner",
    )  # fmt: skip


def _shares(shares: Mapping[str, float]) -> list[Bar]:
    """Return shares of the budget as bars, the largest first."""
    largest = max(shares.values(), default=0.0) or 1.0
    return [
        Bar(wording.short(name), k, share, wording.percent(share), f"{wording.percent(share)} of the budget.", False, 0.0,
            round(96 * share / largest, 3), None, None)
        for k, (name, share) in enumerate(sorted(shares.items(), key=lambda item: -item[1]))
    ]  # fmt: skip


def _burn_down(days: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return the steps of what is left after each day, in percent of a picture's width and height."""
    left, found = 1.0, []
    width = 100 / max(len(days), 1)
    for k, (day, share) in enumerate(sorted(days.items())):
        before, left = left, max(left - share, 0.0)
        found.append(
            {
                "day": day, "x": round(k * width, 3), "width": round(width * 0.92, 3), "y": round(100 * (1 - left), 3),
                "height": round(100 * left, 3), "burnt_y": round(100 * (1 - before), 3), "burnt": round(100 * (before - left), 3),
                "left": wording.percent(left), "spent": wording.percent(share),
            }
        )  # fmt: skip
    return found


async def log(asked: PageRequest) -> Response:
    """Show every charge in order, whether the ledger is whole, and everybody's requests."""
    given = dict(asked.pairs)
    after = given.get("after", "0")
    entries = await asked.call("read_entries", parameters={"after": after, "most": str(ENTRIES)})
    trail = await asked.call("read_trail", parameters={"most": "50"})
    facts = await asked.call("describe_dataset")
    for entry in entries["entries"]:
        entry["events"] = [LONG_NUMBER.sub(lambda found: f"{float(found[0]):.4g}", event) for event in entry["events"]]
    state, fault = None, ""
    try:
        state = await asked.call("verify_ledger", parameters={"head": given["head"]} if given.get("head") else {})
    except Refusal as refused:
        fault = refused.detail
    return asked.page(
        "log.html", facts=facts, entries=entries["entries"], requests=trail["requests"], state=state, fault=fault, head=given.get("head", ""),
        following=int(after) + ENTRIES if len(entries["entries"]) == ENTRIES else None,
    )  # fmt: skip


async def promise(asked: PageRequest) -> Response:
    """Show what is guaranteed of answers, and what is promised to the people in the table."""
    certificate = (await asked.call("read_certificate"))["certificate"]
    facts = await asked.call("describe_dataset")
    record = await asked.call("read_statement")
    return asked.page(
        "promise.html", certificate=certificate, facts=facts, leaves=[leaf for leaf in _leaves(record) if leaf[1]],
        missing=[name for name, text in _leaves(record) if not text],
        may_export=asked.visit.token.role in ("owner", "auditor"),
    )  # fmt: skip


def _leaves(record: Any, path: Sequence[str] = ()) -> Iterable[tuple[str, str]]:
    """Yield every field of a statement as a name and a text, which is empty if the owner has to add it."""
    if isinstance(record, dict):
        for name, part in record.items():
            yield from _leaves(part, (*path, str(name)))
    else:
        parts = record if isinstance(record, list) else [] if record is None else [record]
        shown = ", ".join(f"{each:.6g}" if isinstance(each, float) else str(each) for each in parts)
        yield " · ".join(path).replace("_", " "), shown


async def statement(asked: PageRequest) -> Response:
    """Return the privacy statement as a file."""
    form = dict(asked.pairs).get("format", "json")
    attribute, media = FORMS.get(form, FORMS["json"])
    text = getattr(PrivacyStatement(await asked.call("read_statement")), attribute)
    name = f"{asked.dataset}-statement.{form if form in FORMS else 'json'}"
    return Response(text, media_type=media, headers={"Content-Disposition": f'attachment; filename="{name}"'})


async def report(asked: PageRequest) -> Response:
    """Return the report as a page to be read or printed."""
    return await asked.gateway.fetch("download_report", dataset=asked.dataset)


async def cap(asked: PageRequest) -> Response:
    """Limit what somebody may spend."""
    given = asked.form_field("epsilon").strip()
    if not CAP.fullmatch(given):
        raise InvalidInput("A cap must be an ε, such as 0.1. Found a text that is no number. Correct it.")
    await asked.call("set_cap", body={"who": asked.form_field("who").strip(), "epsilon": float(given)})
    return RedirectResponse(asked.url("budget"), 303)


async def release(asked: PageRequest) -> Response:
    """Return the release file."""
    answers = dict(asked.pairs).get("answers", "bought")
    return await asked.gateway.fetch("download_release", dataset=asked.dataset, parameters={"answers": answers})


async def approvals(asked: PageRequest) -> Response:
    """Show purchases that wait for an owner: to owners and auditors all, to analysts their own."""
    found = (await asked.call("list_approvals", parameters={"state": "all"}))["approvals"]
    token = asked.visit.token
    lines = [
        {
            **each,
            "question": write_spaced(each["asked"]),
            "may_decide": token.role == "owner" and each["state"] == "pending",
            "may_buy": each["analyst"] == token.analyst and each["state"] == "approved" and each["within"] is not None,
        }
        for each in found
    ]
    return asked.page("approvals.html", lines=lines)


async def decide(asked: PageRequest) -> Response:
    """Approve or refuse a purchase."""
    identity = asked.request.path_params["approval"]
    await asked.call("decide_approval", approval=identity, body={"decision": asked.form_field("decision")})
    return RedirectResponse(asked.url("approvals"), 303)


async def people(asked: PageRequest) -> Response:
    """Show who has a token."""
    return await _people(asked)


async def _people(asked: PageRequest, made: Mapping[str, Any] | None = None) -> Response:
    now = time.time()
    tokens = (await asked.gateway.call("list_tokens"))["tokens"]
    for token in tokens:
        is_over = token["expires"] is not None and token["expires"] <= now
        token["state"] = "ended" if token["revoked"] is not None else "expired" if is_over else "valid"
    return asked.page("people.html", tokens=tokens, made=made, own=asked.visit.token.id)


async def invite(asked: PageRequest) -> Response:
    """Make a token, and show it once."""
    days = asked.form_field("days").strip()
    chosen = [value for name, value in asked.form if name == "dataset"]
    body: dict[str, Any] = {
        "person": asked.form_field("person").strip(),
        "role": asked.form_field("role"),
        "project": asked.form_field("project").strip(),
        "datasets": chosen or (None if asked.visit.token.datasets is None else list(asked.visit.token.datasets)),
        "days": float(days) if days.replace(".", "", 1).isdecimal() else None,
    }
    return await _people(asked, await asked.gateway.call("create_token", body=body))


async def revoke(asked: PageRequest) -> Response:
    """End a token."""
    await asked.gateway.fetch("revoke_token", token=asked.request.path_params["token"])
    return RedirectResponse(asked.address_of("/people"), 303)
