"""A universe for a table that has no codebook: from what is public for free, and from the data for a stated price.

``draft`` puts it together, ``from_schema`` without any row, ``public`` finds what a schema says. What is drawn is in ``selection`` (which values of a column
are common), ``numbers`` (where numbers and dates lie, and cuts between them) and ``kinds`` (what a column without a type
holds). docs/proofs/drafting.md says what it costs and why.
"""

from hedgerow.drafting.draft import draft, from_schema

__all__ = ["draft", "from_schema"]
