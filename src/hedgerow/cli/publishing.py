"""The commands ``publish``, ``verify``, ``describe`` and ``statement``: what is public of a session, in a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import hedgerow as hr
from hedgerow.cli.desk import account, session, spent_line
from hedgerow.cli.file import DEFAULT, File, Place
from hedgerow.cli.output import AsJson, Seed, facts, show
from hedgerow.cli.published_file import file_at
from hedgerow.errors import InvalidInput

if TYPE_CHECKING:
    from rich.console import Console

Key = Annotated[str | None, typer.Option(help="PEM file of the owner's key; to verify also its 64 hexadecimal digits.")]


def publish(
    out: Annotated[Path, typer.Argument(help="File to write, for example people.hedgerow.")],
    answers: Annotated[str, typer.Option(help="Answers to record: all, bought or none.")] = "bought",
    key: Annotated[str | None, typer.Option(help="PEM file of the owner's private key, to sign the file.")] = None,
    place: Place = DEFAULT,
    as_json: AsJson = False,
    seed: Seed = None,
) -> None:
    """Write all that is public of the session into one file, which answers without the table."""
    options: Any = {"answers": answers, "key": key}
    file = File(place)
    file.require_other(out)
    if out.suffix != ".hedgerow":
        raise InvalidInput(f"The file must end in .hedgerow. Found {out.name!r}. Rename it.")
    with session(file, seed=seed, use="read") as opened:
        opened.publish(out, **options)
        record = {**account(opened), "out": str(out), "bytes": out.stat().st_size, "digest": hr.load(out).digest}

    def tell(screen: Console) -> None:
        screen.print(f"Wrote {out}, {record['bytes']:,} bytes. To withdraw it, list its hash:")
        screen.print(str(record["digest"]), soft_wrap=True)
        screen.print(spent_line(record))

    show(record, as_json, tell)


def verify(
    path: Annotated[Path, typer.Argument(help="The release file.")],
    key: Key = None,
    withdrawn: Annotated[
        Path | None, typer.Option(help="File that lists the hashes of withdrawn releases, one per line.")
    ] = None,
    limit: Annotated[str | None, typer.Option(help="Memory that reading may use, as in 2GB.")] = None,
    as_json: AsJson = False,
) -> None:
    """Check a release file: every hash, with --key its signature, with --withdrawn that it was not withdrawn."""
    release = hr.load(path, key=key, limit=limit)
    if withdrawn is not None and release.digest in _hashes(withdrawn):
        raise hr.InvalidRelease(
            f"A release must not be withdrawn. Found its hash {release.digest} in {withdrawn.name}. Ask the owner for "
            "the release that replaces it."
        )
    record = {
        **account(release),
        "file": str(path),
        "digest": release.digest,
        "signer": release.signer,
        "version": release.version,
        "blocks": list(release.blocks),
        "cells": release.universe.size,
        "recorded": len(release.recorded),
        "new_questions": release.new_questions,
    }

    def tell(screen: Console) -> None:
        signed = f"signed by {release.signer}" if release.signer else "not checked"
        shown = {"file": str(path), "whole": "yes", "signature": signed, "hash": release.digest}
        about = {"written by": f"hedgerow {release.version}", "recorded answers": record["recorded"]}
        screen.print(facts([*shown.items(), *about.items(), ("new questions", release.new_questions)]))
        screen.print(spent_line(record))

    show(record, as_json, tell)


def _hashes(path: Path) -> set[str]:
    """Return the hashes that a list of withdrawn releases names: the first word of each line."""
    lines = (line.split("#")[0].split() for line in path.read_text(encoding="utf-8").splitlines())
    return {line[0].lower() for line in lines if line}


def describe(
    place: Place = DEFAULT,
    out: Annotated[Path | None, typer.Option(help="Write the summary to an .html file.")] = None,
    as_json: AsJson = False,
    seed: Seed = None,
) -> None:
    """Summarize the whole table: every column, and the strongest associations. This is free."""
    file = file_at(place)
    file.require_other(out)
    if out is not None and out.suffix != ".html":
        raise InvalidInput(f"--out must be an .html file. Found {out.name!r}. Rename it.")
    with session(file, seed=seed, use="read") as opened:
        found = opened.describe()
        record = {
            **account(opened),
            "columns": found.columns,
            "errors": found.errors,
            "associations": found.association_frame.to_dict("records"),
        }
    if out is not None:
        out.write_text(found.html, encoding="utf-8")
        record["out"] = str(out)
    show(record, as_json, lambda screen: screen.print(f"{found}\n{spent_line(record)}", soft_wrap=True, markup=False))


def statement(
    place: Place = DEFAULT,
    out: Annotated[Path | None, typer.Option(help="Write the statement to a .json, .md or .html file.")] = None,
    as_json: AsJson = False,
    seed: Seed = None,
) -> None:
    """Print the privacy statement: what is protected, how, and what is not covered."""
    file = file_at(place)
    file.require_other(out)
    with session(file, seed=seed, use="read") as opened:
        found = opened.statement()
    if out is not None:
        found.save(out)
    show(dict(found.record), as_json, lambda screen: screen.print(found.markdown, soft_wrap=True, markup=False))
