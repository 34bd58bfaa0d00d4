"""The table of endpoints: what each takes, who may use it, and what it returns.

Routes, checks and the OpenAPI document are made from ``ENDPOINTS``.
"""

from __future__ import annotations

from hedgerow.server import asking, buying, reading, registering, tokens
from hedgerow.server.approvals import STATES
from hedgerow.server.endpoint import ASKERS, READERS, Call, Endpoint, Reply, Service, choice, text, whole
from hedgerow.server.people import ROLES

__all__ = ["ENDPOINTS", "Call", "Endpoint", "Reply", "Service"]

D = "/v1/datasets/{dataset}"
R = "/v1/registrations/{registration}"
PAGES = {"most": whole("Entries of a page.", 1_000), "before": whole("Number before which the page ends.", 10**12, 0)}
TEXT = {
    "q": text("The question, as text."),
    "scale": choice("Unit of the answer.", "fraction", "rows"),
    "resolution": choice("Resolution of conditions.", "values", "bins"),
}
ENDPOINTS = (
    Endpoint("GET", "/v1/datasets", "list_datasets", reading.list_datasets, ROLES),
    Endpoint("GET", D, "describe_dataset", reading.describe_dataset, ROLES),
    Endpoint("GET", f"{D}/universe", "read_universe", reading.read_universe, ROLES),
    Endpoint("GET", f"{D}/certificate", "read_certificate", reading.read_certificate, ROLES),
    Endpoint("GET", f"{D}/ask", "ask_by_text", asking.ask_by_text, ASKERS, parameters=TEXT, is_answered_by_fronts=True),
    Endpoint("POST", f"{D}/ask", "ask", asking.ask, ASKERS, asking.AskBody, may_charge=asking.buys, may_wait=True, is_answered_by_fronts=True),
    Endpoint("POST", f"{D}/batch", "ask_batch", asking.ask_batch, ASKERS, asking.BatchBody, returns=("application/json", asking.NDJSON), may_charge=asking.buys, is_answered_by_fronts=True),
    Endpoint("POST", f"{D}/sql", "run_sql", asking.run_sql, ASKERS, asking.SqlBody, may_charge=asking.buys, is_answered_by_fronts=True),
    Endpoint("POST", f"{D}/price", "price", asking.price, ASKERS, asking.PriceBody, may_charge=asking.free),
    Endpoint(
        "GET", f"{D}/synthetic", "synthesize", asking.synthesize, ASKERS,
        parameters={"rows": whole("Number of records.", 10**12), "format": choice("Form of the file.", *asking.FORMS)}, returns=asking.RECORDS, is_answered_by_fronts=True,
    ),
    Endpoint("GET", f"{D}/describe", "describe", asking.describe, ASKERS, is_answered_by_fronts=True),
    Endpoint("POST", f"{D}/fit", "fit", asking.fit, ASKERS, asking.FitBody, may_charge=asking.buys, may_wait=True, is_answered_by_fronts=True),
    Endpoint("POST", f"{D}/plan", "plan", asking.plan, ASKERS, asking.PlanBody, may_charge=asking.free),
    Endpoint("GET", f"{D}/statement", "read_statement", reading.read_statement, ROLES),
    Endpoint("GET", f"{D}/report", "download_report", reading.download_report, READERS, returns="text/html; charset=utf-8"),
    Endpoint("POST", f"{D}/caps", "set_cap", buying.set_cap, ("owner",), buying.CapBody),
    Endpoint(
        "GET", f"{D}/release", "download_release", reading.download_release, READERS,
        parameters={"answers": choice("Answers that are recorded in the file.", "all", "bought", "none")}, returns=reading.RELEASE,
    ),
    Endpoint(
        "GET", f"{D}/approvals", "list_approvals", buying.list_approvals, ROLES,
        parameters={"state": choice("State of the approvals.", "all", *STATES), "most": whole("Approvals of a page.", 1_000)},
    ),
    Endpoint(
        "POST", f"{D}/approvals/{{approval}}", "decide_approval", buying.decide_approval, ("owner",), buying.DecisionBody,
        may_charge=asking.free,
    ),
    Endpoint("GET", f"{D}/history", "read_history", reading.read_history, ASKERS, parameters=PAGES),
    Endpoint("GET", f"{D}/ledger/spending", "read_spending", reading.read_spending, READERS),
    Endpoint(
        "GET", f"{D}/ledger/entries", "read_entries", reading.read_entries, READERS,
        parameters={"most": whole("Entries of a page.", 10_000), "after": whole("Number of entries to pass over.", 10**12, 0)},
    ),
    Endpoint(
        "GET", f"{D}/ledger/verify", "verify_ledger", reading.verify_ledger, READERS,
        parameters={"head": text("A head that was noted before, which must still be there.")},
    ),
    Endpoint("GET", f"{D}/trail", "read_trail", reading.read_trail, READERS, parameters=PAGES),
    Endpoint("POST", f"{D}/blocks", "add_block", registering.add_block, ("owner",), registering.BlockBody),
    Endpoint("GET", "/v1/sources", "list_sources", registering.list_sources, ("owner",)),
    Endpoint("GET", "/v1/registrations", "list_registrations", registering.list_registrations, ("owner",)),
    Endpoint("POST", "/v1/registrations", "create_registration", registering.create_registration, ("owner",), registering.RegisterBody, may_charge=asking.free),
    Endpoint("GET", R, "read_registration", registering.read_registration, ("owner",)),
    Endpoint("DELETE", R, "give_up_registration", registering.give_up_registration, ("owner",)),
    Endpoint("POST", f"{R}/columns", "declare_columns", registering.declare_columns, ("owner",), registering.ColumnsBody, may_charge=asking.free),
    Endpoint("POST", f"{R}/draft", "draft_columns", registering.draft_columns, ("owner",), registering.DraftBody),
    Endpoint("POST", f"{R}/prospect", "read_prospect", registering.read_prospect, ("owner",), registering.ProspectBody, may_charge=asking.free),
    Endpoint("POST", f"{R}/open", "open_registration", registering.open_registration, ("owner",), registering.OpenBody),
    Endpoint("GET", "/v1/tokens", "list_tokens", tokens.list_tokens, ("owner",)),
    Endpoint("POST", "/v1/tokens", "create_token", tokens.create_token, ("owner",), tokens.TokenBody, is_shown_once=True),
    Endpoint("DELETE", "/v1/tokens/{token}", "revoke_token", tokens.revoke_token, ("owner",)),
)  # fmt: skip
