"""The checks around every page of the console, and the table of its pages.

    host, origin      as for every request of the service
    cookie            a visit that goes on; without one, the page for signing in
    rate              that of the visit's token
    role              of the page
    form key          of every form, besides SameSite=Strict and the check of the origin

Refusals are pages. The content-security policy allows scripts and styles of this service alone, none of them inline.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from hedgerow._extras import extra
from hedgerow.console import analysts, models, owners, registering, tour, wording
from hedgerow.console.page_request import PageRequest
from hedgerow.console.visits import LONGEST, VisitStore
from hedgerow.errors import HedgerowError
from hedgerow.server.app import Application
from hedgerow.server.arrivals import read_body
from hedgerow.server.endpoint import ASKERS, READERS
from hedgerow.server.people import ROLES
from hedgerow.server.problems import Refusal, bad_request, forbidden, not_found, problem_of
from hedgerow.server.registry import ServiceRegistry

COOKIE = "hedgerow-visit"  # and the port, so that two services on one machine do not end each other's visits
HERE = Path(__file__).parent
MOST_FIELDS = 6_000  # of a form: that of 500 columns
KINDS = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".txt": "text/plain"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action "
    "'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "same-origin",  # without a referrer, browsers would not say which site a form comes from
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
    "Vary": "Cookie",
}


Handler = Callable[[PageRequest], Awaitable[Response]]


@dataclass(frozen=True)
class Page:
    """One row of the table of pages. ``title`` is its name in the menu, if it is there."""

    method: str
    path: str
    handler: Handler
    roles: tuple[str, ...]
    title: str = ""
    has_file: bool = False  # its form is read by the page, which checks its key before the file


async def elsewhere(asked: PageRequest) -> Response:
    """Refuse an address that no page has. The address of a dataset may end with a slash."""
    if asked.dataset and not asked.request.path_params["rest"]:
        return RedirectResponse(asked.url(""), 303)
    raise not_found()


def no_page() -> Refusal:
    """Return the refusal of pages that do not exist, and of datasets that are not this person's."""
    return Refusal(
        404, "not-found", "There is no such page",
        "The address must be that of a page, about a dataset of yours. Found another. Begin at the start.",
    )  # fmt: skip


D = "/data/{dataset}"
R = "/register/{registration}"
OWNER = ("owner",)
PAGES = (
    Page("GET", "/", analysts.start, ROLES),
    Page("GET", D, analysts.overview, ASKERS, "Overview"),
    Page("GET", f"{D}/explore", analysts.explore, ASKERS, "Explore"),
    Page("GET", f"{D}/compare", analysts.compare, ASKERS, "Compare"),
    Page("GET", f"{D}/sql", analysts.sql, ASKERS, "SQL"),
    Page("GET", f"{D}/words", analysts.words, ASKERS),
    Page("GET", f"{D}/models", models.models, ASKERS, "Models"),
    Page("GET", f"{D}/synthetic", analysts.synthetic, ASKERS, "Synthetic"),
    Page("GET", f"{D}/records", analysts.records, ASKERS),
    Page("GET", f"{D}/history", analysts.history, ASKERS, "History"),
    Page("GET", f"{D}/csv", analysts.csv, ASKERS),
    Page("POST", f"{D}/price", analysts.price, ASKERS),
    Page("POST", f"{D}/buy", analysts.buy, ASKERS),
    Page("GET", f"{D}/budget", owners.budget, READERS, "Budget"),
    Page("GET", f"{D}/approvals", owners.approvals, ROLES, "Approvals"),
    Page("POST", f"{D}/approvals/{{approval}}", owners.decide, OWNER),
    Page("GET", f"{D}/log", owners.log, READERS, "Log"),
    Page("GET", f"{D}/promise", owners.promise, ROLES, "Promise"),
    Page("GET", f"{D}/statement", owners.statement, ROLES),
    Page("GET", f"{D}/release", owners.release, READERS),
    Page("GET", f"{D}/report", owners.report, READERS),
    Page("POST", f"{D}/caps", owners.cap, OWNER),
    Page("GET", f"{D}/append", registering.append, OWNER),
    Page("POST", f"{D}/append", registering.add_block, OWNER),
    Page("POST", f"{D}/append/upload", registering.add_uploaded_block, OWNER, has_file=True),
    Page("GET", "/register", registering.start, OWNER),
    Page("POST", "/register", registering.create, OWNER),
    Page("POST", "/register/upload", registering.create_from_upload, OWNER, has_file=True),
    Page("GET", R, registering.show, OWNER),
    Page("POST", f"{R}/columns", registering.columns, OWNER),
    Page("POST", f"{R}/draft", registering.draft, OWNER),
    Page("POST", f"{R}/prospect", registering.prospect, OWNER),
    Page("POST", f"{R}/open", registering.open_, OWNER),
    Page("GET", f"{R}/progress", registering.progress, OWNER),
    Page("POST", f"{R}/give-up", registering.give_up, OWNER),
    Page("GET", "/people", owners.people, OWNER),
    Page("POST", "/people", owners.invite, OWNER),
    Page("POST", "/people/{token}/end", owners.revoke, OWNER),
    Page("GET", "/tour", tour.show, ASKERS),
    Page("GET", "/tour/chart.svg", tour.chart, ASKERS),
    *(Page("GET", f"{path}/{{rest:path}}", elsewhere, ROLES) for path in (D, "/data", "/register", "/people", "/tour")),
)


