"""One error shape for every endpoint: ``application/problem+json`` with the sentences of the library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.responses import JSONResponse

from hedgerow.errors import (
    BudgetExceeded,
    DataUnavailable,
    HedgerowError,
    InvalidInput,
    LedgerBroken,
    LedgerUnavailable,
    TooLarge,
)

MEDIA_TYPE = "application/problem+json"
KINDS: tuple[tuple[type[HedgerowError], int, str, str], ...] = (
    (BudgetExceeded, 403, "budget-exceeded", "The budget does not allow this charge"),
    (TooLarge, 413, "too-large", "The question needs more memory than the limit"),
    (InvalidInput, 422, "invalid-input", "The question does not make sense"),
    (LedgerBroken, 503, "ledger-broken", "The ledger differs from what was written"),
    (LedgerUnavailable, 503, "ledger-unavailable", "The ledger cannot be used at the moment"),
    (DataUnavailable, 503, "data-unavailable", "The table cannot be read at the moment"),
)


@dataclass
class Refusal(Exception):
    """A refusal: the status, a short name for programs, a title, and a sentence that says what to do."""

    status: int
    name: str
    title: str
    detail: str
    headers: dict[str, str] | None = None

    def response(self, request_id: str, more: Mapping[str, Any] | None = None) -> JSONResponse:
        """Return the refusal as a response, with more members if it has any."""
        body = {
            "type": f"urn:hedgerow:problem:{self.name}",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            "request": request_id,
            **(more or {}),
        }
        return JSONResponse(body, self.status, headers=self.headers, media_type=MEDIA_TYPE)


def invalid_token() -> Refusal:
    """Return the one refusal of wrong, expired and revoked tokens, so that they cannot be told apart."""
    return Refusal(
        401,
        "unauthorized",
        "A valid token is needed",
        "Authorization must be 'Bearer' and a valid token. Found none that is valid. Ask the owner for one.",
        {"WWW-Authenticate": "Bearer"},
    )


def forbidden(role: str) -> Refusal:
    """Return the refusal of a role that may not use an endpoint."""
    return Refusal(
        403,
        "forbidden",
        "This token has another role",
        f"The role must be one that may use this endpoint. Found {role!r}. Ask the owner.",
    )


def not_found() -> Refusal:
    """Return the one refusal of datasets that do not exist and of datasets that the token is not for."""
    return Refusal(
        404,
        "not-found",
        "There is no such thing for this token",
        "The path must name an endpoint and a dataset of this token. Found another. GET /v1/datasets lists the "
        "datasets.",
    )


def bad_request(detail: str, status: int = 400) -> Refusal:
    """Return the refusal of a request that is malformed."""
    return Refusal(status, "bad-request", "The request is malformed", detail)


def problem_of(error: HedgerowError, *, is_owner: bool) -> Refusal:
    """Return the refusal for an error of the library.

    Amounts in a refused charge depend on what other analysts have spent, and a failure of the ledger or of the table
    may tell how many lines the ledger has or where the table is. They are for the owner alone.
    """
    for kind, status, name, title in KINDS:
        if isinstance(error, kind):
            detail = str(error)
            if kind is BudgetExceeded and not is_owner:
                detail = (
                    "A charge must fit what is left for you and for the dataset. Found that it does not. "
                    "Nothing was spent. Ask for a wider error, or ask the owner."
                )
            elif status == 503 and not is_owner:
                detail = f"The service must be able to answer. Found: {title[0].lower()}{title[1:]}. Try later, or tell the owner."
            return Refusal(status, name, title, detail)
    return internal()


def internal() -> Refusal:
    """Return the refusal for an unexpected fault. It says nothing about the fault, which may quote data."""
    return Refusal(
        500,
        "internal",
        "The service has a fault",
        "The service must be able to answer. Found a fault, which the owner finds in the log under this request. Try "
        "later.",
    )


def too_many(wait: float) -> Refusal:
    """Return the refusal of requests above a rate."""
    return Refusal(
        429, "too-many-requests", "Too many requests",
        "Requests must stay below the rate of the service. Found more. Wait, or send questions together.",
        {"Retry-After": str(max(1, round(wait + 0.5)))},
    )  # fmt: skip
