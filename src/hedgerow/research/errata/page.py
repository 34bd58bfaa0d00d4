"""Running the demonstrations, and writing the page that reports them."""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hedgerow.errors import NotPrivateWarning
from hedgerow.research.errata.erratum import A_PROOF, NOT_YET, Erratum, ErratumFinding, NotedErratum
from hedgerow.research.pages import short_lines

INTRODUCTION = """\
# Errata

This page lists the errors found in the five documents that this package implements. Each error has a number that
tells the printed formula from ours: the demonstration fails on the former and passes on the latter. The
demonstrations are exact computations, or runs of the package on made-up tables, and give the same result every time.

    hedgerow errata            # run all, in seconds
    hedgerow errata NAME       # run one, with an explanation
    hedgerow errata --write    # write this page

“Fails” and “holds” refer to the claim as stated, for the numbers shown. The notes at the end of a document have no
number: they are slips of the pen, missing assumptions, and errors that could not be demonstrated. The documents are
cited by their own numbering, from the copies at hand. A later version may have corrected some of these errors. Where
an error hangs on one symbol, the entry says “of the copy at hand”, because the copy itself may be misprinted there.
"""


@dataclass(frozen=True)
class ErratumRun:
    """An erratum with the two findings of its demonstration."""

    erratum: Erratum
    printed: ErratumFinding
    ours: ErratumFinding

    @property
    def behaves(self) -> bool:
        """True if the printed formula fails and ours holds."""
        return self.ours.holds and not self.printed.holds


def run_demonstration(erratum: Erratum) -> ErratumRun:
    """Run one demonstration."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)  # every table here is made up
        return ErratumRun(erratum, *erratum.demonstrate())


def run_all(errata: Iterable[Erratum], progress: Callable[[int], None] = lambda done: None) -> list[ErratumRun]:
    """Run all demonstrations."""
    ran = []
    for erratum in errata:
        ran.append(run_demonstration(erratum))
        progress(len(ran))
    return ran


def page_text(ran: list[ErratumRun], noted: Iterable[NotedErratum]) -> str:
    """Return the page, for demonstrations in the order of their documents."""
    notes = list(noted)
    parts = [INTRODUCTION, _summary(ran)]
    for document, group in itertools.groupby(ran, key=lambda one: one.erratum.document):
        parts.append(f"## {document}\n")
        parts += [_entry(one) for one in group]
        own = [f"- {note.place}: {_plain(note.note)}" for note in notes if note.document == document]
        if own:
            parts.append("### Noted, without a demonstration\n\n" + "\n".join(own) + "\n")
    return short_lines("\n".join(parts))


def _summary(ran: list[ErratumRun]) -> str:
    """Return the table of all errata."""
    lines = ["| | place | printed | ours |", "|---|---|---|---|"]
    for one in ran:
        e = one.erratum
        lines.append(f"| [{e.name}](#{e.name}) | {e.place} | {one.printed} | {one.ours} |")
    apart = {where: sum(one.erratum.module == where for one in ran) for where in (NOT_YET, A_PROOF)}
    counts = " and ".join(f"{count} marked “{where}”" for where, count in apart.items())
    lines += [
        "",
        f"{len(ran)} errata, of which {counts}: these carry the corrected formula in the demonstration itself.",
    ]
    return "\n".join(lines) + "\n"


def _entry(one: ErratumRun) -> str:
    """Return the section of one erratum."""
    e = one.erratum
    where = f"`{e.module}`" if e.in_the_package else e.module
    copy = " This is one symbol of the copy at hand, whose misprint cannot be excluded." if e.in_the_copy else ""
    return (
        f"### {e.name}\n\n"
        f"**{e.place}.** Printed: `{e.printed}`\n\n"
        f"{_plain(e.wrong)}{copy}\n\n"
        f"Instead: {_plain(e.instead)} ({where}).\n\n"
        f"- Printed: {_plain(one.printed.what)}. **{one.printed}**\n"
        f"- Ours: {_plain(one.ours.what)}. **{one.ours}**\n"
    )


def _plain(text: str) -> str:
    """Escape the characters that Markdown would take for emphasis or a link."""
    return re.sub(r"([*_\[\]])", r"\\\1", text)
