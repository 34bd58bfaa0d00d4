"""A request for a page, as the functions that make pages see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl, quote

from starlette.requests import Request
from starlette.responses import Response

from hedgerow.console.gateway import Gateway
from hedgerow.console.visits import Visit
from hedgerow.server.app import Application
from hedgerow.universe.universe import Universe


@dataclass
class PageRequest:
    """A request for a page by a person who is signed in.

    ``address_of`` returns the address of a path behind the service's prefix, and ``render`` a page made from a
    template.
    """

    application: Application
    request: Request
    visit: Visit
    address_of: Callable[[str], str]
    render: Callable[..., Response]
    form: Sequence[tuple[str, str]] = ()
    dataset: str = ""

    @cached_property
    def gateway(self) -> Gateway:
        """The endpoints, for this person."""
        return Gateway(self.application, self.visit.token)

    @property
    def universe(self) -> Universe:
        """The universe of the page's dataset."""
        return self.application.service.datasets[self.dataset].session.universe

    @property
    def pairs(self) -> Sequence[tuple[str, str]]:
        """The parameters of the address, in order."""
        return parse_qsl(self.request.url.query, max_num_fields=200)

    def form_field(self, name: str, default: str = "") -> str:
        """Return a field of the form."""
        return dict(self.form).get(name, default)

    async def call(self, name: str, *, key: str | None = None, **given: Any) -> Any:
        """Return the data that an endpoint replies about this dataset."""
        return await self.gateway.call(name, key=key, dataset=self.dataset, **given)

    def url(self, path: str) -> str:
        """Return the address of a page of this dataset."""
        return self.address_of(f"/data/{quote(self.dataset)}/{path}".rstrip("/"))

    def page(self, template: str, **context: Any) -> Response:
        """Return a page."""
        return self.render(template, asked=self, **context)
