"""The account lines with which a ledger and its blocks begin: budget, table, options, version and fit."""

from __future__ import annotations

from collections.abc import Sequence
from types import NoneType
from typing import Any

from hedgerow._checks import require_name
from hedgerow.errors import InvalidInput, LedgerBroken
from hedgerow.ledger import binding, chain, replay, spending
from hedgerow.ledger.binding import Binding
from hedgerow.ledger.caps import EVERYBODY
from hedgerow.ledger.chain import Head, check_lines
from hedgerow.ledger.store import Store
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.log import Entry
from hedgerow.serialize import LedgerTerms, decode, encode, loads
from hedgerow.universe.universe import Universe


def begin(store: Store, budget: Budget, slack: float, earlier: Sequence[Entry], bound: Binding | None) -> None:
    """Write the first lines of a new ledger: its account, and the earlier entries."""
    said = [_account(budget, slack, bound)]
    kinds = [replay.ACCOUNT]
    for entry in earlier:
        said.append(replay.written_charge(spending.without_releases(entry)))
        kinds.append(replay.CHARGE)
        for so_far in spending.releases_of(entry):
            said.append(replay.written_release(so_far))
            kinds.append(replay.RELEASE)
    store.append([(chain.now(), EVERYBODY, kind, body) for kind, body in zip(kinds, said, strict=True)], after=Head())


def place_block(store: Store, name: str, place: int, budget: Budget, bound: Binding | None) -> int:
    """Return the number of a block, which is its place. Write a new block down once; a known one is found again."""
    assert bound is not None
    lines = list(store.lines(kinds=(replay.BLOCK,)))
    names = [replay.block_in(line) for line in lines]
    due = names[place - 1] if place <= len(names) else None
    if place > len(names) + 1 or (due or name) != name or name in names[: place - 1]:
        raise InvalidInput(
            f"Blocks must be appended once, in the order of the ledger. Found {name!r}, where "
            f"{'a new one' if due is None else repr(due)} is next. Append the blocks that the ledger has, and then "
            "new ones."
        )
    if due is None:
        for earlier in range(place):
            binding.require_other(account_of(store, earlier)[0]["table"], bound)
        said = _account(budget, 0.0, bound, block=checked_name("block", name))
        store.append([(chain.now(), EVERYBODY, replay.BLOCK, said)], after=store.head())
    return place


def _account(budget: Budget, slack: float, bound: Binding | None, **more: str) -> str:
    """Return the body of an account line."""
    return replay.body(
        account=encode(LedgerTerms(budget, slack)),
        table=None if bound is None else binding.bound_record(bound),
        options=None if bound is None else dict(bound.options),
        version=binding.version_now(),
        **({} if bound is None else {"fit": bound.fit}),
        **more,
    )


def require_account(store: Store, block: int, budget: Budget, slack: float, bound: Binding | None) -> dict[str, Any]:
    """Return the record of the account. Refuse another account, declaration, version or table than the ledger's own."""
    record, wrote = account_of(store, block)
    account = decode("account", record["account"], LedgerTerms)
    if account.budget != budget:
        raise InvalidInput(
            f"budget must be that of the ledger. Found another: {budget!r}, where it was {account.budget!r}. "
            "Pass the budget it was opened with; another needs a new ledger, to be added to this one's."
        )
    if account.slack != slack:
        raise InvalidInput(
            f"slack must be that of the ledger. Found {slack!r}, where it was {account.slack!r}. Pass what it was "
            "opened with."
        )
    if (bound is None) != (record["table"] is None):
        raise InvalidInput(
            "A ledger must be resumed as it was made: with a table, or without. Found the other of the two. Use "
            "hr.open for a ledger with a table, and hedgerow.ledger.opened for one without."
        )
    if bound is not None:
        binding.require_same(record["table"], record["options"], wrote, bound)
    return record


def is_of_other_version(record: dict[str, Any]) -> bool:
    """Return True if another version of the package made the account."""
    return bool(record["version"] != binding.version_now())


def other_fit(record: dict[str, Any], bound: Binding | None) -> str | None:
    """Return the version of the fit that the account notes, where it is not that of the session."""
    noted = str(record.get("fit", binding.FIRST_FIT))
    return None if bound is None or noted == bound.fit else noted


def account_of(store: Store, block: int = 0) -> tuple[dict[str, Any], str]:
    """Return the account record of the ledger or of an appended block, and the version that the owner accepted last."""
    line = next(iter(store.lines(upto=1)), None)
    if line is None or line.kind != replay.ACCOUNT:
        raise LedgerBroken(
            "A ledger must begin with its account. Found another first line. Restore the ledger from a copy."
        )
    next(check_lines([line], Head()))
    appended = list(store.lines(kinds=(replay.BLOCK,)))
    replay.require_known(store.kinds(), len(appended))
    if block:
        line = appended[block - 1]
    record = replay.record_in(line, account=dict, table=(dict, NoneType), options=(dict, NoneType), version=str)
    accepted = [replay.accepted_in(line) for line in store.lines(kinds=(replay.ACCEPTED,), after=line.number)]
    return record, (accepted or [record["version"]])[-1]


def universe_of(store: Store) -> Universe | None:
    """Return the universe that the ledger's session declared, or None for a ledger without a table."""
    options = account_of(store)[0]["options"]
    return None if options is None else loads(options["universe"], Universe)


def checked_name(role: str, text: str) -> str:
    """Refuse a name that is not a short printable text."""
    return require_name(role, text, may_be_empty=True)
