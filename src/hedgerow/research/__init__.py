"""Research beside the product: demonstrations, attackers and broken mechanisms. The product never imports it.

- ``errata``: the errors in the five documents that this package implements, each with a number that shows it.
- ``audit_cases``: every mechanism of this package on its worst neighbours, and a gallery of broken ones;
  ``hedgerow.audit`` has the tools that judge them.
- ``games`` and ``monitors``: the games that define accuracy and privacy, and the thought experiments that prove
  transfer.
- ``analysts``: adaptive analysts who look for a query that is true of the sample only.
- ``hard_instance``: tables on which no private lasso does well.
- ``pages``: the width of the pages that commands write.
- ``stories``: what ``hedgerow demo convex`` and ``hedgerow demo holdout`` tell.
"""
