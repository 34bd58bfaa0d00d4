"""Mutants of assistants: spending without a person or beyond the cap, private values in a tool, texts with instructions."""

from __future__ import annotations

from mutant import Writer

PROTOCOL = "assistants/test_protocol.py::test_"
SERVICE = "server/test_service_assistants.py::test_"
QUOTING = "assistants/test_quoting.py::test_"
BUYING = "assistants/test_assistant_buying.py::test_"
NEIGHBOURS = (
    "assistants/test_assistant_neighbours.py::test_neighbours_with_the_same_releases_tell_an_assistant_the_same"
)
PERSON = PROTOCOL + "a_purchase_waits_for_a_person_and_is_billed_once_under_the_cap"

RESULTS = "assistants/test_assistant_results.py::test_"
assistant = Writer("assistants", "assistants/")
assistant(
    "AI01", "buying.py::buy", "a purchase is made without the person whom the owner demands",
    "if cost > 0 and rule.needs_approval:", "if cost > 1 and rule.needs_approval:", PERSON,
)  # fmt: skip
assistant(
    "AI02", "protocol.py::_is_approval", "a form that was sent back with a no counts as a yes",
    'content.get("approve") is True', '"approve" in content', PERSON,
)  # fmt: skip
assistant(
    "AI03", "protocol.py::_is_approval", "a form that was declined counts as approved",
    'getattr(found, "action", None) == "accept"', 'getattr(found, "action", None) != "cancel"',
    BUYING + "only_a_form_that_was_accepted_with_a_yes_is_an_approval",
)  # fmt: skip
assistant(
    "AI04", "buying.py::purchase_key", "an approval of one bar is good for any other",
    'text = f"{query!r} within {within!r} of {resolution} for {cost:.6g}"', 'text = f"{query!r} of {resolution}"',
    BUYING + "an_approval_is_good_for_one_question_bar_and_price",
)  # fmt: skip
assistant(
    "AI05", "buying.py::buy", "a purchase is billed to everybody, past the assistant's cap",
    "session.on_behalf_of(rule.analyst)", 'session.on_behalf_of("everybody")',
    PROTOCOL + "without_approval_the_cap_alone_holds",
)  # fmt: skip
assistant(
    "AI06", "buying.py::buy", "a purchase costs more than the price that a person approved",
    "stack.enter_context(block.ledger.spending_at_most(cost))", "stack.enter_context(block.ledger.spending_at_most(1e9))",
    BUYING + "a_purchase_never_costs_more_than_its_price",
)  # fmt: skip
assistant(
    "AI07", "desk.py::AssistantDesk.view", "free tools ask the session itself, which may charge and read the table",
    "return self.table.public_view()", "return self.table",
    PROTOCOL + "free_tools_charge_nothing_even_where_the_session_itself_would",
)  # fmt: skip
assistant(
    "AI08", "describing.py::draw_synthetic_rows", "records and answers come with the true values of the table",
    '"seed": seed, "made_up": True', '"seed": seed, "made_up": str(desk.table._data.marginal(view.universe.names))',
    NEIGHBOURS,
)  # fmt: skip
assistant(
    "AI09", "quoting.py::quote_label", "a label brings a link, a picture or HTML into an assistant's text",
    "_MARKUP.sub(lambda found: _escape(found.group()), shown)", "shown",
    QUOTING + "no_text_carries_markup_links_or_unseen_marks",
)  # fmt: skip
assistant(
    "AI10", "quoting.py::quote_label", "a label brings lines and marks that nobody sees into an assistant's text",
    "mark if mark.isprintable() else _escape(mark)", "mark",
    QUOTING + "no_text_carries_markup_links_or_unseen_marks",
)  # fmt: skip
assistant(
    "AI11", "quoting.py::_one_line", "an error repeats a link that somebody wrote",
    'lambda found: _escape(found.group()), text)', "lambda found: found.group(), text)",
    QUOTING + "no_text_carries_markup_links_or_unseen_marks",
)  # fmt: skip
assistant(
    "AI12", "arguments.py::_require_count", "a call may have as many questions as it likes",
    "schema.get(most, math.inf)", "math.inf",
    PROTOCOL + "every_refusal_is_a_sentence_that_tells_how_to_mend_the_call",
)  # fmt: skip
assistant(
    "AI13", "asking.py::ask", "a result grows with the cells that are asked for",
    "if room < 0:", "if room < -(10**9):",
    QUOTING + "results_stay_short_for_a_wide_table_of_long_labels",
)  # fmt: skip
assistant(
    "AI14", "results.py::verdict", "a difference within the bars is reported as a finding",
    'outward(first["low"] - second["high"], -1, 7)', 'outward(first["low"] - second["low"], -1, 7)',
    BUYING + "a_comparison_is_settled_exactly_where_the_intervals_are_apart",
)  # fmt: skip
assistant(
    "AI15", "results.py::number_record", "an interval is rounded inward, so it may miss the truth",
    'outward(high, 1, 7)', "plain_number(high)",
    BUYING + "an_interval_in_a_result_contains_the_exact_one",
)  # fmt: skip
assistant(
    "AI16", "protocol.py::log_fault", "a log line quotes the message of a fault, which may quote rows",
    'type(fault).__name__, places)', "fault, places)",
    BUYING + "a_fault_is_told_and_logged_without_its_message",
)  # fmt: skip
assistant(
    "AI17", "models.py::coefficients_of", "something that is no number is taken for a coefficient",
    "isinstance(v, bool) or not isinstance(v, int | float) or not abs(v) < 1e6", "isinstance(v, str)",
    "assistants/test_assistant_holdout.py::test_a_model_that_is_no_data_is_refused_and_costs_nothing",
)  # fmt: skip
assistant(
    "AI18", "holdout.py::ModelHoldout.score", "a score that was given is drawn and paid for again",
    "if digest not in self._known:", "if digest:",
    "assistants/test_assistant_holdout.py::test_a_repeated_score_is_the_same_and_costs_nothing",
)  # fmt: skip
assistant(
    "AI20", "../server/assistants.py::AssistantEndpoint.serve", "an auditor's token asks the table",
    "if token.role not in ASKERS:", 'if token.role == "":',
    SERVICE + "a_request_passes_the_checks_of_every_request",
)  # fmt: skip
assistant(
    "AI21", "../server/assistants.py::AssistantEndpoint._dataset", "a token for one dataset asks another",
    "if name not in allowed:", "if name not in self._service.datasets:",
    SERVICE + "a_request_passes_the_checks_of_every_request",
)  # fmt: skip
assistant(
    "AI22", "../server/assistants.py::AssistantEndpoint.serve", "whoever knows the name of a session takes it over",
    'request.scope["user"] =', "_ =",
    SERVICE + "a_session_belongs_to_its_token_and_a_revoked_token_ends",
)  # fmt: skip
assistant(
    "AI23", "../server/assistants.py::AssistantEndpoint.serve", "one token opens every session that there may be",
    "self._require_room(token)", "pass",
    SERVICE + "one_token_cannot_open_every_session",
)  # fmt: skip
assistant(
    "AI24", "../server/assistants.py::AssistantDesks._rule", "somebody without a cap buys up to the whole budget",
    "is_capped = all(", "is_capped = True or all(",
    SERVICE + "nobody_buys_without_a_cap_or_where_purchases_are_not_allowed",
)  # fmt: skip
assistant(
    "AI25", "../server/assistants.py::AssistantDesks._rule", "the owner's demand for approvals is dropped on the service",
    'purchases == "approved"', 'purchases == "capped"',
    SERVICE + "a_purchase_waits_for_a_person_and_is_billed_to_the_token",
)  # fmt: skip
assistant(
    "AI26", "../server/assistants.py::AssistantDesks.explain", "a refusal tells an assistant what others have spent",
    'is_owner=request.state.caller.token.role == "owner"', "is_owner=True",
    SERVICE + "concurrent_purchases_stay_within_the_cap",
)  # fmt: skip
assistant(
    "AI27", "../server/assistants.py::AssistantDesks._finish", "what an assistant pays is not in the trail",
    "cost=meter.cost", "cost=0.0",
    SERVICE + "a_purchase_waits_for_a_person_and_is_billed_to_the_token",
)  # fmt: skip
assistant(
    "AI28", "../server/app.py::Application._assistant_routes", "tools are open to everybody who reaches the service",
    'self._for_tokens("mcp", answered)', 'self._for_everybody("mcp", lambda request: answered(request, self._service.tokens.list()[0], ""))',
    SERVICE + "a_request_passes_the_checks_of_every_request",
)  # fmt: skip
assistant(
    "AI29", "../privacy/ledger.py::Ledger.charge", "a limit on a purchase is not enforced",
    "bills.require_room(math.fsum(costs))", "pass",
    BUYING + "a_purchase_never_costs_more_than_its_price",
)  # fmt: skip

assistant(
    "AI30", "buying.py::buy", "a purchase through a service's tools passes by the owner whose approval it needs",
    "desk.sell(session, query, within, scale, resolution)",
    "session.ask(query, within=within, scale=scale, resolution=resolution)",
    SERVICE + "a_purchase_that_an_owner_must_approve_waits_for_the_owner",
)  # fmt: skip

assistant(
    "AI31", "explaining.py::_price_of_half", "an explanation tells an analyst what others have left of the budget",
    'if desk.shows_spending else " here."', "",
    RESULTS + "a_bar_that_the_budget_cannot_pay_for_is_called_so_without_the_amounts_of_others",
)  # fmt: skip
assistant(
    "AI32", "results.py::unit_of", "a sum of values is told as a number of rows",
    'return "total"', 'return "rows"',
    RESULTS + "a_count_in_rows_is_in_rows_and_a_total_never_is",
)  # fmt: skip

ASSISTANTS = assistant.mutants
