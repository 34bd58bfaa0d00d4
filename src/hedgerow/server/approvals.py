"""Approvals: a purchase above a set share of the budget waits for an owner's yes.

    pending    the analyst asked, and nothing was charged
    approved   an owner said yes: the same request is answered, and charged at most what was approved
    refused    an owner said no
    bought     the approved purchase was made; a repetition costs nothing
    expired    nobody decided in time, or the analyst did not ask again in time

An approval is for one person, one question and one error. It is a permission: the analyst repeats the request, which is
then priced, checked and charged as every other.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hedgerow import serialize
from hedgerow._json import canonical
from hedgerow.errors import InvalidInput
from hedgerow.privacy.noise import random_token
from hedgerow.query.counts import Query
from hedgerow.server.people import Token
from hedgerow.server.registry import ServiceRegistry
from hedgerow.server.settings import ApprovalRule

STATES = ("pending", "approved", "refused", "bought", "expired")
OPEN = ("pending", "approved", "refused")  # states that end when their time does
WAITING = 100  # pending approvals of one analyst
LONGEST = 2_000  # characters of a question that are kept
ROUNDING = 1e-9  # by which two computations of one price may differ
DAY = 86_400
COLUMNS = "id, dataset, analyst, person, asked, within, cost, share, state, at, decided, decided_by, expires, lasts"


@dataclass(frozen=True)
class Approval:
    """One purchase that waits, or was decided.

    ``cost`` is its price when it was asked for, ``share`` that of the budget.
    """

    id: str
    dataset: str
    analyst: str
    person: str
    asked: str
    within: float | None
    cost: float
    share: float
    state: str
    at: float
    decided: float | None
    decided_by: str
    expires: float
    lasts: float


class ApprovalStore:
    """The approvals of a service, in its registry."""

    def __init__(self, registry: ServiceRegistry, now: Callable[[], float] = time.time) -> None:
        self._registry, self._now = registry, now

    def require(
        self,
        dataset: str,
        token: Token,
        purchase: bytes,
        rule: ApprovalRule,
        *,
        asked: str,
        within: float | None,
        cost: float,
        share: float,
    ) -> Approval:
        """Return the approval of a purchase at this cost.

        If there is none, note that the purchase waits for an owner.
        """
        with self._registry.transaction():
            found = self._latest(dataset, token.analyst, purchase)
            if found is not None and found.state == "approved":
                if cost <= found.cost * (1 + ROUNDING):
                    return found
                self._end(found.id)  # what was approved was cheaper
            if found is None or found.state not in ("pending", "refused"):
                found = self._open(dataset, token, purchase, rule, asked, within, cost, share)
        return found

    def _latest(self, dataset: str, analyst: str, purchase: bytes) -> Approval | None:
        rows = self._registry.rows(
            f"SELECT {COLUMNS} FROM approvals WHERE dataset = ? AND analyst = ? AND purchase = ? ORDER BY number DESC LIMIT 1",
            (dataset, analyst, purchase),
        )
        return self._approval(rows[0]) if rows else None

    def _open(
        self,
        dataset: str,
        token: Token,
        purchase: bytes,
        rule: ApprovalRule,
        asked: str,
        within: float | None,
        cost: float,
        share: float,
    ) -> Approval:
        """Note that a purchase waits for an owner. Refuse it if the person has too many that wait."""
        now, lasts = self._now(), rule.days * DAY
        ((waiting,),) = self._registry.rows(
            "SELECT count(*) FROM approvals WHERE analyst = ? AND state = 'pending' AND expires > ?",
            (token.analyst, now),
        )
        if waiting >= WAITING:
            raise InvalidInput(
                f"At most {WAITING} purchases of one person may wait for an owner. Found that many already. Wait "
                "until some are decided."
            )
        made = Approval(
            random_token(8), dataset, token.analyst, token.person, asked[:LONGEST], within, cost, share, "pending", now,
            None, "", now + lasts, lasts,
        )  # fmt: skip
        self._registry.write(
            f"INSERT INTO approvals ({COLUMNS}, purchase) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*vars(made).values(), purchase),
        )
        return made

    def decide(self, identity: str, *, is_approved: bool, by: str, datasets: Sequence[str] | None = None) -> Approval:
        """Approve or refuse a purchase. An approved one may still be refused until it is bought.

        Parameters
        ----------
        identity : str
            Id of the approval.
        is_approved : bool
            The decision.
        by : str
            Name of who decides, for the record.
        datasets : sequence of str, optional
            Datasets that this person may decide about. Default: all.
        """
        with self._registry.transaction():
            found = self.find(identity)
            if found is None or (datasets is not None and found.dataset not in datasets):
                raise InvalidInput(
                    "The id must be that of a purchase that waits. Found another id. `hedgerow approvals list` shows "
                    "them."
                )
            if found.state not in (("pending",) if is_approved else ("pending", "approved")):
                raise InvalidInput(
                    f"A purchase must be pending to be decided. Found it {found.state}. The analyst may ask again."
                )
            now = self._now()
            state = "approved" if is_approved else "refused"
            self._registry.write(
                "UPDATE approvals SET state = ?, decided = ?, decided_by = ?, expires = ? WHERE id = ?",
                (state, now, by, now + found.lasts, identity),
            )
        return replace(found, state=state, decided=now, decided_by=by, expires=now + found.lasts)

    def end_bought(self, identity: str) -> None:
        """Note that an approved purchase was made."""
        self._registry.write("UPDATE approvals SET state = 'bought' WHERE id = ? AND state = 'approved'", (identity,))

    def _end(self, identity: str) -> None:
        self._registry.write("UPDATE approvals SET expires = ? WHERE id = ?", (self._now(), identity))

    def find(self, identity: str) -> Approval | None:
        """Return an approval by its id."""
        rows = self._registry.rows(f"SELECT {COLUMNS} FROM approvals WHERE id = ?", (identity,))
        return self._approval(rows[0]) if rows else None

    def list(
        self, *, dataset: str | None = None, analyst: str | None = None, state: str | None = None, most: int = 1_000
    ) -> list[Approval]:
        """Return the latest approvals, newest first: of a dataset, of an analyst, in a state."""
        given = [(name, value) for name, value in (("dataset", dataset), ("analyst", analyst)) if value is not None]
        where = "".join(f" AND {name} = ?" for name, _ in given)
        values = [value for _, value in given]
        if state == "expired":
            where, values = (
                f"{where} AND state IN ('pending', 'approved', 'refused') AND expires <= ?",
                [*values, str(self._now())],
            )
        elif state is not None:
            where, values = (
                f"{where} AND state = ? AND (state = 'bought' OR expires > ?)",
                [*values, state, str(self._now())],
            )
        rows = self._registry.rows(
            f"SELECT {COLUMNS} FROM approvals WHERE 1{where} ORDER BY number DESC LIMIT ?", (*values, most)
        )
        return [self._approval(row) for row in rows]

    def _approval(self, row: Sequence[object]) -> Approval:
        found = Approval(*row)  # type: ignore[arg-type]
        return replace(found, state="expired") if found.state in OPEN and found.expires <= self._now() else found


def approval_record(approval: Approval, *, is_own: bool = False) -> dict[str, Any]:
    """Return an approval as data. An analyst does not see who decided."""
    record = dict(vars(approval))
    del record["lasts"]
    if is_own:
        del record["decided_by"]
    return record


def purchase_digest(query: Query, within: float | None, scale: str, resolution: str) -> bytes:
    """Return the name of exactly this purchase, to which an approval is tied."""
    return hashlib.sha256(canonical([serialize.dumps(query), within, scale, resolution]).encode()).digest()
