"""Cases for the audit: our own mechanisms on their worst neighbours, and broken mechanisms that it must catch.

- ``gallery``: broken mechanisms, the claim of each, and the audit that catches it.
- ``own_mechanisms``: every mechanism of this package on its worst neighbours (``convex_cases``, ``session_cases``,
  ``erm_cases``, ``row_cases``).
- ``report``: run all of them and write docs/audit.md.
"""
