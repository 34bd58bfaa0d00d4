"""Running the demonstrations, and the page that tells what came out."""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hedgerow.errata.erratum import A_PROOF, NOT_YET, Erratum, Finding, Noted
from hedgerow.errors import NotPrivateWarning

INTRODUCTION = """\
# Errata

The errors we met in the five documents that this package was built from. Each has a number that tells the printed formula
from ours: the demonstration fails on the first and passes on the second. They are exact computations, or runs of the
package on made-up tables, and the same every time.

    hedgerow errata            # all of them, in seconds
    hedgerow errata NAME       # one, with what it is about
    hedgerow errata --write    # this page

“Fails” and “holds” are about the claim as stated for the numbers shown. What is noted at the end of a document has no number:
slips of the pen, missing assumptions, and what we could not show. The documents are cited by their own numbering, from the
copies we read; a later version may have mended some of this.
"""


@dataclass(frozen=True)
class Ran:
    """An erratum and what its demonstration found."""

    erratum: Erratum
    printed: Finding
    ours: Finding

    @property
    def behaves(self) -> bool:
        return self.ours.holds and not self.printed.holds


def run(erratum: Erratum) -> Ran:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)  # every table here is made up
        return Ran(erratum, *erratum.demonstrate())


def run_all(errata: Iterable[Erratum], progress: Callable[[int], None] = lambda done: None) -> list[Ran]:
    ran = []
    for erratum in errata:
        ran.append(run(erratum))
        progress(len(ran))
    return ran


def written(ran: list[Ran], noted: Iterable[Noted]) -> str:
    """The page, from what was run in the order of the documents."""
    notes = list(noted)
    parts = [INTRODUCTION, _summary(ran)]
    for document, group in itertools.groupby(ran, key=lambda one: one.erratum.document):
        parts.append(f"## {document}\n")
        parts += [_entry(one) for one in group]
        own = [f"- {note.place}: {_plain(note.note)}" for note in notes if note.document == document]
        if own:
            parts.append("### Noted, without a demonstration\n\n" + "\n".join(own) + "\n")
    return "\n".join(parts)


def _summary(ran: list[Ran]) -> str:
    lines = ["| | place | printed | ours |", "|---|---|---|---|"]
    for one in ran:
        e = one.erratum
        lines.append(f"| [{e.name}](#{e.name}) | {e.place} | {one.printed} | {one.ours} |")
    apart = {where: sum(one.erratum.module == where for one in ran) for where in (NOT_YET, A_PROOF)}
    counts = " and ".join(f"{count} about what is {where}" for where, count in apart.items())
    lines += [
        "",
        f"{len(ran)} errata, of which {counts}: these carry the corrected formula in the demonstration itself.",
    ]
    return "\n".join(lines) + "\n"


def _entry(one: Ran) -> str:
    e = one.erratum
    where = f"`{e.module}`" if e.in_the_package else e.module
    return (
        f"### {e.name}\n\n"
        f"**{e.place}.** Printed: `{e.printed}`\n\n"
        f"{_plain(e.wrong)}\n\n"
        f"Instead: {_plain(e.instead)} ({where}).\n\n"
        f"- Printed: {_plain(one.printed.what)}. **{one.printed}**\n"
        f"- Ours: {_plain(one.ours.what)}. **{one.ours}**\n"
    )


def _plain(text: str) -> str:
    """Without what Markdown would take for emphasis or a link."""
    return re.sub(r"([*_\[\]])", r"\\\1", text)
