"""Pages that register a table: its source, its columns, its budget, and the opening; and the page that appends a block.

Owners whose token is for the whole service see them. Nothing is computed here: columns, sizes, costs and what a budget
buys are replies of the service.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import RedirectResponse, Response

from hedgerow.console import wording
from hedgerow.console.bars import Bar
from hedgerow.console.column_form import KINDS, ColumnForm
from hedgerow.console.page_request import PageRequest
from hedgerow.console.upload_form import UploadForm
from hedgerow.errors import InvalidInput
from hedgerow.privacy.noise import random_token
from hedgerow.server.problems import Refusal, bad_request, not_found
from hedgerow.server.registering import receive_upload

NUMBER = re.compile(r"\d{1,12}(\.\d{1,15})?([eE]-?\d{1,3})?|\.\d{1,15}")
DISCARDED = 100_000_000  # bytes of a refused upload that are still read
PERIODS = ("day", "week", "month", "quarter", "year")


def may_register(asked: PageRequest) -> bool:
    """Return True if this person may register tables with this service."""
    token = asked.visit.token
    has_registrar = asked.application.service.registrar is not None
    return has_registrar and token.role == "owner" and token.datasets is None


async def start(asked: PageRequest) -> Response:
    """Show what may be registered, and registrations that are not finished."""
    return await _start(asked)


async def _start(
    asked: PageRequest, refusal: Refusal | None = None, given: Mapping[str, str] | None = None
) -> Response:
    """Return the page that lists registrations and begins a new one."""
    sources = await asked.gateway.call("list_sources")
    found = (await asked.gateway.call("list_registrations"))["registrations"]
    return asked.page(
        "register.html", sources=sources, unfinished=[each for each in found if each["state"] != "open"],
        registered=[each for each in found if each["state"] == "open"], refusal=refusal, given=given or {},
        limit=wording.size(sources["upload"]["bytes"]),
    )  # fmt: skip


async def create(asked: PageRequest) -> Response:
    """Begin a registration of a file or of a table of a database."""
    given = dict(asked.form)
    try:
        return await _create(asked, given, _source(given))
    except Refusal as refused:
        return await _start(asked, refused, given)


async def create_from_upload(asked: PageRequest) -> Response:
    """Receive a file, and begin its registration."""
    given: dict[str, str] = {}
    try:
        number = await _receive(asked, given)
        return await _create(asked, given, {**_format(given), "upload": number})
    except Refusal as refused:
        if refused.status == 403:
            raise
        return await _start(asked, refused, given)


async def _create(asked: PageRequest, given: Mapping[str, str], source: Mapping[str, Any]) -> Response:
    body = {"name": given.get("name", "").strip(), "source": source}
    made = await asked.gateway.call("create_registration", body=body)
    return RedirectResponse(asked.address_of(f"/register/{made['id']}"), 303)


async def _receive(asked: PageRequest, given: dict[str, str]) -> str:
    """Receive the file of a form, and return the number of its upload. The form key is checked before the file."""
    form, seconds = UploadForm(asked.request), asked.application.settings.limits.body_seconds
    try:
        given.update(await asyncio.wait_for(form.read_fields(), seconds))
        if not hmac.compare_digest(given.get("form_key", "").encode(), asked.visit.form_key.encode()):
            raise bad_request(
                "A form must come from this console. Found a form of another page. Load the page again.", 403
            )
        if not form.file_name:
            raise bad_request("A file must be chosen. Found none. Choose one.", 422)
        service, token = asked.application.service, asked.visit.token
        made = await receive_upload(service, token, random_token(8), form.file_name, form.file())
    except TimeoutError:
        raise bad_request(
            "The form must arrive completely within the time limit. Found an incomplete form. Send it again.", 408
        ) from None
    except Refusal:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(form.discard(DISCARDED), seconds)
        raise
    return str(made["upload"])


def _source(given: Mapping[str, str]) -> dict[str, Any]:
    """Return the source of a form: a file of a root, or a table of a database."""
    if given.get("database"):
        return {"database": given["database"], "table": given.get("table", "").strip()}
    root, _, path = given.get("file", "").partition("/")
    return {"root": root, "path": path, **_format(given)}


def _format(given: Mapping[str, str]) -> dict[str, Any]:
    """Return the format of a text file."""
    marks = {"tab": "\t", "semicolon": ";", "bar": "|"}
    header = [name.strip() for name in given.get("header", "").split(",") if name.strip()]
    found = {"delimiter": marks.get(given.get("delimiter", ""), ""), "encoding": given.get("encoding", "").strip()}
    return {**{name: value for name, value in found.items() if value}, **({"header": header} if header else {})}


async def show(asked: PageRequest) -> Response:
    """Show a registration at its step."""
    return await _show(asked, await _read(asked))


async def _show(
    asked: PageRequest,
    record: Mapping[str, Any],
    forms: Sequence[ColumnForm] | None = None,
    faults: Mapping[str, str] | None = None,
    refusal: Refusal | None = None,
) -> Response:
    """Show a registration. ``forms`` are the forms that a person filled in, with the faults of refused columns."""
    is_draft = record["state"] == "draft"
    step = dict(asked.pairs).get("step", "columns") if is_draft else "opening"
    columns = record["columns"]
    return asked.page(
        "registration.html", record=record, step="budget" if step == "budget" and forms is None else "columns" if is_draft else step,
        lines=[
            (form, column, (faults or {}).get(column["name"], ""))
            for form, column in zip(forms or [ColumnForm.of(k, c) for k, c in enumerate(columns)], columns, strict=True)
        ] if is_draft else [],
        kinds=KINDS, periods=PERIODS, here=asked.address_of(f"/register/{record['id']}"), refusal=refusal,
        cells=wording.count(record["cells"]), source=_words_of(record["source"]), key=random_token(16),
    )  # fmt: skip


async def columns(asked: PageRequest) -> Response:
    """Declare the columns of a form as far as it is complete, and show the size of the universe."""
    record, given = await _read(asked), dict(asked.form)
    forms = [ColumnForm.read(k, column["name"], given) for k, column in enumerate(record["columns"])]
    wanted = {
        form.name: form.declaration()
        for form, column in zip(forms, record["columns"], strict=True)
        if form.kind != "kept" and form != ColumnForm.of(form.number, column)
    }
    body = {"left_out": [form.name for form in forms if form.left_out]}
    faults: dict[str, str] = {}
    try:
        record = await _call(asked, "declare_columns", body={**body, "columns": wanted})
    except Refusal:  # of one column, perhaps: the others are kept
        for name, declaration in wanted.items():
            try:
                record = await _call(asked, "declare_columns", body={**body, "columns": {name: declaration}})
            except Refusal as refused:
                faults[name] = refused.detail
    if asked.form_field("then") == "budget" and not faults and not record["undeclared"]:
        return RedirectResponse(asked.address_of(f"/register/{record['id']}?step=budget"), 303)
    return await _show(asked, record, forms, faults)


async def draft(asked: PageRequest) -> Response:
    """Pay to read the rows of some columns."""
    record = await _read(asked)
    names = [column["name"] for column in record["columns"]]
    chosen = [
        names[int(value)]
        for name, value in asked.form
        if name == "column" and value.isdecimal() and len(value) < 6 and int(value) < len(names)
    ]
    body = {"columns": chosen, "neighbours": asked.form_field("neighbours", "replace"), **_budget(asked)}
    try:
        record = await _call(asked, "draft_columns", body=body, key=asked.form_field("key") or None)
    except Refusal as refused:
        return await _show(asked, record, refusal=refused)
    return RedirectResponse(asked.address_of(f"/register/{record['id']}"), 303)


async def prospect(asked: PageRequest) -> Response:
    """Show what a budget promises and buys."""
    body = _prospect_body(asked)
    found = await _call(asked, "read_prospect", body=body)
    by_rows = [(f"{point['rows']:,} rows", point) for point in found["by_rows"]]
    budgets = [(f"ε = {point['epsilon']:g}", point) for point in found["by_epsilon"]]
    return asked.page(
        "prospect.html", found=found, given=body, by_rows=_error_bars(by_rows, found["rows"]), by_epsilon=_error_bars(budgets, None),
        here=asked.address_of(f"/register/{asked.request.path_params['registration']}"), key=random_token(16),
        approve=asked.form_field("approve"),
    )  # fmt: skip


def _prospect_body(asked: PageRequest) -> dict[str, Any]:
    return {
        "rows": int(_number(asked, "rows")), "neighbours": asked.form_field("neighbours", "replace"), "reserve": _number(asked, "reserve") / 100, **_budget(asked),
    }  # fmt: skip


def _error_bars(points: Sequence[tuple[str, Mapping[str, Any]]], chosen: int | None) -> list[Bar]:
    """Return errors as bars, the largest of which fills the picture."""
    largest = max((point["error"] or 0.0 for _, point in points), default=0.0) or 1.0
    found = []
    for k, (label, point) in enumerate(points):
        error, typical, group = point["error"], point["typical"], point.get("group")
        if error is None:
            found.append(
                Bar(label, k, 0.0, "no bound", "No mechanism promises anything here.", False, 0.0, 0.0, None, None)
            )
            continue
        said = f"Every answer within about ± {_percent(error)} of the rows"
        said += f"; most are typically within {_percent(typical)}." if typical else "."
        said += f" Groups of {group:,} rows can be told apart." if group else ""
        shown, length = f"± {_percent(error)}", round(96 * error / largest, 3)
        is_chosen = point.get("rows") == chosen if chosen is not None else k == len(points) // 2
        found.append(Bar(label, k, error, shown, said, False, 0.0, length, None, None, is_chosen=is_chosen))
    return found


def _percent(share: float) -> str:
    """Write an error, which is an example, with two digits."""
    return f"{100 * share:.2g} %"


async def open_(asked: PageRequest) -> Response:
    """Commit the budget and open, or go on with an opening that was stopped."""
    record = await _read(asked)
    body: dict[str, Any] = {}
    if record["state"] == "draft":
        if asked.form_field("sure") != "yes":
            raise InvalidInput(
                "The budget must be confirmed. Found the box not ticked. Tick it: it cannot be changed later."
            )
        approve = asked.form_field("approve").strip()
        body = {name: value for name, value in _prospect_body(asked).items() if name != "rows"}
        body |= {"approve_above": _number(asked, "approve") / 100} if approve else {}
    await _call(asked, "open_registration", body=body, key=asked.form_field("key") or None)
    return RedirectResponse(asked.address_of(f"/register/{record['id']}"), 303)


async def progress(asked: PageRequest) -> Response:
    """Return the progress of an opening, as the part of its page that reloads itself."""
    record = await _read(asked)
    return asked.page("progress.html", record=record, here=asked.address_of(f"/register/{record['id']}"))


async def give_up(asked: PageRequest) -> Response:
    """Give up a registration."""
    await _call(asked, "give_up_registration")
    return RedirectResponse(asked.address_of("/register"), 303)


async def append(asked: PageRequest) -> Response:
    """Show the form that appends a block."""
    return await _append(asked)


async def _append(
    asked: PageRequest, refusal: Refusal | None = None, made: Mapping[str, Any] | None = None
) -> Response:
    sources, facts = await asked.gateway.call("list_sources"), await asked.call("describe_dataset")
    return asked.page(
        "append.html", sources=sources, facts=facts, refusal=refusal, made=made, limit=wording.size(sources["upload"]["bytes"]),
        key=random_token(16),
    )  # fmt: skip


async def add_block(asked: PageRequest) -> Response:
    """Append a block from a file or from a table of a database."""
    return await _add_block(asked, dict(asked.form))


async def add_uploaded_block(asked: PageRequest) -> Response:
    """Receive a file and append it as a block."""
    given: dict[str, str] = {}
    try:
        number = await _receive(asked, given)
    except Refusal as refused:
        return await _append(asked, refused)
    return await _add_block(asked, given, number)


async def _add_block(asked: PageRequest, given: Mapping[str, str], number: str = "") -> Response:
    """Append a block from the form, and return the page with the result or the refusal."""
    asked.form = list(given.items())
    try:
        body: dict[str, Any] = {
            "name": given.get("name", "").strip(),
            "source": {"upload": number} if number else _source(given),
        }
        if given.get("epsilon", "").strip():
            body |= _budget(asked)
        made = await asked.call("add_block", body=body, key=given.get("key") or None)
    except Refusal as refused:
        return await _append(asked, refused)
    return await _append(asked, made=made)


# Parts


async def _read(asked: PageRequest) -> Any:
    return await _call(asked, "read_registration")


async def _call(asked: PageRequest, name: str, **given: Any) -> Any:
    if not may_register(asked):
        raise not_found()
    return await asked.gateway.call(name, registration=asked.request.path_params["registration"], **given)


def _budget(asked: PageRequest) -> dict[str, float]:
    return {name: _number(asked, name) for name in ("epsilon", "delta")}


def _number(asked: PageRequest, name: str) -> float:
    given = asked.form_field(name).strip()
    if not NUMBER.fullmatch(given) or math.isinf(float(given)):
        raise InvalidInput(f"{name} must be a number, such as 0.5 or 1e-6. Found a text that is no number. Correct it.")
    return float(given)


def _words_of(source: Mapping[str, Any]) -> str:
    if "database" in source:
        return f"table {source['table']} of {source['database']}"
    return "an upload" if "upload" in source else f"{source['root']}/{source['path']}"
