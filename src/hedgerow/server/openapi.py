"""The OpenAPI document, made from the table of endpoints."""

from __future__ import annotations

import re
from typing import Any

import msgspec

import hedgerow as hr
from hedgerow.server.api import ENDPOINTS, Endpoint
from hedgerow.server.problems import MEDIA_TYPE

PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "request"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "request": {"type": "string"},
    },
}


def document(prefix: str = "") -> dict[str, Any]:
    """Return the description of all endpoints."""
    bodies = [each.body for each in ENDPOINTS if each.body is not None]
    _, schemas = msgspec.json.schema_components(bodies, ref_template="#/components/schemas/{name}")
    paths: dict[str, Any] = {}
    for each in ENDPOINTS:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "hedgerow",
            "version": hr.__version__,
            "description": "Any number of questions about a sensitive table, under one privacy budget.",
        },
        "servers": [{"url": prefix or "/"}],
        "paths": paths,
        "security": [{"token": []}],
        "components": {
            "schemas": {**schemas, "Problem": PROBLEM},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    """Return the OpenAPI description of an endpoint."""
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"\{(\w+)\}", endpoint.path)
    ]
    parameters += [
        {"name": name, "in": "query", "required": name == "q", "description": text, "schema": dict(schema)}
        for name, (text, schema) in endpoint.parameters.items()
    ]
    if endpoint.is_kept:
        parameters.append(
            {
                "name": "Idempotency-Key",
                "in": "header",
                "required": False,
                "description": "A repeated request with the same key gets the same answer and is billed once.",
                "schema": {"type": "string", "maxLength": 200},
            }
        )
    status = "201" if endpoint.name == "create_token" else "200"
    found: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "description": f"For the roles {', '.join(endpoint.roles)}.",
        "parameters": parameters,
        "responses": {
            status: {"description": "The answer.", "content": {media: {} for media in _media(endpoint)}},
            "default": {
                "description": "A refusal.",
                "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
            },
        },
    }
    if endpoint.may_wait:
        found["responses"]["202"] = {
            "description": "The purchase waits for an owner's approval. Repeat the request when it is approved.",
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
    if endpoint.body is not None:
        schema = {"$ref": f"#/components/schemas/{endpoint.body.__name__}"}
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return found


def _media(endpoint: Endpoint) -> tuple[str, ...]:
    return (endpoint.returns,) if isinstance(endpoint.returns, str) else endpoint.returns
