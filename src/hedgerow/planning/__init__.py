"""Plan before anything is spent: the mechanism, the number of rows, the error. Nothing here sees a sensitive table.

- ``theorems``: the guarantee of each mechanism, as rows for an error and as an error for rows.
- ``simulation``: a trial of the practical profile on synthetic or public rows.
- ``plan``: ranks the mechanisms.
"""

from hedgerow.planning.plan import Option, Plan, plan

__all__ = ["Option", "Plan", "plan"]
