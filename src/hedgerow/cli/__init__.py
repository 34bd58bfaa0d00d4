"""Command line for the data owner, configured by one file.

``file`` reads the configuration, ``environment`` fills in credentials, ``desk`` opens the session, ``output`` prints
results and sets the exit status. Commands: ``starting`` (init, open, append), ``asking`` (ask, sql, fit, synth),
``planning`` (plan), ``publishing`` (publish, verify, describe, statement), ``ledger``, ``service`` (serve, token),
``approvals``, ``assistants`` (mcp), and ``checks`` (audit, errata, demo, release).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from hedgerow.cli import approvals, asking, assistants, checks, ledger, planning, publishing, service, starting
from hedgerow.cli.output import GuardedGroup

app = typer.Typer(
    cls=GuardedGroup,
    no_args_is_help=True,
    rich_markup_mode=None,  # loading Rich would take most of the time of --help
    pretty_exceptions_enable=False,  # they show the values of variables, and therefore rows
    help="Ask any number of questions about a sensitive table under one privacy budget. Start with docs/owner.md.",
)


def _version(wanted: bool) -> None:
    """Print the version and exit."""
    if wanted:
        from importlib.metadata import version

        typer.echo(version("hedgerow"))
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


_COMMANDS: dict[str, list[tuple[str, Callable[..., None]]]] = {
    "Begin": [("init", starting.init), ("plan", planning.plan), ("open", starting.open_), ("append", starting.append)],
    "Ask": [("ask", asking.ask), ("sql", asking.sql), ("fit", asking.fit), ("synth", asking.synth)],
    "Publish": [
        ("publish", publishing.publish),
        ("verify", publishing.verify),
        ("describe", publishing.describe),
        ("statement", publishing.statement),
    ],
    "Serve": [("serve", service.serve), ("mcp", assistants.mcp)],
    "Check": [("audit", checks.audit), ("errata", checks.errata)],
    "Try": [("demo", checks.demo), ("release", checks.release)],
}
for _panel, _commands in _COMMANDS.items():
    for _name, _command in _commands:
        app.command(_name, rich_help_panel=_panel)(_command)
app.add_typer(ledger.app, name="ledger", rich_help_panel="Check")
app.add_typer(service.tokens, name="token", rich_help_panel="Serve")
app.add_typer(approvals.app, name="approvals", rich_help_panel="Serve")
