"""Purchases: the way of every question that is asked with an error to be bought, and the endpoints of approvals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from starlette.responses import JSONResponse

from hedgerow.answer import Answer
from hedgerow.errors import BudgetExceeded, InvalidInput
from hedgerow.query.counts import Query
from hedgerow.server.answer_queue import Resolution, Scale, question_name
from hedgerow.server.approvals import STATES, Approval, approval_record, purchase_digest
from hedgerow.server.endpoint import Call, Reply, Service
from hedgerow.server.people import Token
from hedgerow.server.problems import Refusal, not_found
from hedgerow.session import Session


class DecisionBody(msgspec.Struct, forbid_unknown_fields=True):
    """An owner's decision about a purchase."""

    decision: Literal["approve", "refuse"]


class PurchaseRefusal(Refusal):
    """A purchase that waits for an owner, or that an owner refused. Nothing was charged."""

    def __init__(self, approval: Approval) -> None:
        self.approval = approval
        if approval.state == "refused":
            super().__init__(
                403, "approval-refused", "An owner refused this purchase",
                "A purchase of this size must be approved by an owner. Found that it was refused. Nothing was spent. "
                "Ask for a wider error, or ask the owner.",
            )  # fmt: skip
        else:
            super().__init__(
                202, "approval-needed", "This purchase waits for an owner",
                "A purchase of this size must be approved by an owner. Found that it is not yet. Nothing was spent. "
                "Repeat the request when it is approved.",
            )  # fmt: skip

    def response(self, request_id: str, more: Mapping[str, Any] | None = None) -> JSONResponse:
        """Return the refusal with the state of the purchase."""
        return super().response(request_id, {"approval": approval_record(self.approval, is_own=True)})


async def buy(
    call: Call, query: Query, within: float | None, scale: Scale = "fraction", resolution: Resolution = "values"
) -> Answer:
    """Ask a question that may charge. A charge above the set share of the budget needs an owner's approval.

    Price, approval and charge are one piece of work of the session's thread, so nothing is charged in between. An
    owner's own purchases need no approval.
    """
    await require_bounded(call, query, resolution)
    name = call.dataset.name
    return await call.dataset.sell(
        call.token.analyst,
        lambda session: sell(call.service, name, call.token, session, query, within, scale, resolution),
        call.meter,
        is_long=query.is_convex or query.is_asked_alone,
    )


async def require_bounded(call: Call, query: Query, resolution: Resolution) -> None:
    """Fit a model to what was released first, in a worker process with limits of time and memory.

    One that exceeds these is refused there, before anything is charged, and does not stop the session's thread. A
    purchase that was begun is never stopped: what was charged would be lost.
    """
    if query.is_convex:
        await call.dataset.rehearse(call.token.analyst, query, resolution)
        call.note_questions([f"priced {question_name(query, resolution)}"])


def sell(
    service: Service,
    dataset: str,
    token: Token,
    session: Session,
    query: Query,
    within: float | None,
    scale: Scale,
    resolution: Resolution,
) -> Answer:
    """Price, check and charge a question in the session's thread. Refuse it if an owner must approve it first."""
    approvals, approval = service.approvals, None
    rule = None if token.role == "owner" else service.rules.get(dataset)
    if rule is not None:
        cost = session.price(query, within=within, resolution=resolution)
        share = cost / session.budget.total
        # the price of a convex question is that of its first step, so its whole cost is known to nobody
        if cost > 0 and (share > rule.share or query.is_convex):
            if cost > session.remaining:
                raise BudgetExceeded(
                    f"cost must be at most {session.remaining:.4g} {session.budget.currency} (what is left). Found "
                    f"{cost:.4g}. Ask for a wider error."
                )
            approval = approvals.require(
                dataset, token, purchase_digest(query, within, scale, resolution), rule, asked=repr(query), within=within,
                cost=cost, share=share,
            )  # fmt: skip
            if approval.state != "approved":
                raise PurchaseRefusal(approval)
    answer = session.ask(query, within=within, scale=scale, resolution=resolution)
    if approval is not None:
        approvals.end_bought(approval.id)
    return answer


class CapBody(msgspec.Struct, forbid_unknown_fields=True):
    """A cap: the largest part of the budget that an analyst, a project or everybody (``*``) may spend, as an ε."""

    who: Annotated[str, msgspec.Meta(min_length=1, max_length=201)]
    epsilon: Annotated[float, msgspec.Meta(ge=0)]


async def set_cap(call: Call) -> Reply:
    """Set what an analyst, a project or everybody may spend. A cap can be set again."""
    given: CapBody = call.body
    call.asked = f"cap of {given.who}: {given.epsilon:g}"
    (block, *_) = call.dataset.session.blocks.values()
    cap = getattr(block.ledger, "cap", None)
    if cap is None:
        raise InvalidInput(
            "The ledger must be durable to have caps. Found one in memory. Serve a dataset with ledger=."
        )
    await call.dataset.run(call.token.analyst, lambda _: cap(given.who, given.epsilon))
    return Reply({"who": given.who, "epsilon": given.epsilon})


async def list_approvals(call: Call) -> Reply:
    """List purchases that wait for an owner or were decided, newest first: for analysts their own."""
    state = call.choice("state", "all", ("all", *STATES))
    most = call.whole("most", 100, 1_000)
    own = call.token.analyst if call.token.role == "analyst" else None
    found = call.service.approvals.list(
        dataset=call.dataset.name, analyst=own, state=None if state == "all" else state, most=most
    )
    return Reply({"approvals": [approval_record(each, is_own=own is not None) for each in found]})


async def decide_approval(call: Call) -> Reply:
    """Approve or refuse a purchase that waits."""
    given: DecisionBody = call.body
    identity, dataset = call.path["approval"], call.dataset.name
    call.asked = f"{given.decision} {identity}"
    found = call.service.approvals.find(identity)
    if found is None or found.dataset != dataset:
        raise not_found()
    decided = await call.service.commits.run(
        lambda: call.service.approvals.decide(
            identity, is_approved=given.decision == "approve", by=call.token.analyst, datasets=[dataset]
        )
    )
    return Reply({"approval": approval_record(decided)})
