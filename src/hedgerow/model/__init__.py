"""The public hypothesis: a log-linear model with exact marginals.

``hypothesis`` is the distribution that mechanisms reweight and sessions answer from, and ``mixture`` combines
several. ``junction_tree`` and ``triangulation`` keep it exact on many attributes, ``tree_sizes`` predicts the size of
a tree, and ``small_tables`` and ``pair_tables`` compute many marginals at once. ``log_linear`` fits a model to
measurements. ``memory_layout``, ``kernels`` and ``flat_sums`` are the inner loops, which ``preparing`` compiles while
a table is read.
"""
