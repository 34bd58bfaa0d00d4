"""The commands ``approvals``: purchases that wait for an owner's yes, at the service's own machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hedgerow.cli.file import DEFAULT, Place
from hedgerow.cli.output import AsJson, GuardedGroup, show, table
from hedgerow.cli.service import ServiceFile, format_day, open_registry

if TYPE_CHECKING:
    from hedgerow.server.approvals import Approval

app = typer.Typer(
    cls=GuardedGroup, no_args_is_help=True, rich_markup_mode=None, help="Decide about purchases that wait for an owner."
)
Identity = Annotated[str, typer.Argument(help="Id of the purchase, as `hedgerow approvals list` shows it.")]
BY = "command line"  # who decided, in the record


@app.command("list")
def list_(
    state: Annotated[str, typer.Option(help="pending, approved, refused, bought, expired or all.")] = "pending",
    service: ServiceFile = None,
    place: Place = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """List purchases that wait for an owner, or that were decided."""
    from hedgerow.errors import InvalidInput
    from hedgerow.server.approvals import STATES, ApprovalStore, approval_record

    if state not in ("all", *STATES):
        raise InvalidInput(f"--state must be all or one of {', '.join(STATES)}. Found {state!r}. Choose one.")
    with open_registry(service, place) as (registry, _):
        found = ApprovalStore(registry).list(state=None if state == "all" else state)
    names = ("id", "dataset", "analyst", "question", "within", "share of the budget", "state", "expires")
    lines = [
        (a.id, a.dataset, a.analyst, a.asked, a.within, f"{a.share:.2%}", a.state, format_day(a.expires)) for a in found
    ]
    show(
        {"approvals": [approval_record(each) for each in found]},
        as_json,
        lambda screen: screen.print(table(names, lines)),
    )


@app.command()
def approve(identity: Identity, service: ServiceFile = None, place: Place = DEFAULT, as_json: AsJson = False) -> None:
    """Approve a purchase. The analyst repeats the request, which is then charged."""
    _decide(identity, service, place, as_json, is_approved=True)


@app.command()
def refuse(identity: Identity, service: ServiceFile = None, place: Place = DEFAULT, as_json: AsJson = False) -> None:
    """Refuse a purchase, also one that was approved and not yet bought."""
    _decide(identity, service, place, as_json, is_approved=False)


def _decide(identity: str, service: ServiceFile, place: Place, as_json: bool, *, is_approved: bool) -> None:
    """Approve or refuse a purchase, and print the decision."""
    from hedgerow.server.approvals import ApprovalStore, approval_record

    with open_registry(service, place) as (registry, _):
        decided: Approval = ApprovalStore(registry).decide(identity, is_approved=is_approved, by=BY)
    show(
        {"approval": approval_record(decided)},
        as_json,
        lambda screen: screen.print(f"{decided.state}: {decided.asked} for {decided.analyst}", soft_wrap=True),
    )
