"""Plan before anything is spent: the mechanism, the number of rows, the error. Nothing here sees a sensitive table.

- ``theorems``: the guarantee of each mechanism, solved for any one of n, α, k, β, ε and δ.
- ``lower_bounds``: errors that no mechanism can undercut.
- ``simulation``: a trial of the practical profile on synthetic or public rows.
- ``plan``: ranks the mechanisms. ``report``: what it found, as a table and in sentences.
"""

from hedgerow.planning.plan import plan
from hedgerow.planning.report import Option, Plan

__all__ = ["Option", "Plan", "plan"]
