"""Mutants of the console and of the client: sign-in, forms, and tokens."""

from __future__ import annotations

from mutant import Writer

console = Writer("the console", "console/")
console(
    "CN01", "site.py::Site._for_visitors", "another site's form buys, approves and sets caps",
    'if not hmac.compare_digest(asked.form_field("form_key").encode(), visit.form_key.encode()):', 'if not asked.form_field("form_key"):',
    "console/test_console.py::test_forms_without_their_key_or_from_another_site_change_nothing",
)  # fmt: skip
console(
    "CN02", "site.py::Site._for_visitors", "an analyst opens the pages of owners",
    "if visit.token.role not in page.roles:", "if not visit.token.role:",
    "console/test_console.py::test_each_role_sees_its_pages_alone",
)  # fmt: skip
console(
    "CN04", "site.py::Site._set_cookie", "a script in the page reads the cookie",
    "httponly=True", "httponly=False",
    "console/test_console.py::test_a_token_is_exchanged_for_a_cookie_that_scripts_and_other_sites_cannot_use",
)  # fmt: skip
console(
    "CN05", "site.py::Site._set_cookie", "another site's link carries the cookie",
    'samesite="strict"', 'samesite="none"',
    "console/test_console.py::test_a_token_is_exchanged_for_a_cookie_that_scripts_and_other_sites_cannot_use",
)  # fmt: skip
console(
    "CN06", "site.py::Site._sign_in", "after signing in, a person lands on another site",
    "if not after.startswith(\"/\") or after.startswith((\"//\", \"/\\\\\")) or not after.isprintable():", "if not after:",
    "console/test_console.py::test_a_page_that_was_wanted_before_signing_in_is_shown_after_it_but_no_other_site",
)  # fmt: skip
console(
    "CN07", "site.py::Site.__init__", "names and values are run as a page's own scripts",
    "autoescape=True", "autoescape=False",
    "console/test_console.py::test_hostile_names_and_values_are_escaped",
)  # fmt: skip
console(
    "CN08", "visits.py::VisitStore.find", "a visit never ends",
    "token is None or created < now - LONGEST or seen < now - IDLE", "token is None",
    "console/test_console.py::test_visits_survive_a_restart_and_end_with_idleness_age_and_the_token",
)  # fmt: skip
console(
    "CN09", "visits.py::VisitStore.find", "a revoked token's visit goes on",
    "token = self._tokens.with_id(identity)", "token = next((t for t in self._tokens.list() if t.id == identity), None)",
    "console/test_console.py::test_visits_survive_a_restart_and_end_with_idleness_age_and_the_token",
)  # fmt: skip
console(
    "CN10", "visits.py::VisitStore.end", "signing out leaves the cookie good",
    'self._registry.write("DELETE FROM visits WHERE digest = ?", (_digest(cookie),))', "pass",
    "console/test_console.py::test_signing_out_ends_the_visit",
)  # fmt: skip

client = Writer("the client", "client/")
client(
    "CI01", "connection.py::ServiceConnection.__init__", "a token travels to another machine without TLS",
    'parts.scheme == "http" and parts.hostname not in LOOPBACK', 'parts.scheme == "ftp"',
    "server/test_process.py::test_an_address_that_would_leak_a_token_is_refused",
)  # fmt: skip
client(
    "CI02", "connection.py::ServiceConnection.__init__", "a token in an address is accepted, and logged by whoever sees it",
    "parts.username is not None or parts.query", 'parts.query == "?"',
    "server/test_process.py::test_an_address_that_would_leak_a_token_is_refused",
)  # fmt: skip

CONSOLE = [*console.mutants, *client.mutants]
