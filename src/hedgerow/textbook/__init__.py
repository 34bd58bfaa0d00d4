"""One paper's mechanism per file, corrected where the paper is wrong, with the guarantee it states.

- Learning: ``multiplicative_weights``.
- Counts: ``sparse_vector``, ``pmw`` (online), ``mwem`` (offline), ``small_db``.
- Counts from samples of the rows: ``subsampled``, ``scq``, ``descent_by_queries``.
- Convex questions: ``convex_pmw``, ``convex_offline`` and their ``oracles``.
- Guarantees of the theorems: ``bounds``.
"""
