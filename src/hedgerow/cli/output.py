"""Output and exit status of the command line: tables for people, JSON for programs, refusals as a sentence with a code.

Answers go to stdout, everything else to stderr. A library's message about an unexpected failure is hidden, because it
may quote a row.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from hedgerow._json import readable
from hedgerow._progress import phases, tell
from hedgerow.cli.environment import redact
from hedgerow.errors import (
    BudgetExceeded,
    DataUnavailable,
    HedgerowError,
    InvalidInput,
    LedgerBroken,
    LedgerUnavailable,
    NotPrivateWarning,
)

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

# exit statuses of a command
FAILED, INPUT, BUDGET, LEDGER, DATA, UNEXPECTED, INTERRUPTED = 1, 2, 3, 4, 5, 70, 130
CODES: list[tuple[type[HedgerowError], int]] = [
    (BudgetExceeded, BUDGET),
    (LedgerUnavailable, LEDGER),
    (LedgerBroken, LEDGER),
    (DataUnavailable, DATA),
]
"""Exit status by kind of refusal; any other refusal is ``INPUT``. docs/cli.md has the table."""

_OF_THE_PARSER: type[Exception] = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON value on stdout, for programs.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Spend without asking for confirmation.")]
Seed = Annotated[
    int | None, typer.Option("--seed", help="Repeatable noise. NOT PRIVATE: for tests only.", show_default=False)
]


class GuardedGroup(TyperGroup):
    """A group of commands that always end with a sentence and a documented code, never with a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command, and turn exceptions into a sentence and an exit status."""
        # Without a handler Python writes errors that libraries log to stderr, and these may quote rows.
        if not logging.getLogger().handlers:
            logging.getLogger().addHandler(logging.NullHandler())
        with _warnings_as_sentences():
            try:
                return super().invoke(ctx)
            except (typer.Exit, typer.Abort, _OF_THE_PARSER):
                raise
            except KeyboardInterrupt as stopped:
                complain(" ".join(["Interrupted.", *getattr(stopped, "__notes__", ())]))
                code = INTERRUPTED
            except HedgerowError as refused:
                complain(str(refused))
                code = next((code for kind, code in CODES if isinstance(refused, kind)), INPUT)
            except OSError as failed:
                if failed.errno == errno.EPIPE:  # the reader of the output has closed it
                    raise
                complain(f"A file must be readable or writable. Found {failed.strerror}: {failed.filename}. Check it.")
                code = INPUT
            except Exception as failed:
                complain(_describe_unexpected(failed))
                code = UNEXPECTED
        raise typer.Exit(code)


def _describe_unexpected(failed: Exception) -> str:
    """Describe an unexpected exception by its type and place, without its message."""
    frames = [frame for frame in traceback.extract_tb(failed.__traceback__) if "hedgerow" in Path(frame.filename).parts]
    where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return (
        f"hedgerow must not fail like this. Found {type(failed).__name__}{where}; its message is hidden, because it "
        "may quote rows. The ledger has what was charged. Please report it."
    )


@contextlib.contextmanager
def _warnings_as_sentences() -> Iterator[None]:
    """Print hedgerow's own warnings as sentences, and drop those of other libraries."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", NotPrivateWarning)

        def say(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
            if category.__module__.startswith("hedgerow"):  # warnings of other libraries may quote rows
                complain(f"warning: {message}")

        warnings.showwarning = say
        yield


def complain(words: str) -> None:
    """Print to stderr, without any value that came from the environment."""
    typer.echo(redact(words), err=True)


def console() -> Console:
    """Return the console for answers. Off a terminal it is 120 columns wide."""
    from rich.console import Console

    return Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else 120, markup=False)


def show(record: Any, as_json: bool, human: Callable[[Console], None]) -> None:
    """Print the record as JSON, or call ``human`` to print it for people."""
    if as_json:
        from hedgerow.report import plain

        typer.echo(readable(plain(record)))
    else:
        human(console())


def table(columns: Sequence[str], lines: Iterable[Sequence[object]], title: str = "") -> Any:
    """Return a table of texts and numbers, with numbers aligned right."""
    from rich import box
    from rich.table import Table

    cells = [[format_cell(cell) for cell in row] for row in lines]
    made = Table(title=title or None, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for i, name in enumerate(columns):
        numeric = all(_is_number(row[i]) for row in cells)
        made.add_column(name, justify="right" if numeric and cells else "left", overflow="fold")
    for row in cells:
        made.add_row(*row)
    return made


def facts(pairs: Iterable[tuple[str, object]]) -> Any:
    """Return names and values in two columns."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    grid.add_column(justify="right", style="bold")
    grid.add_column(overflow="fold")
    for name, fact in pairs:
        grid.add_row(name, format_cell(fact))
    return grid


def format_cell(cell: object) -> str:
    """Format a cell."""
    if cell is None:
        return "–"
    if isinstance(cell, float):
        return "–" if cell != cell else f"{cell:.5g}"
    # a label may contain control characters, which must not reach the terminal
    return "".join(mark if mark.isprintable() or mark == "\n" else "\ufffd" for mark in str(cell))


def _is_number(text: str) -> bool:
    """Return True if a formatted cell is a number."""
    return text in ("–", "free") or text.lstrip("±-+ ").replace(",", "").rstrip("%")[:1].isdigit()


@contextlib.contextmanager
def show_progress(words: str) -> Iterator[None]:
    """Show on a terminal what is taking time."""
    with phases(None):
        tell(lambda: words)
        yield


def confirm(question: str, yes: bool) -> None:
    """Go on only if the user agrees, or has agreed by --yes."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidInput("Spending must be confirmed. Found no terminal to ask on. Add --yes to confirm.")
    if not typer.confirm(question, err=True):
        complain("Nothing was read, and nothing was spent.")
        raise typer.Exit(FAILED)


def log_to_stderr() -> None:
    """Show the project's own log on stderr, and no other: messages of libraries may quote data."""
    own = logging.getLogger("hedgerow")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
    own.addHandler(handler)
    own.propagate = False


def write_table(frame: pd.DataFrame, out: Path) -> None:
    """Write a frame to a .csv or .parquet file."""
    if out.suffix == ".parquet":
        from hedgerow.answering.synthetic import unmix_columns

        unmix_columns(frame).to_parquet(out, index=False)
    else:
        frame.to_csv(out, index=False)


def require_table_file(out: Path | None) -> None:
    """Refuse a file name that does not end in .csv or .parquet."""
    if out is not None and out.suffix not in (".csv", ".parquet"):
        raise InvalidInput(f"--out must end in .csv or .parquet. Found {out.name!r}. Rename it.")
