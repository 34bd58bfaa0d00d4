"""Requests and responses of an endpoint: bodies are read as its type, and refusals and faults become problems."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from hedgerow.errors import HedgerowError
from hedgerow.server.endpoint import Call, Endpoint, Reply
from hedgerow.server.faults import log_fault
from hedgerow.server.problems import Refusal, bad_request, internal, problem_of

HEADERS = {
    "Cache-Control": "private, no-cache",
    "Vary": "Authorization, Accept",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Hedgerow-Interface": "1",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}


async def handle(endpoint: Endpoint, call: Call, passes: tuple[type[Exception], ...] = ()) -> tuple[Reply, Response]:
    """Run an endpoint. Return its reply and the response, which is a problem if the call was refused or failed.

    Exceptions of the kinds in ``passes`` are raised.
    """
    reply = Reply()
    try:
        reply = await endpoint.handler(call)
        response = response_of(reply)
    except passes:
        raise
    except Refusal as refused:
        response = refused.response(call.request_id)
    except HedgerowError as refused:
        response = problem_of(refused, is_owner=call.token.role == "owner").response(call.request_id)
    except Exception as fault:
        log_fault(call.request_id, fault)
        response = internal().response(call.request_id)
    return reply, response


def decode_body(endpoint: Endpoint, request: Request, body: bytes) -> Any:
    """Return the body as the endpoint's type."""
    if endpoint.body is None:
        return None
    media = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if media != "application/json":
        raise bad_request("Content-Type must be application/json. Found another type. Send JSON.", 415)
    try:
        return msgspec.json.decode(body, type=endpoint.body)
    except msgspec.ValidationError as wrong:
        raise bad_request(f"The body must fit the description. Found: {wrong}. See /v1/openapi.json.", 422) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise bad_request("The body must be JSON in UTF-8. Found other bytes. Check it.") from None


def response_of(reply: Reply) -> Response:
    """Return a reply as a response."""
    if reply.stream is not None:
        return StreamingResponse(reply.stream, reply.status, dict(reply.headers), reply.media)
    body = reply.content if isinstance(reply.content, bytes) else msgspec.json.encode(reply.content)
    return Response(body, reply.status, dict(reply.headers), reply.media)


def if_changed(request: Request, response: Response) -> Response:
    """Give a readable answer its ETag, and an empty 304 to a client that has it already."""
    if request.method != "GET" or response.status_code != 200 or isinstance(response, StreamingResponse):
        return response
    tag = f'"{hashlib.sha256(bytes(response.body)).hexdigest()[:32]}"'
    given = [each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")]
    if tag in given:
        return Response(status_code=304, headers={"ETag": tag})
    response.headers["ETag"] = tag
    return response
