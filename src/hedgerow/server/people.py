"""Tokens: who may do what with which datasets, and until when.

A token is ``hr_<id>_<secret>`` with 256 random bits of secret. Only the SHA-256 digest of the secret is stored: the
secret has so many bits that a slow hash would add nothing. Digests are compared in constant time, and a token that does
not exist takes the same steps as one that does.

A person who signs on at a reverse proxy has an account instead: a token without a secret, which nobody can send. The
proxy names the person in a header, which is believed from the proxy's address alone.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hedgerow._json import canonical, parse
from hedgerow.errors import InvalidInput
from hedgerow.privacy.noise import random_token
from hedgerow.server.registry import ServiceRegistry

ROLES = ("owner", "analyst", "auditor")
FRONT = "front"  # the role of a process of the service on another machine, which opens no endpoint of people
LONGEST = 100  # characters of a person's or a project's name
NO_SECRET = b""  # the digest of an account, which no secret has
NOBODY = bytes(32)  # the digest with which an unknown token is compared
COLUMNS = "id, person, project, role, datasets, created, expires, revoked"


@dataclass(frozen=True)
class Token:
    """A token without its secret. ``datasets`` is None if the token is for all datasets of the service."""

    id: str
    person: str
    project: str
    role: str
    datasets: tuple[str, ...] | None
    created: float
    expires: float | None
    revoked: float | None

    @property
    def analyst(self) -> str:
        """Name under which the ledger bills this person: ``project/person``, or ``person`` without a project."""
        return f"{self.project}/{self.person}" if self.project else self.person

    def may_use(self, dataset: str) -> bool:
        """Return True if the token is for this dataset."""
        return self.datasets is None or dataset in self.datasets


class TokenStore:
    """The tokens of a service."""

    def __init__(self, registry: ServiceRegistry, now: Callable[[], float] = time.time) -> None:
        self._registry, self._now = registry, now

    def create(
        self,
        person: str,
        role: str,
        *,
        project: str = "",
        datasets: Sequence[str] | None = None,
        days: float | None = None,
        signs_on: bool = False,
    ) -> tuple[str, Token]:
        """Make a token and return it with its record. The token itself is shown once and stored nowhere.

        Parameters
        ----------
        person : str
            Name of the person, as it appears in the audit trail and in the ledger.
        role : {"owner", "analyst", "auditor", "front"}
            An owner may do everything, an analyst asks, an auditor reads ledger and trail, a front answers for the
            engine.
        project : str, optional
            Project whose cap the person's purchases count towards, too.
        datasets : sequence of str, optional
            Datasets that the token is for. Default: all.
        days : float, optional
            Days until the token expires. Default: it does not.
        signs_on : bool
            Make an account for a person who signs on at a reverse proxy. It has no token: an empty text is returned.
        """
        known = (*ROLES, FRONT)
        if role not in known or (signs_on and role == FRONT):
            raise InvalidInput(f"role must be one of {', '.join(known)}. Found {role!r}. Choose one.")
        for name, given in (("person", person), ("project", project)):
            if (
                len(given) > LONGEST
                or not given.isprintable()
                or "/" in given
                or given == "*"
                or (name == "person" and not given)
            ):
                raise InvalidInput(
                    f"{name} must be a name of up to {LONGEST} printable characters without a slash, and not '*'. "
                    f"Found {given!r}. Give a short text."
                )
        if days is not None and not 0 < days < 36_500:
            raise InvalidInput(f"days must be above 0 and below 36,500. Found {days!r}. Say when the token expires.")
        if signs_on and self.account(person) is not None:
            raise InvalidInput(
                f"A person must have one account. Found a valid one of {person!r} already. Revoke it first, or choose "
                "another name."
            )
        created = self._now()
        identity, secret = random_token(8), random_token(32)
        expires = None if days is None else created + days * 86_400
        kept = None if datasets is None else tuple(dict.fromkeys(datasets))
        self._registry.write(
            "INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL)",
            (
                identity,
                NO_SECRET if signs_on else _digest(secret),
                person,
                project,
                role,
                None if kept is None else canonical(list(kept)),
                created,
                expires,
            ),
        )
        shown = "" if signs_on else f"hr_{identity}_{secret}"
        return shown, Token(identity, person, project, role, kept, created, expires, None)

    def find(self, given: str) -> Token | None:
        """Return the record of a valid token, or None for a wrong, expired or revoked one."""
        kind, _, rest = given.partition("_")
        identity, _, secret = rest.partition("_")
        found = self._registry.rows(f"SELECT digest, {COLUMNS} FROM tokens WHERE id = ?", (identity,))
        digest, token = (found[0][0], _token(found[0][1:])) if found else (NOBODY, None)
        is_right = hmac.compare_digest(_digest(secret), digest) and kind == "hr"
        return token if token is not None and is_right and self._is_valid(token) else None

    def with_id(self, identity: str) -> Token | None:
        """Return the record of the token of this id, or None if there is none or it has ended."""
        found = self._registry.rows(f"SELECT {COLUMNS} FROM tokens WHERE id = ?", (identity,))
        token = _token(found[0]) if found else None
        return token if token is not None and self._is_valid(token) else None

    def _is_valid(self, token: Token) -> bool:
        return token.revoked is None and (token.expires is None or token.expires > self._now())

    def account(self, person: str) -> Token | None:
        """Return the newest valid account of a person who signed on at a reverse proxy, or None."""
        found = self._registry.rows(
            f"SELECT {COLUMNS} FROM tokens WHERE person = ? AND digest = ? AND revoked IS NULL AND "
            "(expires IS NULL OR expires > ?) ORDER BY created DESC LIMIT 1",
            (person, NO_SECRET, self._now()),
        )
        return _token(found[0]) if found else None

    def list(self) -> list[Token]:
        """Return all tokens, expired and revoked ones included."""
        return [_token(row) for row in self._registry.rows(f"SELECT {COLUMNS} FROM tokens ORDER BY created, id")]

    def revoke(self, identity: str) -> bool:
        """End a token. Return False if there is none of this name, or it has ended already."""
        changed = self._registry.write(
            "UPDATE tokens SET revoked = ? WHERE id = ? AND revoked IS NULL", (self._now(), identity)
        )
        return changed == 1


def _token(row: Sequence[object]) -> Token:
    identity, person, project, role, datasets, created, expires, revoked = row
    kept = None if datasets is None else tuple(parse(str(datasets)))
    return Token(identity, person, project, role, kept, created, expires, revoked)  # type: ignore[arg-type]


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
