"""The endpoints of registration: owners whose token is for the whole service register tables and append blocks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

import msgspec

import hedgerow as hr
from hedgerow.errors import InvalidInput
from hedgerow.report import plain
from hedgerow.server.appending import append_block
from hedgerow.server.endpoint import Call, Reply, Service
from hedgerow.server.people import Token
from hedgerow.server.problems import Refusal, forbidden, not_found
from hedgerow.server.prospect import prospect
from hedgerow.server.registrar import Registrar
from hedgerow.server.registrations import Registration, budget_after, universe_of
from hedgerow.server.sources import Source
from hedgerow.universe.universe import Universe

Positive = Annotated[float, msgspec.Meta(gt=0)]
Delta = Annotated[float, msgspec.Meta(ge=0, lt=1)]
Reserve = Annotated[float, msgspec.Meta(gt=0, lt=1)]
Neighbours = Literal["replace", "add-remove"]
SHOWN_CELLS = 12  # labels of a column that are shown
_planning = asyncio.Semaphore(1)


class RegisterBody(msgspec.Struct, forbid_unknown_fields=True):
    """A table to be registered: the name of its dataset, and where it is."""

    name: str
    source: Source


class ColumnsBody(msgspec.Struct, forbid_unknown_fields=True):
    """Declarations of columns in the form of a universe's file, or null for none; and columns to leave out."""

    columns: dict[str, dict[str, Any] | None]
    left_out: list[str] = []


class DraftBody(msgspec.Struct, forbid_unknown_fields=True):
    """Columns whose rows are read to draft declarations, and the price, which is a part of the whole budget."""

    columns: list[str]
    epsilon: Positive
    delta: Delta
    neighbours: Neighbours = "replace"


class ProspectBody(msgspec.Struct, forbid_unknown_fields=True):
    """A budget for everything, and the number of rows of the table, on the owner's word."""

    rows: Annotated[int, msgspec.Meta(ge=1, le=10**10)]
    epsilon: Positive
    delta: Delta
    neighbours: Neighbours = "replace"
    reserve: Reserve = 0.1


class OpenBody(msgspec.Struct, forbid_unknown_fields=True):
    """The budget for everything, which cannot be changed later; nothing, to go on with an opening that was stopped."""

    epsilon: Positive | None = None
    delta: Delta | None = None
    neighbours: Neighbours = "replace"
    reserve: Reserve = 0.1
    approve_above: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None


class BlockBody(msgspec.Struct, forbid_unknown_fields=True):
    """New rows, as a block with its own budget; by default that of the first table."""

    name: str
    source: Source
    epsilon: Positive | None = None
    delta: Delta | None = None


def registrar_for(service: Service, token: Token) -> Registrar:
    """Return the registrar of a service, for an owner whose token is for all datasets."""
    if service.registrar is None:
        raise not_found()
    if token.role != "owner" or token.datasets is not None:
        raise forbidden(f"{token.role} of some datasets" if token.role == "owner" else token.role)
    return service.registrar


def registrar_of(call: Call) -> Registrar:
    """Return the registrar for the person of a call."""
    return registrar_for(call.service, call.token)


async def receive_upload(
    service: Service, token: Token, identity: str, name: str, parts: AsyncIterator[bytes]
) -> dict[str, Any]:
    """Receive a table as it arrives, and return the number of its upload. It is noted in the trail, however it ends."""
    status = 500
    try:
        made = await registrar_for(service, token).uploads.receive(name, parts)
        status = 201
    except Refusal as refused:
        status = refused.status
        raise
    finally:
        service.trail.add(token, request=identity, dataset="", endpoint="upload", asked=name, cost=0.0, status=status)
    return {"upload": made.id, "name": made.name, "bytes": made.bytes}


async def list_sources(call: Call) -> Reply:
    """List the files and databases that may be registered, and the limits of uploads."""
    registrar = registrar_of(call)
    roots = [
        {"root": name, "files": await asyncio.to_thread(registrar.sources.files, name)} for name in registrar.rule.roots
    ]
    return Reply(
        {
            "roots": roots,
            "databases": list(registrar.rule.databases),
            "upload": {"bytes": registrar.rule.upload, "unpacked": registrar.rule.unpacked},
        }
    )


async def list_registrations(call: Call) -> Reply:
    """List all registrations, the newest first."""
    found = [each for each in registrar_of(call).store.list() if each.state != "dropped"]
    return Reply(
        {
            "registrations": [
                {"id": e.id, "name": e.name, "state": e.state, "person": e.person, "at": e.at} for e in found
            ]
        }
    )


async def create_registration(call: Call) -> Reply:
    """Begin a registration with the columns of the table's schema. No row is read."""
    registrar, given = registrar_of(call), call.body
    call.asked = f"register {given.name}"
    made = await registrar.create(given.name, given.source, call.token.analyst)
    return Reply(_record(registrar, made), 201)


