"""Before anything is spent: which mechanism, how many rows, what error. Nothing here sees a sensitive table.

``theorems`` has what each mechanism promises, both ways; ``simulation`` tries the practical profile on made-up or public rows;
``plan`` ranks them.
"""

from hedgerow.planning.plan import Option, Plan, plan

__all__ = ["Option", "Plan", "plan"]
