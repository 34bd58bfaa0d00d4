"""One paper's mechanism a file, corrected where the paper is wrong, with the guarantee it states.

Learning: ``multiplicative_weights``. Counts: ``sparse_vector``, ``pmw`` (online), ``mwem`` (offline), ``small_db``. Convex questions:
``convex_pmw``, ``convex_offline`` and their ``oracles``. What the theorems promise: ``bounds``; how they are tested: ``games``.
"""
