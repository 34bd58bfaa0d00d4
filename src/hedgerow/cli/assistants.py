"""The command ``mcp``: an AI assistant as an analyst, by the Model Context Protocol over stdin and stdout."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedgerow.cli.desk import first_ledger, session
from hedgerow.cli.file import DEFAULT, File, Place
from hedgerow.cli.output import Seed, complain, log_to_stderr
from hedgerow.cli.published_file import PublishedFile, file_at
from hedgerow.errors import InvalidInput

if TYPE_CHECKING:
    from hedgerow.assistants.desk import PurchaseRule
    from hedgerow.assistants.holdout import ModelHoldout
    from hedgerow.universe.universe import Universe


def mcp(
    release: Annotated[
        Path | None, typer.Argument(help="Release file to serve. Without it, the session of hedgerow.toml.")
    ] = None,
    place: Place = DEFAULT,
    purchases: Annotated[
        float | None,
        typer.Option(help="ε that the assistant may ever spend, by a cap in the ledger. Default: nothing."),
    ] = None,
    approval: Annotated[bool, typer.Option(help="A person must approve each purchase.")] = True,
    analyst: Annotated[
        str, typer.Option("--analyst", "--who", help="Name under which the ledger bills and caps purchases.")
    ] = "assistant",
    holdout: Annotated[
        Path | None, typer.Option(help="Table of held-out rows (.csv, .parquet) on which models are scored.")
    ] = None,
    holdout_epsilon: Annotated[float, typer.Option(help="ε of the holdout, a budget of its own.")] = 1.0,
    seed: Seed = None,
) -> None:
    """Let an AI assistant ask, over stdin and stdout. Free answers only, unless --purchases allows more."""
    from hedgerow._extras import extra

    extra("mcp")
    import anyio

    from hedgerow.assistants.desk import AssistantDesk
    from hedgerow.assistants.protocol import serve_stdio

    file = _file(release, place, purchases)
    # stdout carries the protocol, so everything else goes to stderr; messages of libraries may quote data
    log_to_stderr()
    with session(file, seed=seed, use="read" if purchases is None else "charge") as opened:
        rule = None if purchases is None else _rule(opened, purchases, analyst, approval)
        path = file.path.absolute()
        name = path.stem if isinstance(file, PublishedFile) else path.parent.name
        with _held_out(holdout, opened.universe, holdout_epsilon, seed) as held:
            desk = AssistantDesk(opened, name, rule, holdout=held)
            complain(f"serving {desk.name} over stdin and stdout; {_permission(rule)}")
            anyio.run(serve_stdio, desk)


@contextlib.contextmanager
def _held_out(path: Path | None, universe: Universe, epsilon: float, seed: int | None) -> Iterator[ModelHoldout | None]:
    """Open the holdout, whose charges are kept in a ledger beside its table, so that a restart renews nothing."""
    if path is None:
        yield None
        return
    import pandas as pd

    import hedgerow as hr
    from hedgerow.assistants.holdout import ModelHoldout

    if path.suffix not in (".csv", ".parquet"):
        raise InvalidInput(f"--holdout must end in .csv or .parquet. Found {path.name!r}. Convert it.")
    is_csv = path.suffix == ".csv"
    frame = pd.read_csv(path, dtype=str, keep_default_na=False) if is_csv else pd.read_parquet(path)
    budget = hr.Budget(epsilon, 0.0)
    ledger = hr.ledger.opened(f"sqlite:///{path.absolute().with_suffix('.holdout-ledger')}", budget)
    try:
        yield ModelHoldout(frame, universe, budget, ledger=ledger, seed=seed)
    finally:
        ledger.close()


def _file(release: Path | None, place: Path, purchases: float | None) -> File | PublishedFile:
    """Return the release file, or the configuration file."""
    file = file_at(place) if release is None else PublishedFile(release)
    if isinstance(file, PublishedFile) and purchases is not None:
        raise InvalidInput(
            "--purchases must be left out for a release file, because it has no table to measure. Found it. Leave it "
            "out."
        )
    return file


def _rule(opened: Any, purchases: float, analyst: str, approval: bool) -> PurchaseRule:
    """Set the cap in the ledger, which lasts longer than this process, and return the permission."""
    from hedgerow.assistants.desk import PurchaseRule

    if not analyst:
        raise InvalidInput("--analyst must be a name, because purchases are capped by it. Found none. Give one.")
    first_ledger(opened).cap(analyst, purchases)
    return PurchaseRule(analyst, needs_approval=approval)


def _permission(rule: PurchaseRule | None) -> str:
    if rule is None:
        return "every answer is free, and nothing can be charged"
    return f"purchases are billed to {rule.analyst}, under its cap" + (
        ", each approved by a person" if rule.needs_approval else ""
    )
