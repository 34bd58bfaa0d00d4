"""The endpoints of tokens: owners list, make and revoke them."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from hedgerow.errors import InvalidInput
from hedgerow.server.endpoint import Call, Reply
from hedgerow.server.people import Token
from hedgerow.server.problems import not_found

Positive = Annotated[float, msgspec.Meta(gt=0)]


class TokenBody(msgspec.Struct, forbid_unknown_fields=True):
    """A person who gets a token."""

    person: str
    role: Literal["owner", "analyst", "auditor"]
    project: str = ""
    datasets: list[str] | None = None
    days: Positive | None = None
    signs_on: bool = False  # an account for a person whom the reverse proxy names, without a token


async def list_tokens(call: Call) -> Reply:
    """List all tokens, without their secrets."""
    covered = [token for token in call.service.tokens.list() if _covers(call.token, token)]
    return Reply({"tokens": [vars(token) for token in covered]})


async def create_token(call: Call) -> Reply:
    """Make a token. It is shown once."""
    given: TokenBody = call.body
    call.asked = f"token for {given.person}"
    if call.token.datasets is not None and (
        given.datasets is None or not set(given.datasets) <= set(call.token.datasets)
    ):
        raise InvalidInput(
            "datasets must be among those of the owner's own token. Found other datasets. Name datasets of this token."
        )
    unknown = set(given.datasets or ()) - set(call.service.datasets)
    if unknown:
        raise InvalidInput(f"datasets must be served. Found {sorted(unknown)[0]!r}. GET /v1/datasets lists them.")
    secret, token = await call.service.commits.run(
        lambda: call.service.tokens.create(
            given.person,
            given.role,
            project=given.project,
            datasets=given.datasets,
            days=given.days,
            signs_on=given.signs_on,
        )
    )
    return Reply({"token": secret or None, **vars(token)}, 201)


async def revoke_token(call: Call) -> Reply:
    """End a token at once."""
    identity = call.path["token"]
    call.asked = f"revoke {identity}"
    known = {token.id: token for token in call.service.tokens.list()}
    if identity not in known or not _covers(call.token, known[identity]):
        raise not_found()
    if not await call.service.commits.run(lambda: call.service.tokens.revoke(identity)):
        raise not_found()
    return Reply({"revoked": identity})


def _covers(owner: Token, other: Token) -> bool:
    """Return True if an owner's token is for all datasets of another token."""
    return owner.datasets is None or (other.datasets is not None and set(other.datasets) <= set(owner.datasets))
