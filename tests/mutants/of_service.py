"""Mutants of the service: identity, approvals, and durability before an answer is sent."""

from __future__ import annotations

from mutant import Writer

service = Writer("the service", "server/")
APPROVALS, SIGN_ON = "server/test_approvals.py::", "server/test_sign_on.py::"
service(
    "SV01", "buying.py::sell", "a large purchase does not wait",
    "share > rule.share or query.is_convex", "query.is_convex",
    APPROVALS + "test_a_large_purchase_waits_and_is_charged_once_when_it_is_approved",
)  # fmt: skip
service(
    "SV02", "buying.py::sell", "a fit whose first price is small does not wait",
    "share > rule.share or query.is_convex", "share > rule.share",
    APPROVALS + "test_the_first_price_of_a_fit_is_not_all_of_it_so_every_bought_fit_waits",
)  # fmt: skip
service(
    "SV03", "approvals.py::ApprovalStore.require", "an approval is good for a dearer purchase",
    "cost <= found.cost * (1 + ROUNDING)", "cost >= 0",
    APPROVALS + "test_approvals_expire_and_a_dearer_purchase_needs_a_new_one",
)  # fmt: skip
service(
    "SV04", "approvals.py::purchase_digest", "an approval is good for any error",
    "serialize.dumps(query), within, scale", "serialize.dumps(query), scale",
    APPROVALS + "test_an_approval_is_of_one_person_one_question_and_one_error",
)  # fmt: skip
service(
    "SV05", "app.py::Application.person_of_proxy", "a header is believed from any address",
    " or not rule.is_trusted(request.client.host)", "",
    SIGN_ON + "test_a_person_is_named_by_the_proxy_alone_once_and_without_a_token",
)  # fmt: skip
service(
    "SV06", "app.py::Application.person_of_proxy", "a header beside the proxy's own is believed",
    "len(named) != 1", "not named",
    SIGN_ON + "test_a_person_is_named_by_the_proxy_alone_once_and_without_a_token",
)  # fmt: skip
service(
    "SV07", "heads.py::HeadFile.note", "a purchase does not move the noted head",
    "head.number <= self._number", "self._number",
    "server/test_heads.py::test_a_purchase_moves_the_noted_head_and_an_older_ledger_is_refused_before_it_is_opened",
)  # fmt: skip
service(
    "SV08", "front.py::front", "a front repeats a request that makes a token",
    'repeats = not (request.method == "POST" and path.rstrip("/").endswith(UNREPEATED))', "repeats = True",
    "server/test_front.py::test_a_token_is_not_made_twice",
)  # fmt: skip
service(
    "SV09", "arrivals.py::require_host", "a page of any name that resolves to this machine asks the service",
    "if host not in hosts and not is_with_port:", "if not host:",
    "server/test_service.py::test_a_request_for_another_name_or_from_another_site_is_refused",
)  # fmt: skip
service(
    "SV10", "arrivals.py::require_host", "another site's page sends requests that change something",
    "site != host", "not site",
    "server/test_service.py::test_a_request_for_another_name_or_from_another_site_is_refused",
)  # fmt: skip
service(
    "SV11", "app.py::Application.require_role", "an analyst sets caps, decides approvals and makes tokens",
    "if token.role not in endpoint.roles:", "if not token.role:",
    "server/test_service.py::test_every_endpoint_needs_a_valid_token_of_the_right_role_and_dataset",
)  # fmt: skip
service(
    "SV12", "api.py::ENDPOINTS", "analysts read who spent what",
    'Endpoint("GET", f"{D}/ledger/spending", "read_spending", reading.read_spending, READERS)', 'Endpoint("GET", f"{D}/ledger/spending", "read_spending", reading.read_spending, ROLES)',
    "server/test_closed.py::test_analysts_ask_auditors_read_ledger_and_trail_and_owners_alone_decide",
)  # fmt: skip
service(
    "SV13", "api.py::ENDPOINTS", "analysts read everybody's requests",
    'Endpoint("GET", f"{D}/trail", "read_trail", reading.read_trail, READERS, parameters=PAGES)', 'Endpoint("GET", f"{D}/trail", "read_trail", reading.read_trail, ROLES, parameters=PAGES)',
    "server/test_closed.py::test_analysts_ask_auditors_read_ledger_and_trail_and_owners_alone_decide",
)  # fmt: skip
service(
    "SV14", "people.py::TokenStore.find", "the id of a token, which is no secret, opens the service",
    "token is not None and is_right and self._is_valid(token)", "token is not None and self._is_valid(token)",
    "server/test_closed.py::test_no_route_opens_without_a_right_token_or_for_the_token_of_another_dataset",
)  # fmt: skip
service(
    "SV15", "people.py::TokenStore._is_valid", "a revoked token goes on",
    "token.revoked is None and (token.expires is None or token.expires > self._now())", "token.expires is None or token.expires > self._now()",
    "server/test_service.py::test_every_endpoint_needs_a_valid_token_of_the_right_role_and_dataset",
)  # fmt: skip
service(
    "SV16", "people.py::TokenStore._is_valid", "an expired token goes on",
    "token.revoked is None and (token.expires is None or token.expires > self._now())", "token.revoked is None",
    "server/test_service.py::test_every_endpoint_needs_a_valid_token_of_the_right_role_and_dataset",
)  # fmt: skip
service(
    "SV17", "people.py::Token.may_use", "a token for one dataset asks another",
    "self.datasets is None or dataset in self.datasets", "True",
    "server/test_service.py::test_every_endpoint_needs_a_valid_token_of_the_right_role_and_dataset",
)  # fmt: skip
service(
    "SV18", "people.py::Token.analyst", "people of two projects share a history, a cap and a bill",
    'return f"{self.project}/{self.person}" if self.project else self.person', "return self.person",
    "server/test_service.py::test_namesakes_in_two_projects_have_two_histories",
)  # fmt: skip
service(
    "SV19", "tokens.py::create_token", "an owner of one dataset makes a token for all",
    "given.datasets is None or not set(given.datasets) <= set(call.token.datasets)", "given.datasets is not None and not set(given.datasets) <= set(call.token.datasets)",
    "server/test_service.py::test_an_owner_of_some_datasets_makes_tokens_for_these_alone",
)  # fmt: skip
service(
    "SV20", "tokens.py::_covers", "an owner of one dataset ends tokens of others",
    "owner.datasets is None or (other.datasets is not None and set(other.datasets) <= set(owner.datasets))", "True",
    "server/test_service.py::test_tokens_are_made_listed_and_revoked_by_owners",
)  # fmt: skip
service(
    "SV21", "trail.py::Trail.own_requests", "an analyst reads the questions of all others",
    '"FROM requests WHERE dataset = ? AND analyst = ?"', '"FROM requests WHERE dataset = ? AND (analyst = ? OR 1)"',
    "server/test_service.py::test_an_analyst_sees_neither_others_nor_the_amounts_that_they_spent",
)  # fmt: skip
service(
    "SV22", "buying.py::list_approvals", "an analyst sees what others want to buy",
    'call.token.analyst if call.token.role == "analyst" else None', "None",
    "server/test_approvals.py::test_an_analyst_sees_the_own_approvals_and_decides_none",
)  # fmt: skip
service(
    "SV23", "approvals.py::approval_record", "an analyst sees which owner decided",
    "if is_own:\n        del record[\"decided_by\"]", "if not is_own:\n        del record[\"decided_by\"]",
    "server/test_approvals.py::test_a_large_purchase_waits_and_is_charged_once_when_it_is_approved",
)  # fmt: skip
service(
    "SV25", "buying.py::sell", "an approval that was used can be used again",
    "approvals.end_bought(approval.id)", "pass",
    "server/test_approvals.py::test_a_large_purchase_waits_and_is_charged_once_when_it_is_approved",
)  # fmt: skip
service(
    "SV26", "buying.py::sell", "a purchase that waits for an owner is made at once",
    'if approval.state != "approved":', 'if approval.state == "refused":',
    "server/test_approvals.py::test_a_large_purchase_waits_and_is_charged_once_when_it_is_approved",
)  # fmt: skip
service(
    "SV27", "approvals.py::ApprovalStore._approval", "an approval never expires",
    "found.state in OPEN and found.expires <= self._now()", "False",
    "server/test_approvals.py::test_approvals_expire_and_a_dearer_purchase_needs_a_new_one",
)  # fmt: skip
service(
    "SV28", "approvals.py::ApprovalStore._latest", "one person's approval pays for another's purchase",
    "dataset = ? AND analyst = ? AND purchase = ? ORDER BY number DESC LIMIT 1\",\n            (dataset, analyst, purchase)", "dataset = ? AND purchase = ? ORDER BY number DESC LIMIT 1\",\n            (dataset, purchase)",
    "server/test_approvals.py::test_an_approval_is_of_one_person_one_question_and_one_error",
)  # fmt: skip
service(
    "SV29", "outcomes.py::OutcomeStore.begin", "a request that is sent twice with one key is billed twice",
    "if status is not None:", "if status == 0:",
    "server/test_service.py::test_a_repetition_with_the_same_key_is_billed_once_and_answered_alike",
)  # fmt: skip
service(
    "SV30", "outcomes.py::OutcomeStore.begin", "a key of another request gets its stored answer",
    "if bytes(request) != digest:", "if not request:",
    "server/test_service.py::test_a_key_that_belongs_to_another_request_is_refused",
)  # fmt: skip
service(
    "SV31", "app.py::Application._begin_key", "a purchase is not stored under its key, so that its repetition is another request",
    "if not endpoint.charges(call):", "if True:",
    "server/test_service.py::test_a_repetition_with_the_same_key_is_billed_once_and_answered_alike",
)  # fmt: skip
service(
    "SV32", "app.py::Application._perform", "the trail says that a purchase cost nothing",
    "asked=call.asked, cost=call.meter.cost, status=response.status_code", "asked=call.asked, cost=0.0, status=response.status_code",
    "server/test_service.py::test_a_purchase_is_billed_to_the_person_and_shown_to_the_owner",
)  # fmt: skip
service(
    "SV33", "dataset.py::Dataset.run.on_behalf", "a purchase is billed to nobody, past every cap",
    "with self.session.on_behalf_of(analyst):", "if True:",
    "server/test_service.py::test_a_purchase_is_billed_to_the_person_and_shown_to_the_owner",
)  # fmt: skip
service(
    "SV34", "problems.py::problem_of", "a refused charge tells an analyst what others have spent",
    "kind is BudgetExceeded and not is_owner", "kind is BudgetExceeded and is_owner",
    "server/test_service.py::test_an_analyst_sees_neither_others_nor_the_amounts_that_they_spent",
)  # fmt: skip
service(
    "SV35", "problems.py::problem_of", "a broken ledger tells an analyst how many lines it has",
    "elif status == 503 and not is_owner:", "elif status == 1 and not is_owner:",
    "server/test_service.py::test_amounts_lines_and_places_in_a_refusal_are_shown_to_the_owner_alone",
)  # fmt: skip
service(
    "SV36", "asking.py::_records", "an analyst learns that somebody else has asked the same question",
    'is_first and answer.source == "repeat"', 'not is_first and answer.source == "repeat"',
    "server/test_service.py::test_a_question_that_another_person_asked_looks_new",
)  # fmt: skip
service(
    "SV37", "limits.py::Rate.take", "nobody's rate is limited",
    "return 0.0 if enough else (1 - left) * self._seconds / self._most", "return 0.0",
    "server/test_rates.py::test_a_rate_lets_a_minutes_worth_pass_and_then_one_at_a_time",
)  # fmt: skip
service(
    "SV38", "app.py::Application._require_token", "tokens may be tried without end",
    'wait = self._wrong.take(request.client.host if request.client else "")', "wait = 0.0",
    "server/test_service.py::test_a_right_token_passes_after_many_wrong_ones",
)  # fmt: skip
service(
    "SV39", "faults.py::log_fault", "a log quotes the message of a fault, which may quote rows",
    "type(fault).__name__, places", "fault, places",
    "server/test_service.py::test_a_fault_says_and_logs_nothing_of_its_message",
)  # fmt: skip
service(
    "SV40", "dataset.py::Dataset._do", "an answer of the state before a purchase is given after it",
    "version != published.version", "False",
    "server/test_workers.py::test_an_answer_of_an_older_state_is_computed_again",
)  # fmt: skip
service(
    "SV41", "dataset.py::Dataset.note_given", "a free answer that was given is another one after a crash",
    "if self._journal is None:", "if self._journal is not None:",
    "server/test_workers.py::test_an_answer_given_during_a_charge_is_the_same_after_a_crash",
)  # fmt: skip
service(
    "SV42", "settings.py::Settings.__post_init__", "tokens travel without TLS",
    "if not is_loopback(self.host) and self.certificate is None and not self.behind_proxy:", "if False:",
    "server/test_rates.py::test_beyond_this_machine_a_service_needs_tls_or_a_proxys_word",
)  # fmt: skip
service(
    "SV43", "settings.py::_require_engine", "a front sends tokens to another machine without TLS",
    'parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))', 'parts.scheme in ("https", "http")',
    "server/test_front.py::test_an_engine_to_which_tokens_must_not_be_sent_is_refused",
)  # fmt: skip
service(
    "SV44", "dataset.py::cost_since", "of a purchase on several blocks the cheapest is billed to the trail",
    "max(now - then", "min(now - then",
    "server/test_workers.py::test_a_purchase_about_some_blocks_has_the_cost_of_the_block_that_pays_most",
)  # fmt: skip
service(
    "SV45", "../release_file/replica.py::public_state", "workers answer without the guard, whose bars they do not know",
    'return None if getattr(block.engine, "guard", None) is not None else state_of_block(block, session.private)',
    "return state_of_block(block, session.private)",
    "server/test_workers.py::test_a_session_whose_answers_may_depend_on_the_table_has_no_public_state",
)  # fmt: skip
FRONTS = "server/test_front_answers.py::"
service(
    "SV51", "app.py::Application._require_token", "a front's token asks as a person, or a person's token as a front",
    " or (token.role == FRONT) != is_front", "",
    FRONTS + "test_a_fronts_token_opens_the_way_of_fronts_alone_and_no_other_token_opens_that",
)  # fmt: skip
service(
    "SV52", "shared_answers.py::GivenAnswers.accept", "two fronts give two answers to one question",
    "not _is_equal(self._given[name][1], estimate)", "False",
    FRONTS + "test_the_first_answer_to_a_question_is_everybodys",
)  # fmt: skip
service(
    "SV53", "fronts.py::FrontEndpoints._verdict", "a front gives answers that a purchase has replaced",
    "asked.revision is not None and asked.revision != dataset.revision", "False",
    FRONTS + "test_after_a_purchase_a_front_repeats_what_was_given_and_answers_from_the_new_state",
)  # fmt: skip
service(
    "SV54", "dataset.py::Dataset._in_thread", "an analyst makes all fronts forget, at no cost",
    "job.has_replaced or (self.shared.count and self.shared.has_any(job.kept))", "True",
    FRONTS + "test_an_analyst_cannot_make_fronts_forget_by_asking_for_wide_bars",
)  # fmt: skip
CURIOUS = (
    "server/test_closed.py::test_an_analyst_sees_nothing_of_what_others_ask_for_free_and_no_amount_of_what_they_buy"
)
service(
    "SV55", "reading.py::read_statement", "an analyst reads in the statement what others spend",
    "call.token.role in READERS", "True", CURIOUS,
)  # fmt: skip
service(
    "SV56", "trail.py::Trail.own_requests", "the numbers of a history tell how much others ask",
    "replace(TrailEntry(*row), number=last - k) for k, row in enumerate(rows)", "TrailEntry(*row) for row in rows", CURIOUS,
)  # fmt: skip
service(
    "SV57", "answer_queue.py::AnswerQueue._has_asked", "beyond the limit of new questions, those of others are answered",
    "self._asked is not None and self._asked.knows(self.name, analyst, names)", "True",
    "server/test_workers.py::test_a_person_with_many_new_questions_waits_and_repeats_and_others_go_on",
)  # fmt: skip