async def read_registration(call: Call) -> Reply:
    """Return a registration: its columns, what they cost so far, and how its opening goes."""
    registrar = registrar_of(call)
    return Reply(_record(registrar, registrar.store.find(call.path["registration"])))


async def declare_columns(call: Call) -> Reply:
    """Declare columns from public knowledge, or leave them out, and return the size of the universe. No row is read."""
    registrar = registrar_of(call)
    changed = registrar.declare(call.path["registration"], call.body.columns, call.body.left_out)
    return Reply(_record(registrar, changed))


async def draft_columns(call: Call) -> Reply:
    """Read the rows of some columns to draft their declarations, for a price that is spent for good."""
    registrar, given = registrar_of(call), call.body
    price = hr.Budget(given.epsilon, given.delta, given.neighbours)
    call.asked = f"draft of {len(given.columns)} columns for epsilon = {given.epsilon:g}, delta = {given.delta:g}"
    return Reply(_record(registrar, await registrar.draft(call.path["registration"], given.columns, price)))


async def read_prospect(call: Call) -> Reply:
    """Return what a budget promises and buys, before anything is spent. No row is read."""
    registrar, given = registrar_of(call), call.body
    found = registrar.store.find(call.path["registration"])
    universe = universe_of(found)
    whole = hr.Budget(given.epsilon, given.delta, given.neighbours)
    budget = budget_after(whole, registrar.spent_on_drafts(found))
    if _planning.locked():
        raise Refusal(503, "busy", "Another plan is being made", "One plan is made at a time. Found another. Try again in a moment.", {"Retry-After": "2"})  # fmt: skip
    async with _planning:
        return Reply(await asyncio.to_thread(prospect, universe, budget, given.rows, 1 - given.reserve))


async def open_registration(call: Call) -> Reply:
    """Open a registered table in the background. What the opening spends is spent for good."""
    registrar, given = registrar_of(call), call.body
    if (given.epsilon is None) != (given.delta is None):
        raise InvalidInput("epsilon and delta must come together. Found one. Give both. There is no default.")
    budget = None if given.epsilon is None else hr.Budget(given.epsilon, given.delta, given.neighbours)
    identity = call.path["registration"]
    call.asked = f"open {registrar.store.find(identity).name}"
    begun = await registrar.open(identity, budget, given.reserve, given.approve_above)
    return Reply(_record(registrar, begun), 202)


async def give_up_registration(call: Call) -> Reply:
    """Give up a registration that was not opened, and delete its upload. What a draft cost stays spent."""
    registrar = registrar_of(call)
    identity = call.path["registration"]
    await registrar.give_up(identity)
    return Reply({"dropped": identity})


async def add_block(call: Call) -> Reply:
    """Append new rows to a dataset as a block. Nobody in them may be in another block."""
    registrar, given = registrar_of(call), call.body
    if (given.epsilon is None) != (given.delta is None):
        raise InvalidInput("epsilon and delta must come together. Found one. Give both, or neither.")
    budget = None if given.epsilon is None else (given.epsilon, given.delta)
    call.asked = f"append {given.name}"
    made = await append_block(registrar, call.dataset, call.token.analyst, call.meter, given.name, given.source, budget)
    return Reply(made, 201)


def _record(registrar: Registrar, found: Registration) -> dict[str, Any]:
    """Return a registration as data: everything in it is public or of the owner."""
    attributes = {name: Universe.from_json({name: given})[name] for name, given in found.declared.items()}
    size = 1
    for each in attributes.values():
        size *= each.size
    draft = registrar.spent_on_drafts(found)
    return plain(  # type: ignore[no-any-return]
        {
            "id": found.id,
            "name": found.name,
            "state": found.state,
            "source": {name: value for name, value in msgspec.to_builtins(found.source).items() if value},
            "columns": [
                {
                    "name": name,
                    "type": found.types.get(name),
                    "declaration": given,
                    "left_out": name in found.left_out,
                    "cells": attributes[name].size if name in attributes else None,
                    "labels": [str(label) for label in attributes[name].labels[:SHOWN_CELLS]]
                    if name in attributes
                    else [],
                    "note": found.notes.get(name, ""),
                }
                for name, given in found.columns.items()
            ],
            "cells": size if attributes else 0,
            "undeclared": len(found.undeclared),
            "draft": {"epsilon": draft[0], "delta": draft[1]},
            "neighbours": found.neighbours,
            "budget": None if found.budget is None else {"epsilon": found.budget[0], "delta": found.budget[1]},
            "reserve": found.reserve,
            "approve_above": found.approve_above,
            "progress": registrar.progress(found.id),
            "fault": found.fault,
        }
    )
