"""The endpoints that read: facts about datasets, the ledger and the trail."""

from __future__ import annotations

import asyncio
import dataclasses
import tempfile
from pathlib import Path
from typing import Any

import hedgerow as hr
from hedgerow._json import parse
from hedgerow.answering.privacy_statement import without_spending
from hedgerow.errors import InvalidInput
from hedgerow.report import plain
from hedgerow.server.endpoint import READERS, Call, Reply
from hedgerow.session import Session

RELEASE = "application/vnd.hedgerow.release"


async def list_datasets(call: Call) -> Reply:
    """List the datasets of this token."""
    names = [name for name in call.service.datasets if call.token.may_use(name)]
    return Reply({"datasets": names})


async def describe_dataset(call: Call) -> Reply:
    """Return the public facts of a dataset: universe, budget, number of rows."""

    def facts(session: Session) -> dict[str, Any]:
        """Return the public facts about a dataset."""
        budget = session.budget
        return {
            "dataset": call.dataset.name,
            "universe": hr.wire.to_json(session.universe),
            "rows": round(session.rows),
            "rows_are": "public" if budget.neighbours == "replace" else "estimated",
            "budget": {"epsilon": budget.epsilon, "delta": budget.delta, "neighbours": budget.neighbours},
            "draft": {"epsilon": session.draft_cost[0], "delta": session.draft_cost[1]},
            "private": session.private,
            "blocks": list(session.blocks),
            "version": hr.__version__,
        }

    return Reply(plain(await call.dataset.read("facts", facts)))


async def read_universe(call: Call) -> Reply:
    """Return the public universe: the attributes of a row, and the values of each."""
    return Reply(await call.dataset.read("universe", lambda session: hr.wire.to_json(session.universe)))


async def read_certificate(call: Call) -> Reply:
    """Return what is guaranteed of every small question, asked or not."""
    found = await call.dataset.read("certificate", lambda session: session.certificate)
    if found is None:
        return Reply({"certificate": None})
    return Reply(plain({"certificate": str(found), **dataclasses.asdict(found)}))


async def read_history(call: Call) -> Reply:
    """Return this person's own latest requests, numbered among themselves."""
    most = call.whole("most", 100, 1_000)
    before = call.whole("before", 0, 10**12) or None
    trail, name, analyst = call.service.trail, call.dataset.name, call.token.analyst
    found = await asyncio.to_thread(lambda: trail.own_requests(name, analyst, before=before, most=most))
    shown = ("number", "at", "endpoint", "asked", "cost", "status")
    return Reply({"requests": [{name: getattr(each, name) for name in shown} for each in found]})


async def read_spending(call: Call) -> Reply:
    """Return what is spent and left, and by whom."""

    def spending(session: Session) -> dict[str, Any]:
        """Return the amounts spent, in all and by person, with the caps."""
        report = parse(session.report().json)
        ledgers = {name: block.ledger for name, block in session.blocks.items()}
        people = {name: getattr(ledger, "spending", None) for name, ledger in ledgers.items()}
        return {
            "spent": session.spent,
            "remaining": session.remaining,
            "total": session.budget.total,
            "currency": session.budget.currency,
            "spent_epsilon": session.spent_epsilon,
            "facts": report["facts"],
            "caps": {name: getattr(ledger, "caps", {}) for name, ledger in ledgers.items()},
            "by": {name: _frame(found()) for name, found in people.items() if callable(found)},
        }

    return Reply(plain(await call.dataset.read("spending", spending)))


async def read_entries(call: Call) -> Reply:
    """Return the entries of the ledger: every charge, in order."""
    most = call.whole("most", 100, 10_000)
    after = call.whole("after", 0, 10**12, least=0)

    def entries(session: Session) -> list[dict[str, Any]]:
        """Return the entries of the ledger from one number on."""
        return [
            {
                "number": entry.number,
                "why": entry.why,
                "asked": "" if entry.asked is None else repr(entry.asked),
                "events": [repr(event) for event in entry.events],
                "cost": entry.cost,
            }
            for entry in session.log
        ][after : after + most]

    return Reply({"entries": plain(await call.run(entries))})


async def read_trail(call: Call) -> Reply:
    """Return everybody's latest requests."""
    most = call.whole("most", 100, 1_000)
    before = call.whole("before", 0, 10**12) or None
    trail, name = call.service.trail, call.dataset.name
    found = await asyncio.to_thread(lambda: trail.requests(name, before=before, most=most))  # which writes what waits
    return Reply({"requests": [vars(request) for request in found]})


def _frame(found: Any) -> Any:
    return found.to_dict(orient="records") if hasattr(found, "to_dict") else found


async def read_statement(call: Call) -> Reply:
    """Return the privacy statement: what is protected, how, and what is not covered.

    What was spent is in that of owners and auditors: to an analyst it would tell of every purchase of another.
    """
    found = await call.dataset.read("statement", lambda session: parse(session.statement().json))
    return Reply(found if call.token.role in READERS else without_spending(found))


async def download_report(call: Call) -> Reply:
    """Return the report as a page: the questions, their costs, and the promise."""
    page = await call.dataset.read("report", lambda session: session.report().html.encode())
    headers = {"Content-Disposition": f'attachment; filename="{call.dataset.name}-report.html"'}
    return Reply(page, media="text/html; charset=utf-8", headers=headers)


async def download_release(call: Call) -> Reply:
    """Return the release file, which answers without the table."""
    answers = call.choice("answers", "bought", ("all", "bought", "none"))
    call.asked = f"release file with {answers} answers"
    content = await call.dataset.read(f"release {answers}", lambda session: release_file(session, answers))
    name = f"{call.dataset.name}.hedgerow"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Reply(content, media=RELEASE, headers=headers)


def release_file(session: Session, answers: Any) -> bytes:
    """Return the bytes of a session's release file."""
    with tempfile.TemporaryDirectory() as folder:
        return session.publish(Path(folder) / "release.hedgerow", answers=answers).read_bytes()


async def verify_ledger(call: Call) -> Reply:
    """Check every line of the ledger, and return its head, to be kept elsewhere."""
    (block, *_) = call.dataset.session.blocks.values()
    verify = getattr(block.ledger, "verify", None)
    if verify is None:
        raise InvalidInput(
            "The ledger must be durable to be verified. Found one in memory. Serve a dataset with ledger=."
        )
    wanted = call.parameters.get("head")
    head = await asyncio.to_thread(verify, wanted)
    return Reply({"is_whole": True, "head": str(head), "lines": head.number})