service(
    "SV58", "dataset.py::Job.run", "what was drawn is passed on though it may not be on the disk",
    "is_on_disk = False", "is_on_disk = True",
    "server/test_purchases.py::test_purchases_that_cannot_be_written_together_are_given_to_nobody",
)  # fmt: skip
service(
    "SV59", "dataset.py::Dataset._make", "a purchase is billed to the first who waits",
    "session.on_behalf_of(each.analyst)", "session.on_behalf_of(purchases[0].analyst)",
    "server/test_purchases.py::test_waiting_purchases_of_several_people_wait_for_the_disk_once_and_have_their_own_bills",
)  # fmt: skip
service(
    "SV60", "worker.py::_answers_of", "one refused question refuses those of others who wait with it",
    "yield from _answers_of(replica, [queries], scale, resolution)", "yield type(refused)(str(refused))",
    "server/test_workers.py::test_a_refused_or_a_large_question_takes_no_other_out_of_its_batch",
)  # fmt: skip

service(
    "SV61", "dataset.py::Dataset.wait_for_notes", "an answer that is not yet written down is repeated to another person",
    "list(self._notes)", "()",
    "server/test_workers.py::test_an_answer_is_repeated_only_after_it_was_written_down",
)  # fmt: skip

SERVICE = service.mutants
