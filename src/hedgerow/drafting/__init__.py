"""Draft a universe for a table that has no codebook: from public facts for free, and from the data for a stated price.

- ``draft``: puts the universe together. ``from_schema`` does so without reading any row.
- ``public``: what a codebook and a schema say about a column.
- ``selection``: the common values of a column.
- ``numbers``: the range of numbers and dates, and cuts between them.
- ``kinds``: the kind of values in a column without a type.

docs/proofs/drafting.md states the costs and proves them.
"""

from hedgerow.drafting.draft import draft, from_schema

__all__ = ["draft", "from_schema"]
