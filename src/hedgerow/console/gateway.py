"""Endpoints of the service, called within the process: the same roles, limits, trail and billing as over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import Response, StreamingResponse

from hedgerow.privacy.noise import random_token
from hedgerow.server.api import ENDPOINTS, Call
from hedgerow.server.app import Application
from hedgerow.server.people import Token
from hedgerow.server.problems import Refusal, bad_request

BY_NAME = {endpoint.name: endpoint for endpoint in ENDPOINTS}


class Gateway:
    """The endpoints for one person."""

    def __init__(self, application: Application, token: Token) -> None:
        self._application, self._token = application, token

    async def call(self, name: str, *, key: str | None = None, **given: Any) -> Any:
        """Return the data that an endpoint replies, or raise its refusal."""
        return msgspec.json.decode((await self.fetch(name, key=key, **given)).body)

    async def fetch(
        self,
        name: str,
        *,
        key: str | None = None,
        body: Mapping[str, Any] | None = None,
        parameters: Mapping[str, str] | None = None,
        **path: str,
    ) -> Response:
        """Return the response of an endpoint, or raise its refusal.

        Parameters
        ----------
        name : str
            Name of the endpoint, as in ``server/api.py``.
        key : str, optional
            Idempotency key: a purchase that is sent twice is billed once.
        body, parameters : mapping, optional
            Fields of the request's body, and of its query string.
        **path : str
            Parts of the path, such as ``dataset``.
        """
        endpoint, decoded = BY_NAME[name], None
        if endpoint.body is not None:
            try:
                decoded = msgspec.convert(dict(body or {}), endpoint.body)
            except msgspec.ValidationError as wrong:
                raise bad_request(f"The form must be complete. Found: {wrong}. Correct it.", 422) from None
        call = Call(
            self._application.service, self._token, random_token(8), decoded, dict(parameters or {}), path, "", _connected
        )  # fmt: skip
        place = endpoint.path.format(**path)
        response = await self._application.carry_out(endpoint, call, key, place, msgspec.json.encode(body))
        if response.status_code >= 400 and not isinstance(response, StreamingResponse):
            problem = msgspec.json.decode(response.body)
            raise Refusal(response.status_code, problem["type"].rpartition(":")[2], problem["title"], problem["detail"])
        return response


async def _connected() -> bool:
    return False