class Site:
    """The console of a service."""

    def __init__(self, application: Application, registry: ServiceRegistry) -> None:
        self.application = application
        self.visits = VisitStore(registry, application.service.tokens)
        self._cookie = f"{COOKIE}-{application.settings.port}"  # which browsers send to every port of a host
        self._files = {
            path.name: path.read_bytes() for path in sorted((HERE / "static").iterdir()) if path.suffix in KINDS
        }
        self._version = hashlib.sha256(b"".join(self._files.values())).hexdigest()[:12]
        jinja2 = extra("jinja2")
        self._templates = jinja2.Environment(
            loader=jinja2.FileSystemLoader(HERE / "templates"), autoescape=True, undefined=jinja2.StrictUndefined,
            trim_blocks=True, lstrip_blocks=True,
        )  # fmt: skip
        self._templates.filters |= wording.FILTERS

    def routes(self) -> list[BaseRoute]:
        """Return the routes of all pages."""
        fixed = (
            Route("/static/{file}", self._around("static", self._static)),
            Route("/sign-in", self._around("sign_in", self._sign_in), methods=["GET", "POST"]),
            Route("/sign-out", self._around("sign_out", self._sign_out), methods=["POST"]),
        )
        shown = (
            Route(page.path, self._around(page.handler.__name__, self._for_visitors(page)), methods=[page.method])
            for page in PAGES
        )
        return [*fixed, *shown]

    def url(self, path: str) -> str:
        """Return the address of a path within the service, behind its prefix."""
        return f"{self.application.settings.prefix}{path}"

    def menu(self, asked: PageRequest) -> list[tuple[str, str, bool]]:
        """Return the menu of a person about a dataset: titles, addresses, and which page is shown."""
        here = asked.request.url.path
        found = []
        for page in PAGES:
            if page.title and asked.visit.token.role in page.roles:
                address = self.url(page.path.format(dataset=quote(asked.dataset)))
                found.append((page.title, address, here == address))
        return found

    def page(self, template: str, status: int = 200, **context: Any) -> Response:
        """Return a page made from a template."""
        asked = context.get("asked")
        shown = {
            "site": self, "url": self.url, "version": self._version, "asked": asked,
            "may_register": asked is not None and registering.may_register(asked),
            "datasets": self._datasets(asked), "menu": self.menu(asked) if asked and asked.dataset else [],
        }  # fmt: skip
        body = self._templates.get_template(template).render({**shown, **context})
        return Response(body, status, media_type="text/html")

    def _datasets(self, asked: PageRequest | None) -> list[str]:
        names = self.application.service.datasets
        return [] if asked is None else [name for name in names if asked.visit.token.may_use(name)]

    # Checks

    def _around(self, name: str, serve: Callable[[Request], Awaitable[Response]]) -> Any:
        """Check host and origin, and turn refusals into pages."""

        async def checked(request: Request) -> Response:
            """Serve the page inside the application's checks, with a page for a refusal."""

            async def shown(_: str) -> Response:
                try:
                    response = await serve(request)
                except Refusal as refused:
                    response = self.page("refusal.html", refused.status, refusal=refused)
                for header, value in HEADERS.items():
                    response.headers.setdefault(header, value)
                return response

            return await self.application.check(f"console_{name}", request, shown)

        return checked

    def _for_visitors(self, page: Page) -> Callable[[Request], Awaitable[Response]]:
        """Return the handler of a page for visitors who are signed in."""

        async def serve(request: Request) -> Response:
            """Find the visit, check the key of the form, and make the page."""
            visit = self.visits.find(request.cookies.get(self._cookie, ""))
            if visit is None:
                return self._to_sign_in(request)
            self.application.count_request(visit.token)
            dataset = request.path_params.get("dataset", "")
            asked = PageRequest(self.application, request, visit, self.url, self.page, dataset=dataset)
            try:
                if page.method == "POST" and not page.has_file:
                    asked.form = await self._form(request)
                    if not hmac.compare_digest(asked.form_field("form_key").encode(), visit.form_key.encode()):
                        raise bad_request(
                            "A form must come from this console. Found a form of another page. Load the page again.",
                            403,
                        )
                if asked.dataset and asked.dataset not in self._datasets(asked):
                    asked.dataset = ""
                    raise not_found()
                if visit.token.role not in page.roles:
                    raise forbidden(visit.token.role)
                return await page.handler(asked)
            except HedgerowError as refused:
                return self._refusal_page(asked, problem_of(refused, is_owner=visit.token.role == "owner"))
            except Refusal as refused:
                return self._refusal_page(asked, refused)

        return serve

    def _refusal_page(self, asked: PageRequest, refusal: Refusal) -> Response:
        """Return a refusal as a page, or as a part of one that a script asked for."""
        if refusal.name == "not-found":
            refusal = no_page()
        if "hx-request" in asked.request.headers and asked.request.method == "POST":
            return asked.page("notice.html", refusal=refusal)  # a browser would report another status as an error
        return self.page("refusal.html", refusal.status, asked=asked, refusal=refusal)

    async def _form(self, request: Request) -> list[tuple[str, str]]:
        body = await read_body(request, self.application.settings.limits.body)
        try:
            return parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS)
        except ValueError:
            raise bad_request(
                "A form must be one of this console. Found a form that the console does not have. Load the page again."
            ) from None

    # Signing in and out

    def _to_sign_in(self, request: Request) -> Response:
        path = request.url.path.removeprefix(self.application.settings.prefix)
        wanted = f"{path}?{request.url.query}" if request.url.query else path
        after = f"?after={quote(wanted)}" if request.method == "GET" and wanted != "/" else ""
        if "hx-request" in request.headers:  # the whole page must change, not a part of it
            return Response(status_code=200, headers={"HX-Redirect": self.url("/sign-in")})
        return RedirectResponse(self.url(f"/sign-in{after}"), 303)

    async def _sign_in(self, request: Request) -> Response:
        """Exchange a token for a cookie."""
        after = request.query_params.get("after", "/")
        if not after.startswith("/") or after.startswith(("//", "/\\")) or not after.isprintable():
            after = "/"
        token = self.application.person_of_proxy(request)
        if request.method == "GET" and token is None:
            return self.page("sign_in.html", after=after, refusal=None)
        try:
            if token is None:
                given = dict(await self._form(request)).get("token", "").strip()
                token = self.application.find_token(request, given)
        except Refusal as refused:
            return self.page("sign_in.html", refused.status, after=after, refusal=refused)
        response = RedirectResponse(self.url(after), 303)
        self._set_cookie(response, self.visits.begin(token), int(LONGEST))
        return response

    async def _sign_out(self, request: Request) -> Response:
        """End the visit."""
        cookie = request.cookies.get(self._cookie, "")
        visit = self.visits.find(cookie)
        form = dict(await self._form(request))
        if visit is not None and hmac.compare_digest(form.get("form_key", "").encode(), visit.form_key.encode()):
            self.visits.end(cookie)
        response = RedirectResponse(self.url("/sign-in"), 303)
        self._set_cookie(response, "", 0)
        return response

    def _set_cookie(self, response: Response, value: str, seconds: int) -> None:
        settings = self.application.settings
        response.set_cookie(
            self._cookie, value, max_age=seconds, path=settings.prefix or "/", httponly=True, samesite="strict",
            secure=settings.certificate is not None or settings.behind_proxy,
        )  # fmt: skip

    async def _static(self, request: Request) -> Response:
        """Return a file of the console."""
        name = request.path_params["file"]
        if name not in self._files:
            raise not_found()
        kind = KINDS[Path(name).suffix]
        kept = {"Cache-Control": "public, max-age=31536000, immutable"} if request.query_params.get("v") else {}
        return Response(self._files[name], media_type=kind, headers=kept)


def pages(application: Application, registry: ServiceRegistry) -> Sequence[BaseRoute]:
    """Return the routes of the console of a service."""
    return Site(application, registry).routes()
