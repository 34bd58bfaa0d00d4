"""The errors in the five documents that this package implements, each with a number that shows it.

``ERRATA`` lists them all. A demonstration fails on the printed formula and passes on ours. ``hedgerow errata`` runs
them and writes docs/errata.md. There is one file per document; ``exact`` computes privacy losses for the
demonstrations, and ``page`` writes the page.

This folder may import everything else, and only the command line imports it.
"""

from __future__ import annotations

from hedgerow.research.errata import dwork_roth, fish, talwar, ullman, wang
from hedgerow.research.errata.erratum import DOCUMENTS, REGISTER, Erratum, ErratumFinding, NotedErratum

ERRATA: tuple[Erratum, ...] = tuple(sorted(REGISTER, key=lambda e: DOCUMENTS.index(e.document)))
NOTED: tuple[NotedErratum, ...] = (*ullman.NOTED, *wang.NOTED, *fish.NOTED, *dwork_roth.NOTED, *talwar.NOTED)

__all__ = ["ERRATA", "NOTED", "Erratum", "ErratumFinding", "NotedErratum"]
