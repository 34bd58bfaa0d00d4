"""The errors of the five documents this package was built from, each with a number that shows it.

``ERRATA`` has them all; a demonstration fails on the printed formula and passes on ours. ``hedgerow errata`` runs them and
writes docs/errata.md. One file a document; ``exact`` has the privacy losses they are measured by, ``page`` the page.

Beside the package: this sees everything, and only the command line sees this.
"""

from __future__ import annotations

from hedgerow.errata import dwork_roth, fish, talwar, ullman, wang
from hedgerow.errata.erratum import DOCUMENTS, REGISTER, Erratum, Finding, Noted

ERRATA: tuple[Erratum, ...] = tuple(sorted(REGISTER, key=lambda e: DOCUMENTS.index(e.document)))
NOTED: tuple[Noted, ...] = (*ullman.NOTED, *wang.NOTED, *fish.NOTED, *dwork_roth.NOTED, *talwar.NOTED)

__all__ = ["ERRATA", "NOTED", "Erratum", "Finding", "Noted"]
